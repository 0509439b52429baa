"""Which core has crossbars for what, and how to make everything fit when lanes run out of room."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import from_array
from raptor_core.spatial.compute import ComputeOp
from raptor_core.targets.machine import Machine
from raptor_schedulers.cuts import Cut, narrowest_cut


class PackingError(Exception):
    """Some lane of compute ``number`` found no core with enough free crossbars."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@attrs.define(eq=False)
class Crossbars:
    """``free`` crossbars of each core, ``capacity`` each, and the cores that hold the weights of each key."""

    capacity: int
    free: npt.NDArray[np.int64]
    _holders: dict[Hashable, list[int]] = attrs.field(factory=dict, init=False)

    @classmethod
    def empty(cls, machine: Machine) -> Crossbars:
        """All crossbars of the machine."""
        capacity = machine.crossbars_per_core
        return cls(capacity, np.full(machine.core_count, capacity, dtype=np.int64))

    @property
    def filled(self) -> npt.NDArray[np.float64]:
        """[core]: the part of its crossbars that is taken."""
        return 1 - self.free / self.capacity

    def fits(self, key: Hashable, crossbars: int) -> npt.NDArray[np.bool_]:
        """[core]: whether it holds the weights already or has room for them."""
        fits = self.free >= crossbars
        fits[self._holders.get(key, [])] = True
        return fits

    def hold(self, core: int, key: Hashable, crossbars: int) -> None:
        """Take room for the weights on a core, once."""
        holders = self._holders.setdefault(key, [])
        if crossbars and core not in holders:
            holders.append(core)
            self.free[core] -= crossbars


def reserve(ops: Sequence[ComputeOp], cuts: Sequence[Cut], types: Types, machine: Machine) -> Crossbars:
    """Room for one copy of all weights: the widest first, each on the core that it fills best.

    Lanes can then all be placed, be it one after another on the same core. Raises PackingError.
    """
    wanted: dict[Hashable, tuple[int, int]] = {}
    for number, (op, cut) in enumerate(zip(ops, cuts, strict=True)):
        if not cut.total_crossbars:
            continue
        for out in from_array(cut.boxes):
            key: Hashable = (op.results[0], op.weights_key(out, types))
            if key not in wanted:
                shapes = op.weight_shapes(out, types, machine.crossbar_rows)
                wanted[key] = machine.crossbars(shapes), number
    room = Crossbars.empty(machine)
    for held, (crossbars, number) in sorted(wanted.items(), key=lambda item: -item[1][0]):
        left = np.where(room.free >= crossbars, room.free, room.capacity + 1)
        core = int(left.argmin())
        if left[core] > room.capacity:
            raise PackingError(number)
        room.hold(core, held, crossbars)
    return room


def narrowed(
    ops: Sequence[ComputeOp],
    cuts: Sequence[Sequence[Cut]],
    chosen: Sequence[Cut],
    stuck: int,
    types: Types,
    machine: Machine,
) -> list[list[Cut]] | None:
    """``cuts`` without those of one compute whose lanes hold as much as the chosen one's; None when all are least.

    The compute is ``stuck``, or, where its lanes can hold no less, the one with the widest lanes that can. Where no
    cut with a lane per core holds less, there is one with more lanes.
    """
    by_width = sorted(range(len(cuts)), key=lambda k: (k != stuck, -chosen[k].lane_crossbars, k))
    for k in by_width:
        if not chosen[k].lane_crossbars:
            continue
        narrower = [cut for cut in cuts[k] if cut.lane_crossbars < chosen[k].lane_crossbars]
        if not narrower:
            last = narrowest_cut(ops[k], types, machine)
            narrower = [last] if last.lane_crossbars < chosen[k].lane_crossbars else []
        if narrower:
            return [narrower if n == k else list(found) for n, found in enumerate(cuts)]
    return None
