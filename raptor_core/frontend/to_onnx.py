"""A module of the graph stage back as an ONNX model, to be run by other runtimes and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from raptor_core.diagnostics import InternalError
from raptor_core.frontend.elements import ELEMENTS, tensor_type
from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType

_DATA_TYPES = {element: data_type for data_type, element in ELEMENTS.items()}
_IR_VERSION = 8
"""An IR version that every runtime of today reads."""


def module_to_onnx(module: Module) -> onnx.ModelProto:
    """The ONNX model of a module that holds ONNX nodes only. Raises InternalError when it holds others."""
    versions: dict[str, int] = {}
    nodes = []
    for op in module.operations:
        if not isinstance(op, OnnxNode):
            raise InternalError(
                "not-an-onnx-graph",
                f"operation {op.kind} '{op.name}' is not an ONNX node",
                where=f"stage {module.stage}",
            )
        versions[op.domain] = op.version
        nodes.append(_node(op))
    graph = helper.make_graph(
        nodes,
        module.name,
        [helper.make_value_info(name, _type(module.types[name])) for name in module.inputs],
        [helper.make_value_info(name, _type(module.types[name])) for name in module.outputs],
        [numpy_helper.from_array(array, name) for name, array in module.constants.items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in sorted(versions.items())]
    return helper.make_model(
        graph, opset_imports=opsets or [helper.make_opsetid("", 9)], ir_version=_IR_VERSION, producer_name="raptor"
    )


def _type(type_: TensorType) -> onnx.TypeProto:
    return tensor_type(_DATA_TYPES[type_.element], type_.shape)


def _node(op: OnnxNode) -> onnx.NodeProto:
    node = helper.make_node(op.op_type, list(op.operands), list(op.results), name=op.name, domain=op.domain)
    for name, value in op.attributes.items():
        node.attribute.append(_attribute(op, name, value))
    return node


def _attribute(op: OnnxNode, name: str, value: Any) -> onnx.AttributeProto:
    if isinstance(value, np.ndarray):
        return helper.make_attribute(name, numpy_helper.from_array(value))
    if isinstance(value, tuple | list):
        if not value:
            return helper.make_attribute(name, [], attr_type=_attribute_type(op, name))
        if isinstance(value[0], np.ndarray):
            return helper.make_attribute(name, [numpy_helper.from_array(item) for item in value])
    return helper.make_attribute(name, value)


def _attribute_type(op: OnnxNode, name: str) -> int:
    """The type of an attribute that is an empty list."""
    try:
        schema = onnx.defs.get_schema(op.op_type, op.version, op.domain)
        return int(onnx.AttributeProto.AttributeType.Value(str(schema.attributes[name].type).rpartition(".")[2]))
    except (onnx.defs.SchemaError, KeyError):
        return int(onnx.AttributeProto.INTS)
