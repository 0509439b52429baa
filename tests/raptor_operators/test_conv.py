"""Conv against onnxruntime, for every window, padding and grouping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from raptor_core.spatial.plans import ConvPlan
from tests.raptor_operators.checking import check_node, floats, refusal
from tests.raptor_operators.evaluation import lower
from tests.raptor_operators.graphs import make_model, make_module


@st.composite
def convolutions(draw):
    axes = draw(st.sampled_from([1, 2, 2, 2, 3]))
    per_axis = lambda strategy: draw(st.lists(strategy, min_size=axes, max_size=axes))  # noqa: E731
    kernel, extents = per_axis(st.integers(1, 4)), per_axis(st.integers(1, 9))
    attributes = {"strides": per_axis(st.integers(1, 3)), "dilations": per_axis(st.integers(1, 2))}
    rule = draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", None]))
    if rule is not None:
        attributes["auto_pad"] = rule
    if rule in ("NOTSET", None):
        attributes["pads"] = per_axis(st.integers(0, 3)) + per_axis(st.integers(0, 3))
    if rule in ("SAME_UPPER", "SAME_LOWER"):
        attributes["dilations"] = [1] * axes
    if draw(st.booleans()):
        attributes["kernel_shape"] = kernel
    group, inputs, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    attributes["group"] = group
    x, w = [draw(st.integers(1, 2)), group * inputs, *extents], [group * outputs, inputs, *kernel]
    pads = attributes.get("pads", [0] * 2 * axes)
    padded = [e + pads[n] + pads[n + axes] for n, e in enumerate(extents)]
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
    if rule not in ("SAME_UPPER", "SAME_LOWER"):
        assume(all(p >= s for p, s in zip(padded, sizes, strict=True)))
    return x, w, attributes, draw(st.sampled_from(["no", "constant", "computed"]))


@settings(max_examples=120, deadline=None)
@given(convolutions(), st.integers(0, 99))
def test_conv(case, seed: int) -> None:
    x, w, attributes, bias = case
    inputs, constants = {"x": floats(seed, *x)}, {"w": floats(seed + 1, *w)}
    if bias != "no":
        {"constant": constants, "computed": inputs}[bias]["b"] = floats(seed + 2, w[0])
    operands = ["x", "w"] if bias == "no" else ["x", "w", "b"]
    module = check_node("Conv", inputs, constants, operands=operands, seed=seed, rounds=1, **attributes)
    assert sum(isinstance(op, ConvPlan) for op in module.operations) == 1


def test_double_precision_weights_are_taken_as_float32() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    module = make_module(make_model([node], {"x": floats(1, 1, 2, 4, 4)}, {"w": floats(2, 3, 2, 3, 3)}))
    module.constants["w"] = module.constants["w"].astype(np.float64)
    (plan,) = lower(module).operations
    assert lower(module).constants[plan.operands[1]].dtype == np.float32


@pytest.mark.parametrize(
    ("reason", "x", "constants", "attributes"),
    [
        ("run time", (1, 2, 5, 5), {}, {}),
        (
            "f32[1,2,5,5] with its padding is f32[1,2,2000000005,2000000005] of",
            (1, 2, 5, 5),
            {"w": floats(1, 3, 2, 3, 3)},
            {"dilations": [10**9] * 2, "pads": [10**9] * 4},
        ),
        ("is not that of the weights", (1, 2, 5, 5), {"w": floats(1, 3, 2, 3, 3)}, {"kernel_shape": [2, 3]}),
    ],
)
def test_refusals(reason: str, x, constants, attributes) -> None:
    inputs = {"x": floats(0, *x)}
    if not constants:
        inputs["w"] = floats(1, 3, 2, 3, 3)
    assert reason in refusal("Conv", inputs, constants, operands=["x", "w"], **attributes)
