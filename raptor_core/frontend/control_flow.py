"""If nodes whose condition is known: the branch that is taken, with names that are unique in the whole graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import onnx

from raptor_core.diagnostics import RaptorError
from raptor_core.frontend.structure import GraphNode, named_nodes, sorted_nodes, subgraphs


@attrs.frozen
class Branch:
    """The nodes of a branch, in order; its initializers by their new names; the values it hands out."""

    nodes: tuple[GraphNode, ...]
    initializers: Mapping[str, onnx.TensorProto]
    outputs: tuple[str, ...]


def is_well_formed(node: onnx.NodeProto) -> bool:
    """Whether an If node has its two branches, each with an output for every result."""
    branches = {attribute.name: attribute.g for attribute in node.attribute}
    return branches.keys() == {"then_branch", "else_branch"} and all(
        len(graph.output) == len(node.output) for graph in branches.values()
    )


def taken_branch(node: GraphNode, condition: bool, fresh: Callable[[str], str], where: str) -> Branch:
    """The branch of an If node, which is well formed, for a condition.

    ``fresh`` makes a value name that is not in use from a hint. Raises RaptorError when the branch defines a value
    twice.
    """
    wanted = "then_branch" if condition else "else_branch"
    graph = next(attribute.g for attribute in node.proto.attribute if attribute.name == wanted)
    local = [*(tensor.name for tensor in graph.initializer), *(name for inner in graph.node for name in inner.output)]
    local = list(filter(None, local))
    if len(set(local)) < len(local):
        name = next(name for name in local if local.count(name) > 1)
        raise RaptorError(
            "invalid-model", f"the value '{name}' is defined twice in {wanted} of {node.label}", where=where
        )
    names = {name: fresh(f"{node.name}/{name}") for name in local}
    nodes = [
        GraphNode(_renamed(inner.proto, names), inner.name, inner.index)
        for inner in named_nodes(graph.node, prefix=f"{node.name}/", index=node.index)
    ]
    return Branch(
        tuple(sorted_nodes(nodes, where)),
        {names[tensor.name]: tensor for tensor in graph.initializer},
        tuple(names.get(info.name, info.name) for info in graph.output),
    )


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    result.input[:] = [names.get(name, name) for name in node.input]
    result.output[:] = [names.get(name, name) for name in node.output]
    for graph in subgraphs(result):
        rename_captured(graph, names)
    return result


def rename_captured(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename, in place, the values of the surrounding graph that ``graph`` uses."""
    local = {*(info.name for info in graph.input), *(tensor.name for tensor in graph.initializer)}
    local.update(name for node in graph.node for name in node.output)
    outer = {name: new for name, new in names.items() if name not in local}
    for node in graph.node:
        node.input[:] = [outer.get(name, name) for name in node.input]
        for inner in subgraphs(node):
            rename_captured(inner, outer)
    for info in graph.output:
        info.name = outer.get(info.name, info.name)
