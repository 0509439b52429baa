"""The same elements in row-major order under another shape."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice, any_layout
from raptor_core.spatial.kernel import KernelBuilder, View, packed_strides

Indices = npt.NDArray[np.int64]


@attrs.frozen
class AxisGroup:
    """Axes of the operand whose elements are those of ``result_axes`` of the result, in the same row-major order."""

    operand_axes: tuple[int, ...]
    result_axes: tuple[int, ...]

    @property
    def is_single(self) -> bool:
        """Whether one axis stands for one axis."""
        return len(self.operand_axes) == len(self.result_axes) == 1


def axis_groups(operand: Sequence[int], result: Sequence[int]) -> tuple[AxisGroup, ...]:
    """The finest groups of axes that a reshape keeps apart; axes of extent 1 are in none.

    Both shapes have the same, positive number of elements.
    """
    left = [(axis, extent) for axis, extent in enumerate(operand) if extent != 1]
    right = [(axis, extent) for axis, extent in enumerate(result) if extent != 1]
    groups = []
    i = j = 0
    while i < len(left):
        first_i, first_j = i, j
        a, b = left[i][1], right[j][1]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * left[i][1], i + 1
            else:
                b, j = b * right[j][1], j + 1
        groups.append(
            AxisGroup(tuple(axis for axis, _ in left[first_i:i]), tuple(axis for axis, _ in right[first_j:j]))
        )
    return tuple(groups)


@attrs.frozen(kw_only=True)
class Reshape(ComputeOp):
    """The operand's elements in row-major order, in the shape of the result."""

    kind = "operators.reshape"

    def verify(self, types: Types) -> None:
        operand, result = types[self.operands[0]], types[self.results[0]]
        if operand.elements != result.elements or not operand.elements:
            raise self.fail(f"{operand} cannot become {result}")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        source, target = types[self.operands[0]].shape, types[self.results[0]].shape
        lo, hi = [0] * len(source), [1] * len(source)
        for group in axis_groups(source, target):
            if group.is_single:
                axis, result_axis = group.operand_axes[0], group.result_axes[0]
                lo[axis], hi[axis] = out.lo[result_axis], out.hi[result_axis]
                continue
            starts, length = _linear_runs(group, target, out)
            stride = math.prod(source[axis] for axis in group.operand_axes)
            for axis in group.operand_axes:
                stride //= source[axis]
                lo[axis], hi[axis] = _axis_interval(starts, length, stride, source[axis])
        return Box(tuple(lo), tuple(hi))

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        return any_layout(self, types, candidates)

    def kernel_key(self, out: Box, types: Types) -> Hashable:
        """A digest of the relative operand indices of every group that joins or splits axes."""
        source, target = types[self.operands[0]].shape, types[self.results[0]].shape
        region = self.region(0, out, types)
        digest = hashlib.blake2b(digest_size=16)
        for group in axis_groups(source, target):
            if not group.is_single:
                for _, index in _operand_indices(group, source, target, out, region):
                    digest.update(np.ascontiguousarray(index).data)
        return digest.hexdigest()

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        operand = operands[0]
        assert operand is not None
        source, target = types[self.operands[0]].shape, types[self.results[0]].shape
        region = self.region(0, out, types)
        addresses = np.full(result.shape, operand.base, dtype=np.int64)
        for group in axis_groups(source, target):
            for axis, index in _operand_indices(group, source, target, out, region):
                addresses += index * operand.strides[axis]
        k.moves(result.slot, operand.slot, result.addresses(), addresses)


def _linear_runs(group: AxisGroup, target: Sequence[int], out: Box) -> tuple[Indices, int]:
    """The row-major positions inside a group that a result box covers: first positions of runs, and their length."""
    extents = [target[axis] for axis in group.result_axes]
    strides = packed_strides(extents, range(len(extents)))
    length, inner = 1, len(extents)
    while inner > 0:
        inner -= 1
        axis = group.result_axes[inner]
        length *= out.hi[axis] - out.lo[axis]
        if out.hi[axis] - out.lo[axis] != target[axis]:
            break
    starts = np.full(1, sum(out.lo[axis] * strides[n] for n, axis in enumerate(group.result_axes) if n >= inner))
    for n, axis in enumerate(group.result_axes[:inner]):
        steps = np.arange(out.lo[axis], out.hi[axis], dtype=np.int64) * strides[n]
        starts = (starts[:, None] + steps).ravel()
    return starts, length


def _axis_interval(starts: Indices, length: int, stride: int, extent: int) -> tuple[int, int]:
    """The indices along an axis of ``extent`` and row-major ``stride`` that runs of positions touch, as an interval."""
    first, last = starts // stride, (starts + (length - 1)) // stride
    wraps = first // extent != last // extent
    low = np.where(wraps, 0, first % extent).min()
    high = np.where(wraps, extent - 1, last % extent).max()
    return int(low), int(high) + 1


def _operand_indices(
    group: AxisGroup, source: Sequence[int], target: Sequence[int], out: Box, region: Box
) -> list[tuple[int, Indices]]:
    """For each operand axis of a group its index relative to ``region``, in the result's axes (to be broadcast)."""
    rank = len(target)
    position = np.zeros((1,) * rank, dtype=np.int64)
    stride = 1
    for axis in reversed(group.result_axes):
        steps = np.arange(out.lo[axis], out.hi[axis], dtype=np.int64) * stride
        position = position + steps.reshape([-1 if a == axis else 1 for a in range(rank)])
        stride *= target[axis]
    found = []
    for axis in reversed(group.operand_axes):
        position, index = np.divmod(position, source[axis])
        found.append((axis, index - region.lo[axis]))
    return found
