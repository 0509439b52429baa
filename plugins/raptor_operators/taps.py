"""Sliding windows along one axis at a time: which outputs each window position can serve, and the passes over them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_core.spatial.plans import Window
from raptor_operators.views import Located, along_axis, combine, copy_view, fill_view


@attrs.frozen
class Tap:
    """One window position: outputs ``first`` .. ``last - 1`` have it inside the operand.

    Output ``first`` reads operand index ``start``, counted from the first index that any output reads.
    """

    first: int
    last: int
    start: int


@attrs.frozen
class AxisTaps:
    """The window along one axis for a box of outputs: only the taps that lie inside the operand for some output."""

    outputs: int
    stride: int
    taps: tuple[Tap, ...]

    @property
    def is_subsampling(self) -> bool:
        """Whether every output is one element of the operand."""
        return len(self.taps) == 1 and self.covers(self.taps[0])

    def covers(self, tap: Tap) -> bool:
        """Whether all outputs have the tap inside the operand."""
        return tap.first == 0 and tap.last == self.outputs


def operand_interval(window: Window, axis: int, lo: int, hi: int, extent: int) -> tuple[int, int]:
    """The operand indices that outputs lo .. hi-1 read along windowed axis ``axis``, padding left out."""
    start, stop = window.input_interval(axis, lo, hi)
    return max(0, start), min(extent, stop)


def axis_taps(window: Window, axis: int, lo: int, hi: int, extent: int) -> AxisTaps:
    """The taps of outputs lo .. hi-1 along windowed axis ``axis`` of an operand with ``extent`` indices there."""
    stride, outputs = window.strides[axis], hi - lo
    begin, _ = operand_interval(window, axis, lo, hi, extent)
    taps = []
    for position in range(window.kernel[axis]):
        origin = lo * stride - window.pads_begin[axis] + position * window.dilations[axis]
        first = max(0, -(origin // stride))
        last = min(outputs, (extent - 1 - origin) // stride + 1)
        if first < last:
            taps.append(Tap(first, last, origin + first * stride - begin))
    return AxisTaps(outputs, stride, tuple(taps))


def reduce_windows(
    k: KernelBuilder, op: str, identity: float, result: View, operand: View, windows: Sequence[tuple[int, AxisTaps]]
) -> None:
    """result = the windows of ``operand`` reduced with ``op`` (add or max), one axis after the other.

    ``windows`` names the axes with their taps. Axes far from the innermost come first: there the runs are longest.
    ``identity`` is the value of a window that has no element inside the operand.
    """
    current, passes = operand, []
    for axis, taps in sorted(windows, key=lambda entry: result.order.index(entry[0])):
        if taps.is_subsampling:
            current = along_axis(current, axis, taps.taps[0].start, taps.outputs, taps.stride)
        else:
            passes.append((axis, taps))
    if not passes:
        copy_view(k, Located(result), Located(current))
    for number, (axis, taps) in enumerate(passes, 1):
        dst = result
        if number < len(passes):
            shape = tuple(taps.outputs if a == axis else extent for a, extent in enumerate(current.shape))
            slot = k.scratch(math.prod(shape)).slot
            dst = View.packed(slot, shape, result.order)
        _reduce_axis(k, op, identity, dst, current, axis, taps)
        current = dst


def _reduce_axis(k: KernelBuilder, op: str, identity: float, dst: View, src: View, axis: int, taps: AxisTaps) -> None:
    """One pass: a tap that serves all outputs starts the result, the others join it where they serve."""

    def source(tap: Tap, first: int, last: int) -> Located:
        start = tap.start + (first - tap.first) * taps.stride
        return Located(along_axis(src, axis, start, last - first, taps.stride))

    def part(first: int, last: int) -> Located:
        return Located(along_axis(dst, axis, first, last - first))

    by_width = sorted(taps.taps, key=lambda tap: tap.first - tap.last)
    if not by_width or not taps.covers(by_width[0]):
        fill_view(k, dst, identity)
    else:
        start, *by_width = by_width
        if not by_width:
            copy_view(k, part(0, taps.outputs), source(start, 0, taps.outputs))
            return
        widest, *by_width = by_width
        first, last = widest.first, widest.last
        combine(k, op, part(first, last), source(start, first, last), source(widest, first, last))
        for lo, hi in ((0, first), (last, taps.outputs)):
            if lo < hi:
                copy_view(k, part(lo, hi), source(start, lo, hi))
    for tap in by_width:
        joined = part(tap.first, tap.last)
        combine(k, op, joined, joined, source(tap, tap.first, tap.last))
