"""Box algebra against plain sets of indices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raptor_core.spatial.boxes import (
    Box,
    bounding_box,
    empty_box,
    from_array,
    grid,
    intersect_pairs,
    run_lengths,
    split_extent,
    to_array,
)


def indices(box: Box) -> set[tuple[int, ...]]:
    return set(itertools.product(*(range(low, high) for low, high in zip(box.lo, box.hi, strict=True))))


@st.composite
def boxes(draw: st.DrawFn, rank: int = 2) -> Box:
    lo = draw(st.tuples(*[st.integers(-3, 4)] * rank))
    size = draw(st.tuples(*[st.integers(0, 4)] * rank))
    return Box(lo, tuple(a + b for a, b in zip(lo, size, strict=True)))


@given(boxes(), boxes())
def test_intersect_subtract_contains(a: Box, b: Box) -> None:
    assert indices(a.intersect(b)) == indices(a) & indices(b)
    pieces = a.subtract(b)
    assert sum(piece.elements for piece in pieces) == len(indices(a) - indices(b))
    assert set().union(*map(indices, pieces)) == indices(a) - indices(b)
    assert len(pieces) <= 4
    assert a.contains(b) == (indices(b) <= indices(a))


@given(st.lists(boxes(), min_size=1, max_size=4).filter(lambda found: any(not box.is_empty for box in found)))
def test_bounding_box_is_the_least(found: list[Box]) -> None:
    bound = bounding_box(found)
    points = set().union(*map(indices, found))
    for axis in range(2):
        assert bound.lo[axis] == min(p[axis] for p in points)
        assert bound.hi[axis] == max(p[axis] for p in points) + 1


@given(st.integers(1, 40), st.integers(1, 40))
def test_split_extent_is_even(extent: int, parts: int) -> None:
    if parts > extent:
        parts = extent
    intervals = split_extent(extent, parts)
    assert [i for low, high in intervals for i in range(low, high)] == list(range(extent))
    sizes = [high - low for low, high in intervals]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_grid_covers_once() -> None:
    cells = from_array(grid((5, 7), (2, 3)))
    assert len(cells) == 6
    points = [p for cell in cells for p in indices(cell)]
    assert sorted(points) == sorted(indices(Box.whole((5, 7))))


@given(st.lists(boxes(), max_size=4), st.lists(boxes(), max_size=4))
def test_intersect_pairs_is_every_pair(left: list[Box], right: list[Box]) -> None:
    i, j, found = intersect_pairs(to_array(left, 2), to_array(right, 2))
    expected = [
        (a, b, left[a].intersect(right[b]))
        for a, b in itertools.product(range(len(left)), range(len(right)))
        if not left[a].intersect(right[b]).is_empty
    ]
    assert list(zip(i.tolist(), j.tolist(), from_array(found), strict=True)) == expected


def test_empty_boxes() -> None:
    assert empty_box(3).is_empty
    assert Box.whole((2, 2)).contains(empty_box(2))
    assert to_array([], 3).shape == (0, 2, 3)
    with pytest.raises(ValueError, match="zip"):
        Box((0,), (1,)).intersect(Box((0, 0), (1, 1)))
    assert np.array_equal(grid((4,), (1,)), [[[0], [4]]])


def test_runs_go_on_while_boxes_span_their_storage() -> None:
    extents = np.array([[2, 3, 4]])
    for whole, length in (((True, True, True), 24), ((True, False, True), 12), ((False, True, False), 4)):
        assert run_lengths(extents, np.array([whole]), (0, 1, 2)).tolist() == [length]
    assert run_lengths(extents, np.array([[False, True, True]]), (1, 2, 0)).tolist() == [2]
