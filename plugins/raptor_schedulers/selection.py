"""Choice of one cut per compute, under the crossbars of the whole chip.

More lanes are faster but hold their weights more often. A price per crossbar settles it: for a given price every
compute takes the cut with the least time plus price x crossbars, and the price is raised until all fit.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import attrs
import numpy as np

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import BoxArray
from raptor_core.spatial.compute import ComputeOp
from raptor_core.targets.machine import Machine
from raptor_schedulers.cuts import Cut, candidate_cuts, following_cut, least_crossbars
from raptor_schedulers.traffic import edge_ns, sample_boxes

_FILL = 0.97
"""Part of the chip's crossbars that the choice may use: whole lanes do not pack perfectly onto cores."""


def all_candidates(ops: Sequence[ComputeOp], types: Types, machine: Machine) -> list[list[Cut]]:
    """The candidate cuts of every compute.

    Raises RaptorError when the chip has too few crossbars, saying how many are needed and available.
    """
    needed = [least_crossbars(op, types, machine) for op in ops]
    available = machine.core_count * machine.crossbars_per_core
    known: dict[Hashable, list[Cut]] = {}
    cuts: list[list[Cut]] = []
    for op in ops:
        key = _geometry(op, types)
        if key not in known:
            known[key] = candidate_cuts(op, types, machine)
        cuts.append(known[key])
    stuck = [k for k, found in enumerate(cuts) if not found]
    if sum(needed) > available or stuck:
        raise _too_large(ops, needed, stuck, machine)
    return cuts


def _geometry(op: ComputeOp, types: Types) -> Hashable:
    """What the costs of an operation's cuts depend on: itself without names, and the types of its values."""
    values = tuple(types[value] if value else None for value in (*op.operands, *op.results))
    nameless = attrs.evolve(op, name="", operands=(), results=(), placement=None)
    return nameless, values


def _too_large(ops: Sequence[ComputeOp], needed: list[int], stuck: list[int], machine: Machine) -> RaptorError:
    available = machine.core_count * machine.crossbars_per_core
    largest = sorted(range(len(ops)), key=lambda k: (-needed[k], k))[:5]
    reason = (
        f"{sum(needed)} crossbars are needed, {available} are available "
        f"({machine.core_count} cores x {machine.crossbars_per_core} crossbars of "
        f"{machine.crossbar_rows} x {machine.crossbar_columns})"
    )
    if stuck:
        op = ops[stuck[0]]
        reason += (
            f"; '{op.name}' alone needs {needed[stuck[0]]}, and its smallest part exceeds the "
            f"{machine.crossbars_per_core} crossbars of a core"
        )
    return RaptorError(
        "network-too-large",
        "the network's weights do not fit the chip",
        where="largest: " + ", ".join(f"'{ops[k].name}' ({needed[k]} crossbars)" for k in largest if needed[k]),
        reason=reason,
        hint="choose a target with more or larger crossbars (raptor targets list)",
    )


def crossbar_price(cuts: Sequence[Sequence[Cut]], machine: Machine, energy_weight: float) -> float:
    """The least price (ns per crossbar, within a few percent) at which the cheapest cuts fit the chip."""
    limit = _FILL * machine.core_count * machine.crossbars_per_core
    times = [np.array([cut.lane_ns + energy_weight * cut.energy_ns for cut in found]) for found in cuts]
    totals = [np.array([cut.total_crossbars for cut in found], dtype=np.float64) for found in cuts]

    def used(price: float) -> float:
        return sum(
            float(total[int((time + price * total).argmin())]) for time, total in zip(times, totals, strict=True)
        )

    if used(0.0) <= limit:
        return 0.0
    low, high = 0.0, 1e-3
    while used(high) > limit and high < 1e12:
        low, high = high, high * 4
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if used(middle) <= limit else (middle, high)
    return high


@attrs.define(eq=False)
class CutChoice:
    """Chooses one cut for every compute, for a price per crossbar.

    The cost of a cut is the time of its largest lane, the weighed energy and price, and the traffic on its edges: from
    its operands as their producers are cut, and to its users as those are cut. The first sweep takes users without
    traffic in mind; the others take what the sweep before chose, so that neighbours find cuts that agree.
    """

    ops: Sequence[ComputeOp]
    cuts: Sequence[Sequence[Cut]]
    types: Types
    machine: Machine
    price: float
    energy_weight: float
    _edges: dict[tuple[int, int, Cut, Cut | None], float] = attrs.field(factory=dict, init=False)
    _samples: dict[Cut, BoxArray] = attrs.field(factory=dict, init=False)

    def choose(self, sweeps: int) -> list[Cut]:
        """The chosen cuts, in the order of the operations."""
        producer, users = self._neighbours()
        chosen = [min(found, key=self.own_ns) for found in self.cuts]
        best, best_ns = list(chosen), float("inf")
        for sweep in range(sweeps):
            order = range(len(self.ops)) if sweep % 2 == 0 else range(len(self.ops) - 1, -1, -1)
            before = list(chosen)
            for k in order:
                chosen[k] = self._cheapest(k, chosen, producer, users[k])
            total = self._total_ns(chosen, producer)
            if total < best_ns:
                best, best_ns = list(chosen), total
            if chosen == before:
                break
        return best

    def with_followers(self, grids: Sequence[Cut]) -> list[Cut]:
        """``grids``, but operations that only move elements carry fragments over where that is cheaper, in order."""
        producer, users = self._neighbours()
        chosen = list(grids)
        for k, op in enumerate(self.ops):
            if not all(value in producer for value in op.operands):
                continue
            cut = following_cut(op, [chosen[producer[value]] for value in op.operands], self.types, self.machine)
            if cut is None:
                continue
            costs = [
                self.own_ns(each)
                + self._operands_ns(k, each, chosen, producer)
                + sum(self._edge_ns(user, operand, chosen[user], each) for user, operand in users[k])
                for each in (cut, chosen[k])
            ]
            if costs[0] < costs[1]:
                chosen[k] = cut
        return chosen

    def _neighbours(self) -> tuple[dict[str, int], list[list[tuple[int, int]]]]:
        """The operation that makes each value, and of each operation the (user, operand) of its result."""
        producer = {op.results[0]: k for k, op in enumerate(self.ops)}
        users: list[list[tuple[int, int]]] = [[] for _ in self.ops]
        for k, op in enumerate(self.ops):
            for operand, value in enumerate(op.operands):
                if value in producer:
                    users[producer[value]].append((k, operand))
        return producer, users

    def own_ns(self, cut: Cut) -> float:
        """Everything but traffic."""
        return cut.lane_ns + self.energy_weight * cut.energy_ns + self.price * cut.total_crossbars

    def _cheapest(
        self, k: int, chosen: Sequence[Cut], producer: Mapping[str, int], users: Sequence[tuple[int, int]]
    ) -> Cut:
        best: tuple[float, Cut] | None = None
        for cut in sorted(self.cuts[k], key=self.own_ns):
            cost = self.own_ns(cut)
            if best is not None and cost >= best[0]:
                break
            cost += self._operands_ns(k, cut, chosen, producer)
            for user, operand in users:
                if best is not None and cost >= best[0]:
                    break
                cost += self._edge_ns(user, operand, chosen[user], cut)
            if best is None or cost < best[0]:
                best = (cost, cut)
        assert best is not None
        return best[1]

    def _operands_ns(self, k: int, cut: Cut, chosen: Sequence[Cut], producer: Mapping[str, int]) -> float:
        total = 0.0
        for operand, value in enumerate(self.ops[k].operands):
            if value:
                held = chosen[producer[value]] if value in producer else None
                total += self._edge_ns(k, operand, cut, held)
        return total

    def _edge_ns(self, user: int, operand: int, cut: Cut, held: Cut | None) -> float:
        key = (user, operand, cut, held)
        cost = self._edges.get(key)
        if cost is None:
            sample = self._samples.get(cut)
            if sample is None:
                sample = self._samples[cut] = sample_boxes(cut.boxes)
            boxes = held.boxes if held is not None else None
            cost = edge_ns(self.ops[user], operand, cut.lanes, sample, self.types, boxes, self.machine)
            self._edges[key] = cost
        return cost

    def _total_ns(self, chosen: Sequence[Cut], producer: Mapping[str, int]) -> float:
        return sum(self.own_ns(cut) + self._operands_ns(k, cut, chosen, producer) for k, cut in enumerate(chosen))
