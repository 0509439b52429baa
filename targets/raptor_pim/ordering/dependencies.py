"""What an event has to wait for: the events before it that write what it reads.

Within a module of the pim dialect every element of a buffer is written once before it is read, so only reads after
writes count; that addresses are used again is settled later, by the lifetimes of buffers in the final order.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.module import Module
from raptor_core.spatial.kernel import Instr, Kernel, Loop, Moves
from raptor_pim import dialect as pim
from raptor_pim.ordering.events import Events, families

Indices = npt.NDArray[np.int64]

_NOTHING = (2**62, -(2**62))
_ONE_RESULT = frozenset({"dot", "mean"})
_STRIDED = frozenset({"gather", "mean"})


@attrs.frozen(eq=False)
class Dependencies:
    """Successors by event: those of event k are ``successors`` [``first`` [k] : ``first`` [k + 1]].

    ``counts`` [n] says how many events each one waits for. All successors stand at later places.
    """

    successors: Indices
    first: Indices
    counts: Indices


@attrs.frozen(eq=False)
class _Accesses:
    """Elements ``low`` to ``high`` (exclusive) of ``buffer``, touched by ``event``; columns of equal length."""

    event: Indices
    buffer: Indices
    low: Indices
    high: Indices

    @classmethod
    def joined(cls, parts: list[tuple[Indices, Indices, Indices, Indices]]) -> _Accesses:
        """One table, by buffer, then by ``low``."""
        if not parts:
            return cls(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
        event, buffer, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
        ranking = np.lexsort((low, buffer))
        return cls(event[ranking], buffer[ranking], low[ranking], high[ranking])


def read_dependencies(module: Module, events: Events, rows: int) -> Dependencies:
    """The dependencies of all events; ``rows`` is the height of a crossbar."""
    reads, lanes, messages = _accesses(module, rows)
    room = 1 + max((int(table.high.max()) for table in (reads, lanes, messages) if table.high.size), default=0)
    pairs = np.unique(np.concatenate([_pairs(reads, writes, room, events.count) for writes in (lanes, messages)]))
    before, after = np.divmod(pairs, max(events.count, 1))
    first = np.searchsorted(before, np.arange(events.count + 1))
    return Dependencies(after, first, np.bincount(after, minlength=events.count))


def _pairs(reads: _Accesses, writes: _Accesses, room: int, count: int) -> Indices:
    """writer * ``count`` + reader, of every read and write that meet, the write standing first.

    No access reaches ``room``. The candidates for a read are the writes that start before its end, from the first one
    on that it or one before it ends after the read's start: no others, where writes are disjoint.
    """
    if not writes.event.size:
        return np.zeros(0, dtype=np.int64)
    starts = writes.buffer * room + writes.low
    reached = np.maximum.accumulate(writes.buffer * room + writes.high)
    begin = np.searchsorted(reached, reads.buffer * room + np.maximum(reads.low, 0), "right")
    end = np.searchsorted(starts, reads.buffer * room + reads.high, "left")
    matches = np.maximum(end - begin, 0)
    reader = np.repeat(np.arange(reads.event.size), matches)
    writer = np.arange(reader.size) - np.repeat(np.cumsum(matches) - matches - begin, matches)
    meet = (
        (writes.event[writer] < reads.event[reader])
        & (writes.buffer[writer] == reads.buffer[reader])
        & (writes.high[writer] > reads.low[reader])
    )
    pairs: Indices = writes.event[writer[meet]] * count + reads.event[reader[meet]]
    return pairs


def _accesses(module: Module, rows: int) -> tuple[_Accesses, _Accesses, _Accesses]:
    """All reads; the writes of lanes, bounding ranges that may meet; and the writes of messages and clears."""
    reads: list[tuple[Indices, Indices, Indices, Indices]] = []
    lanes: list[tuple[Indices, Indices, Indices, Indices]] = []
    messages: list[tuple[Indices, Indices, Indices, Indices]] = []
    for op in families(module):
        if isinstance(op, pim.Launch):
            spans = kernel_spans(op.kernel, rows)
            for slot in range(op.kernel.operands + 1):
                low, high = spans.get(slot, _NOTHING)
                used = op.buffers[:, slot] >= 0
                if low >= high or not used.any():
                    continue
                offsets = op.offsets[used, slot]
                access = (op.order[used], op.buffers[used, slot], offsets + low, offsets + high)
                (reads if slot < op.kernel.operands else lanes).append(access)
        elif isinstance(op, pim.Transfer):
            reads.append((op.order, op.source_buffers, op.source_offsets, op.source_offsets + op.elements))
            ends = op.destination_offsets + op.elements
            messages.append((op.order, op.destination_buffers, op.destination_offsets, ends))
        else:
            access = (op.order, op.buffers, op.offsets, op.offsets + op.elements)
            (reads if isinstance(op, pim.Store) else messages).append(access)
    return _Accesses.joined(reads), _Accesses.joined(lanes), _Accesses.joined(messages)


def kernel_spans(kernel: Kernel, rows: int) -> dict[int, tuple[int, int]]:
    """The elements of each slot that the kernel touches lie in [low, high), counted from the slot's start.

    A product is taken to read all ``rows`` rows of its crossbar.
    """
    spans: dict[int, tuple[int, int]] = {}

    def widen(slot: int, low: int, high: int) -> None:
        known = spans.get(slot, _NOTHING)
        spans[slot] = (min(known[0], low), max(known[1], high))

    def visit(body: tuple[object, ...], extents: tuple[int, ...]) -> None:
        for item in body:
            if isinstance(item, Loop):
                visit(item.body, (*extents, item.extent))
            elif isinstance(item, Moves):
                if item.count.size:
                    widen(item.dst_slot, int(item.dst.min()), int((item.dst + item.count).max()))
                    ends = item.src + (item.count - 1) * item.stride + 1
                    widen(item.src_slot, int(item.src.min()), int(ends.max()))
            elif isinstance(item, Instr):
                written, read = _lengths(item, rows)
                for operand, length in ((item.dst, written), *((source, read) for source in item.sources)):
                    reach = [(extent - 1) * step for extent, step in zip(extents, operand.strides, strict=False)]
                    low = operand.offset + sum(min(0, r) for r in reach)
                    widen(operand.slot, low, operand.offset + sum(max(0, r) for r in reach) + length)

    visit(kernel.body, ())
    return spans


def _lengths(instr: Instr, rows: int) -> tuple[int, int]:
    """Elements from the first to the last that the destination and each source cover."""
    if instr.op == "product":
        return instr.columns, rows
    written = 1 if instr.op in _ONE_RESULT else instr.count
    read = (instr.count - 1) * int(instr.immediate) + 1 if instr.op in _STRIDED else instr.count
    return written, read
