"""Functions of single elements against onnxruntime."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raptor_core.spatial.compute import Pointwise
from tests.raptor_operators.checking import check_node, floats, refusal

_SPECIAL = np.array([np.nan, -np.inf, np.inf, 0.0, -0.0, 0.3, -2, 7, -7, 1e30, -1e30, 3.5], np.float32)


@pytest.mark.parametrize("op_type", ["Relu", "Sigmoid", "Tanh"])
def test_functions(op_type: str) -> None:
    module = check_node(op_type, {"x": floats(1, 2, 5, 3, 4) * 4})
    assert [type(op) for op in module.operations] == [Pointwise]


@pytest.mark.parametrize("op_type", ["Relu", "Tanh", "Sigmoid"])
def test_special_values(op_type: str) -> None:
    check_node(op_type, {"x": _SPECIAL})


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.5, 1.0, 1.5, -0.2, -3.0])
def test_leaky_relu(alpha: float) -> None:
    special = _SPECIAL if alpha != 0 else _SPECIAL[np.isfinite(_SPECIAL)]
    check_node("LeakyRelu", {"x": special}, alpha=alpha)
    check_node("LeakyRelu", {"x": floats(2, 2, 3, 4)}, alpha=alpha)


_BOUND = st.none() | st.sampled_from([0.0, 6.0, -3.0, 0.5, -0.25, math.inf, -math.inf, 3e9, -3e9, 1e30, 2147483648.0])


@settings(max_examples=60, deadline=None)
@given(_BOUND, _BOUND, st.booleans())
def test_clip(lower: float | None, upper: float | None, as_attributes: bool) -> None:
    # onnxruntime bounds by the greatest finite number what is not bounded; here infinities pass.
    assume(lower != math.inf or upper is not None)
    assume(upper != -math.inf or lower is not None)
    assume(not as_attributes or lower is None or upper is None or lower <= upper)
    x = _SPECIAL[np.isfinite(_SPECIAL) | np.isnan(_SPECIAL)]
    given_bounds = {"min": lower, "max": upper}
    if as_attributes:
        attributes = {name: bound for name, bound in given_bounds.items() if bound is not None}
        check_node("Clip", {"x": x}, opset=10, **attributes)
        return
    constants = {name: np.array(bound, np.float32) for name, bound in given_bounds.items() if bound is not None}
    check_node("Clip", {"x": x}, constants, operands=["x", *(n if n in constants else "" for n in given_bounds)])


def test_clip_of_infinities() -> None:
    x = np.array([-np.inf, np.inf], np.float32)
    check_node("Clip", {"x": x}, {"min": np.array(-1, np.float32), "max": np.array(1.5, np.float32)})


def test_refusals() -> None:
    x = floats(1, 3)
    assert "'min' is NaN" in refusal("Clip", {"x": x}, {"low": np.array(np.nan, np.float32)})
    assert "must be constant" in refusal("Clip", {"x": x, "low": np.array(1, np.float32)})
    assert "element type f16" in refusal("Relu", {"x": np.ones(3, np.float16)})
