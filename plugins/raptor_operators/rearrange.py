"""Data movement along axes: transposing, slicing, padding, repeating and joining are one operation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box, empty_box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice
from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_operators.pieces import Piece, PieceIndex, operand_regions
from raptor_operators.views import Located, copy_view, fill_cost, fill_view, sub_view


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
        own = self._by_operand.get(operand)
        parts = own.parts(out) if own is not None else []
        return operand_regions(parts)[operand] if parts else empty_box(types[self.operands[operand]].rank)

    def carried(self, operand: int, box: Box, types: Types) -> Box | None:
        """Where every operand is one piece, unrepeated and in steps of one."""
        own = self._by_operand.get(operand)
        if own is None or len(own.pieces) != 1 or len(self.pieces) != len(self.operands):
            return None
        return own.pieces[0].carried(box)

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        """Any layout of the result; any layout of the operands that all of them have on offer."""
        common = [layout for layout in candidates[0] if all(layout in offered for offered in candidates[1:-1])]
        return [((source,) * len(self.operands), target) for source in common for target in candidates[-1]]

    def kernel_key(self, out: Box, types: Types) -> Hashable:
        back = tuple(-low for low in out.lo)
        key = []
        parts = self._index.parts(out)
        regions = operand_regions(parts)
        for piece, part in parts:
            region = regions[piece.operand]
            first = tuple(index - low for index, low in zip(piece.first(part), region.lo, strict=True))
            key.append((piece.operand, part.shift(back), piece.axes, piece.steps, first))
        return tuple(key)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        parts = self._index.parts(out)
        regions = operand_regions(parts)
        self._fill_rest(k, out, result, [part for _, part in parts])
        for piece, part in parts:
            operand = operands[piece.operand]
            assert operand is not None
            region = regions[piece.operand]
            dst = _part_view(result, out, part)
            copy_view(k, Located(dst), Located(piece.source(operand, region, part, result.order)))

    @cached_property
    def _index(self) -> PieceIndex:
        return PieceIndex.of(self.pieces)

    @cached_property
    def _by_operand(self) -> Mapping[int, PieceIndex]:
        return PieceIndex.by_operand(self.pieces)

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
