"""The search for one layout per value: every operation has choices, and disagreement costs a conversion."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import attrs

from raptor_core.ir.types import Layout
from raptor_core.spatial.compute import LayoutChoice

ConversionCost = Callable[[str, Layout, Layout], float]
"""The cost of converting a value from one layout to another."""


@attrs.frozen(eq=False)
class Node:
    """One operation. ``operands`` are the values whose layout matters, by operand position (None: any layout is free).

    ``choices`` go with ``costs``.
    """

    operands: tuple[str | None, ...]
    result: str
    choices: tuple[LayoutChoice, ...]
    costs: tuple[float, ...]


@attrs.define(eq=False)
class LayoutSearch:
    """Values are network inputs (of ``fixed`` layout) or results of nodes; ``outputs`` are needed in the layouts given.

    Nodes stand in topological order.
    """

    nodes: Sequence[Node]
    fixed: dict[str, Layout]
    outputs: dict[str, Layout]
    conversion: ConversionCost
    _producer: dict[str, int] = attrs.field(init=False)
    _users: dict[str, list[tuple[int, int]]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._producer = {node.result: k for k, node in enumerate(self.nodes)}
        self._users = {}
        for k, node in enumerate(self.nodes):
            for position, value in enumerate(node.operands):
                if value is not None:
                    self._users.setdefault(value, []).append((k, position))

    def search(self) -> list[int]:
        """The choice of every node.

        Alternating forward and backward sweeps, at most 2 x nodes + 1, in which every node takes the choice with the
        least total; from one start per layout name, and one that looks at operands only. The cheapest end wins.
        """
        best: tuple[float, list[int]] | None = None
        for start in self._starts():
            chosen = self._improve(start)
            total = self.total(chosen)
            if best is None or total < best[0]:
                best = total, chosen
        assert best is not None
        return best[1]

    def total(self, chosen: Sequence[int]) -> float:
        """The cost of all nodes and conversions."""
        own = sum(node.costs[c] for node, c in zip(self.nodes, chosen, strict=True))
        values = dict.fromkeys([*self._users, *self.outputs])
        return own + sum(self._conversions(value, chosen) for value in values)

    def layout_of(self, value: str, chosen: Sequence[int]) -> Layout:
        """The layout in which a value is made."""
        if value in self._producer:
            k = self._producer[value]
            return self.nodes[k].choices[chosen[k]][1]
        return self.fixed[value]

    def needed(self, value: str, chosen: Sequence[int]) -> dict[tuple[int, ...], Layout]:
        """The layouts in which a value is needed, by element order."""
        found: dict[tuple[int, ...], Layout] = {}
        for k, position in self._users.get(value, ()):
            layout = self.nodes[k].choices[chosen[k]][0][position]
            found.setdefault(layout.order, layout)
        if value in self.outputs:
            found.setdefault(self.outputs[value].order, self.outputs[value])
        return found

    def _conversions(self, value: str, chosen: Sequence[int]) -> float:
        made = self.layout_of(value, chosen)
        return sum(
            self.conversion(value, made, layout)
            for order, layout in self.needed(value, chosen).items()
            if order != made.order
        )

    def _starts(self) -> Iterator[list[int]]:
        names = sorted({layout.name for node in self.nodes for _, layout in node.choices})
        for name in names:
            yield [_most_of(node, name) for node in self.nodes]
        chosen = [0] * len(self.nodes)
        for k in range(len(self.nodes)):
            chosen[k] = self._best(k, chosen, with_users=False)
        yield chosen

    def _improve(self, start: list[int]) -> list[int]:
        chosen = list(start)
        order = range(len(self.nodes))
        for turn in range(2 * len(self.nodes) + 1):
            changed = False
            for k in order if turn % 2 == 0 else reversed(order):
                better = self._best(k, chosen, with_users=True)
                changed |= better != chosen[k]
                chosen[k] = better
            if not changed:
                break
        return chosen

    def _best(self, k: int, chosen: list[int], *, with_users: bool) -> int:
        """The choice of node ``k`` with the least cost, all others as they are; the present one among equals."""
        node, present = self.nodes[k], chosen[k]
        values = dict.fromkeys(value for value in node.operands if value is not None)
        if with_users:
            values[node.result] = None
        scores = []
        for c, own in enumerate(node.costs):
            chosen[k] = c
            scores.append((own + sum(self._conversions(value, chosen) for value in values), c != present, c))
        chosen[k] = present
        return min(scores)[2]


def _most_of(node: Node, name: str) -> int:
    """The choice that uses a layout most; the cheapest among equals."""

    def score(c: int) -> tuple[int, float, int]:
        operands, result = node.choices[c]
        uses = (result.name == name) + sum(layout.name == name for layout in operands)
        cost = node.costs[c]
        return -uses if math.isfinite(cost) else 0, cost, c

    return min(range(len(node.choices)), key=score)
