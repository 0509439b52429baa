"""Regions by brute force: exact where promised, enough everywhere, and monotone."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raptor_core.ir.types import TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.kernel import View, packed_strides
from raptor_operators.pieces import Piece
from raptor_operators.rearrange import Rearrange
from raptor_operators.reshape import Reshape, axis_groups
from raptor_operators.views import strided_run

_FACTORS = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=5)


def _box(draw, shape) -> Box:
    lo = [draw(st.integers(0, extent - 1)) for extent in shape]
    return Box(tuple(lo), tuple(draw(st.integers(low + 1, extent)) for low, extent in zip(lo, shape, strict=True)))


def _bounds(indices: np.ndarray) -> Box:
    """The bounding box of index rows [n, rank]."""
    return Box(tuple(indices.min(axis=0).tolist()), tuple((indices.max(axis=0) + 1).tolist()))


@st.composite
def reshapes_with_boxes(draw):
    source = draw(_FACTORS)
    elements = math.prod(source)
    target = []
    while elements > 1 and len(target) < 4:
        target.append(draw(st.sampled_from([n for n in range(1, elements + 1) if elements % n == 0])))
        elements //= target[-1]
    target.append(elements)
    return tuple(source), tuple(target), _box(draw, target)


@settings(max_examples=300, deadline=None)
@given(reshapes_with_boxes())
def test_the_region_of_a_reshape_is_the_exact_bounding_box(case) -> None:
    source, target, box = case
    op = Reshape(name="r", operands=("x",), results=("y",))
    types = {"x": TensorType(source), "y": TensorType(target)}
    cells = np.array(list(itertools.product(*map(range, box.lo, box.hi))), dtype=np.int64).reshape(-1, len(target))
    linear = cells @ np.array(packed_strides(target, range(len(target))))
    assert op.region(0, box, types) == _bounds(np.stack(np.unravel_index(linear, source), axis=1))


@settings(max_examples=100, deadline=None)
@given(reshapes_with_boxes())
def test_groups_hold_all_axes_and_equal_products(case) -> None:
    source, target, _ = case
    groups = axis_groups(source, target)
    assert [a for g in groups for a in g.operand_axes] == [a for a, n in enumerate(source) if n != 1]
    assert [a for g in groups for a in g.result_axes] == [a for a, n in enumerate(target) if n != 1]
    for group in groups:
        assert math.prod(source[a] for a in group.operand_axes) == math.prod(target[a] for a in group.result_axes)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_region_of_a_rearrangement_is_the_exact_bounding_box(data) -> None:
    step, offset = data.draw(st.sampled_from([1, 2, -1, -3])), data.draw(st.integers(0, 3))
    count = data.draw(st.integers(1, 4))
    first = offset if step > 0 else offset - step * (count - 1)
    piece = Piece(operand=0, box=Box((1, 0), (1 + count, 3)), axes=(1, -1, 0), offsets=(0, 2, first - step),
                  steps=(1, 0, step))  # fmt: skip
    op = Rearrange(name="r", operands=("x",), results=("y",), pieces=(piece,))
    types = {"x": TensorType((3, 4, 20)), "y": TensorType((count + 2, 3))}
    op.verify(types)
    box = _box(data.draw, types["y"].shape)
    rows = [
        (j, 2, first + step * (i - 1)) for i, j in itertools.product(*map(range, box.lo, box.hi)) if 1 <= i < 1 + count
    ]
    assume(rows)
    assert op.region(0, box, types) == _bounds(np.array(rows))


def test_nothing_is_needed_for_padding_alone() -> None:
    piece = Piece(operand=0, box=Box((2,), (5,)), axes=(0,), offsets=(-2,), steps=(1,))
    op = Rearrange(name="r", operands=("x",), results=("y",), pieces=(piece,))
    assert op.region(0, Box((0,), (2,)), {"x": TensorType((3,)), "y": TensorType((7,))}).is_empty


@settings(max_examples=100, deadline=None)
@given(reshapes_with_boxes(), st.data())
def test_regions_are_monotone(case, data) -> None:
    source, target, box = case
    op = Reshape(name="r", operands=("x",), results=("y",))
    types = {"x": TensorType(source), "y": TensorType(target)}
    inner = _box(data.draw, box.extents).shift(box.lo)
    assert op.region(0, box, types).contains(op.region(0, inner, types))


def test_runs_join_axes_that_step_evenly() -> None:
    dst = View.packed(0, (4, 5, 6), (0, 1, 2))
    assert strided_run(dst, View(1, (4, 5, 6), 0, (60, 12, 2), (0, 1, 2))).count == 120
    assert strided_run(dst, View(1, (4, 5, 6), 0, (60, 14, 2), (0, 1, 2))).count == 6
    assert strided_run(dst, View(1, (4, 5, 6), 0, (60, 14, -2), (0, 1, 2))).count == 1
    assert strided_run(dst, View(1, (4, 5, 6), 0, (0, 0, 0), (0, 1, 2))).stride == 0


@st.composite
def concatenations(draw):
    """A concatenation of two operands along the second axis, and its types."""
    rows, first, second = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    pieces = (
        Piece(operand=0, axes=(0, 1), offsets=(0, 0), steps=(1, 1), box=Box((0, 0), (rows, first))),
        Piece(operand=1, axes=(0, 1), offsets=(0, -first), steps=(1, 1), box=Box((0, first), (rows, first + second))),
    )
    op = Rearrange(name="c", operands=("a", "b"), results=("y",), pieces=pieces)
    types = {"a": TensorType((rows, first)), "b": TensorType((rows, second)), "y": TensorType((rows, first + second))}
    return op, types


@settings(max_examples=60, deadline=None)
@given(concatenations(), st.data())
def test_what_a_box_of_an_operand_becomes_needs_that_box_only(case, data) -> None:
    op, types = case
    for operand, name in enumerate(op.operands):
        box = _box(data.draw, types[name].shape)
        carried = op.carried(operand, box, types)
        assert carried is not None
        assert carried.elements == box.elements
        assert op.region(operand, carried, types) == box
        assert op.region(1 - operand, carried, types).is_empty
