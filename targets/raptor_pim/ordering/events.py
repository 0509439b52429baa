"""The events of a module as arrays: one entry per place in the total order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.module import Module
from raptor_pim import dialect as pim
from raptor_pim.machine import PimMachine

Indices = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]
Family = pim.Launch | pim.Clear | pim.Load | pim.Store | pim.Transfer

LOCAL, TRANSFER, LOAD, STORE = range(4)
"""Kinds of events: work of one core, messages between two cores, and the two directions of host traffic."""


@attrs.frozen(eq=False)
class Events:
    """Event k stands at place k of the total order.

    ``kind`` [n] (LOCAL, TRANSFER, LOAD, STORE); ``core`` [n], of a transfer the sender; ``peer`` [n] the receiver of a
    transfer, else -1; ``time_ns`` [n] of local work; ``messages`` [n] instructions of a transfer, load or store, of
    ``elements`` [n] each.
    """

    kind: npt.NDArray[np.int8]
    core: Indices
    peer: Indices
    time_ns: Times
    messages: Indices
    elements: Indices

    @property
    def count(self) -> int:
        """Number of events."""
        return int(self.kind.size)


def families(module: Module) -> Iterator[Family]:
    """The event families of a module of the pim dialect."""
    for op in module.operations:
        if isinstance(op, Family):
            yield op


def read_events(module: Module, machine: PimMachine) -> Events:
    """The events of ``module``, whose places in the total order count from 0 without gaps (pass ``communicate``)."""
    found = list(families(module))
    count = max((int(op.order.max()) + 1 for op in found if op.order.size), default=0)
    kind = np.zeros(count, dtype=np.int8)
    core = np.zeros(count, dtype=np.int64)
    peer = np.full(count, -1, dtype=np.int64)
    time = np.zeros(count)
    messages = np.zeros(count, dtype=np.int64)
    elements = np.zeros(count, dtype=np.int64)
    for op in found:
        place = op.order
        if isinstance(op, pim.Transfer):
            kind[place] = TRANSFER
            core[place], peer[place] = op.sources, op.destinations
        else:
            core[place] = op.cores
        if isinstance(op, pim.Launch):
            time[place] = machine.kernel_ns(op.kernel)
        elif isinstance(op, pim.Clear):
            np.add.at(time, place, machine.clear_ns(op.elements))
        else:
            elements[place] = op.elements
            np.add.at(messages, place, 1)
            if isinstance(op, pim.Load | pim.Store):
                kind[place] = LOAD if isinstance(op, pim.Load) else STORE
    return Events(kind, core, peer, time, messages, elements)


def one_by_one(module: Module) -> Module:
    """``module`` with a place of its own in the total order for every message, in the order in which they stand."""
    found = list(families(module))
    order = np.concatenate([op.order for op in found]) if found else np.zeros(0, dtype=np.int64)
    ranking = np.argsort(order, kind="stable")
    place = np.empty(order.size, dtype=np.int64)
    place[ranking] = np.arange(order.size)
    begins = np.cumsum([0, *(op.order.size for op in found)])
    own = {id(op): place[begin:end] for op, begin, end in zip(found, begins[:-1], begins[1:], strict=True)}
    operations = tuple(
        attrs.evolve(op, order=own[id(op)]) if isinstance(op, Family) else op for op in module.operations
    )
    return attrs.evolve(module, operations=operations)


def with_places(module: Module, place: Indices) -> Module:
    """``module`` with event k at ``place`` [k] of the total order, and buffers that live accordingly."""
    moved = [attrs.evolve(op, order=place[op.order]) if isinstance(op, Family) else op for op in module.operations]
    events = [op for op in moved if isinstance(op, Family)]
    operations = tuple(with_lifetimes(op, events) if isinstance(op, pim.Buffers) else op for op in moved)
    return attrs.evolve(module, operations=operations)


def with_lifetimes(buffers: pim.Buffers, events: Sequence[Family]) -> pim.Buffers:
    """The buffer table with the lifetimes that ``events`` give the buffers; those never used have (0, 0)."""
    count = buffers.cores.size
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, -1)
    for used, order in (use for event in events for use in _uses(event)):
        np.minimum.at(first, used, order)
        np.maximum.at(last, used, order)
    unused = last < 0
    first[unused] = 0
    last[unused] = 0
    return attrs.evolve(buffers, first=first, last=last)


def _uses(event: Family) -> list[tuple[Indices, Indices]]:
    """The (buffers, orders) that an event family touches."""
    if isinstance(event, pim.Launch):
        order = np.repeat(event.order[:, None], event.buffers.shape[1], axis=1)
        used = event.buffers >= 0
        return [(event.buffers[used], order[used])]
    if isinstance(event, pim.Transfer):
        return [(event.source_buffers, event.order), (event.destination_buffers, event.order)]
    return [(event.buffers, event.order)]
