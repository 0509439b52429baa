"""Add, Sub, Mul, Div and Sum against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from onnx import helper

from raptor_core.spatial.compute import Pointwise
from raptor_operators.binary import Binary
from tests.raptor_operators.checking import check_model, check_node, floats, refusal
from tests.raptor_operators.graphs import make_model

_SHAPES = mutually_broadcastable_shapes(num_shapes=2, max_dims=5, min_side=1, max_side=5)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["Add", "Sub", "Mul"]), _SHAPES, st.sampled_from(["both", "left", "right"]), st.integers(0, 99))
def test_broadcasting(op_type: str, shapes, computed: str, seed: int) -> None:
    a, b = (floats(seed + n, *shape) for n, shape in enumerate(shapes.input_shapes))
    arrays = {"a": a, "b": b}
    constant = {"both": [], "left": ["b"], "right": ["a"]}[computed]
    inputs = {name: array for name, array in arrays.items() if name not in constant}
    constants = {name: arrays[name] for name in constant}
    check_node(op_type, inputs, constants, operands=["a", "b"], seed=seed)


@pytest.mark.parametrize("channels", [1, 3, 16, 40])
def test_a_constant_for_each_channel(channels: int) -> None:
    check_node("Mul", {"x": floats(1, 2, channels, 6, 7)}, {"c": floats(2, channels, 1, 1)}, rounds=6)


def test_the_same_value_twice() -> None:
    check_node("Mul", {"x": floats(1, 2, 3, 4, 5)}, operands=["x", "x"])


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("first", [False, True])
def test_a_constant_number_is_a_function(op_type: str, shape: tuple[int, ...], first: bool) -> None:
    if first and op_type == "Div":
        return
    number = np.full(shape, -1.7, np.float32)
    module = check_node(op_type, {"x": floats(3, 2, 5, 4)}, {"c": number}, operands=["c", "x"] if first else ["x", "c"])
    assert [type(op) for op in module.operations] == [Pointwise]


def test_a_constant_of_more_axes_is_no_function() -> None:
    module = check_node("Mul", {"x": floats(3, 4)}, {"c": floats(4, 1, 1)})
    assert [type(op) for op in module.operations] == [Binary]


def test_a_number_computed_at_run_time() -> None:
    check_node("Add", {"x": floats(3, 4, 5), "s": np.array(2.5, np.float32)})


def test_numbers_only() -> None:
    check_node("Sub", {"x": np.array(1.5, np.float32), "s": np.array(2.5, np.float32)})


@pytest.mark.parametrize("shape", [(4,), (3, 1), (2, 3, 4)])
def test_division_by_constants(shape: tuple[int, ...]) -> None:
    divisor = floats(5, *shape)
    divisor.flat[0] = 0
    check_node("Div", {"x": floats(6, 2, 3, 4)}, {"d": divisor})


@pytest.mark.parametrize("count", [1, 2, 4])
def test_sum(count: int) -> None:
    shapes = [(4, 5), (5,), (2, 1, 5), (1,)]
    check_node("Sum", {f"x{n}": floats(n, *shapes[n]) for n in range(count)})


def test_refusals() -> None:
    x = floats(1, 2, 3)
    assert "has no division" in refusal("Div", {"x": x, "d": x})
    assert "cannot be represented" in refusal("Div", {"x": x}, {"d": np.array(1e-40, np.float32)})
    assert "element type i64" in refusal("Add", {"x": np.ones(3, np.int64), "z": np.ones(3, np.int64)})
    assert "is empty" in refusal("Add", {"x": np.ones((0, 3), np.float32)}, {"z": np.ones(3, np.float32)})


def test_chain_keeps_names() -> None:
    nodes = [helper.make_node("Add", ["x", "c"], ["t"], name="first"), helper.make_node("Relu", ["t"], ["y"])]
    module = check_model(make_model(nodes, {"x": floats(1, 3, 4)}, {"c": floats(2, 4)}), {"x": floats(1, 3, 4)})
    assert [op.name for op in module.operations] == ["first", "y"]
