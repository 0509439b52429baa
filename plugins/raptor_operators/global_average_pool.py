"""The mean over all axes after batch and channels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs

from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice, any_layout
from raptor_core.spatial.kernel import Affine, KernelBuilder, View
from raptor_operators.views import Located, along_axis, combine, copy_view, loop_index, scale

_FIRST_AXIS = 2


@attrs.frozen(kw_only=True)
class GlobalAveragePool(ComputeOp):
    """result[n, c, 0, ...] = the mean of operand[n, c, ...]."""

    kind = "operators.global_average_pool"

    def verify(self, types: Types) -> None:
        operand, result = types[self.operands[0]], types[self.results[0]]
        if operand.rank < _FIRST_AXIS or result.shape != operand.shape[:2] + (1,) * (operand.rank - _FIRST_AXIS):
            raise self.fail(f"{operand} does not average to {result}")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        shape = types[self.operands[0]].shape
        return Box(out.lo[:2] + (0,) * (len(shape) - _FIRST_AXIS), out.hi[:2] + shape[2:])

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        return any_layout(self, types, candidates)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        operand = operands[0]
        assert operand is not None
        innermost = next((axis for axis in reversed(operand.order) if operand.shape[axis] > 1), 0)
        if innermost >= _FIRST_AXIS:
            _means(k, result, operand)
        else:
            _sums(k, result, operand)


def _means(k: KernelBuilder, result: View, operand: View) -> None:
    """For each channel the means of its gap-free runs, and their mean: all runs are of one length."""
    inner, count = [], 1
    for axis in reversed(operand.order):
        if operand.shape[axis] > 1:
            if axis < _FIRST_AXIS or operand.strides[axis] != count:
                break
            count *= operand.shape[axis]
        inner.append(axis)
    runs = [axis for axis in operand.order if axis >= _FIRST_AXIS and axis not in inner]
    number = math.prod(operand.shape[axis] for axis in runs)
    means = k.scratch(number) if number > 1 else None
    with k.loops(operand.shape[:2]) as channel:
        target = result.at(*channel, *[0] * (len(operand.shape) - _FIRST_AXIS))
        with k.loops([operand.shape[axis] for axis in runs]) as variables:
            index = loop_index(len(operand.shape), (0, 1, *runs), (*channel, *variables))
            place = Affine()
            for axis, variable in zip(runs, variables, strict=True):
                place = place * operand.shape[axis] + variable
            k.mean(target if means is None else means + place, operand.at(*index), 1, count)
        if means is not None:
            k.mean(target, means, 1, number)


def _sums(k: KernelBuilder, result: View, operand: View) -> None:
    """Vectors of channels added up, whole rows at a time while there are rows."""
    axes = [axis for axis in operand.order if axis >= _FIRST_AXIS and operand.shape[axis] > 1]
    if not axes:
        copy_view(k, Located(result), Located(operand))
        return
    current = operand
    for number, axis in enumerate(axes, 1):
        dst = result
        if number < len(axes):
            shape = tuple(1 if a == axis else extent for a, extent in enumerate(current.shape))
            dst = View.packed(k.scratch(math.prod(shape)).slot, shape, operand.order)
        first, second = (Located(along_axis(current, axis, start, 1)) for start in (0, 1))
        combine(k, "add", Located(dst), first, second)
        if current.shape[axis] > 2:
            with k.loop(current.shape[axis] - 2) as turn:
                further = attrs.evolve(second, origin=(turn + 1) * current.strides[axis])
                combine(k, "add", Located(dst), Located(dst), further)
        current = dst
    scale(k, result, 1.0 / math.prod(operand.shape[axis] for axis in axes))
