"""The kernel builder: addresses, loops, runs, and the joining of moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.spatial.kernel import Affine, Instr, KernelBuilder, Loop, Operand, View, join_moves


def test_affine_arithmetic() -> None:
    x, y = Affine(0, ((0, 1),)), Affine(0, ((1, 1),))
    assert 3 * x + y * 2 + 5 + x == Affine(5, ((0, 4), (1, 2)))


def test_addresses_follow_strides_and_loops() -> None:
    view = View.packed(0, (2, 3, 4), (0, 2, 1))
    assert view.strides == (12, 1, 3)
    k = KernelBuilder(1)
    with k.loops([2, 4]) as (a, b):
        k.copy(View.packed(1, (2, 4), (0, 1)).at(a, b), view.at(a, 1, b), 1)
    (outer,) = k.build().body
    assert outer == Loop(2, (Loop(4, (Instr("copy", Operand(1, 0, (4, 1)), (Operand(0, 1, (12, 3)),), 1),)),))


def test_loops_of_one_turn_vanish() -> None:
    k = KernelBuilder(1)
    with k.loop(1) as i:
        k.unary("relu", View.packed(1, (4,), (0,)).at(i), View.packed(0, (4,), (0,)).at(i), 4)
    assert k.build().body == (Instr("relu", Operand(1, 0, ()), (Operand(0, 0, ()),), 4),)


def test_runs_join_the_innermost_gap_free_axes() -> None:
    k = KernelBuilder(1)
    packed = View.packed(0, (4, 5, 6), (0, 1, 2))
    framed = View(1, (4, 5, 6), 7, (80, 8, 1), (0, 1, 2))
    with k.runs(packed, framed) as (_, count):
        assert count == 6
    with k.runs(packed) as ((address,), count):
        assert (address.offset, count) == (Affine(0), 120)
    with pytest.raises(ValueError, match="equal shape"), k.runs(packed, View.packed(1, (4, 5), (0, 1))):
        pass


def test_instructions_refuse_nonsense() -> None:
    k = KernelBuilder(1)
    address = View.packed(0, (4,), (0,)).at(0)
    with pytest.raises(ValueError, match="0 elements"):
        k.copy(address, address, 0)
    with pytest.raises(ValueError, match="not one of"):
        k.binary("divide", address, address, address, 1)
    with pytest.raises(ValueError, match="axes"):
        View.packed(0, (4, 4), (0, 1)).at(0)


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), min_size=0, max_size=30), st.integers(0, 5), st.randoms())
def test_joined_moves_move_the_same(sources: list[int], gap: int, random: object) -> None:
    dst = np.arange(len(sources)) + np.where(np.arange(len(sources)) > 10, gap, 0)
    shuffled = np.random.default_rng(len(sources)).permutation(len(sources))
    moves = join_moves(1, 0, dst[shuffled], np.array(sources, dtype=np.int64)[shuffled])
    found = {}
    for to, start, count, stride in zip(
        moves.dst.tolist(), moves.src.tolist(), moves.count.tolist(), moves.stride.tolist(), strict=True
    ):
        assert stride >= 0
        for j in range(count):
            assert to + j not in found
            found[to + j] = start + j * stride
    assert found == dict(zip(dst.tolist(), sources, strict=True))


def test_contiguous_rows_become_one_move_each() -> None:
    inner = View.packed(0, (3, 4, 8), (0, 1, 2)).addresses()[:, 1:3]
    moves = join_moves(1, 0, np.arange(inner.size), inner.ravel())
    assert moves.count.tolist() == [16, 16, 16]
    assert moves.stride.tolist() == [1, 1, 1]


def test_vectors_of_equal_numbers_are_filled_once_before_all_loops() -> None:
    k = KernelBuilder(1)
    x, y = View.packed(0, (4, 8), (0, 1)), View.packed(1, (4, 8), (0, 1))
    with k.loop(4) as i:
        k.binary("mul", y.at(i, 0), x.at(i, 0), k.equal_numbers(0.5, 3), 3)
        k.binary("mul", y.at(i, 3), x.at(i, 3), k.equal_numbers(0.5, 5), 5)
        k.binary("add", y.at(i, 0), y.at(i, 0), k.equal_numbers(-0.0, 8), 8)
    kernel = k.build()
    assert kernel.scratch == (5, 8)
    assert [(item.op, item.dst.slot, item.count, str(item.immediate)) for item in kernel.body[:2]] == [
        ("fill", 2, 5, "0.5"),
        ("fill", 3, 8, "-0.0"),
    ]
    assert isinstance(kernel.body[2], Loop)
    assert len(kernel.body) == 3
