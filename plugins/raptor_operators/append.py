"""Appending the operations that several lowerings need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from raptor_core.ir.module import Rewriter
from raptor_core.ir.types import TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import Pointwise, PointwiseFunction
from raptor_core.spatial.plans import ConvPlan
from raptor_operators.binary import Binary
from raptor_operators.pieces import Piece
from raptor_operators.rearrange import Rearrange
from raptor_operators.reshape import Reshape, axis_groups


def new_result(rewriter: Rewriter, hint: str, shape: Sequence[int], result: str | None) -> str:
    """``result`` when it is given, else a new float32 value."""
    return result if result is not None else rewriter.new_value(hint, TensorType(tuple(shape)))


def append_pointwise(
    rewriter: Rewriter, name: str, value: str, function: PointwiseFunction, result: str | None = None
) -> str:
    """``function`` of every element."""
    result = new_result(rewriter, f"{value}.pointwise", rewriter.types[value].shape, result)
    rewriter.append(Pointwise(name=name, operands=(value,), results=(result,), function=function))
    return result


def append_binary(rewriter: Rewriter, name: str, function: str, a: str, b: str, result: str | None = None) -> str:
    """a ``function`` b with broadcasting."""
    shape = np.broadcast_shapes(rewriter.types[a].shape, rewriter.types[b].shape)
    result = new_result(rewriter, f"{a}.{function}", shape, result)
    rewriter.append(Binary(name=name, operands=(a, b), results=(result,), function=function))
    return result


def append_reshape(rewriter: Rewriter, name: str, value: str, shape: Sequence[int], result: str | None = None) -> str:
    """The same elements in another shape: a move along axes where no axes are joined or split."""
    source = rewriter.types[value].shape
    result = new_result(rewriter, f"{value}.reshaped", shape, result)
    groups = axis_groups(source, shape)
    if not all(group.is_single for group in groups):
        rewriter.append(Reshape(name=name, operands=(value,), results=(result,)))
        return result
    axes = [-1] * len(source)
    for group in groups:
        axes[group.operand_axes[0]] = group.result_axes[0]
    _append_along_axes(rewriter, name, value, shape, axes, result)
    return result


def append_transpose(
    rewriter: Rewriter, name: str, value: str, permutation: Sequence[int], result: str | None = None
) -> str:
    """Result axis n is axis ``permutation[n]`` of the value."""
    source = rewriter.types[value].shape
    shape = [source[axis] for axis in permutation]
    result = new_result(rewriter, f"{value}.transposed", shape, result)
    axes = [list(permutation).index(axis) for axis in range(len(source))]
    _append_along_axes(rewriter, name, value, shape, axes, result)
    return result


def append_expand(rewriter: Rewriter, name: str, value: str, shape: Sequence[int], result: str | None = None) -> str:
    """The value repeated along axes of extent 1 and new leading axes, as numpy broadcasts."""
    source = rewriter.types[value].shape
    result = new_result(rewriter, f"{value}.expanded", shape, result)
    first = len(shape) - len(source)
    axes = [-1 if extent == 1 else first + axis for axis, extent in enumerate(source)]
    _append_along_axes(rewriter, name, value, shape, axes, result)
    return result


def _append_along_axes(
    rewriter: Rewriter, name: str, value: str, shape: Sequence[int], axes: Sequence[int], result: str
) -> None:
    steps = tuple(1 if axis >= 0 else 0 for axis in axes)
    piece = Piece(operand=0, box=Box.whole(shape), axes=tuple(axes), offsets=(0,) * len(axes), steps=steps)
    rewriter.append(Rearrange(name=name, operands=(value,), results=(result,), pieces=(piece,)))


def append_slice(
    rewriter: Rewriter,
    name: str,
    value: str,
    offsets: Sequence[int],
    steps: Sequence[int],
    shape: Sequence[int],
    result: str | None = None,
) -> str:
    """Along each axis, index i of the result is index ``offsets + steps * i`` of the value."""
    result = new_result(rewriter, f"{value}.slice", shape, result)
    axes = tuple(range(len(shape)))
    piece = Piece(operand=0, box=Box.whole(shape), axes=axes, offsets=tuple(offsets), steps=tuple(steps))
    rewriter.append(Rearrange(name=name, operands=(value,), results=(result,), pieces=(piece,)))
    return result


def append_product(
    rewriter: Rewriter,
    name: str,
    value: str,
    weights: npt.NDArray[np.float32],
    *,
    bias: npt.NDArray[np.float32] | None = None,
    groups: int = 1,
    result: str | None = None,
) -> str:
    """The matrix product over the last axis with constant ``weights`` [outputs, inputs / groups]."""
    shape = (*rewriter.types[value].shape[:-1], weights.shape[0])
    result = new_result(rewriter, f"{value}.product", shape, result)
    operands = [value, rewriter.new_constant(f"{result}.weights", weights)]
    if bias is not None:
        operands.append(rewriter.new_constant(f"{result}.bias", bias))
    rewriter.append(
        ConvPlan(name=name, operands=tuple(operands), results=(result,), groups=groups, channel_axis=len(shape) - 1)
    )
    return result
