"""Operator sets from 9 on, older ones by conversion, and the folding of operators as older versions have them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, nodes_of, refusal

node = helper.make_node


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 13, 17, 21])
def test_every_operator_set(opset: int) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "s", "b", "m", "v"], ["d"], name="norm"),
        node("MaxPool", ["d"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Dropout", ["p"], ["q"], name="drop"),
        node("Flatten", ["q"], ["f"], name="flat"),
        node("Gemm", ["f", "g", "h"], ["y"], name="gemm", transB=1),
    ]
    constants = {
        "w": floats(0, 4, 2, 3, 3),
        "s": floats(1, 4),
        "b": floats(2, 4),
        "m": floats(3, 4),
        "v": np.abs(floats(4, 4)),
        "g": floats(5, 3, 16),
        "h": floats(6, 3),
    }
    module = check_same(make_model(nodes, {"x": [1, 2, 4, 4]}, constants, opset=opset))
    assert nodes_of(module) == [("Conv", "conv"), ("MaxPool", "pool"), ("Flatten", "flat"), ("Gemm", "gemm")]
    assert {op.version for op in module.operations} == {max(opset, 9)}
    assert module.properties["onnx.opset"] == {"ai.onnx": opset}


def test_upsample_of_an_older_set() -> None:
    nodes = [node("Upsample", ["x"], ["y"], name="up", mode="nearest", scales=[1.0, 1.0, 2.0, 3.0])]
    module = check_same(make_model(nodes, {"x": [1, 2, 2, 2]}, opset=8))
    assert nodes_of(module) == [("Upsample", "up")]
    assert module.types["y"].shape == (1, 2, 4, 6)


def test_what_cannot_be_converted() -> None:
    nodes = [node("Upsample", ["x"], ["y"], mode="nearest")]
    text = refusal(make_model(nodes, {"x": [1, 2, 2, 2]}, opset=5))
    newest = onnx.defs.onnx_opset_version()
    assert text.startswith(
        f"error[unsupported-version]: the model uses operator set 5; versions 9 to {newest} are supported\n"
        "  where    the given model 'test'\n  reason   converting it failed: "
    )
    assert text.endswith("export the model for operator set 9 or newer")


def test_newer_operator_set() -> None:
    text = refusal(make_model([node("Relu", ["x"], ["y"])], {"x": [1]}, opset=999))
    assert f"the model uses operator set 999, and the installed onnx {onnx.__version__} knows versions up to" in text


def test_two_versions_of_one_set() -> None:
    model = make_model([node("Relu", ["x"], ["y"])], {"x": [1]})
    model.opset_import.add(domain="ai.onnx", version=13)
    assert "the model imports two versions of the operator set 'ai.onnx'" in refusal(model)


def _int64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


OLD = [
    (9, "Squeeze", [floats(0, 1, 3, 1)], {"axes": [0]}),
    (9, "Unsqueeze", [floats(0, 3)], {"axes": [0, 2]}),
    (9, "Slice", [floats(0, 4, 5)], {"starts": [1, -3], "ends": [3, 100], "axes": [0, 1]}),
    (9, "Pad", [floats(0, 2, 3)], {"pads": [0, 1, 1, 0], "value": 1.5}),
    (9, "Clip", [floats(0, 9)], {"min": -0.5, "max": 0.5}),
    (9, "ReduceSum", [floats(0, 2, 3, 4)], {"axes": [1], "keepdims": 0}),
    (9, "ReduceMean", [floats(0, 2, 3, 4)], {"axes": [0, 2]}),
    (9, "ReduceMax", [floats(0, 2, 3, 4)], {"axes": [-1]}),
    (9, "Split", [floats(0, 6, 2)], {"axis": 0, "split": [2, 4]}),
    (10, "Slice", [floats(0, 4, 5), _int64(3), _int64(-9), _int64(0), _int64(-1)], {}),
    (10, "DequantizeLinear", [np.uint8([3, 200]), np.float32(0.5), np.uint8(7)], {}),
    (10, "Mod", [_int64(-7, 7, 5), _int64(3, -3, 5)], {"fmod": 1}),
    (11, "Clip", [floats(0, 9), np.float32(-0.5)], {}),
    (11, "Pad", [floats(0, 2, 3), _int64(1, 0, 0, 2), np.float32(2)], {"mode": "constant"}),
    (11, "Gather", [floats(0, 4, 3), _int64(-1, 0)], {"axis": 0}),
    (12, "ReduceSum", [floats(0, 2, 3, 4)], {"axes": [1]}),
    (13, "ReduceSum", [floats(0, 2, 3, 4), _int64(1)], {"keepdims": 0}),
    (13, "Split", [floats(0, 6, 2), _int64(2, 4)], {}),
    (13, "Softmax", [floats(0, 2, 3, 4)], {"axis": 1}),
    (13, "Div", [_int64(-7, 7, -8), _int64(2, 2, 4)], {}),
    (13, "Expand", [floats(0, 3, 1), _int64(2, 1, 4)], {}),
    (13, "Tile", [floats(0, 3, 1), _int64(2, 3)], {}),
    (13, "Cast", [np.float32([-1.7, 1.7, 3e4])], {"to": TensorProto.INT16}),
    (14, "Trilu", [floats(0, 4, 4)], {"upper": 0}),
    (11, "Range", [np.float32(0), np.float32(2), np.float32(0.25)], {}),
    (9, "EyeLike", [floats(0, 3, 4)], {"k": 1}),
]


@pytest.mark.parametrize(("opset", "op", "inputs", "attributes"), OLD, ids=lambda item: str(item)[:16])
def test_folding_of_older_versions(
    opset: int, op: str, inputs: list[np.ndarray], attributes: dict[str, object]
) -> None:
    """The folded value is what onnxruntime computes."""
    names = [f"c{k}" for k in range(len(inputs))]
    nodes = [
        node(op, names, ["r"] if op != "Split" else ["r", "r2"], **attributes),
        node("Cast", ["r"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["x", "f"], ["y"]),
    ]
    constants = dict(zip(names, inputs, strict=True))
    module = check_same(make_model(nodes, {"x": [1]}, constants, opset=opset))
    assert [op for op, _ in nodes_of(module)] == ["Mul"]


def test_what_the_reference_computes_in_a_newer_way_is_not_folded() -> None:
    """Softmax before operator set 13 normalises over all axes from the given one on."""
    nodes = [node("Softmax", ["c"], ["s"], axis=1), node("Mul", ["x", "s"], ["y"])]
    module = check_same(make_model(nodes, {"x": [1]}, {"c": floats(0, 2, 3, 4)}, opset=12))
    assert [op for op, _ in nodes_of(module)] == ["Softmax", "Mul"]


def test_functions_are_inlined() -> None:
    body = [node("Relu", ["a"], ["t"], name="relu"), node("Add", ["t", "a"], ["b"], name="add")]
    function = helper.make_function("own", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    nodes = [node("Twice", ["x"], ["p"], domain="own"), node("Twice", ["p"], ["y"], domain="own")]
    model = make_model(nodes, {"x": [3]}, domains={"own": 1}, functions=[function])
    module = check_same(model)
    assert [op for op, _ in nodes_of(module)] == ["Relu", "Add", "Relu", "Add"]
    assert len({name for _, name in nodes_of(module)}) == 4


def test_domains_that_nothing_imports() -> None:
    model = make_model([node("Relu", ["x"], ["y"], name="relu")], {"x": [3]})
    model.opset_import[0].domain = "other"
    assert "Relu node 'relu' (node 0): the model imports no operator set of the domain 'ai.onnx'" in refusal(model)
