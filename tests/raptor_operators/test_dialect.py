"""The dialect: everything that lowerings make can be printed and read back; entry points are complete."""

from __future__ import annotations

import numpy as np
from onnx import helper

import raptor_core.spatial.dialect as spatial
from raptor_core.frontend import node as frontend
from raptor_core.ir.equality import values_equal
from raptor_core.ir.parser import parse_module
from raptor_core.ir.printer import print_module
from raptor_core.plugins.contracts import API_VERSION, OperatorLowering
from raptor_operators.dialect import DIALECT
from tests.raptor_operators.checking import floats
from tests.raptor_operators.evaluation import LOWERINGS, lower
from tests.raptor_operators.graphs import make_model, make_module

_REQUIRED = """
Add AveragePool BatchNormalization Clip Concat Constant Conv Dropout Flatten Gemm GlobalAveragePool
Identity LeakyRelu MatMul MaxPool Mul Pad Relu Reshape Sigmoid Softmax Squeeze Sub Tanh Transpose Unsqueeze
"""


def test_every_entry_point_is_a_lowering() -> None:
    assert set(_REQUIRED.split()) <= set(LOWERINGS)
    for lowering in LOWERINGS.values():
        assert isinstance(lowering, OperatorLowering)
        assert lowering.api_version == API_VERSION
        assert lowering.summary


def _network():
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    nodes = [
        helper.make_node("Pad", ["x", "pads", "value"], ["a"]),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("AveragePool", ["b"], ["c"], kernel_shape=[2, 2], count_include_pad=1, pads=[1, 1, 0, 0]),
        helper.make_node("Clip", ["c", "low", "high"], ["d"]),
        helper.make_node("LeakyRelu", ["d"], ["e"]),
        helper.make_node("Mul", ["e", "e"], ["f"]),
        helper.make_node("Sub", ["low", "f"], ["g"]),
        helper.make_node("Sigmoid", ["g"], ["h"]),
        helper.make_node("Tanh", ["h"], ["i"]),
        helper.make_node("Relu", ["i"], ["j"]),
        helper.make_node("Softmax", ["j"], ["k"]),
        helper.make_node("Mul", ["k", "high"], ["l"]),
        helper.make_node("GlobalAveragePool", ["l"], ["m"]),
        helper.make_node("Add", ["m", "l"], ["n"]),
        helper.make_node("Flatten", ["n"], ["y"]),
    ]
    constants = {"pads": pads, "value": np.float32(-np.inf), "low": np.float32(-1.5), "high": np.float32(2.25)}
    return make_module(make_model(nodes, {"x": floats(1, 1, 3, 9, 9)}, constants))


def test_the_text_form_reads_back() -> None:
    module = lower(_network())
    kinds = {type(op) for op in module.operations}
    assert kinds >= set(DIALECT.operations)
    dialects = {"operators": DIALECT, "spatial": spatial.DIALECT, "onnx": frontend.DIALECT}
    text, arrays = print_module(module)
    again = parse_module(text, arrays=arrays, dialects=dialects)
    assert len(again.operations) == len(module.operations)
    for a, b in zip(again.operations, module.operations, strict=True):
        assert values_equal(a, b)
