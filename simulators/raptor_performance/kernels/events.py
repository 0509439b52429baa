"""The queue of events: a binary heap of (time, tag), compiled.

The tag orders the events of one instant, by kind and then core number, and says what happens.
"""

from __future__ import annotations

from typing import Any

from numba import njit

TOKEN, HOST, RESUME = range(3)
"""Kinds: a token arrives, a request reaches the host memory, a core goes on that had paused."""

_KIND_AT = 56
_CORE_AT = 36


@njit(cache=True, inline="always")
def event_tag(core: int, kind: int, detail: int) -> Any:
    """The tag of an event that ``core`` caused; ``detail`` has up to 36 bits."""
    return (kind << _KIND_AT) | (core << _CORE_AT) | detail


@njit(cache=True, inline="always")
def tag_kind(tag: int) -> Any:
    """The kind."""
    return tag >> _KIND_AT


@njit(cache=True, inline="always")
def tag_core(tag: int) -> Any:
    """The core that caused it."""
    return (tag >> _CORE_AT) & ((1 << (_KIND_AT - _CORE_AT)) - 1)


@njit(cache=True, inline="always")
def tag_detail(tag: int) -> Any:
    """What else was put into it."""
    return tag & ((1 << _CORE_AT) - 1)


@njit(cache=True)
def push(heap: Any, size: int, time: int, tag: int) -> None:
    """Adds an event to the ``size`` events in ``heap`` [room, 2]."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent, 0] < time or (heap[parent, 0] == time and heap[parent, 1] <= tag):
            break
        heap[i, 0] = heap[parent, 0]
        heap[i, 1] = heap[parent, 1]
        i = parent
    heap[i, 0] = time
    heap[i, 1] = tag


@njit(cache=True)
def drop_first(heap: Any, size: int) -> None:
    """Removes the earliest of ``size`` events."""
    last = size - 1
    time = heap[last, 0]
    tag = heap[last, 1]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        right = child + 1
        if right < last and (
            heap[right, 0] < heap[child, 0] or (heap[right, 0] == heap[child, 0] and heap[right, 1] < heap[child, 1])
        ):
            child = right
        if time < heap[child, 0] or (time == heap[child, 0] and tag <= heap[child, 1]):
            break
        heap[i, 0] = heap[child, 0]
        heap[i, 1] = heap[child, 1]
        i = child
    heap[i, 0] = time
    heap[i, 1] = tag
