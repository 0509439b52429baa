"""From the walk's nodes to a module of the graph stage: names of outputs, element types, attributes as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from raptor_core.diagnostics import RaptorError
from raptor_core.frontend.elements import ELEMENTS, array_data_type, element_words, ir_type, type_words
from raptor_core.frontend.node import OnnxNode
from raptor_core.frontend.problems import HasLowering, Problem, refuse_nodes
from raptor_core.frontend.structure import GraphNode, live_nodes
from raptor_core.frontend.tensors import TensorReader
from raptor_core.frontend.walk import Walk
from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType

_FLOAT_HINT = "only float32 is computed: export the network in float32"


def make_module(
    walk: Walk, name: str, inputs: Sequence[str], outputs: Sequence[str], has_lowering: HasLowering | None
) -> Module:
    """The module of a finished walk: nodes that the outputs need, constants that the nodes need, all types.

    Outputs keep their names: a value that stands for an output takes its name, and where it cannot (it is an input, a
    constant, or another output as well) an Identity node copies it. Raises RaptorError listing every node that cannot
    be compiled, and for an output that is an input.
    """
    nodes = _with_output_names(walk, inputs, outputs)
    nodes = live_nodes(nodes, outputs)
    nodes = [_without_unused_indices(node, nodes, walk, outputs) for node in nodes]
    refuse_nodes(nodes, _problems(walk, nodes), has_lowering, name, walk.where)
    operations = tuple(_operation(node, walk) for node in _with_unique_names(nodes))
    values = (value for op in operations for value in (*op.operands, *op.results) if value)
    used = dict.fromkeys((*inputs, *outputs, *values))
    types = _ir_types(walk, used)
    constants = {value: np.ascontiguousarray(walk.constants[value]) for value in walk.constants if value in used}
    constants = {value: array.reshape(types[value].shape) for value, array in constants.items()}
    return Module(
        name=name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        types=types,
        constants=constants,
        operations=operations,
    )


def check_input_types(types: Mapping[str, onnx.TypeProto], where: str) -> None:
    """Raise one RaptorError naming every network input that is not float32."""
    wrong = [f"input '{name}' is {type_words(type_)}" for name, type_ in types.items() if not _is_float32(type_)]
    if wrong:
        raise RaptorError(
            "unsupported-element-type",
            "the inputs of a network must be float32",
            where=where,
            details=wrong,
            hint=_FLOAT_HINT,
        )


def _is_float32(type_: onnx.TypeProto) -> bool:
    return bool(type_.tensor_type.elem_type == TensorProto.FLOAT)


# ---- names of outputs ------------------------------------------------------------------------------------------------
def _with_output_names(walk: Walk, inputs: Sequence[str], outputs: Sequence[str]) -> list[GraphNode]:
    results = {name for node in walk.kept for name in node.proto.output if name}
    renamed: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    for output in outputs:
        value = walk.resolved(output)
        if value == output and output in inputs:
            raise RaptorError(
                "output-is-input",
                f"the network output '{output}' is a network input",
                where=walk.where,
                reason="nothing computes it, and the two cannot have one name in the compiled program",
                hint="take it out of the outputs, or copy it by an Identity node under another name",
            )
        if value == output and value in results:
            continue
        if value == output and value in walk.constants:  # the name goes to a copy, and all readers read the constant
            renamed[value] = walk.fresh(f"{output}.value")
            walk.add_constant(renamed[value], walk.constants.pop(value))
            copies.append((renamed[value], output))
        elif value in results and value not in outputs and value not in renamed:
            renamed[value] = output
        else:
            copies.append((value, output))
    walk.types.update({output: walk.types[value] for value, output in renamed.items() if value in walk.types})
    for node in walk.kept:
        node.proto.input[:] = [renamed.get(name, name) for name in node.proto.input]
        node.proto.output[:] = [renamed.get(name, name) for name in node.proto.output]
    return walk.kept + [_copy(walk, renamed.get(value, value), output) for value, output in copies]


def _copy(walk: Walk, value: str, output: str) -> GraphNode:
    """An Identity node that makes ``output`` of ``value``; named like the node that made the output in the model."""
    if value in walk.types:
        walk.types[output] = walk.types[value]
    origin = walk.origins.get(output)
    proto = onnx.NodeProto(op_type="Identity", input=[value], output=[output])
    if origin is None:
        return GraphNode(proto, f"Identity_{output}", len(walk.kept))
    return GraphNode(proto, origin.name, origin.index, origin.operator)


def _with_unique_names(nodes: Iterable[GraphNode]) -> list[GraphNode]:
    """The nodes, those that came to the name of an earlier one under another name."""
    seen: set[str] = set()
    result = []
    for node in nodes:
        name, k = node.name, 1
        while name in seen:
            name, k = f"{node.name}_{k}", k + 1
        seen.add(name)
        result.append(attrs.evolve(node, name=name))
    return result


def _without_unused_indices(
    node: GraphNode, nodes: Sequence[GraphNode], walk: Walk, outputs: Sequence[str]
) -> GraphNode:
    """The node without unused results that are not float32, such as the indices of MaxPool.

    Other results stay even when nothing uses them: Split counts them.
    """
    used = {*outputs, *(name for other in nodes for name in other.proto.input)}
    kept = [
        name if name in used or name not in walk.types or _is_float32(walk.types[name]) else ""
        for name in node.proto.output
    ]
    while len(kept) > 1 and not kept[-1]:
        kept.pop()
    node.proto.output[:] = kept
    return node


# ---- checks ----------------------------------------------------------------------------------------------------------
def _problems(walk: Walk, nodes: Sequence[GraphNode]) -> list[tuple[GraphNode, Problem]]:
    """Those of the walk, and nodes that compute in other element types."""
    problems = {id(node): problem for node, problem in walk.problems}
    found = []
    for node in nodes:
        problem = problems.get(id(node)) or _element_problem(walk, node)
        if problem is not None:
            found.append((node, problem))
    return found


def _element_problem(walk: Walk, node: GraphNode) -> Problem | None:
    for name in filter(None, node.proto.output):
        type_ = walk.types.get(name)
        if type_ is not None and not _is_float32(type_):
            return Problem("unsupported-element-type", f"its result '{name}' is {type_words(type_)}", _FLOAT_HINT)
    for name in filter(None, node.proto.input):
        array = walk.constants.get(name)
        if array is not None and array_data_type(array) not in ELEMENTS:
            words = element_words(array_data_type(array))
            return Problem("unsupported-element-type", f"its constant input '{name}' is {words}", _FLOAT_HINT)
    return None


def _ir_types(walk: Walk, used: Iterable[str]) -> dict[str, TensorType]:
    """The types of the values in use. Raises RaptorError for one that has none."""
    types = {}
    for value in used:
        type_ = ir_type(walk.types[value]) if value in walk.types else None
        if type_ is None:
            raise RaptorError(
                "unknown-type",
                f"the value '{value}' is {type_words(walk.types.get(value))}",
                where=walk.where,
                hint="only static tensors can be compiled",
            )
        types[value] = type_
    return types


# ---- attributes ------------------------------------------------------------------------------------------------------
def _operation(node: GraphNode, walk: Walk) -> OnnxNode:
    proto = node.proto
    operands = list(proto.input)
    while operands and not operands[-1]:
        operands.pop()
    return OnnxNode(
        name=node.name,
        operands=tuple(operands),
        results=tuple(proto.output),
        op_type=proto.op_type,
        domain=proto.domain,
        version=walk.versions.get(proto.domain, 1),
        attributes={item.name: attribute_value(item, walk.reader) for item in proto.attribute},
        index=node.index,
    )


def attribute_value(attribute: AttributeProto, reader: TensorReader) -> Any:
    """An attribute as OnnxNode holds it. Raises RaptorError for kinds that have no plain value."""
    kind = attribute.type
    if kind == AttributeProto.INT:
        return attribute.i
    if kind == AttributeProto.FLOAT:
        return attribute.f
    if kind == AttributeProto.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == AttributeProto.INTS:
        return tuple(attribute.ints)
    if kind == AttributeProto.FLOATS:
        return tuple(attribute.floats)
    if kind == AttributeProto.STRINGS:
        return tuple(item.decode("utf-8", "replace") for item in attribute.strings)
    if kind == AttributeProto.TENSOR:
        return reader.array(attribute.t)
    if kind == AttributeProto.TENSORS:
        return tuple(reader.array(tensor) for tensor in attribute.tensors)
    name = AttributeProto.AttributeType.Name(kind).lower() if kind in AttributeProto.AttributeType.values() else kind
    raise RaptorError(
        "invalid-model",
        f"the attribute '{attribute.name}' is of the kind {name}, which has no plain value",
        where=reader.where,
    )


def with_properties(module: Module, properties: Mapping[str, Any]) -> Module:
    """The module with these properties."""
    return attrs.evolve(module, properties={**module.properties, **properties})
