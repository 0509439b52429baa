"""Max and average pooling over a window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box, empty_box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice, all_same_layout
from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_core.spatial.plans import Window
from raptor_operators.taps import AxisTaps, axis_taps, operand_interval, reduce_windows
from raptor_operators.views import along_axis, fill_view, instruction_cost

_FIRST_AXIS = 2
"""The first windowed axis: axes 0 and 1 are batch and channels."""


@attrs.frozen(kw_only=True)
class Pooling(ComputeOp):
    """What max and average pooling share: a window over the axes after batch and channels; see Window."""

    window_kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]

    @property
    def window(self) -> Window:
        """The geometry of the window."""
        return Window(
            kernel=self.window_kernel,
            strides=self.strides,
            dilations=self.dilations,
            pads_begin=self.pads_begin,
            pads_end=self.pads_end,
        )

    def verify(self, types: Types) -> None:
        operand, result = types[self.operands[0]], types[self.results[0]]
        n = operand.rank - _FIRST_AXIS
        fields = (self.window_kernel, self.strides, self.dilations, self.pads_begin, self.pads_end)
        if any(len(field) != n for field in fields) or operand.shape[:2] != result.shape[:2] or result.rank != n + 2:
            raise self.fail(f"a window of {len(self.window_kernel)} axes does not take {operand} to {result}")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        shape = types[self.operands[0]].shape
        box = out
        for n in range(len(self.window_kernel)):
            axis = n + _FIRST_AXIS
            lo, hi = operand_interval(self.window, n, out.lo[axis], out.hi[axis], shape[axis])
            if lo >= hi:
                return empty_box(len(shape))
            box = box.replace(axis, lo, hi)
        return box

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        return all_same_layout(self, types, candidates)

    def kernel_key(self, out: Box, types: Types) -> Hashable:
        return tuple(self._taps(out, types))

    def _taps(self, out: Box, types: Types) -> list[tuple[int, AxisTaps]]:
        """For each windowed axis its number and taps."""
        shape = types[self.operands[0]].shape
        axes = range(_FIRST_AXIS, len(shape))
        return [(a, axis_taps(self.window, a - _FIRST_AXIS, out.lo[a], out.hi[a], shape[a])) for a in axes]


@attrs.frozen(kw_only=True)
class MaxPool(Pooling):
    """The greatest element of each window; padding never wins, a NaN does. An empty window gives minus infinity."""

    kind = "operators.max_pool"

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        if operands[0] is None:
            fill_view(k, result, -math.inf)
        else:
            reduce_windows(k, "max", -math.inf, result, operands[0], self._taps(out, types))


@attrs.frozen(kw_only=True)
class AveragePool(Pooling):
    """The mean of each window: over its elements inside the operand or, with ``count_include_pad``, padding as well.

    Parts of a window beyond the padding (which only rounding the result's extent up can bring) never count.
    """

    kind = "operators.average_pool"

    count_include_pad: bool = False

    def kernel_key(self, out: Box, types: Types) -> Hashable:
        counts = [_segments(count) for _, count in self._counts(out, types)]
        return (super().kernel_key(out, types), tuple(map(tuple, counts)))

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        if operands[0] is None:
            fill_view(k, result, 0.0)
            return
        reduce_windows(k, "add", 0.0, result, operands[0], self._taps(out, types))
        _divide(k, result, self._counts(out, types))

    def _counts(self, out: Box, types: Types) -> list[tuple[int, npt.NDArray[np.int64]]]:
        """For each windowed axis its number and, for every output along it, the elements that count (at least 1)."""
        shape, window = types[self.operands[0]].shape, self.window
        counts = []
        for axis in range(_FIRST_AXIS, len(shape)):
            n = axis - _FIRST_AXIS
            origins = np.arange(out.lo[axis], out.hi[axis]) * window.strides[n] - window.pads_begin[n]
            indices = origins[:, None] + np.arange(window.kernel[n]) * window.dilations[n]
            before, after = (window.pads_begin[n], window.pads_end[n]) if self.count_include_pad else (0, 0)
            inside = (indices >= -before) & (indices < shape[axis] + after)
            counts.append((axis, np.maximum(1, inside.sum(axis=1))))
        return counts


def _segments(values: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Runs of equal values: (first, last + 1, value)."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), values.size]
    return [(lo, hi, int(values[lo])) for lo, hi in itertools.pairwise(edges)]


def _divide(k: KernelBuilder, result: View, counts: Sequence[tuple[int, npt.NDArray[np.int64]]]) -> None:
    """Multiply by the reciprocal of the product of counts, with vectors of them that serve many runs."""
    depths = range(result.run_axes()[0] + 1)
    costs = {axes: _division_cost(result, counts, axes) for axes in depths}
    axes = min(depths, key=lambda depth: (costs[depth], -depth))
    outer = result.order[: len(result.order) - axes]
    segments = [(axis, _segments(count)) for axis, count in counts if axis in outer]
    pattern = _run_counts(result, counts, outer)
    vector = k.scratch(pattern.size)
    for combination in itertools.product(*(entries for _, entries in segments)):
        view, divisor = result, 1
        for (axis, _), (lo, hi, count) in zip(segments, combination, strict=True):
            view, divisor = along_axis(view, axis, lo, hi - lo), divisor * count
        for lo, hi, count in _segments(pattern):
            k.fill(vector + lo, 1.0 / (divisor * count), hi - lo)
        with k.loops([view.shape[axis] for axis in outer]) as variables:
            index = {axis: variable for axis, variable in zip(outer, variables, strict=True)}
            address = view.at(*(index.get(axis, 0) for axis in range(len(view.shape))))
            k.binary("mul", address, address, vector, pattern.size)


def _run_counts(
    result: View, counts: Sequence[tuple[int, npt.NDArray[np.int64]]], outer: Sequence[int]
) -> npt.NDArray[np.int64]:
    """The product of the counts along the axes not in ``outer``, for every element of a run in storage order."""
    known = dict(counts)
    pattern = np.ones(1, dtype=np.int64)
    for axis in result.order[len(outer) :]:
        along = known.get(axis, np.ones(result.shape[axis], dtype=np.int64))
        pattern = (pattern[:, None] * along).ravel()
    return pattern


def _division_cost(result: View, counts: Sequence[tuple[int, npt.NDArray[np.int64]]], axes: int) -> int:
    outer = result.order[: len(result.order) - axes]
    pattern = _run_counts(result, counts, outer)
    fills = sum(instruction_cost(hi - lo) for lo, hi, _ in _segments(pattern))
    combinations = math.prod(len(_segments(count)) for axis, count in counts if axis in outer)
    runs = math.prod(result.shape[axis] for axis in outer)
    return combinations * fills + runs * instruction_cost(pattern.size)
