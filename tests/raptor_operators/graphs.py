"""ONNX models as modules of the graph stage, and their outputs by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, shape_inference

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType

_ELEMENTS = {
    TensorProto.FLOAT: "f32",
    TensorProto.DOUBLE: "f64",
    TensorProto.FLOAT16: "f16",
    TensorProto.INT64: "i64",
    TensorProto.INT32: "i32",
    TensorProto.BOOL: "bool",
    TensorProto.INT8: "i8",
    TensorProto.UINT8: "u8",
    TensorProto.INT16: "i16",
}


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
) -> onnx.ModelProto:
    """A model of ``nodes``; the outputs' shapes are inferred."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _attribute(proto: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, list | tuple) or hasattr(value, "append"):
        return tuple(item.decode() if isinstance(item, bytes) else item for item in value)
    return value


def make_module(model: onnx.ModelProto) -> Module:
    """The module of a model with static shapes."""
    version = next(opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx"))
    graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    types = {}
    for info in (*graph.value_info, *graph.input, *graph.output):
        tensor = info.type.tensor_type
        shape = tuple(int(dimension.dim_value) for dimension in tensor.shape.dim)
        types[info.name] = TensorType(shape, _ELEMENTS[tensor.elem_type])
    for tensor in graph.initializer:
        types[tensor.name] = TensorType(tuple(tensor.dims), _ELEMENTS[tensor.data_type])
    operations = tuple(
        OnnxNode(
            name=node.name or node.output[0],
            operands=tuple(node.input),
            results=tuple(node.output),
            op_type=node.op_type,
            domain=node.domain,
            version=version,
            attributes={proto.name: _attribute(proto) for proto in node.attribute},
            index=index,
        )
        for index, node in enumerate(graph.node)
    )
    return Module(
        name="test",
        inputs=tuple(info.name for info in graph.input if info.name not in constants),
        outputs=tuple(info.name for info in graph.output),
        types=types,
        constants=constants,
        operations=operations,
    )


def reference(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs by onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(inputs))
