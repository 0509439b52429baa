"""Scheduler ``peft``: list scheduling by optimistic cost (predict earliest finish time).

After Arabnejad and Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE
TPDS 2014. Tasks are the lanes of computes. All cores are alike, so the optimistic cost table of the paper has equal
columns: here it is one figure per compute, which ranks them. Beyond the paper: every compute is first cut into lanes
under the chip's crossbars (raptor_schedulers.selection), and a lane only goes to a core whose free crossbars hold its
weights. Where that leaves a lane without a core, room for one copy of everything is reserved first
(raptor_schedulers.packing), and lanes that hold much are cut further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.module import Module
from raptor_core.options import Option, resolve_options
from raptor_core.spatial.boxes import from_array
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.spatial.pricing import ENERGY_WEIGHT
from raptor_core.targets.machine import Machine
from raptor_schedulers.cuts import Cut
from raptor_schedulers.packing import Crossbars, PackingError, narrowed, reserve
from raptor_schedulers.selection import CutChoice, all_candidates, crossbar_price
from raptor_schedulers.traffic import overlap, regions

Times = npt.NDArray[np.float64]

_ATTEMPTS = 40
_DEARER = 8
"""Attempts that only raise the price of crossbars, before room is reserved and lanes are narrowed."""
_RAISE = 1.5
_LEAST_PRICE_NS = 1.0
"""What a crossbar costs at least once packing has failed, so that raising the price raises it."""
_FILLED_NS = 10_000.0
"""What it costs to take the last crossbars of a core: room that is spread evenly serves later lanes side by side."""

_VARIATION = 0.05
"""Standard deviation of the logarithm of a varied cost."""


@attrs.frozen
class PeftScheduler:
    """See the module's text."""

    name: ClassVar[str] = "peft"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "list scheduling by optimistic cost, one network over all cores"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "energy_weight",
            float,
            "how much energy counts against time when work is cut (by the scheduler): 0 nothing, 1 as the idle chip's",
            default=ENERGY_WEIGHT,
            minimum=0,
            maximum=1e6,
            trials=(0.0, 0.25, 0.5, 1.0, 2.0),
        ),
        Option(
            "cut_sweeps",
            int,
            "how often the cuts of neighbouring operations are fitted again",
            4,
            minimum=1,
            trials=(1, 2, 8),
        ),
        Option(
            "lane_spreading",
            float,
            "how many lane times later a lane may end for a core that has one lane of its operation less",
            default=20.0,
            minimum=0,
            maximum=1e6,
            trials=(0.0, 1.0, 5.0, 100.0),
        ),
        Option(
            "movement_in_place",
            bool,
            "operations that only move elements run where their operands are",
            True,
            trials=(False,),
        ),
        Option(
            "variation",
            int,
            "which of the random variations of the costs of cuts, by some percent, to schedule by; 0: none",
            default=0,
            minimum=0,
            trials=tuple(range(1, 41)),
        ),
        Option("seed", int, "seed of random choices", default=0, minimum=0, maximum=2**63 - 1),
    )

    def schedule(self, module: Module, machine: Machine, options: Mapping[str, Any]) -> Module:
        """Raises RaptorError when the weights do not fit the chip. Options left out have their defaults."""
        options = resolve_options(self.options, options, owner="scheduler 'peft'")
        ops = [op for op in module.operations if isinstance(op, ComputeOp)]
        cuts = all_candidates(ops, module.types, machine)
        if options["variation"]:
            cuts = _varied(cuts, [options["seed"], options["variation"]])
        weight = options["energy_weight"]
        price = crossbar_price(cuts, machine, weight)
        for attempt in range(_ATTEMPTS):
            choice = CutChoice(ops, cuts, module.types, machine, price, weight)
            chosen = choice.choose(options["cut_sweeps"])
            if options["movement_in_place"]:
                chosen = choice.with_followers(chosen)
            try:
                reserved = (
                    reserve(ops, chosen, module.types, machine) if attempt > _DEARER else Crossbars.empty(machine)
                )
                placements = _Attempt(module, machine, ops, chosen, options["lane_spreading"], reserved).place()
                break
            except PackingError as failure:
                stuck = failure.number
                price = max(price * _RAISE, _LEAST_PRICE_NS)
                if attempt > _DEARER:
                    narrower = narrowed(ops, cuts, chosen, stuck, module.types, machine)
                    if narrower is None:
                        raise _does_not_pack(ops[stuck], machine) from None
                    cuts = narrower
        else:
            raise _does_not_pack(ops[stuck], machine)
        placed = tuple(
            attrs.evolve(op, placement=placements[op.results[0]]) if isinstance(op, ComputeOp) else op
            for op in module.operations
        )
        return attrs.evolve(module, operations=placed)


PEFT = PeftScheduler()


def _does_not_pack(stuck: ComputeOp, machine: Machine) -> RaptorError:
    return RaptorError(
        "network-does-not-pack",
        "the network's weights fit the chip in total, but not core by core",
        where=f"'{stuck.name}'",
        reason=f"no core has enough of its {machine.crossbars_per_core} crossbars free for a part of it",
        hint="choose a target with more crossbars per core",
    )


def _varied(cuts: Sequence[Sequence[Cut]], seed: Sequence[int]) -> list[list[Cut]]:
    """``cuts`` with times off by some percent, so that other ones of nearly equal cost are chosen."""
    rng = np.random.default_rng(seed)
    return [
        [attrs.evolve(cut, lane_ns=cut.lane_ns * float(np.exp(_VARIATION * rng.standard_normal()))) for cut in found]
        for found in cuts
    ]


@attrs.define(eq=False)
class _Attempt:
    """One run of the algorithm for one cut of every compute.

    Predicted ends are rough: they leave out waiting for peers. Lanes of an operation that share a core run after one
    another for sure: ``spreading`` says how many lane times that counts for.
    """

    module: Module
    machine: Machine
    ops: Sequence[ComputeOp]
    cuts: Sequence[Cut]
    spreading: float
    crossbars: Crossbars
    placements: dict[str, Placement] = attrs.field(factory=dict)
    finish: dict[str, Times] = attrs.field(factory=dict)
    available: Times = attrs.field(init=False)
    distance: Times = attrs.field(init=False)
    next_step: int = 0

    def place(self) -> dict[str, Placement]:
        """The placement of every result. Raises PackingError."""
        self.available = np.zeros(self.machine.core_count)
        self.distance = self.machine.distance_ns()
        for k in self._order(self._optimistic_costs()):
            self._place_op(k)
        return self.placements

    def _optimistic_costs(self) -> Times:
        """[compute]: the least time from the end of a lane to the end of the network, everything it feeds beside it.

        Equation 2 of the paper, on cores that are all alike.
        """
        index = {op.results[0]: k for k, op in enumerate(self.ops)}
        costs = np.zeros(len(self.ops))
        for k in range(len(self.ops) - 1, -1, -1):
            for value in self.ops[k].operands:
                if value in index:
                    costs[index[value]] = max(costs[index[value]], costs[k] + self.cuts[k].lane_ns)
        return costs

    def _order(self, rank: Times) -> list[int]:
        """Computes by descending rank among those whose operands are placed."""
        producer = {op.results[0]: k for k, op in enumerate(self.ops)}
        waiting = [len({producer[v] for v in op.operands if v in producer}) for op in self.ops]
        users: dict[int, set[int]] = {}
        for k, op in enumerate(self.ops):
            for value in op.operands:
                if value in producer:
                    users.setdefault(producer[value], set()).add(k)
        ready = [k for k, count in enumerate(waiting) if count == 0]
        order: list[int] = []
        while ready:
            k = max(ready, key=lambda j: (rank[j], -j))
            ready.remove(k)
            order.append(k)
            for user in sorted(users.get(k, ())):
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)
        return order

    def _place_op(self, k: int) -> None:
        """Places the lanes of one compute, each on the core where it is predicted to finish first."""
        op, cut = self.ops[k], self.cuts[k]
        ready = self._ready(op, cut)
        outs = from_array(cut.boxes)
        rows, types = self.machine.crossbar_rows, self.module.types
        cores = np.empty(cut.lanes, dtype=np.int64)
        finish = np.empty(cut.lanes)
        lanes_on = np.zeros(self.machine.core_count, dtype=np.int64)
        rounds = np.empty(cut.lanes, dtype=np.int64)
        for lane, out in enumerate(outs):
            key = (op.results[0], op.weights_key(out, types))
            crossbars = self.machine.crossbars(op.weight_shapes(out, types, rows))
            fits = self.crossbars.fits(key, crossbars)
            if not fits.any():
                raise PackingError(k)
            ends = np.maximum(self.available, ready[lane]) + cut.lane_ns
            merit = ends + self.spreading * cut.lane_ns * lanes_on
            if crossbars:
                merit = merit + _FILLED_NS * self.crossbars.filled
            core = int(np.where(fits, merit, np.inf).argmin())
            if cut.homes is not None:
                core = self._home(op, cut.homes[lane])
            cores[lane], finish[lane] = core, ends[core]
            rounds[lane] = lanes_on[core]
            lanes_on[core] += 1
            self.available[core] = ends[core]
            self.crossbars.hold(core, key, crossbars)
        self.placements[op.results[0]] = Placement(cut.boxes, cores, self.next_step + rounds)
        self.finish[op.results[0]] = finish
        self.next_step += int(lanes_on.max())

    def _home(self, op: ComputeOp, home: npt.NDArray[np.int64]) -> int:
        """The core of the fragment that a lane carries over."""
        operand, fragment = home.tolist()
        return int(self.placements[op.operands[operand]].cores[fragment])

    def _ready(self, op: ComputeOp, cut: Cut) -> Times:
        """[lane, core]: when the operands of a lane can be on a core, the way across the mesh included."""
        ready = np.zeros((cut.lanes, self.machine.core_count))
        per_element = self.machine.transfer_ns(10_000, 1) / 10_000
        for k, value in enumerate(op.operands):
            placement = self.placements.get(value)
            if placement is None:
                continue
            needs = regions(op, k, cut.boxes, self.module.types)
            met = overlap(needs, placement.boxes, self.module.types[value].order)
            lanes, fragments = np.nonzero(met.shared)
            sources = placement.cores[fragments]
            local = np.zeros_like(ready)
            away = np.zeros_like(ready)
            if lanes.size:
                place = lanes * ready.shape[1] + sources
                local += np.bincount(place, met.shared[lanes, fragments], ready.size).reshape(ready.shape)
                ways = met.runs[lanes, fragments][:, None] * self.distance[sources]
                first = np.flatnonzero(np.diff(lanes, prepend=-1))
                away[lanes[first]] = np.add.reduceat(ways, first)
            made = np.where(met.shared > 0, self.finish[value][None, :], 0.0).max(axis=1, initial=0.0)
            ready = np.maximum(ready, made[:, None] + (met.needed[:, None] - local) * per_element + away)
        return ready
