"""Softmax: the operation and its lowering."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

import attrs

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice, all_same_layout
from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_operators.lowering import Lowering, normalised_axis
from raptor_operators.views import Located, copy_view, loop_index, sub_view


@attrs.frozen(kw_only=True)
class Softmax(ComputeOp):
    """exp(x) over its sum along ``axes`` taken together."""

    kind = "operators.softmax"

    axes: tuple[int, ...]

    def verify(self, types: Types) -> None:
        operand, result = types[self.operands[0]], types[self.results[0]]
        if operand.shape != result.shape or any(axis not in range(operand.rank) for axis in self.axes):
            raise self.fail(f"softmax over axes {self.axes} of {operand} is not {result}")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        box = out
        for axis in self.axes:
            box = box.replace(axis, 0, types[self.operands[0]].shape[axis])
        return box

    def cut_granularity(self, types: Types) -> tuple[int, ...]:
        shape = types[self.results[0]].shape
        return tuple(extent if axis in self.axes else 1 for axis, extent in enumerate(shape))

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        return all_same_layout(self, types, candidates)

    def kernel_key(self, out: Box, types: Types) -> Hashable:
        """Where a box lies along the axes matters only when it does not cover them."""
        return self._offset(out, types)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        operand = operands[0]
        assert operand is not None
        same = result.shape == operand.shape and result.order == operand.order
        if same and self._lies_in_runs(operand) and self._lies_in_runs(result):
            self._in_place(k, result, operand)
            return
        others = [axis for axis in operand.order if axis not in self.axes]
        order = (*others, *(axis for axis in operand.order if axis in self.axes))
        length = math.prod(operand.shape[axis] for axis in self.axes)
        number = math.prod(operand.shape) // length
        area = k.scratch(number * length)
        packed = View.packed(area.slot, operand.shape, order)
        copy_view(k, Located(packed), Located(operand))
        with k.loop(number) as row:
            k.unary("softmax", area + row * length, area + row * length, length)
        copy_view(k, Located(result), Located(sub_view(packed, self._offset(out, types), result.shape)))

    def _offset(self, out: Box, types: Types) -> tuple[int, ...]:
        region = self.region(0, out, types)
        return tuple(low - first for low, first in zip(out.lo, region.lo, strict=True))

    def _lies_in_runs(self, view: View) -> bool:
        """Whether the elements along the axes are gap-free, nothing else in between."""
        count = 1
        for axis in reversed(view.order):
            if axis in self.axes and view.shape[axis] > 1:
                if view.strides[axis] != count:
                    return False
                count *= view.shape[axis]
        return True

    def _in_place(self, k: KernelBuilder, result: View, operand: View) -> None:
        others = [axis for axis in result.order if axis not in self.axes]
        length = math.prod(operand.shape[axis] for axis in self.axes)
        with k.loops([result.shape[axis] for axis in others]) as variables:
            index = loop_index(len(result.shape), others, variables)
            k.unary("softmax", result.at(*index), operand.at(*index), length)


class SoftmaxLowering(Lowering):
    """Softmax along an axis; before opset 13 over all axes from there on."""

    name: ClassVar[str] = "Softmax"
    summary: ClassVar[str] = "softmax along any axis, or over all trailing axes as before opset 13"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        rank = module.types[node.operands[0]].rank
        axis = node.attributes.get("axis", -1 if node.version >= 13 else 1)
        in_range = -rank <= axis < rank or (node.version < 13 and axis == rank)
        return None if in_range else f"axis {axis} is outside a tensor of {rank} axes"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        rank = rewriter.types[node.operands[0]].rank
        axis = node.attributes.get("axis", -1 if node.version >= 13 else 1)
        first = normalised_axis(axis, rank)
        axes = tuple(range(first, rank)) if node.version < 13 else (first,)
        rewriter.append(Softmax(name=node.name, operands=node.operands[:1], results=node.results[:1], axes=axes))


SOFTMAX = SoftmaxLowering()
