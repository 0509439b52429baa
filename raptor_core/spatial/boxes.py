"""Axis-aligned boxes of a tensor's index space, one at a time and as arrays.

A box array has shape [n, 2, rank]: ``[:, 0]`` the first index of each axis, ``[:, 1]`` the one past the last.
Boxes may reach outside their tensor: there they mean padding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.attributes import attribute

BoxArray = npt.NDArray[np.int64]
"""Boxes as an array of shape [n, 2, rank]."""


@attribute("box")
@attrs.frozen
class Box:
    """The indices ``lo <= index < hi``, axis by axis."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Box:
        """The box of a whole tensor."""
        return cls((0,) * len(shape), tuple(shape))

    @property
    def extents(self) -> tuple[int, ...]:
        """Number of indices along each axis (never negative)."""
        return tuple(max(0, h - low) for low, h in zip(self.lo, self.hi, strict=True))

    @property
    def elements(self) -> int:
        """Number of indices in the box."""
        return math.prod(self.extents)

    @property
    def is_empty(self) -> bool:
        """Whether the box holds no index."""
        return any(h <= low for low, h in zip(self.lo, self.hi, strict=True))

    def intersect(self, other: Box) -> Box:
        """The indices in both boxes (possibly empty)."""
        lo = tuple(max(a, b) for a, b in zip(self.lo, other.lo, strict=True))
        hi = tuple(min(a, b) for a, b in zip(self.hi, other.hi, strict=True))
        return Box(lo, tuple(max(low, high) for low, high in zip(lo, hi, strict=True)))

    def contains(self, other: Box) -> bool:
        """Whether every index of ``other`` is in this box."""
        return other.is_empty or all(
            a <= c and d <= b for a, b, c, d in zip(self.lo, self.hi, other.lo, other.hi, strict=True)
        )

    def shift(self, offsets: Sequence[int]) -> Box:
        """The box moved by ``offsets``."""
        return Box(
            tuple(low + d for low, d in zip(self.lo, offsets, strict=True)),
            tuple(h + d for h, d in zip(self.hi, offsets, strict=True)),
        )

    def replace(self, axis: int, lo: int, hi: int) -> Box:
        """The box with another interval along ``axis``."""
        return Box((*self.lo[:axis], lo, *self.lo[axis + 1 :]), (*self.hi[:axis], hi, *self.hi[axis + 1 :]))

    def subtract(self, other: Box) -> list[Box]:
        """Disjoint boxes that cover the part of this box outside ``other``; at most two per axis."""
        inner = self.intersect(other)
        if inner.is_empty:
            return [] if self.is_empty else [self]
        pieces, rest = [], self
        for axis in range(len(self.lo)):
            if rest.lo[axis] < inner.lo[axis]:
                pieces.append(rest.replace(axis, rest.lo[axis], inner.lo[axis]))
            if inner.hi[axis] < rest.hi[axis]:
                pieces.append(rest.replace(axis, inner.hi[axis], rest.hi[axis]))
            rest = rest.replace(axis, inner.lo[axis], inner.hi[axis])
        return pieces


def empty_box(rank: int) -> Box:
    """A box without indices: what an operator answers when it needs nothing of an operand."""
    return Box((0,) * rank, (0,) * rank)


def bounding_box(boxes: Iterable[Box]) -> Box:
    """The least box that holds all (non-empty) ``boxes``, of which there must be one."""
    full = [box for box in boxes if not box.is_empty]
    return Box(
        tuple(min(box.lo[a] for box in full) for a in range(len(full[0].lo))),
        tuple(max(box.hi[a] for box in full) for a in range(len(full[0].lo))),
    )


def split_extent(extent: int, parts: int) -> list[tuple[int, int]]:
    """``extent`` indices in ``parts`` consecutive intervals, as even as possible, the longer ones first."""
    size, longer = divmod(extent, parts)
    edges = list(itertools.accumulate([size + 1] * longer + [size] * (parts - longer), initial=0))
    return list(itertools.pairwise(edges))


def grid(shape: Sequence[int], parts: Sequence[int]) -> BoxArray:
    """``shape`` cut into a grid with ``parts[a]`` intervals along axis a; row-major order of the grid."""
    cells = np.indices(parts, dtype=np.int64).reshape(len(parts), -1)
    boxes = np.empty((cells.shape[1], 2, len(parts)), dtype=np.int64)
    for axis, (extent, n) in enumerate(zip(shape, parts, strict=True)):
        boxes[:, :, axis] = np.array(split_extent(extent, n), dtype=np.int64)[cells[axis]]
    return boxes


def to_array(boxes: Sequence[Box], rank: int) -> BoxArray:
    """Boxes as an array [n, 2, rank]."""
    if not boxes:
        return np.zeros((0, 2, rank), dtype=np.int64)
    return np.array([(box.lo, box.hi) for box in boxes], dtype=np.int64).reshape(len(boxes), 2, rank)


def from_array(boxes: BoxArray) -> list[Box]:
    """The boxes of an array [n, 2, rank]."""
    return [Box(tuple(lo), tuple(hi)) for lo, hi in boxes.tolist()]


def run_lengths(
    extents: npt.NDArray[np.int64], whole: npt.NDArray[np.bool_], order: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Elements [...] of the gap-free runs of boxes in storages whose elements lie in ``order``.

    ``extents`` [..., rank] are those of the boxes; ``whole`` [..., rank] says along which axes a box spans all of its
    storage (or of each of several).
    """
    length = np.ones(extents.shape[:-1], dtype=np.int64)
    joined = np.ones(extents.shape[:-1], dtype=np.bool_)
    for axis in reversed(order):
        length = np.where(joined, length * extents[..., axis], length)
        joined = joined & whole[..., axis]
    return length


def intersect_pairs(left: BoxArray, right: BoxArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], BoxArray]:
    """All non-empty intersections between two lists of boxes: indices into left, into right, and the boxes.

    The result is ordered by left index, then right index.
    """
    lo = np.maximum(left[:, None, 0], right[None, :, 0])
    hi = np.minimum(left[:, None, 1], right[None, :, 1])
    i, j = np.nonzero((lo < hi).all(axis=-1))
    return i, j, np.stack([lo[i, j], hi[i, j]], axis=1)
