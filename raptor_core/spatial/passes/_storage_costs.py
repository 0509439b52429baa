"""What it costs that users of a value share storages: longer kernels against copies and messages.

Costs are the time that cores are busy, summed over all of them, by the figures of the machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box, BoxArray, from_array, intersect_pairs, run_lengths, to_array
from raptor_core.spatial.compute import ComputeOp, lane_kernel
from raptor_core.spatial.cost import nominal_views
from raptor_core.spatial.edges import clip, storage_boxes
from raptor_core.spatial.kernel import Instr, Kernel, Operand
from raptor_core.targets.machine import Machine

Indices = npt.NDArray[np.int64]
Group = tuple[int, ...]
"""Numbers of members with one storage per core, ascending."""

HOME = 0
"""The member that makes the value."""
_SAMPLES = 2
"""Shapes of lanes, the most frequent ones, whose kernels are priced; the others count like these."""
_PAIRED = 10
"""Members up to which joining them two by two is worth its time, which grows with the third power."""


@attrs.frozen(eq=False)
class Member:
    """Somebody with boxes of the value: its producer, or uses that need the same boxes on the same cores.

    ``op`` reads the value as ``operand`` (-1: it makes it) in lanes that compute the boxes ``outs`` of its result; of
    several equal uses those of the first. ``boxes`` [n, 2, rank] is what each lane holds of the value, ``cores`` [n]
    where. ``uses`` are positions in the list of uses that :func:`read_members` was given.
    """

    op: ComputeOp
    operand: int
    outs: tuple[Box, ...]
    boxes: BoxArray
    cores: Indices
    uses: tuple[int, ...]


def read_members(producer: ComputeOp, uses: Sequence[tuple[ComputeOp, int]], types: Types) -> list[Member]:
    """The producer, then the uses (operation, operand); such with equal boxes on equal cores are one member."""
    placement = producer.placement
    assert placement is not None
    home = Member(producer, -1, tuple(from_array(placement.boxes)), placement.boxes, placement.cores, ())
    found: dict[tuple[bytes, bytes], Member] = {}
    for use, (op, operand) in enumerate(uses):
        placement = op.placement
        assert placement is not None
        outs = from_array(placement.boxes)
        regions = [op.region(operand, out, types) for out in outs]
        used = [k for k, region in enumerate(regions) if not region.is_empty]
        boxes, cores = to_array([regions[k] for k in used], types[op.operands[operand]].rank), placement.cores[used]
        key = boxes.tobytes(), cores.tobytes()
        known = found.get(key)
        found[key] = (
            attrs.evolve(known, uses=(*known.uses, use))
            if known
            else Member(op, operand, tuple(outs[k] for k in used), boxes, cores, (use,))
        )
    return [home, *found.values()]


@attrs.define(eq=False)
class SharingCosts:
    """Prices groups of members that share storages."""

    members: Sequence[Member]
    types: Types
    machine: Machine
    _lanes: dict[tuple[int, Group], float] = attrs.field(factory=dict, init=False)
    _kernels: dict[tuple[int, tuple[int, ...], tuple[int, ...]], float] = attrs.field(factory=dict, init=False)
    _fetches: dict[tuple[Group, Group], float] = attrs.field(factory=dict, init=False)
    _storages: dict[Group, tuple[Indices, BoxArray]] = attrs.field(factory=dict, init=False)
    _meetings: dict[int, tuple[Indices, Indices, BoxArray]] = attrs.field(factory=dict, init=False)

    @property
    def order(self) -> tuple[int, ...]:
        """The order of elements in storages."""
        return self.types[self.members[HOME].op.results[0]].order

    def best_groups(self) -> list[Group]:
        """Who shares storages: the producer's group first. All members together, or fewer where that costs less.

        From everybody apart, the two groups whose joining saves most are joined until none saves anything; of many
        members, either all share storages or none do.
        """
        together: Group = tuple(range(len(self.members)))
        if len(together) == 1 or all(self._is_packed(member, together) for member in together):
            return [together]
        groups: list[Group] = [(member,) for member in together]
        cost = self.cost_ns(groups)
        while len(groups) > 1 and len(together) <= _PAIRED:
            joined = [_joined(groups, a, b) for a, b in itertools.combinations(range(len(groups)), 2)]
            costs = [self.cost_ns(each) for each in joined]
            if min(costs) > cost:
                break
            cost, groups = min(costs), joined[costs.index(min(costs))]
        return groups if cost < self.cost_ns([together]) else [together]

    def cost_ns(self, groups: Sequence[Group]) -> float:
        """Busy time of all lanes, and of all copies and messages that bring each group what it needs."""
        home = next(group for group in groups if HOME in group)
        return sum(
            sum(self._lanes_ns(member, group) for member in group) + self._fetch_ns(group, home) for group in groups
        )

    # ---- lanes ---------------------------------------------------------------------------------------------------
    def _lanes_ns(self, member: int, group: Group) -> float:
        """Time of the lanes of a member of a group."""
        key = member, group
        if key not in self._lanes:
            self._lanes[key] = self._price_lanes(member, group)
        return self._lanes[key]

    def _price_lanes(self, member: int, group: Group) -> float:
        strides = self._strides(member, group)
        signatures = np.concatenate([_extents(self.members[member].boxes), strides], axis=1)
        _, first, counts = np.unique(signatures, axis=0, return_index=True, return_counts=True)
        chosen = np.argsort(-counts, kind="stable")[:_SAMPLES]
        times = [self._kernel_ns(member, int(lane), tuple(strides[lane].tolist())) for lane in first[chosen]]
        return float(np.dot(times, counts[chosen])) * len(strides) / int(counts[chosen].sum())

    def _kernel_ns(self, number: int, lane: int, strides: tuple[int, ...]) -> float:
        member = self.members[number]
        out = member.outs[lane]
        key = number, out.extents, strides
        if key not in self._kernels:
            result, operands = nominal_views(member.op, out, self.types)
            if member.operand < 0:
                result = attrs.evolve(result, strides=strides)
            else:
                nominal = operands[member.operand]
                assert nominal is not None
                view = attrs.evolve(nominal, strides=strides)
                operands = (*operands[: member.operand], view, *operands[member.operand + 1 :])
            kernel = lane_kernel(member.op, out, result, operands, self.types, self.machine.crossbar_rows)
            self._kernels[key] = self.machine.kernel_ns(kernel)
        return self._kernels[key]

    def _is_packed(self, member: int, group: Group) -> bool:
        """Whether what every lane holds lies gap-free in the group's storages."""
        boxes = self.members[member].boxes
        return bool((self._strides(member, group) == _strides(_extents(boxes), _extents(boxes), self.order)).all())

    def _strides(self, member: int, group: Group) -> Indices:
        """[lanes, rank] strides of each lane's box in its storage; 0 along axes of one index."""
        own = self.members[member]
        return _strides(_extents(own.boxes), _extents(self._storage(group, own.cores)), self.order)

    # ---- what a group needs --------------------------------------------------------------------------------------
    def _fetch_ns(self, group: Group, home: Group) -> float:
        """Time of both ends of all messages, and of copies where the group is not the producer's."""
        key = group, home
        if key not in self._fetches:
            self._fetches[key] = self._price_fetch(group, home)
        return self._fetches[key]

    def _price_fetch(self, group: Group, home: Group) -> float:
        met = [self._meeting(member) for member in group if member != HOME]
        if not met:
            return 0.0
        cores, fragments, boxes = (np.concatenate(columns) for columns in zip(*met, strict=True))
        pairs, inverse = np.unique(np.stack([cores, fragments], axis=1), axis=0, return_inverse=True)
        _, bounds = storage_boxes(boxes, inverse.ravel())
        sources = self.members[HOME].cores[pairs[:, 1]]
        extents = _extents(bounds)
        ends = [_extents(self._storage(home, sources)), _extents(self._storage(group, pairs[:, 0]))]
        elements = extents.prod(axis=1)
        length = run_lengths(extents, np.logical_and.reduce([end == extents for end in ends]), self.order)
        away = sources != pairs[:, 0]
        messages = (elements[away] // length[away]).sum()
        total = 2 * self.machine.transfer_ns(float(elements[away].sum()), float(messages)) if messages else 0.0
        if group != home:
            for size, moved in zip(length[~away].tolist(), elements[~away].tolist(), strict=True):
                total += moved // size * self._copy_ns(size)
        return total

    def _copy_ns(self, elements: int) -> float:
        copy = Instr("copy", Operand(1, 0), (Operand(0, 0),), elements)
        return self.machine.kernel_ns(Kernel(1, (), (copy,)))

    def _meeting(self, member: int) -> tuple[Indices, Indices, BoxArray]:
        """(core, fragment, box) wherever what a member's lanes need meets what the producer's lanes make."""
        if member not in self._meetings:
            own, made = self.members[member], self.members[HOME]
            shape = self.types[made.op.results[0]].shape
            needs, fragments, boxes = intersect_pairs(clip(own.boxes, shape), made.boxes)
            self._meetings[member] = own.cores[needs], fragments, boxes
        return self._meetings[member]

    def _storage(self, group: Group, cores: Indices) -> BoxArray:
        """The group's storages on ``cores``, all of which have one."""
        if group not in self._storages:
            boxes = np.concatenate([self.members[member].boxes for member in group])
            self._storages[group] = storage_boxes(boxes, np.concatenate([self.members[m].cores for m in group]))
        held, bounds = self._storages[group]
        found: BoxArray = bounds[np.searchsorted(held, cores)]
        return found


def _joined(groups: Sequence[Group], a: int, b: int) -> list[Group]:
    """The groups with two of them as one, in the place of the first."""
    both = tuple(sorted((*groups[a], *groups[b])))
    return [both if k == a else group for k, group in enumerate(groups) if k != b]


def _extents(boxes: BoxArray) -> Indices:
    extents: Indices = boxes[:, 1] - boxes[:, 0]
    return extents


def _strides(extents: Indices, storages: Indices, order: Sequence[int]) -> Indices:
    """Strides of boxes in storages, both given by their extents [n, rank]; 0 along axes of one index."""
    strides = np.zeros_like(extents)
    step = np.ones(extents.shape[0], dtype=np.int64)
    for axis in reversed(order):
        strides[:, axis] = np.where(extents[:, axis] > 1, step, 0)
        step = step * storages[:, axis]
    return strides
