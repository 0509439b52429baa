"""Choice of one cut per compute, under the crossbars of the whole chip.

More lanes are faster but hold their weights more often. A price per crossbar settles it: for a given price every
compute takes the cut with the least time plus price x crossbars, and the price is raised until all fit.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import numpy as np

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.operation import Types
from raptor_core.spatial.compute import ComputeOp
from raptor_core.targets.machine import Machine
from raptor_schedulers.cuts import Cut, candidate_cuts, least_crossbars

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


def crossbar_price(cuts: Sequence[Sequence[Cut]], machine: Machine) -> float:
    """The least price (ns per crossbar, within a few percent) at which the cheapest cuts fit the chip."""
    limit = _FILL * machine.core_count * machine.crossbars_per_core
    times = [np.array([cut.lane_ns for cut in found]) for found in cuts]
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
