"""Compiled list scheduling of events (kept apart: importing it loads the compiler).

Arguments that several functions share:

- ``events``: a tuple of the columns of raptor_pim.ordering.events.Events, in its order;
- ``after``: a tuple of the columns of Dependencies: successors, first, counts;
- ``chip``: a tuple of ``latency`` [cores + 1, cores + 1] ns of a flit, the host last, and ``cost``, the figures
  numbered below;
- ``free`` [cores + 1]: when each core can start its next instruction; of the host, when its memory is free;
- ``switch`` [cores + 1]: when each core's switch is free.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from raptor_pim.ordering.events import LOAD, LOCAL, STORE, TRANSFER

PERIOD, WIDTH, READ, WRITE, BUS_WIDTH, HOST_WIDTH, HOST_READ, HOST_WRITE, RETIRE = range(9)
_REQUEST_HOLD = 1.0


@njit(cache=True, inline="always")
def _ceil(a: Any, b: Any) -> Any:
    return np.ceil(a / b)


@njit(cache=True)
def durations(events: Any, chip: Any, duration: Any) -> None:
    """The time of every event by itself, all parties ready."""
    kind, core, peer, time, messages, elements = events
    latency, cost = chip
    host = latency.shape[0] - 1
    between = (1 + cost[RETIRE]) * cost[PERIOD]
    for k in range(kind.size):
        if kind[k] == LOCAL:
            duration[k] = time[k]
            continue
        accesses = _ceil(elements[k], cost[WIDTH])
        if kind[k] == TRANSFER:
            there, back = latency[core[k], peer[k]], latency[peer[k], core[k]]
            flits = _ceil(elements[k], cost[BUS_WIDTH])
            each = back + accesses * (cost[READ] + cost[WRITE]) + flits * there + between
            duration[k] = there + messages[k] * each
            continue
        rows = _ceil(elements[k], cost[HOST_WIDTH])
        if kind[k] == LOAD:
            each = latency[core[k], host] + rows * cost[HOST_READ] + accesses * cost[WRITE] + between
        else:
            flits = _ceil(elements[k], cost[BUS_WIDTH])
            each = accesses * cost[READ] + flits * latency[core[k], host] + rows * cost[HOST_WRITE] + between
        duration[k] = messages[k] * each


@njit(cache=True)
def tails(duration: Any, after: Any, tail: Any) -> None:
    """The longest way from the end of each event to the end of the program, resources unlimited."""
    successors, first, _ = after
    for k in range(duration.size - 1, -1, -1):
        longest = 0.0
        for j in range(first[k], first[k + 1]):
            s = successors[j]
            longest = max(longest, tail[s] + duration[s])
        tail[k] = longest


@njit(cache=True)
def _start(k: int, ready: float, kind: Any, core: Any, peer: Any, latency: Any, free: Any) -> float:
    """When event ``k`` can start at the earliest."""
    start = max(ready, free[core[k]])
    if kind[k] == TRANSFER:
        return float(max(start, free[peer[k]]))
    if kind[k] == LOAD:
        host = latency.shape[0] - 1
        return float(max(start, free[host] - latency[core[k], host]))
    return float(start)


@njit(cache=True)
def _run(k: int, ready: float, events: Any, chip: Any, free: Any, switch: Any) -> float:
    """Lets event ``k`` happen; gives when its results are there. Performance model, sections 5.3 and 6."""
    kind, core, peer, time, messages, elements = events
    latency, cost = chip
    a, b = core[k], peer[k]
    if kind[k] == LOCAL:
        free[a] = max(ready, free[a]) + time[k]
        return float(free[a])
    host = latency.shape[0] - 1
    accesses = _ceil(elements[k], cost[WIDTH])
    flits = _ceil(elements[k], cost[BUS_WIDTH])
    rows = _ceil(elements[k], cost[HOST_WIDTH])
    load, retire = cost[PERIOD], cost[RETIRE] * cost[PERIOD]
    end = ready
    for _ in range(messages[k]):
        begin = max(ready, free[a]) + load
        if kind[k] == TRANSFER:
            request = max(begin, switch[a]) + latency[a, b]
            switch[a] = request + _REQUEST_HOLD
            granted = max(request, free[b] + load, switch[b]) + latency[b, a]
            switch[b] = granted
            sent = granted + accesses * cost[READ]
            arrived = max(sent, switch[a]) + flits * latency[a, b]
            switch[a] = arrived
            end = arrived + accesses * cost[WRITE]
            free[a] = sent + retire
            free[b] = end + retire
        elif kind[k] == LOAD:
            done = max(begin + latency[a, host], free[host]) + rows * cost[HOST_READ]
            free[host] = done
            switch[a] = done
            end = done + accesses * cost[WRITE]
            free[a] = end + retire
        elif kind[k] == STORE:
            sent = max(begin + accesses * cost[READ], switch[a]) + flits * latency[a, host]
            end = max(sent, free[host]) + rows * cost[HOST_WRITE]
            free[host] = end
            switch[a] = end
            free[a] = end + retire + load
    return float(end)


@njit(cache=True)
def replay(events: Any, after: Any, chip: Any) -> float:
    """When the last event is over if all happen in the order in which they stand."""
    count, cores = events[0].size, chip[0].shape[0]
    successors, first, _ = after
    free, switch, ready = np.zeros(cores), np.zeros(cores), np.zeros(count)
    for k in range(count):
        end = _run(k, ready[k], events, chip, free, switch)
        for j in range(first[k], first[k + 1]):
            ready[successors[j]] = max(ready[successors[j]], end)
    return float(free.max())


@njit(cache=True)
def list_schedule(events: Any, after: Any, chip: Any, tail: Any, place: Any) -> float:
    """Gives every event a ``place`` and returns when the last one is over.

    Of all events whose inputs are there, the one with the least (start - tail) goes next. Starts only grow, so the
    queue is kept lazily: an event whose start has moved is put back.
    """
    kind, core, peer = events[0], events[1], events[2]
    latency = chip[0]
    successors, first, counts = after
    count, cores = kind.size, latency.shape[0]
    free, switch, ready = np.zeros(cores), np.zeros(cores), np.zeros(count)
    waiting = counts.copy()
    keys, heap = np.empty(count + 1), np.empty(count + 1, np.int64)
    size = 0
    for k in range(count):
        if waiting[k] == 0:
            _push(keys, heap, size, -tail[k], k)
            size += 1
    done = 0
    while size > 0:
        k = heap[0]
        now = _start(k, ready[k], kind, core, peer, latency, free) - tail[k]
        if now > keys[0]:
            _sink(keys, heap, size, now, k)
            continue
        size -= 1
        if size > 0:
            _sink(keys, heap, size, keys[size], heap[size])
        place[k] = done
        done += 1
        end = _run(k, ready[k], events, chip, free, switch)
        for j in range(first[k], first[k + 1]):
            s = successors[j]
            ready[s] = max(ready[s], end)
            waiting[s] -= 1
            if waiting[s] == 0:
                _push(keys, heap, size, _start(s, ready[s], kind, core, peer, latency, free) - tail[s], s)
                size += 1
    return float(free.max())


@njit(cache=True)
def _push(keys: Any, heap: Any, size: int, key: float, k: int) -> None:
    """Puts event ``k`` into a heap of ``size`` events; equal keys go by event."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if key > keys[above] or (key == keys[above] and k > heap[above]):
            break
        keys[at] = keys[above]
        heap[at] = heap[above]
        at = above
    keys[at] = key
    heap[at] = k


@njit(cache=True)
def _sink(keys: Any, heap: Any, size: int, key: float, k: int) -> None:
    """Replaces the first of ``size`` events by event ``k``."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (keys[other] < keys[below] or (keys[other] == keys[below] and heap[other] < heap[below])):
            below = other
        if key < keys[below] or (key == keys[below] and k < heap[below]):
            break
        keys[at] = keys[below]
        heap[at] = heap[below]
        at = below
    keys[at] = key
    heap[at] = k
