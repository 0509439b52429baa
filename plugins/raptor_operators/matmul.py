"""MatMul with one constant side, batched or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_operators.append import append_product, append_reshape, append_transpose
from raptor_operators.lowering import Lowering, constant, data_operand, float32

Matrices = npt.NDArray[np.float32]


class MatMulLowering(Lowering):
    """Becomes matrix products over the last axis, with rearrangements where the constant is batched or on the left."""

    name: ClassVar[str] = "MatMul"
    summary: ClassVar[str] = "matrix product with one constant side"
    data_inputs: ClassVar[int | None] = 2

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        if constant(module.constants, node, 0) is None and constant(module.constants, node, 1) is None:
            return "both sides are computed at run time, and crossbars hold a constant one"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        a, b = (data_operand(rewriter, operand) for operand in node.operands)
        result = node.results[0]
        shape = rewriter.types[result].shape
        right = constant(rewriter.constants, node, 1)
        if right is None:
            self._left_constant(node.name, rewriter, float32(rewriter.constants[a]), b, result)
            return
        matrices = float32(right if right.ndim > 1 else right[:, None])
        if rewriter.types[a].rank == 1 and matrices.ndim > 2:
            a = append_reshape(rewriter, node.name, a, (1, *rewriter.types[a].shape))
        elif right.ndim > 1:
            _multiply(rewriter, node.name, a, matrices, result)
            return
        append_reshape(rewriter, node.name, _multiply(rewriter, node.name, a, matrices, None), shape, result)

    def _left_constant(self, name: str, rewriter: Rewriter, left: Matrices, b: str, result: str) -> None:
        """W X as the transpose of X' W'."""
        rank = rewriter.types[b].rank
        shape = rewriter.types[result].shape
        if rank > 1:
            b = append_transpose(rewriter, name, b, _swapped(rank))
        matrices = np.swapaxes(left if left.ndim > 1 else left[None, :], -1, -2)
        if rank == 1 and matrices.ndim > 2:
            b = append_reshape(rewriter, name, b, (1, *rewriter.types[b].shape))
        elif rank == 1 and left.ndim > 1:
            _multiply(rewriter, name, b, matrices, result)
            return
        product = _multiply(rewriter, name, b, matrices, None)
        if rank > 1 and left.ndim > 1:
            append_transpose(rewriter, name, product, _swapped(rewriter.types[product].rank), result)
        else:
            append_reshape(rewriter, name, product, shape, result)


def _swapped(rank: int) -> tuple[int, ...]:
    """The permutation that exchanges the last two axes."""
    return (*range(rank - 2), rank - 1, rank - 2)


def _multiply(rewriter: Rewriter, name: str, value: str, matrices: Matrices, result: str | None) -> str:
    """value [..., K] times constant matrices [..., K, N] with broadcasting of the leading axes.

    A value of one axis stands for itself; it needs matrices without leading axes.
    """
    batch = matrices.shape[:-2]
    if math.prod(batch) == 1:
        rank, weights = rewriter.types[value].rank, matrices.reshape(matrices.shape[-2:]).T
        if matrices.ndim <= max(2, rank):
            return append_product(rewriter, name, value, weights, result=result)
        product = append_product(rewriter, name, value, weights)
        full = (1,) * (matrices.ndim - rank) + rewriter.types[product].shape
        return append_reshape(rewriter, name, product, full, result)
    return _multiply_batched(rewriter, name, value, matrices, result)


def _multiply_batched(rewriter: Rewriter, name: str, value: str, matrices: Matrices, result: str | None) -> str:
    """One grouped product: batch axes that only the constant has become output channels, shared ones groups.

    The value is brought to [own batch axes, M, shared axes, K], whose last part is one axis of groups x K channels;
    the product [own, M, shared, constant's axes, N] is then put in order.
    """
    shape = rewriter.types[value].shape
    if len(shape) == 1:
        shape = (1, *shape)
    rank = max(len(shape), matrices.ndim)
    shape = (1,) * (rank - len(shape)) + shape
    matrices = matrices.reshape((1,) * (rank - matrices.ndim) + matrices.shape)
    axes = range(rank - 2)
    shared = [a for a in axes if shape[a] > 1 and matrices.shape[a] > 1]
    spread = [a for a in axes if shape[a] == 1 and matrices.shape[a] > 1]
    own = [a for a in axes if matrices.shape[a] == 1]
    rows, depth, columns = shape[-2], shape[-1], matrices.shape[-1]
    groups = math.prod(shape[a] for a in shared)

    value = _reshaped(rewriter, name, value, shape)
    value = _transposed(rewriter, name, value, [*own, *spread, rank - 2, *shared, rank - 1])
    own_extents = [shape[a] for a in own]
    value = _reshaped(rewriter, name, value, [*own_extents, rows, groups * depth])
    # [shared, spread, N, K] as [output channels, K]: the channels of a group follow each other.
    weights = matrices.transpose(*own, *shared, *spread, rank - 1, rank - 2).reshape(-1, depth)
    product = append_product(rewriter, name, value, weights, groups=groups)

    constant_axes = [*shared, *spread]
    extents = [*own_extents, rows, *(matrices.shape[a] for a in constant_axes), columns]
    product = _reshaped(rewriter, name, product, extents)
    place = {a: n for n, a in enumerate([*own, rank - 2, *constant_axes, rank - 1])}
    return append_transpose(rewriter, name, product, [place[a] for a in range(rank)], result)


def _reshaped(rewriter: Rewriter, name: str, value: str, shape: Sequence[int]) -> str:
    if rewriter.types[value].shape == tuple(shape):
        return value
    return append_reshape(rewriter, name, value, shape)


def _transposed(rewriter: Rewriter, name: str, value: str, permutation: Sequence[int]) -> str:
    if list(permutation) == list(range(len(permutation))):
        return value
    return append_transpose(rewriter, name, value, permutation)


MATMUL = MatMulLowering()
