"""The pieces of a rearrangement, and which of them meet a box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.attributes import attribute
from raptor_core.spatial.boxes import Box, bounding_box
from raptor_core.spatial.kernel import View

_FEW = 8
"""Up to this many pieces are quicker looked at one by one."""


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


Part = tuple[Piece, Box]
"""A piece, and the part of its box that is asked for."""


@attrs.frozen(eq=False)
class PieceIndex:
    """Finds the pieces that meet a box without looking at those of other operands, and at many at once."""

    pieces: tuple[Piece, ...]
    lo: npt.NDArray[np.int64]
    hi: npt.NDArray[np.int64]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> PieceIndex:
        """The index of ``pieces``, which keep their order."""
        lo, hi = (np.array([getattr(piece.box, end) for piece in pieces], dtype=np.int64) for end in ("lo", "hi"))
        return cls(tuple(pieces), lo, hi)

    @classmethod
    def by_operand(cls, pieces: Iterable[Piece]) -> Mapping[int, PieceIndex]:
        """One index for the pieces of each operand that has any."""
        found: dict[int, list[Piece]] = {}
        for piece in pieces:
            found.setdefault(piece.operand, []).append(piece)
        return {operand: cls.of(own) for operand, own in found.items()}

    def parts(self, out: Box) -> list[Part]:
        """The pieces that meet ``out``, in order, with what they share with it."""
        pieces = self.pieces
        if len(pieces) > _FEW:
            met = ((self.lo < out.hi) & (self.hi > out.lo)).all(axis=1)
            pieces = tuple(pieces[k] for k in np.flatnonzero(met).tolist())
        parts = [(piece, piece.box.intersect(out)) for piece in pieces]
        return [(piece, part) for piece, part in parts if not part.is_empty]


def operand_regions(parts: Iterable[Part]) -> dict[int, Box]:
    """The box that ``parts`` read of each operand that they read."""
    needed: dict[int, list[Box]] = {}
    for piece, part in parts:
        needed.setdefault(piece.operand, []).append(piece.region(part))
    return {operand: bounding_box(boxes) for operand, boxes in needed.items()}
