"""Data movement along axes: transposing, slicing, padding, repeating and joining are one operation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.attributes import attribute
from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box, bounding_box, empty_box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice
from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_operators.views import Located, copy_view, fill_cost, fill_view, sub_view


@attribute("operators.piece")
@attrs.frozen(kw_only=True)
class Piece:
    """A box of the result that is taken from one operand by an affine map of each axis.

    Along operand axis a the index is ``offsets[a] + steps[a] * i`` where i is the result index along axis
    ``axes[a]``; axes[a] is -1 where the index is ``offsets[a]`` throughout.
    """

    operand: int
    box: Box
    axes: tuple[int, ...]
    offsets: tuple[int, ...]
    steps: tuple[int, ...]

    def interval(self, axis: int, out: Box) -> tuple[int, int]:
        """The operand indices along operand axis ``axis`` that the (non-empty) part ``out`` of the box reads."""
        ends = {self._index(axis, out.lo), self._index(axis, tuple(high - 1 for high in out.hi))}
        return min(ends), max(ends) + 1

    def region(self, out: Box) -> Box:
        """The operand box that the (non-empty) part ``out`` of the box reads."""
        intervals = [self.interval(axis, out) for axis in range(len(self.axes))]
        return Box(tuple(lo for lo, _ in intervals), tuple(hi for _, hi in intervals))

    def carried(self, box: Box) -> Box | None:
        """The part of the result that the operand's ``box`` becomes; None unless each axis is kept, in steps of one."""
        if sorted(self.axes) != list(range(len(self.box.lo))) or any(step != 1 for step in self.steps):
            return None
        lo, hi = [0] * len(self.axes), [0] * len(self.axes)
        for axis, offset, low, high in zip(self.axes, self.offsets, box.lo, box.hi, strict=True):
            lo[axis], hi[axis] = low - offset, high - offset
        return Box(tuple(lo), tuple(hi)).intersect(self.box)

    def first(self, out: Box) -> tuple[int, ...]:
        """The operand index of the first element of ``out``."""
        return tuple(self._index(axis, out.lo) for axis in range(len(self.axes)))

    def source(self, operand: View, region: Box, out: Box, order: tuple[int, ...]) -> View:
        """The operand's elements for ``out``, as a view in the result's axes."""
        first = [index - low for index, low in zip(self.first(out), region.lo, strict=True)]
        base = operand.base + sum(index * stride for index, stride in zip(first, operand.strides, strict=True))
        strides = [0] * len(out.lo)
        for axis, step, stride in zip(self.axes, self.steps, operand.strides, strict=True):
            if axis >= 0:
                strides[axis] += step * stride
        return View(operand.slot, out.extents, base, tuple(strides), order)

    def _index(self, axis: int, index: Sequence[int]) -> int:
        result_axis = self.axes[axis]
        return self.offsets[axis] + (self.steps[axis] * index[result_axis] if result_axis >= 0 else 0)


@attrs.frozen(kw_only=True)
class Rearrange(ComputeOp):
    """The result is made of disjoint ``pieces`` of the operands, and of ``fill`` everywhere else."""

    kind = "operators.rearrange"

    pieces: tuple[Piece, ...]
    fill: float = 0.0

    def verify(self, types: Types) -> None:
        whole = Box.whole(types[self.results[0]].shape)
        for piece in self.pieces:
            operand = types[self.operands[piece.operand]]
            if {len(piece.axes), len(piece.offsets), len(piece.steps)} != {operand.rank} or piece.box.is_empty:
                raise self.fail(f"a piece does not agree with {operand}")
            if not whole.contains(piece.box) or not Box.whole(operand.shape).contains(piece.region(piece.box)):
                raise self.fail(f"a piece reaches outside {operand} or the result")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        needed = [piece.region(part) for piece, part in self._parts(out) if piece.operand == operand]
        return bounding_box(needed) if needed else empty_box(types[self.operands[operand]].rank)

    def carried(self, operand: int, box: Box, types: Types) -> Box | None:
        """Where every operand is one piece, unrepeated and in steps of one."""
        own = [piece for piece in self.pieces if piece.operand == operand]
        if len(own) != 1 or len(self.pieces) != len(self.operands):
            return None
        return own[0].carried(box)

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        """Any layout of the result; any layout of the operands that all of them have on offer."""
        common = [layout for layout in candidates[0] if all(layout in offered for offered in candidates[1:-1])]
        return [((source,) * len(self.operands), target) for source in common for target in candidates[-1]]

    def kernel_key(self, out: Box, types: Types) -> Hashable:
        back = tuple(-low for low in out.lo)
        key = []
        for piece, part in self._parts(out):
            region = self.region(piece.operand, out, types)
            first = tuple(index - low for index, low in zip(piece.first(part), region.lo, strict=True))
            key.append((piece.operand, part.shift(back), piece.axes, piece.steps, first))
        return tuple(key)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        parts = self._parts(out)
        self._fill_rest(k, out, result, [part for _, part in parts])
        for piece, part in parts:
            operand = operands[piece.operand]
            assert operand is not None
            region = self.region(piece.operand, out, types)
            dst = _part_view(result, out, part)
            copy_view(k, Located(dst), Located(piece.source(operand, region, part, result.order)))

    def _parts(self, out: Box) -> list[tuple[Piece, Box]]:
        found = [(piece, piece.box.intersect(out)) for piece in self.pieces]
        return [(piece, part) for piece, part in found if not part.is_empty]

    def _fill_rest(self, k: KernelBuilder, out: Box, result: View, parts: Sequence[Box]) -> None:
        rest = [out]
        for part in parts:
            rest = [box for piece in rest for box in piece.subtract(part)]
        views = [_part_view(result, out, box) for box in rest]
        if views and fill_cost(result) <= sum(map(fill_cost, views)):
            views = [result]
        for view in views:
            fill_view(k, view, self.fill)


def _part_view(result: View, out: Box, part: Box) -> View:
    lo = [low - origin for low, origin in zip(part.lo, out.lo, strict=True)]
    return sub_view(result, lo, part.extents)


@attrs.frozen
class Segment:
    """Result indices ``lo <= i < hi`` of one axis read operand index ``offset + step * i``."""

    lo: int
    hi: int
    offset: int
    step: int


def affine_segments(indices: npt.NDArray[np.int64]) -> list[Segment]:
    """An operand index for every result index of one axis, as the fewest consecutive affine segments (greedily)."""
    segments, lo = [], 0
    steps = np.diff(indices)
    while lo < indices.size:
        if lo == indices.size - 1:
            hi, step = lo + 1, 1
        else:
            step = int(steps[lo])
            changes = np.flatnonzero(steps[lo:] != step)
            hi = lo + int(changes[0]) + 1 if changes.size else indices.size
        segments.append(Segment(lo, hi, int(indices[lo]) - step * lo, step))
        lo = hi
    return segments
