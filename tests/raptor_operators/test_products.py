"""Gemm and MatMul against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.spatial.plans import ConvPlan
from tests.raptor_operators.checking import check_node, floats, refusal


@settings(max_examples=100, deadline=None)
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 7)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 0.5, -2.0]),
    st.sampled_from([1.0, 0.25, 0.0]),
    st.sampled_from(["none", "scalar", "one", "vector", "row", "column", "matrix"]),
    st.booleans(),
    st.sampled_from(["A", "B", "both"]),
)
def test_gemm(sizes, trans_a, trans_b, alpha, beta, addend, addend_computed, constant_side) -> None:
    m, k, n = sizes
    arrays = {
        "A": floats(1, *((k, m) if trans_a else (m, k))),
        "B": floats(2, *((n, k) if trans_b else (k, n))),
    }
    shapes = {"scalar": (), "one": (1,), "vector": (n,), "row": (1, n), "column": (m, 1), "matrix": (m, n)}
    if addend != "none":
        arrays["C"] = floats(3, *shapes[addend])
    constant = {"A": ["A"], "B": ["B"], "both": ["A", "B"]}[constant_side] + ([] if addend_computed else ["C"])
    if all(name in constant for name in arrays):
        constant.remove("A")
    inputs = {name: array for name, array in arrays.items() if name not in constant}
    constants = {name: array for name, array in arrays.items() if name in constant}
    module = check_node(
        "Gemm",
        inputs,
        constants,
        operands=list(arrays),
        rounds=1,
        transA=int(trans_a),
        transB=int(trans_b),
        alpha=alpha,
        beta=beta,
    )
    assert sum(isinstance(op, ConvPlan) for op in module.operations) == 1


def test_a_constant_row_is_the_bias_of_the_product() -> None:
    module = check_node("Gemm", {"x": floats(1, 4, 5)}, {"w": floats(2, 3, 5), "b": floats(3, 3)}, transB=1)
    (plan,) = module.operations
    assert isinstance(plan, ConvPlan)
    assert len(plan.operands) == 3


_MATMULS = [
    ((4, 5), (5, 6)),
    ((5,), (5, 6)),
    ((4, 5), (5,)),
    ((5,), (5,)),
    ((2, 3, 4, 5), (5, 6)),
    ((2, 3, 4, 5), (5,)),
    ((3, 4, 5), (1, 5, 6)),
    ((4, 5), (1, 1, 5, 6)),
    ((4, 5), (3, 5, 6)),
    ((5,), (3, 5, 6)),
    ((5,), (1, 5, 6)),
    ((3, 4, 5), (3, 5, 6)),
    ((1, 4, 5), (3, 5, 6)),
    ((3, 4, 5), (2, 3, 5, 6)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((2, 3, 4, 5), (2, 3, 5, 6)),
    ((2, 3, 4, 5), (2, 1, 5, 6)),
    ((2, 3, 4, 5), (1, 3, 5, 6)),
    ((2, 1, 4, 5), (1, 3, 5, 6)),
    ((2, 3, 1, 5), (2, 3, 5, 1)),
    ((2, 3, 4, 5), (3, 5, 6)),
    ((6, 2, 3, 4, 5), (2, 1, 5, 6)),
]


@pytest.mark.parametrize("shapes", _MATMULS)
@pytest.mark.parametrize("constant_side", [0, 1])
def test_matmul(shapes, constant_side: int) -> None:
    if constant_side == 0:
        # The mirror image: the constant's shape is that of the right side with its last axes exchanged.
        shapes = [shape if len(shape) == 1 else (*shape[:-2], shape[-1], shape[-2]) for shape in reversed(shapes)]
    arrays = {"a": floats(1, *shapes[0]), "b": floats(2, *shapes[1])}
    constant = "ab"[constant_side]
    module = check_node(
        "MatMul",
        {name: array for name, array in arrays.items() if name != constant},
        {constant: arrays[constant]},
        operands=["a", "b"],
    )
    assert sum(isinstance(op, ConvPlan) for op in module.operations) == 1


def test_a_plain_product_is_one_plan() -> None:
    module = check_node("MatMul", {"x": floats(1, 2, 3, 8)}, {"w": floats(2, 8, 4)})
    (plan,) = module.operations
    assert isinstance(plan, ConvPlan)
    assert plan.channel_axis == 2
    np.testing.assert_array_equal(module.constants[plan.operands[1]], floats(2, 8, 4).T)


@pytest.mark.parametrize("op_type", ["Gemm", "MatMul"])
def test_two_computed_sides_are_refused(op_type: str) -> None:
    assert "run time" in refusal(op_type, {"a": floats(1, 4, 5), "b": floats(2, 5, 6)})
