"""Random small networks compute the same after the frontend as before."""

from __future__ import annotations

import attrs
import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from raptor_core.frontend.load import load_graph
from raptor_core.frontend.node import OnnxNode
from raptor_core.frontend.to_onnx import module_to_onnx
from raptor_core.ir.equality import modules_equal
from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model

node = helper.make_node
CHANNELS = 4


@st.composite
def networks(draw: st.DrawFn) -> tuple[onnx.ModelProto, tuple[int, ...]]:
    """A network over values of one shape, with copies, norms, folded arithmetic and shape chains in it."""
    shape = (draw(st.integers(1, 2)), CHANNELS, draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {name: floats(k, CHANNELS) for k, name in enumerate("sbm")}
    constants["v"] = np.abs(floats(9, CHANNELS)) + np.float32(0.5)
    values = ["x"]
    for k in range(draw(st.integers(1, 8))):
        made, source = f"v{k}", draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["copy", "conv", "norm", "relu", "add", "constant", "reshape", "dropout"]))
        if kind == "copy":
            nodes.append(node("Identity", [source], [made], name=f"n{k}"))
        elif kind == "dropout":
            nodes.append(node("Dropout", [source], [made], name=f"n{k}"))
        elif kind == "conv":
            groups = draw(st.sampled_from([1, 2, 4]))
            constants[f"w{k}"] = floats(k, CHANNELS, CHANNELS // groups, 1, 1)
            nodes.append(node("Conv", [source, f"w{k}"], [made], name=f"n{k}", group=groups))
        elif kind == "norm":
            nodes.append(node("BatchNormalization", [source, "s", "b", "m", "v"], [made], name=f"n{k}"))
        elif kind == "relu":
            nodes.append(node("Relu", [source], [made], name=f"n{k}"))
        elif kind == "add":
            nodes.append(node("Add", [source, draw(st.sampled_from(values))], [made], name=f"n{k}"))
        elif kind == "constant":
            nodes.append(node("Shape", [source], [f"shape{k}"]))
            nodes.append(node("ConstantOfShape", [f"shape{k}"], [f"zeros{k}"]))
            nodes.append(node("Exp", [f"zeros{k}"], [made], name=f"n{k}"))
        else:
            nodes.append(node("Shape", [draw(st.sampled_from(values))], [f"shape{k}"]))
            nodes.append(node("Flatten", [source], [f"flat{k}"], name=f"f{k}"))
            nodes.append(node("Reshape", [f"flat{k}", f"shape{k}"], [made], name=f"n{k}"))
        values.append(made)
    outputs = draw(st.lists(st.sampled_from(values[1:]), min_size=1, max_size=3, unique=True))
    used = {name for item in nodes for name in item.input}
    constants = {name: array for name, array in constants.items() if name in used}
    dims: list[int | str] = ["N", CHANNELS, "H", "W"] if draw(st.booleans()) else list(shape)
    return make_model(nodes, {"x": dims}, constants, outputs, opset=draw(st.sampled_from([9, 11, 13, 17]))), shape


@settings(max_examples=80, deadline=None)
@given(networks())
def test_same_numbers(network: tuple[onnx.ModelProto, tuple[int, ...]]) -> None:
    model, shape = network
    module = check_same(model, shapes={"x": shape})
    operators = {op.op_type for op in module.find(OnnxNode)}
    assert operators <= {"Conv", "BatchNormalization", "Relu", "Add", "Flatten", "Reshape", "Identity"}
    outputs = set(module.outputs)
    assert all(set(op.results) <= outputs for op in module.find(OnnxNode) if op.op_type == "Identity")
    assert all(type_.element == "f32" for name, type_ in module.types.items() if name not in module.constants)


@settings(max_examples=30, deadline=None)
@given(networks())
def test_nothing_is_left_to_simplify(network: tuple[onnx.ModelProto, tuple[int, ...]]) -> None:
    """The frontend's own result, taken in again, stays as it is."""
    model, shape = network
    first = load_graph(model, shapes={"x": shape})
    second = load_graph(module_to_onnx(first))
    assert [(op.op_type, op.name, op.results) for op in first.find(OnnxNode)] == [
        (op.op_type, op.name, op.results) for op in second.find(OnnxNode)
    ]
    assert list(first.types.values()) == list(second.types.values())


def test_back_to_onnx_keeps_every_kind_of_attribute() -> None:
    tensor = helper.make_tensor("t", TensorProto.FLOAT, [2], [1.0, 2.0])
    attributes = {"i": 1, "f": 0.5, "s": "text", "ints": [1, 2], "floats": [0.5, 1.5], "strings": ["a", "b"]}
    nodes = [node("Op", ["x", "", "x"], ["y"], name="op", domain="own", t=tensor, ts=[tensor, tensor], **attributes)]
    model = make_model(nodes, {"x": [2]}, domains={"own": 3})
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2]))
    first = load_graph(model)
    (op,) = first.find(OnnxNode)
    assert op.operands == ("x", "", "x")
    assert {name: op.attributes[name] for name in attributes} == {
        **attributes,
        "ints": (1, 2),
        "floats": (0.5, 1.5),
        "strings": ("a", "b"),
    }
    back = module_to_onnx(first)
    back.graph.output[0].CopyFrom(model.graph.output[0])
    second = load_graph(back)
    assert modules_equal(attrs.evolve(first, properties={}), attrs.evolve(second, properties={}))
