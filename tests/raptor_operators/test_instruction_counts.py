"""Bodies are short: how many vector steps (of 16 elements) they take for every 16 result elements."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.ir.types import TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, Pointwise, lane_kernel
from raptor_core.spatial.kernel import Kernel, KernelBuilder, Loop, Moves, View
from raptor_operators.binary import Binary
from raptor_operators.functions import Clip, LeakyRelu, MultiplyScalar
from raptor_operators.global_average_pool import GlobalAveragePool
from raptor_operators.pooling import AveragePool, MaxPool
from raptor_operators.reshape import Reshape
from tests.raptor_operators.lane_interpreter import run_kernel

_ROWS = (0, 2, 3, 1)
_DENSE = (0, 1, 2, 3)


def _kernel(op: ComputeOp, shapes: list[tuple[int, ...]], box: Box | None, order: tuple[int, ...]) -> Kernel:
    names = (*op.operands, *op.results)
    types = {name: TensorType(shape) for name, shape in zip(names, shapes, strict=True)}
    box = box or Box.whole(shapes[-1])

    def view(slot: int, extents: tuple[int, ...]) -> View:
        return View.packed(slot, extents, order if len(extents) == len(order) else range(len(extents)))

    regions = [op.region(slot, box, types) for slot in range(len(op.operands))]
    views = [view(slot, region.extents) for slot, region in enumerate(regions)]
    return lane_kernel(op, box, view(len(op.operands), box.extents), views, types, 128)


def _counts(body, factor: int = 1) -> tuple[int, int]:
    """Instructions and steps of a body."""
    instructions = steps = 0
    for item in body:
        if isinstance(item, Loop):
            inner = _counts(item.body, factor * item.extent)
            instructions, steps = instructions + inner[0], steps + inner[1]
        elif isinstance(item, Moves):
            instructions += factor * item.count.size
            steps += factor * int((-(-item.count // 16)).sum())
        else:
            instructions += factor
            steps += factor * -(-item.count // 16)
    return instructions, steps


_WINDOW = {"window_kernel": (3, 3), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}


@pytest.mark.parametrize(("order", "limit"), [(_ROWS, 5.1), (_DENSE, 8.5)])
@pytest.mark.parametrize("box", [None, Box((0, 0, 5, 0), (1, 64, 6, 56))])
def test_strided_max_pool(order, limit: float, box: Box | None) -> None:
    op = MaxPool(name="p", operands=("x",), results=("y",), strides=(2, 2), **_WINDOW)
    _, steps = _counts(_kernel(op, [(1, 64, 112, 112), (1, 64, 56, 56)], box, order).body)
    elements = (box or Box.whole((1, 64, 56, 56))).elements
    # Two maxima over three rows at full width, two over three columns: 2 * 2 + 2 for every result.
    assert steps <= limit * elements / 16 + elements / 16


def test_average_pool_divides_once() -> None:
    op = AveragePool(name="p", operands=("x",), results=("y",), strides=(1, 1), **_WINDOW)
    _, steps = _counts(_kernel(op, [(1, 192, 28, 28)] * 2, None, _ROWS).body)
    assert steps <= 5.2 * 192 * 28 * 28 / 16


def test_max_pool_without_stride_takes_whole_planes() -> None:
    op = MaxPool(name="p", operands=("x",), results=("y",), strides=(1, 1), **_WINDOW)
    instructions, _ = _counts(_kernel(op, [(1, 192, 28, 28)] * 2, None, _ROWS).body)
    assert instructions <= 4 + 4 * 28


@pytest.mark.parametrize(("order", "limit"), [(_ROWS, 14), (_DENSE, 512)])
def test_global_average_pool(order, limit: int) -> None:
    op = GlobalAveragePool(name="p", operands=("x",), results=("y",))
    instructions, _ = _counts(_kernel(op, [(1, 512, 7, 7), (1, 512, 1, 1)], None, order).body)
    assert instructions <= limit


@pytest.mark.parametrize("channels", [1, 3, 16, 64])
@pytest.mark.parametrize("order", [_ROWS, _DENSE])
def test_a_constant_for_each_channel_costs_little_more_than_the_operation(channels: int, order) -> None:
    shape = (1, channels, 28, 28)
    op = Binary(name="b", operands=("x", "c"), results=("y",), function="mul")
    _, steps = _counts(_kernel(op, [shape, (channels, 1, 1), shape], None, order).body)
    assert steps <= 1.25 * math.prod(shape) / 16 + 2


def test_equal_shapes_are_one_instruction() -> None:
    op = Binary(name="b", operands=("x", "z"), results=("y",), function="add")
    assert _counts(_kernel(op, [(2, 64, 28, 28)] * 3, None, _ROWS).body)[0] == 1


def test_a_dense_reshape_is_one_copy() -> None:
    op = Reshape(name="r", operands=("x",), results=("y",))
    assert _counts(_kernel(op, [(1, 512, 7, 7), (1, 25088)], None, _DENSE).body)[0] == 1


def test_numbers_in_functions_are_written_once() -> None:
    op = Pointwise(name="p", operands=("x",), results=("y",), function=MultiplyScalar(factor=2.0))
    elements = 64 * 112 * 112
    kernel = _kernel(op, [(1, 64, 112, 112)] * 2, None, _DENSE)
    assert sum(kernel.scratch) <= 1024
    assert _counts(kernel.body)[1] <= elements / 16 + 64


def test_relu6_needs_no_vector() -> None:
    op = Pointwise(name="p", operands=("x",), results=("y",), function=Clip(lower=0.0, upper=6.0))
    kernel = _kernel(op, [(1, 64, 28, 28)] * 2, None, _DENSE)
    assert [instr.op for instr in kernel.body] == ["relu", "clamp_max"]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5000), st.sampled_from([LeakyRelu(alpha=0.1), LeakyRelu(alpha=2.0), Clip(upper=0.5)]))
def test_pieces_cover_a_run(count: int, function) -> None:

    k = KernelBuilder(1)
    view = View.packed(1, (count,), (0,))
    function.emit(k, view.at(0), View.packed(0, (count,), (0,)).at(0), count)
    x = np.linspace(-3, 3, count, dtype=np.float32)
    result = np.full(count, np.nan, np.float32)
    run_kernel(k.build(), [x], result)
    if isinstance(function, Clip):
        expected = np.minimum(x, np.float32(0.5))
    else:
        expected = np.where(x >= 0, x, np.float32(function.alpha) * x)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
