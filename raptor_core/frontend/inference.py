"""Types of a node's results, by onnx's own checker and shape inference.

The frontend walks the nodes in order and knows the type of every input and the value of every constant when it comes to
a node, so inference looks at one node at a time: a one-node model is checked and inferred (some 40 microseconds). Large
weights are never copied into it, and nothing depends on the shapes that the exporter wrote down.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx.checker
import onnx.shape_inference
from onnx import helper, numpy_helper

from raptor_core.ir.module import Array

DATA_ELEMENTS = 4096
"""Constants of at most this many elements are shown to inference: shapes, axes, pads and the like are small."""


class InvalidNodeError(Exception):
    """The node breaks the rules of its operator; the text says which."""


def has_schema(op_type: str, domain: str, version: int) -> bool:
    """Whether onnx knows the operator."""
    try:
        onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return False
    return True


def infer_result_types(
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    constants: Mapping[str, Array],
    versions: Mapping[str, int],
) -> dict[str, onnx.TypeProto]:
    """The types of the node's results as far as they can be told. Raises InvalidNodeError.

    ``types`` has the inputs' types; ``constants`` the values known; ``versions`` the operator set of every domain.
    """
    inputs = list(dict.fromkeys(filter(None, node.input)))
    small = {name: constants[name] for name in inputs if name in constants and constants[name].size <= DATA_ELEMENTS}
    graph = helper.make_graph(
        [node],
        "node",
        [helper.make_value_info(name, types[name]) for name in inputs if name not in small],
        [],
        [numpy_helper.from_array(array, name) for name, array in small.items()],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in versions.items()],
        ir_version=onnx.IR_VERSION,
    )
    try:
        onnx.checker.check_model(model)
        inferred = _infer(model, node, versions)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise InvalidNodeError(_reason(error, node)) from error
    return {info.name: info.type for info in inferred.graph.value_info}


def _infer(model: onnx.ModelProto, node: onnx.NodeProto, versions: Mapping[str, int]) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError):
        # Operators that are inferred through a function body need their defaults written out for it.
        given = {attribute.name for attribute in node.attribute}
        schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
        defaults = [item.default_value for name, item in schema.attributes.items() if name not in given]
        defaults = [default for default in defaults if default.name]
        if not defaults:
            raise
    model.graph.node[0].attribute.extend(defaults)
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def _reason(error: Exception, node: onnx.NodeProto) -> str:
    """What the library says, without the wrapping that names the one-node model."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = (
        lines[-1]
        if lines and "Inference error" in lines[0] and len(lines) > 1
        else (lines or [type(error).__name__])[0]
    )
    for mark in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.rpartition(mark)[2]
    return text.strip(" :") or f"{node.op_type} is not valid"
