"""Boxes with equal keys and views have equal bodies, and boxes that only differ by position have equal keys."""

from __future__ import annotations

import pytest

from raptor_core.ir.equality import values_equal
from raptor_core.ir.types import TensorType
from raptor_core.spatial.boxes import Box, from_array, grid
from raptor_core.spatial.compute import ComputeOp, lane_kernel
from raptor_core.spatial.kernel import View
from raptor_operators.pieces import Piece
from raptor_operators.pooling import AveragePool, MaxPool
from raptor_operators.rearrange import Rearrange
from raptor_operators.reshape import Reshape
from raptor_operators.softmax import Softmax

_VALUE = {"name": "op", "operands": ("x",), "results": ("y",)}
_WINDOW = {"window_kernel": (3, 3), "strides": (1, 2), "dilations": (1, 1), "pads_begin": (1, 0), "pads_end": (1, 1)}


def _pad(lo: int, extent: int, result: int) -> Rearrange:
    piece = Piece(operand=0, box=Box((0, lo), (4, lo + extent)), axes=(0, 1), offsets=(0, -lo), steps=(1, 1))
    return Rearrange(**_VALUE, pieces=(piece,), fill=1.0)


_CASES = [
    # operation, operand shape, result shape, cut, number of different keys
    (Reshape(**_VALUE), (6, 4), (4, 6), (4, 3), 6),
    (Reshape(**_VALUE), (2, 24), (2, 6, 4), (2, 6, 1), 1),
    (Reshape(**_VALUE), (2, 6, 4), (2, 24), (2, 6), 1),
    (Reshape(**_VALUE), (2, 6, 4), (2, 24), (2, 12), 1),
    (Reshape(**_VALUE), (2, 6, 4), (2, 24), (2, 8), 4),
    (Softmax(**_VALUE, axes=(1,)), (4, 6), (4, 6), (4, 1), 1),
    (Softmax(**_VALUE, axes=(1,)), (4, 6), (4, 6), (2, 3), 3),
    (_pad(2, 6, 12), (4, 6), (4, 12), (2, 6), 4),
    (MaxPool(**_VALUE, **_WINDOW), (1, 2, 12, 12), (1, 2, 12, 6), (1, 2, 12, 1), 3),
    (AveragePool(**_VALUE, **_WINDOW), (1, 2, 12, 12), (1, 2, 12, 6), (1, 1, 12, 6), 6),
    (AveragePool(**_VALUE, **_WINDOW, count_include_pad=True), (1, 2, 12, 12), (1, 2, 12, 6), (1, 1, 4, 2), 6),
]


def _build(op: ComputeOp, box: Box, types: dict[str, TensorType]):
    operands = []
    for slot in range(len(op.operands)):
        region = op.region(slot, box, types)
        operands.append(None if region.is_empty else View.packed(slot, region.extents, range(len(region.lo))))
    result = View.packed(len(op.operands), box.extents, range(len(box.lo)))
    return (op.kernel_key(box, types), result, tuple(operands)), lane_kernel(op, box, result, operands, types, 128)


@pytest.mark.parametrize(("op", "operand", "result", "parts", "keys"), _CASES)
def test_keys(op: ComputeOp, operand, result, parts, keys: int) -> None:
    types = {"x": TensorType(operand), "y": TensorType(result)}
    op.verify(types)
    kernels = {}
    for box in from_array(grid(result, parts)):
        key, kernel = _build(op, box, types)
        assert values_equal(kernels.setdefault(key, kernel), kernel), f"{box} has the key of another body"
    assert len(kernels) <= keys
