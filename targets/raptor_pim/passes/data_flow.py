"""Proof that every event reads what another one wrote before it, element by element.

Nothing here looks at how the order was found: places come from the events as they stand, what kernels touch from
their instructions, one by one.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_pim import dialect as pim
from raptor_pim.codegen.footprint import kernel_footprint
from raptor_pim.codegen.template import expand_kernel
from raptor_pim.ordering.events import Family, families

Indices = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class _Accesses:
    """What events touch, columns of equal length: ``pattern`` is shifted by ``offset`` within ``buffer``.

    ``event`` is the number of the event's family, ``order`` its place.
    """

    event: Indices
    order: Indices
    buffer: Indices
    offset: Indices
    pattern: Indices

    def __getitem__(self, rows: Indices | slice) -> _Accesses:
        return _Accesses(*(column[rows] for column in attrs.astuple(self, recurse=False)))


@attrs.define(eq=False)
class _Collector:
    """Gathers accesses, and the patterns of elements that they touch: runs that count from an access's start."""

    parts: list[tuple[Indices, ...]] = attrs.field(factory=list)
    runs: list[Indices] = attrs.field(factory=list)

    def add(self, event: int, order: Indices, buffer: Indices, offset: Indices, runs: Indices) -> None:
        """Accesses that all touch the same elements from their start on; none where ``runs`` is empty."""
        if runs.size and order.size:
            self.parts.append((np.full_like(order, event), order, buffer, offset, np.full_like(order, len(self.runs))))
            self.runs.append(runs)

    def add_ranges(self, event: int, order: Indices, buffer: Indices, offset: Indices, elements: Indices) -> None:
        """Accesses that touch ``elements`` elements each."""
        lengths, number = np.unique(elements, return_inverse=True)
        self.parts.append((np.full_like(order, event), order, buffer, offset, number.reshape(-1) + len(self.runs)))
        self.runs.extend(np.array([[0, length]], dtype=np.int64) for length in lengths.tolist())

    def finish(self) -> tuple[_Accesses, Indices, Indices]:
        """All accesses; the first run of each pattern (with an end); and all runs [n, 2]."""
        columns = zip(*self.parts, strict=True) if self.parts else [[np.zeros(0, dtype=np.int64)]] * 5
        first = np.cumsum([0, *(runs.shape[0] for runs in self.runs)])
        joined = np.concatenate(self.runs) if self.runs else np.zeros((0, 2), dtype=np.int64)
        return _Accesses(*(np.concatenate(column) for column in columns)), first, joined


def check_data_flow(module: Module) -> None:
    """Every element that an event reads is written by one other event, at an earlier place; none is written twice.

    ``module`` is of the pim dialect; see raptor_pim.passes.verify for what it has to satisfy before. Work and memory
    are those of one core at a time. Raises InternalError for the first element that breaks the rule.
    """
    (buffers,) = module.find(pim.Buffers)
    reads, writes = _Collector(), _Collector()
    events, matrices = list(families(module)), _Matrices.of(module)
    for number, event in enumerate(events):
        if isinstance(event, pim.Launch):
            _collect_launch(matrices, number, event, reads, writes)
        elif isinstance(event, pim.Transfer):
            reads.add_ranges(number, event.order, event.source_buffers, event.source_offsets, event.elements)
            writes.add_ranges(number, event.order, event.destination_buffers, event.destination_offsets, event.elements)
        else:
            side = reads if isinstance(event, pim.Store) else writes
            side.add_ranges(number, event.order, event.buffers, event.offsets, event.elements)
    _check(buffers, events, reads, writes)


@attrs.frozen(eq=False)
class _Matrices:
    """The matrix shapes [g, 2] of all groups, ascending by ``keys``: core x ``room`` + number within the core."""

    keys: Indices
    shapes: Indices
    room: int

    @classmethod
    def of(cls, module: Module) -> _Matrices:
        (groups,) = module.find(pim.Groups)
        shapes = np.array([module.types[name].shape for name in groups.operands], dtype=np.int64).reshape(-1, 2)
        room = int(groups.numbers.max(initial=0)) + 1
        keys = groups.cores * room + groups.numbers
        ranking = np.argsort(keys)
        return cls(keys[ranking], shapes[groups.matrices[ranking]], room)

    def of_lanes(self, event: pim.Launch) -> Indices:
        """[lanes, weights, 2] rows and columns of the matrices that every lane uses."""
        return self.shapes[np.searchsorted(self.keys, event.cores[:, None] * self.room + event.groups)]


def _collect_launch(matrices: _Matrices, number: int, event: pim.Launch, reads: _Collector, writes: _Collector) -> None:
    """The accesses of one family of lanes: its kernel's footprint, once for every set of matrix shapes it works on."""
    template = expand_kernel(event.kernel)
    slots = event.buffers.shape[1]
    shapes = matrices.of_lanes(event)
    kinds, kind = shapes[:1], np.zeros(event.order.size, dtype=np.int64)
    if (shapes != kinds).any():
        kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
        kind = kind.reshape(-1)
    for k, shape in enumerate(kinds):
        footprint = kernel_footprint(template, slots, shape)
        for side, found in ((reads, footprint.needed), (writes, footprint.written)):
            for slot, runs in enumerate(found):
                if runs.size:
                    lanes = np.flatnonzero((kind == k) & (event.buffers[:, slot] >= 0))
                    buffer, offset = event.buffers[lanes, slot], event.offsets[lanes, slot]
                    side.add(number, event.order[lanes], buffer, offset, runs)


def _check(buffers: pim.Buffers, events: list[Family], reads: _Collector, writes: _Collector) -> None:
    """Core by core: where each element is written, then whether that is before everything that reads it."""
    from raptor_pim.passes._data_flow import early_read, write_places

    table = buffers.cores
    wanted, *read_patterns = reads.finish()
    given, *write_patterns = writes.finish()
    for accesses, patterns in ((wanted, read_patterns), (given, write_patterns)):
        _check_bounds(buffers, events, accesses, *patterns)
    # What nobody reads is not looked at: scratch, above all.
    is_read = np.zeros(table.size, dtype=np.bool_)
    is_read[wanted.buffer] = True
    begin, room = _starts(np.where(is_read, buffers.elements, 0), table)
    cores = np.unique(table[is_read])
    split = [_by_core(side, table, cores) for side in (given[np.flatnonzero(is_read[given.buffer])], wanted)]
    for core, written, read in zip(cores.tolist(), *split, strict=True):
        place = np.full(room[core], -1, dtype=np.int64)
        for here, (first, runs), walk in ((written, write_patterns, write_places), (read, read_patterns, early_read)):
            low, high = np.ascontiguousarray(runs[:, 0]), np.ascontiguousarray(runs[:, 1])
            found, element = walk(place, here.order, begin[here.buffer] + here.offset, here.pattern, first, low, high)
            if found < 0:
                continue
            buffer = int(here.buffer[found])
            at = f"core {core}, element {element - int(begin[buffer])} of '{buffers.owners[buffers.owner[buffer]]}'"
            name, order, known = events[int(here.event[found])].name, int(here.order[found]), int(place[element])
            if walk is write_places:
                raise _broken(at, f"'{name}' writes it at place {order}, after it was written at place {known}")
            when = "nobody writes it" if known < 0 else f"it is written at place {known} only"
            raise _broken(at, f"'{name}' reads it at place {order}, but {when}")


def _starts(elements: Indices, cores: Indices) -> tuple[Indices, Indices]:
    """Where each buffer begins when those of a core lie one after another; and the elements of every core."""
    ranking = np.argsort(cores, kind="stable")
    ends = np.cumsum(elements[ranking])
    room = np.bincount(cores, weights=elements).astype(np.int64)
    begin = np.empty_like(elements)
    begin[ranking] = ends - elements[ranking] - (np.cumsum(room) - room)[cores[ranking]]
    return begin, room


def _by_core(accesses: _Accesses, core_of: Indices, cores: Indices) -> list[_Accesses]:
    """The accesses to buffers on each of ``cores``, which ascend."""
    own = core_of[accesses.buffer]
    ranking = np.argsort(own, kind="stable")
    edges = np.searchsorted(own[ranking], np.append(cores, core_of.max(initial=0) + 1))
    ordered = accesses[ranking]
    return [ordered[slice(*pair)] for pair in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def _check_bounds(
    buffers: pim.Buffers, events: list[Family], accesses: _Accesses, first: Indices, runs: Indices
) -> None:
    """No access leaves its buffer; the runs of every pattern ascend."""
    if not accesses.order.size:
        return
    low = accesses.offset + runs[first[:-1], 0][accesses.pattern]
    high = accesses.offset + runs[first[1:] - 1, 1][accesses.pattern]
    outside = np.flatnonzero((low < 0) | (high > buffers.elements[accesses.buffer]))
    if outside.size:
        row = int(outside[0])
        buffer = int(accesses.buffer[row])
        raise _broken(
            f"core {buffers.cores[buffer]}, '{buffers.owners[buffers.owner[buffer]]}'",
            f"'{events[int(accesses.event[row])].name}' touches elements {low[row]} to {high[row]} (exclusive) of "
            f"{buffers.elements[buffer]}",
        )


def _broken(where: str, reason: str) -> InternalError:
    return InternalError(
        "invalid-data-flow",
        "the flow of data between events is broken",
        where=where,
        reason=reason,
        hint="this is a bug in the order of events or in an operator's kernel; please report it with the --dump-ir "
        "folder",
    )
