"""Pooling against onnxruntime."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType
from raptor_operators.global_average_pool import GlobalAveragePool
from raptor_operators.pooling import AveragePool, MaxPool
from tests.raptor_operators.checking import check_node, floats, refusal
from tests.raptor_operators.evaluation import Evaluation, lower
from tests.raptor_operators.graphs import make_model, make_module


@st.composite
def poolings(draw, *, dilated: bool):
    axes = draw(st.sampled_from([1, 2, 2, 2, 3]))
    per_axis = lambda strategy: draw(st.lists(strategy, min_size=axes, max_size=axes))  # noqa: E731
    kernel, extents = per_axis(st.integers(1, 4)), per_axis(st.integers(1, 9))
    attributes = {"kernel_shape": kernel, "strides": per_axis(st.integers(1, 3))}
    rule = draw(st.sampled_from(["NOTSET", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    attributes["auto_pad"] = rule
    dilations = [1] * axes
    if dilated and not rule.startswith("SAME"):
        dilations = per_axis(st.integers(1, 2))
        attributes["dilations"] = dilations
    pads = [0] * 2 * axes
    if rule.startswith("SAME"):
        # onnxruntime computes negative padding where windows leave gaps.
        assume(all(k >= s for k, s in zip(kernel, attributes["strides"], strict=True)))
    if rule == "NOTSET":
        pads = [draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
        attributes["pads"] = pads
        attributes["ceil_mode"] = int(draw(st.booleans()))
    if not rule.startswith("SAME"):
        for n, extent in enumerate(extents):
            room = extent + pads[n] + pads[n + axes] - (kernel[n] - 1) * dilations[n] - 1
            assume(room >= 0)
            if attributes.get("ceil_mode"):
                # Shape inference counts a last window that starts behind the operand; see the refusals.
                assume(-(-room // attributes["strides"][n]) * attributes["strides"][n] - pads[n] < extent)
            if dilations[n] > 1:
                # A window with nothing but padding has no maximum.
                assume(all(pad < extent for pad in (pads[n], pads[n + axes])))
    return [draw(st.integers(1, 2)), draw(st.sampled_from([1, 3, 17])), *extents], attributes


@settings(max_examples=100, deadline=None)
@given(poolings(dilated=True), st.integers(0, 99))
def test_max_pool(case, seed: int) -> None:
    shape, attributes = case
    check_node("MaxPool", {"x": floats(seed, *shape)}, seed=seed, rounds=3, **attributes)


@settings(max_examples=100, deadline=None)
@given(poolings(dilated=True), st.booleans(), st.integers(0, 99))
def test_average_pool(case, counted: bool, seed: int) -> None:
    shape, attributes = case
    x = {"x": floats(seed, *shape)}
    check_node("AveragePool", x, seed=seed, rounds=3, count_include_pad=int(counted), **attributes)


def test_max_pool_ignores_padding() -> None:
    x = -np.abs(floats(1, 1, 4, 8, 8)) - 5
    check_node("MaxPool", {"x": x}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], rounds=6)


def test_max_pool_of_a_window_with_nan_is_nan() -> None:
    """Unlike onnxruntime, which drops a NaN or keeps it by its place in the window."""
    x = floats(1, 1, 2, 6, 6)
    x[0, 1, 3, 3] = np.nan
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    module = lower(make_module(make_model([node], {"x": x})))
    for seed in range(4):
        (found,) = Evaluation(module, random.Random(seed)).run({"x": x})
        expected = np.zeros((1, 2, 3, 3), bool)
        expected[0, 1, 1:, 1:] = True
        np.testing.assert_array_equal(np.isnan(found), expected)


def test_a_window_of_padding_alone_has_the_least_maximum() -> None:
    fields = {"strides": (1,), "dilations": (3,), "pads_begin": (1,), "pads_end": (1,)}
    for op, expected in ((MaxPool, -np.inf), (AveragePool, 0)):
        pool = op(name="p", operands=("x",), results=("y",), window_kernel=(2,), **fields)
        types = {"x": TensorType((1, 1, 2)), "y": TensorType((1, 1, 1))}
        module = Module(name="m", inputs=("x",), outputs=("y",), types=types, operations=(pool,))
        (found,) = Evaluation(module, random.Random(1)).run({"x": floats(1, 1, 1, 2)})
        np.testing.assert_array_equal(found, [[[expected]]])


@pytest.mark.parametrize("shape", [(1, 5, 7, 7), (2, 3, 4, 5), (1, 4, 1, 6), (2, 3, 9), (1, 2, 2, 3, 4), (2, 3, 1, 1)])
def test_global_average_pool(shape: tuple[int, ...]) -> None:
    check_node("GlobalAveragePool", {"x": floats(1, *shape)}, rounds=6)


def test_a_window_over_everything_is_global() -> None:
    module = check_node("AveragePool", {"x": floats(1, 2, 3, 4, 5)}, kernel_shape=[4, 5])
    assert isinstance(module.operations[0], GlobalAveragePool)


def test_storage_order_only_counts_for_indices() -> None:
    check_node("MaxPool", {"x": floats(1, 1, 2, 5, 5)}, kernel_shape=[2, 2], storage_order=1)


def test_refusals() -> None:
    x = {"x": floats(1, 1, 2, 5, 5)}
    one = {"x": floats(1, 1, 1, 2)}
    assert "no window may start" in refusal("MaxPool", one, kernel_shape=[1], strides=[2], ceil_mode=1)
    assert "result 1" in refusal("MaxPool", x, outputs=["y", "i"], kernel_shape=[2, 2])
