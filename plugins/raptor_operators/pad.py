"""Pad, in every mode."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.spatial.boxes import Box
from raptor_operators.lowering import Lowering, Values, attribute, constant, data_operand, integers, normalised_axis
from raptor_operators.pieces import Piece
from raptor_operators.rearrange import Rearrange, Segment, affine_segments

_MODES = ("constant", "reflect", "edge", "wrap")


class PadLowering(Lowering):
    """Every axis is a row of affine segments; negative padding cuts off."""

    name: ClassVar[str] = "Pad"
    summary: ClassVar[str] = "padding with a constant, a reflection, the edge or the other end"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        mode = attribute(node, "mode", "constant")
        if mode not in _MODES:
            return f"mode '{mode}' is not one of {', '.join(_MODES)}"
        x, result = module.types[node.operands[0]], module.types[node.results[0]]
        pads = _pads(node, module.constants, x.rank)
        if pads is None:
            return "the pads are not two for each axis"
        padded = tuple(extent + begin + end for extent, (begin, end) in zip(x.shape, pads, strict=True))
        return None if padded == result.shape else f"{x} padded by {pads} is not {result}"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        shape = rewriter.types[value].shape
        pads = _pads(node, rewriter.constants, len(shape))
        assert pads is not None
        mode = attribute(node, "mode", "constant")
        by_axis = [_segments(mode, extent, *ends) for extent, ends in zip(shape, pads, strict=True)]
        pieces = tuple(_piece(segments) for segments in itertools.product(*by_axis))
        rewriter.append(
            Rearrange(
                name=node.name,
                operands=(value,),
                results=node.results[:1],
                pieces=pieces,
                fill=_fill(node, rewriter.constants),
            )
        )


def _pads(node: OnnxNode, values: Values, rank: int) -> list[tuple[int, int]] | None:
    """Elements added before and after, for every axis."""
    given = integers(node, "pads", values, 1)
    axes = integers(node, "axes", values, 3) or tuple(range(rank))
    if given is None or len(given) != 2 * len(axes):
        return None
    pads = [(0, 0)] * rank
    for axis, ends in zip(axes, zip(given[: len(axes)], given[len(axes) :], strict=True), strict=True):
        if not -rank <= axis < rank:
            return None
        pads[normalised_axis(axis, rank)] = ends
    return pads


def _fill(node: OnnxNode, values: Values) -> float:
    given = attribute(node, "value", None)
    array = constant(values, node, 2) if given is None else np.float32(given)
    return 0.0 if array is None else float(np.float32(np.asarray(array).reshape(())))


def _segments(mode: str, extent: int, begin: int, end: int) -> list[Segment]:
    indices = np.arange(-begin, extent + end)
    if mode == "constant":
        inside = np.flatnonzero((indices >= 0) & (indices < extent))
        return [Segment(int(inside[0]), int(inside[-1]) + 1, -begin, 1)] if inside.size else []
    return affine_segments(_folded(mode, indices, extent))


def _folded(mode: str, indices: npt.NDArray[np.int64], extent: int) -> npt.NDArray[np.int64]:
    """Indices outside an axis brought inside."""
    if mode == "edge":
        return np.clip(indices, 0, extent - 1)
    if mode == "wrap":
        return indices % extent
    period = max(1, 2 * (extent - 1))
    folded = indices % period
    return np.minimum(folded, period - folded) if extent > 1 else folded


def _piece(segments: tuple[Segment, ...]) -> Piece:
    return Piece(
        operand=0,
        box=Box(tuple(segment.lo for segment in segments), tuple(segment.hi for segment in segments)),
        axes=tuple(range(len(segments))),
        offsets=tuple(segment.offset for segment in segments),
        steps=tuple(segment.step for segment in segments),
    )


PAD = PadLowering()
