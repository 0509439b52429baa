"""Networks of many operators, box by box against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from raptor_core.ir.equality import modules_equal
from tests.raptor_operators.checking import check_model, floats
from tests.raptor_operators.evaluation import lower
from tests.raptor_operators.graphs import make_model, make_module


def _constants() -> dict[str, np.ndarray]:
    return {
        "w1": floats(1, 8, 3, 3, 3) / 5,
        "b1": floats(2, 8),
        "w2": floats(3, 8, 1, 3, 3) / 3,
        "w3": floats(4, 4, 8, 1, 1) / 3,
        "scale": floats(5, 8),
        "bias": floats(6, 8),
        "mean": floats(7, 8) / 9,
        "variance": np.abs(floats(8, 8)) + 0.5,
        "low": np.float32(-0.7),
        "high": np.float32(6),
        "heads": np.array([1, 12, 2, -1], np.int64),
        "w4": floats(9, 2, 12, 5) / 4,
        "w5": floats(10, 10, 2 * 24 * 5) / 9,
        "b5": floats(11, 10),
    }


@pytest.mark.parametrize("seed", range(4))
def test_a_network(seed: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="stem", auto_pad="SAME_UPPER", strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], name="depthwise", group=8, pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c2", "scale", "bias", "mean", "variance"], ["n2"]),
        helper.make_node("Sigmoid", ["n2"], ["s2"]),
        helper.make_node("Mul", ["n2", "s2"], ["silu"]),
        helper.make_node("Add", ["silu", "r1"], ["sum"]),
        helper.make_node("GlobalAveragePool", ["sum"], ["mean2"]),
        helper.make_node("Mul", ["sum", "mean2"], ["gated"]),
        helper.make_node("Conv", ["gated", "w3"], ["c3"], name="point"),
        helper.make_node("LeakyRelu", ["c3"], ["l3"]),
        helper.make_node("AveragePool", ["gated"], ["a3"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Concat", ["l3", "a3"], ["cat"], axis=1),
        helper.make_node("Clip", ["cat", "low", "high"], ["clip"]),
        helper.make_node("Reshape", ["clip", "heads"], ["split"]),
        helper.make_node("Transpose", ["split"], ["rows"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["rows", "w4"], ["heads_out"]),
        helper.make_node("Softmax", ["heads_out"], ["attention"], axis=-1),
        helper.make_node("Flatten", ["attention"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w5", "b5"], ["y"], transB=1),
    ]
    x = {"x": floats(20 + seed, 1, 3, 12, 16)}
    module = check_model(make_model(nodes, x, _constants()), x, seed=seed, rounds=2)
    assert {op.name for op in module.operations} >= {"stem", "depthwise", "point"}


def test_lowering_twice_gives_the_same_module() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w4"], ["y"])]
    module = make_module(make_model(nodes, {"x": floats(1, 2, 3, 12)}, {"w4": _constants()["w4"]}))
    assert modules_equal(lower(module), lower(module))
