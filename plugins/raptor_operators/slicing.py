"""Slice, Split and Expand: parts and repetitions along axes."""

from __future__ import annotations

from typing import ClassVar

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_operators.append import append_expand, append_slice
from raptor_operators.lowering import Lowering, Values, attribute, data_operand, integers, normalised_axis


class SliceLowering(Lowering):
    """Starts, ends and steps of any sign."""

    name: ClassVar[str] = "Slice"
    summary: ClassVar[str] = "slices with any steps"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        x, result = module.types[node.operands[0]], module.types[node.results[0]]
        ranges = _slice_ranges(node, module.constants, x.shape)
        if ranges is None:
            return "starts, ends, axes and steps do not agree"
        if tuple(map(len, ranges)) != result.shape:
            return f"the slice of {x} is not {result}"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        ranges = _slice_ranges(node, rewriter.constants, rewriter.types[value].shape)
        assert ranges is not None
        append_slice(
            rewriter,
            node.name,
            value,
            [indices.start for indices in ranges],
            [indices.step for indices in ranges],
            [len(indices) for indices in ranges],
            node.results[0],
        )


def _slice_ranges(node: OnnxNode, values: Values, shape: tuple[int, ...]) -> list[range] | None:
    """The operand indices along every axis."""
    starts, ends = integers(node, "starts", values, 1), integers(node, "ends", values, 2)
    if starts is None or ends is None:
        return None
    axes = integers(node, "axes", values, 3) or tuple(range(len(starts)))
    steps = integers(node, "steps", values, 4) or (1,) * len(starts)
    if {len(starts)} != {len(ends), len(axes), len(steps)} or 0 in steps:
        return None
    ranges = [range(extent) for extent in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -len(shape) <= axis < len(shape):
            return None
        place = normalised_axis(axis, len(shape))
        extent = shape[place]
        # A negative end that is still negative after counting from the back lies before the first index.
        bound = None if step < 0 and end < -extent else end
        ranges[place] = range(extent)[start:bound:step]
    return ranges


class SplitLowering(Lowering):
    """Consecutive parts along an axis; their extents are those of the results."""

    name: ClassVar[str] = "Split"
    summary: ClassVar[str] = "parts along any axis"
    results: ClassVar[int | None] = None

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        x = module.types[node.operands[0]]
        axis = attribute(node, "axis", 0)
        if not -x.rank <= axis < x.rank:
            return f"axis {axis} is outside a tensor of {x.rank} axes"
        place = normalised_axis(axis, x.rank)
        extents = [module.types[result].shape[place] for result in node.results if result]
        if len(extents) != len(node.results) or sum(extents) != x.shape[place]:
            return f"parts of {extents} along axis {axis} do not make up {x}"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        rank, start = rewriter.types[value].rank, 0
        axis = normalised_axis(attribute(node, "axis", 0), rank)
        for result in node.results:
            shape = rewriter.types[result].shape
            offsets = [start if a == axis else 0 for a in range(rank)]
            append_slice(rewriter, node.name, value, offsets, (1,) * rank, shape, result)
            start += shape[axis]


class ExpandLowering(Lowering):
    """Repetition by broadcasting to the result's shape."""

    name: ClassVar[str] = "Expand"
    summary: ClassVar[str] = "repetition by broadcasting"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value, result = data_operand(rewriter, node.operands[0]), node.results[0]
        append_expand(rewriter, node.name, value, rewriter.types[result].shape, result)


SLICE = SliceLowering()
SPLIT = SplitLowering()
EXPAND = ExpandLowering()
