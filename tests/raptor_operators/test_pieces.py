"""The index of pieces finds what looking at every piece finds, and looks at few."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raptor_core.ir.types import TensorType
from raptor_core.spatial.boxes import Box, bounding_box
from raptor_operators.pieces import Piece, PieceIndex, operand_regions
from raptor_operators.rearrange import Rearrange


def concat(operands: int, width: int = 2) -> tuple[Piece, ...]:
    """Operands of width columns and three rows side by side."""
    return tuple(
        Piece(
            operand=k, box=Box((0, k * width), (3, (k + 1) * width)), axes=(0, 1), offsets=(0, -k * width), steps=(1, 1)
        )
        for k in range(operands)
    )


@given(st.integers(1, 30), st.integers(1, 4), st.tuples(*[st.integers(0, 70)] * 4))
def test_parts_are_those_of_all_pieces_one_by_one(count: int, operands: int, corners: tuple[int, ...]) -> None:
    pieces = tuple(
        Piece(operand=p.operand % operands, box=p.box, axes=p.axes, offsets=p.offsets, steps=p.steps)
        for p in concat(count)
    )
    out = Box((min(corners[0], corners[1]) % 4, min(corners[2:])), (max(corners[:2]), max(corners[2:])))
    every = [(piece, piece.box.intersect(out)) for piece in pieces]
    every = [(piece, part) for piece, part in every if not part.is_empty]
    assert PieceIndex.of(pieces).parts(out) == every
    by_operand = PieceIndex.by_operand(pieces)
    assert set(by_operand) == {piece.operand for piece in pieces}
    for operand, index in by_operand.items():
        own = [(piece, part) for piece, part in every if piece.operand == operand]
        assert index.parts(out) == own
        expected = {operand: bounding_box([piece.region(part) for piece, part in own])} if own else {}
        assert operand_regions(own) == expected


@pytest.mark.parametrize("repeated", [False, True])
def test_only_pieces_that_meet_the_box_are_looked_at(repeated: bool) -> None:
    """Else joining many operands would take time with the square of their number."""
    pieces = concat(400)
    if repeated:
        pieces = tuple(Piece(operand=0, box=p.box, axes=p.axes, offsets=p.offsets, steps=p.steps) for p in pieces)
    operands = ("x",) if repeated else tuple(f"x{k}" for k in range(400))
    op = Rearrange(name="join", operands=operands, results=("y",), pieces=pieces)
    types = {name: TensorType((3, 2)) for name in operands} | {"y": TensorType((3, 800))}
    with mock.patch.object(Box, "intersect", autospec=True, side_effect=Box.intersect) as intersect:
        for k in range(len(operands)):
            op.region(k, Box((0, 10), (3, 13)), types)
        op.kernel_key(Box((0, 10), (3, 13)), types)
    assert intersect.call_count < 410
