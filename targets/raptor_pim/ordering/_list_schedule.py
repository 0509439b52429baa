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
_LOOKS = 40
"""Looks per event that an exact choice may take; very many messages between busy cores would take more."""


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
def _held_by(k: int, ready: float, kind: Any, core: Any, peer: Any, latency: Any, free: Any) -> tuple[float, int]:
    """When event ``k`` can start at the earliest, and whom it waits for until then: -1 for its inputs."""
    start, holder = ready, -1
    a = core[k]
    if free[a] >= start:
        start, holder = free[a], a
    if kind[k] == TRANSFER and free[peer[k]] > start:
        start, holder = free[peer[k]], peer[k]
    if kind[k] == LOAD:
        host = latency.shape[0] - 1
        if free[host] - latency[a, host] > start:
            start, holder = free[host] - latency[a, host], host
    return start, holder


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

    Of all events whose inputs are there, the one with the least (start - tail) goes next. An event waits in the queue
    of the core (or host memory) that is free last of those it needs, or, while its inputs are on their way, in the
    queue of its core's *later* events. What waits for a core moves with the time at which that core is free, so
    few events have to be looked at twice; after ``_LOOKS`` looks per event the first one goes as it stands. A tree
    over the cores finds the least first one.
    """
    kind, core, peer = events[0], events[1], events[2]
    latency = chip[0]
    successors, first, counts = after
    count, cores = kind.size, latency.shape[0]
    host = cores - 1
    free, switch, ready = np.zeros(cores), np.zeros(cores), np.zeros(count)
    waiting = counts.copy()
    queues = _queues(kind, core, peer, cores)
    leaves = queues[-1].size // 2
    tree = queues[-1]
    for k in range(count):
        if waiting[k] == 0:
            _enqueue(k, ready[k], kind, core, peer, latency, free, tail, queues)
    for c in range(cores):
        _update_tree(c, free, queues)
    done, looks, most = 0, 0, _LOOKS * count
    while tree[1] < np.inf:
        c = 1
        while c < leaves:
            c = 2 * c if tree[2 * c] <= tree[2 * c + 1] else 2 * c + 1
        k = _dequeue(c - leaves, free, queues)
        _update_tree(c - leaves, free, queues)
        looks += 1
        start, holder = _held_by(k, ready[k], kind, core, peer, latency, free)
        key = _offset(start, holder, tail[k], free) + (free[holder] if holder >= 0 else 0.0)
        if looks < most and key > tree[1]:
            _update_tree(_enqueue(k, ready[k], kind, core, peer, latency, free, tail, queues), free, queues)
            continue
        place[k] = done
        done += 1
        end = _run(k, ready[k], events, chip, free, switch)
        _update_tree(core[k], free, queues)
        if kind[k] == TRANSFER:
            _update_tree(peer[k], free, queues)
        elif kind[k] != LOCAL:
            _update_tree(host, free, queues)
        for j in range(first[k], first[k + 1]):
            s = successors[j]
            ready[s] = max(ready[s], end)
            waiting[s] -= 1
            if waiting[s] == 0:
                _update_tree(_enqueue(s, ready[s], kind, core, peer, latency, free, tail, queues), free, queues)
    return float(free.max())


@njit(cache=True)
def _queues(kind: Any, core: Any, peer: Any, cores: int) -> Any:
    """Empty queues of every core, its *due* events and its later ones, and the tree of the least keys.

    A queue of core c is the heap of ``keys`` and ``events`` from ``begin`` [c] on, ``size`` [c] long.
    """
    due_begin, later_begin = np.zeros(cores + 1, np.int64), np.zeros(cores + 1, np.int64)
    for k in range(kind.size):
        later_begin[core[k] + 1] += 1
        due_begin[core[k] + 1] += 1
        if kind[k] == TRANSFER:
            due_begin[peer[k] + 1] += 1
        elif kind[k] == LOAD:
            due_begin[cores] += 1
    due_begin, later_begin = np.cumsum(due_begin), np.cumsum(later_begin)
    leaves = 1
    while leaves < cores:
        leaves *= 2
    return (
        due_begin,
        np.zeros(cores, np.int64),
        np.empty(due_begin[-1]),
        np.empty(due_begin[-1], np.int64),
        later_begin,
        np.zeros(cores, np.int64),
        np.empty(later_begin[-1]),
        np.empty(later_begin[-1], np.int64),
        np.full(2 * leaves, np.inf),
    )


@njit(cache=True)
def _offset(start: float, holder: int, tail: float, free: Any) -> float:
    """The key of an event in its queue: (start - tail), in the queue of due events from when its core is free."""
    if holder < 0:
        return float(start - tail)
    return float((start - free[holder]) - tail)


@njit(cache=True)
def _enqueue(
    k: int, ready: float, kind: Any, core: Any, peer: Any, latency: Any, free: Any, tail: Any, queues: Any
) -> int:
    """Puts event ``k`` into the queue of whom it waits for; gives the core whose queues have changed."""
    due_begin, due_size, due_keys, due, later_begin, later_size, later_keys, later, _ = queues
    start, c = _held_by(k, ready, kind, core, peer, latency, free)
    key = _offset(start, c, tail[k], free)
    if c < 0:
        c = core[k]
        low = later_begin[c]
        _push(later_keys, later, low, later_size[c], key, k)
        later_size[c] += 1
    else:
        low = due_begin[c]
        _push(due_keys, due, low, due_size[c], key, k)
        due_size[c] += 1
    return int(c)


@njit(cache=True)
def _dequeue(c: int, free: Any, queues: Any) -> int:
    """Takes the first event out of the queues of core ``c``."""
    due_begin, due_size, due_keys, due, later_begin, later_size, later_keys, later, _ = queues
    low, high = due_begin[c], later_begin[c]
    if due_size[c] > 0 and (later_size[c] == 0 or free[c] + due_keys[low] <= later_keys[high]):
        k = due[low]
        _pop(due_keys, due, low, due_size[c])
        due_size[c] -= 1
    else:
        k = later[high]
        _pop(later_keys, later, high, later_size[c])
        later_size[c] -= 1
    return int(k)


@njit(cache=True)
def _update_tree(c: int, free: Any, queues: Any) -> None:
    """Brings the least key of core ``c`` up to date in the tree of minima."""
    due_begin, due_size, due_keys, _, later_begin, later_size, later_keys, _, tree = queues
    key = np.inf
    if due_size[c] > 0:
        key = free[c] + due_keys[due_begin[c]]
    if later_size[c] > 0:
        key = min(key, later_keys[later_begin[c]])
    at = tree.size // 2 + c
    tree[at] = key
    while at > 1:
        at >>= 1
        least = min(tree[2 * at], tree[2 * at + 1])
        if tree[at] == least:
            break
        tree[at] = least


@njit(cache=True)
def _push(keys: Any, heap: Any, low: int, size: int, key: float, k: int) -> None:
    """Puts event ``k`` into the heap of ``size`` events from ``low`` on; equal keys go by event."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if key > keys[low + above] or (key == keys[low + above] and k > heap[low + above]):
            break
        keys[low + at] = keys[low + above]
        heap[low + at] = heap[low + above]
        at = above
    keys[low + at] = key
    heap[low + at] = k


@njit(cache=True)
def _pop(keys: Any, heap: Any, low: int, size: int) -> None:
    """Takes the first event out of the heap of ``size`` events from ``low`` on."""
    size -= 1
    key, k = keys[low + size], heap[low + size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        a, b = low + below, low + below + 1
        if below + 1 < size and (keys[b] < keys[a] or (keys[b] == keys[a] and heap[b] < heap[a])):
            below, a = below + 1, b
        if key < keys[a] or (key == keys[a] and k < heap[a]):
            break
        keys[low + at] = keys[a]
        heap[low + at] = heap[a]
        at = below
    keys[low + at] = key
    heap[low + at] = k
