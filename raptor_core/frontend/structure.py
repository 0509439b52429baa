"""The graph as such: every value defined once, nodes in an order in which they can run, nodes with unique names."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

import attrs
import onnx

from raptor_core.diagnostics import RaptorError, nearest
from raptor_core.frontend.versions import normalised_domain


@attrs.frozen(eq=False)
class GraphNode:
    """A node with the name it is known by, and its place in the file.

    ``origin`` is the operator of the model's node that it took the name of, where that is another one.
    """

    proto: onnx.NodeProto
    name: str
    index: int
    origin: str | None = None

    @property
    def operator(self) -> str:
        """See OnnxNode."""
        domain = normalised_domain(self.proto.domain)
        return f"{domain}::{self.proto.op_type}" if domain else self.proto.op_type

    @property
    def label(self) -> str:
        """See OnnxNode."""
        return f"{self.origin or self.operator} node '{self.name}'"


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def used_values(node: onnx.NodeProto) -> list[str]:
    """The values a node reads: its inputs, and what its subgraphs capture. Each once, in order."""
    names = dict.fromkeys(filter(None, node.input))
    for graph in subgraphs(node):
        names.update(dict.fromkeys(_captured(graph)))
    return list(names)


def _captured(graph: onnx.GraphProto) -> Iterator[str]:
    defined = {*(info.name for info in graph.input), *(tensor.name for tensor in graph.initializer)}
    for node in graph.node:
        defined.update(node.output)
    for node in graph.node:
        yield from (name for name in used_values(node) if name not in defined)
    yield from (info.name for info in graph.output if info.name not in defined)


def named_nodes(nodes: Iterable[onnx.NodeProto], prefix: str = "", index: int | None = None) -> list[GraphNode]:
    """The nodes with unique names: their own where they have one, else operator and place (``Conv_12``).

    ``prefix`` stands before every name; ``index`` is the place of all nodes when it is not their own.
    """
    given = [node.name for node in nodes]
    taken = set(given)
    seen: set[str] = set()
    result = []
    for place, node in enumerate(nodes):
        name = node.name
        if not name or name in seen:
            name = stem = f"{name or node.op_type}_{place}"
            k = 1
            while name in taken:
                name, k = f"{stem}_{k}", k + 1
            taken.add(name)
        seen.add(name)
        result.append(GraphNode(node, prefix + name, place if index is None else index))
    return result


def check_names(graph: onnx.GraphProto, nodes: Sequence[GraphNode], where: str) -> set[str]:
    """Every value is defined once and only defined values are used. Returns the names of all values.

    An initializer may give the value of an input of its name. Raises RaptorError.
    """
    defined: dict[str, str] = {}
    for names, words in (
        ([info.name for info in graph.input], "a network input"),
        ([tensor.name for tensor in graph.initializer], "an initializer"),
    ):
        for name in names:
            if not name:
                raise _invalid(f"{words} has no name", where)
            if defined.get(name) == words:
                raise _invalid(f"the value '{name}' is defined twice, both times as {words}", where)
            defined[name] = words
    for node in nodes:
        for name in filter(None, node.proto.output):
            if name in defined:
                raise _invalid(f"the value '{name}' is defined twice: by {defined[name]} and by {node.label}", where)
            defined[name] = node.label
    for node in nodes:
        for name in used_values(node.proto):
            if name not in defined:
                raise _undefined(f"{node.label} uses the value '{name}', which nothing defines", name, defined, where)
    _check_outputs(graph, defined, where)
    return set(defined)


def _check_outputs(graph: onnx.GraphProto, defined: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for info in graph.output:
        if info.name not in defined:
            raise _undefined(f"the network output '{info.name}' is not defined", info.name, defined, where)
        if info.name in seen:
            raise _invalid(f"the network output '{info.name}' is listed twice", where)
        seen.add(info.name)


def live_nodes(nodes: Sequence[GraphNode], outputs: Iterable[str]) -> list[GraphNode]:
    """The nodes that the values ``outputs`` depend on, in the same order."""
    producers = {name: node for node in nodes for name in node.proto.output if name}
    live: set[int] = set()
    pending = [producers[name] for name in outputs if name in producers]
    while pending:
        node = pending.pop()
        if id(node) not in live:
            live.add(id(node))
            pending.extend(producers[name] for name in used_values(node.proto) if name in producers)
    return [node for node in nodes if id(node) in live]


def sorted_nodes(nodes: Sequence[GraphNode], where: str) -> list[GraphNode]:
    """The nodes with every producer before its users, otherwise in their order. Raises RaptorError for a cycle."""
    producers = {name: k for k, node in enumerate(nodes) for name in node.proto.output if name}
    waits: list[set[int]] = [
        {producers[name] for name in used_values(node.proto) if name in producers} for node in nodes
    ]
    users: list[list[int]] = [[] for _ in nodes]
    for k, needed in enumerate(waits):
        for producer in needed:
            users[producer].append(k)
    ready = [k for k, needed in enumerate(waits) if not needed]
    order = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for user in users[k]:
            waits[user].discard(k)
            if not waits[user]:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        raise _cycle(nodes, waits, where)
    return [nodes[k] for k in order]


def _cycle(nodes: Sequence[GraphNode], waits: Sequence[set[int]], where: str) -> RaptorError:
    """The error for nodes that wait for each other; ``waits`` holds the nodes each still waits for."""
    k = next(k for k, needed in enumerate(waits) if needed)
    path: list[int] = []
    while k not in path:
        path.append(k)
        k = min(waits[k])
    cycle = path[path.index(k) :]
    return RaptorError(
        "invalid-model",
        "nodes of the network depend on each other in a circle",
        where=where,
        details=[f"{nodes[a].label} needs {nodes[b].label}" for a, b in zip(cycle, [*cycle[1:], k], strict=True)],
        hint="the model is not a valid ONNX graph; export it again",
    )


def _undefined(message: str, name: str, defined: Iterable[str], where: str) -> RaptorError:
    near = nearest(name, defined)
    return RaptorError("invalid-model", message, where=where, hint=f"did you mean '{near}'?" if near else None)


def _invalid(message: str, where: str) -> RaptorError:
    return RaptorError(
        "invalid-model", message, where=where, hint="the model is not a valid ONNX graph; export it again"
    )
