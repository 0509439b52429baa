"""A binary heap of events (time, tag), compiled. The tag orders events of one instant and says what happens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def push(times: Any, tags: Any, size: int, time: int, tag: int) -> Any:
    """Adds an event; gives the arrays, which may be new ones. The caller counts ``size``."""
    if size == times.size:
        wider_times = np.empty(2 * size, np.int64)
        wider_tags = np.empty(2 * size, np.int64)
        wider_times[:size] = times
        wider_tags[:size] = tags
        times, tags = wider_times, wider_tags
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if times[parent] < time or (times[parent] == time and tags[parent] <= tag):
            break
        times[i] = times[parent]
        tags[i] = tags[parent]
        i = parent
    times[i] = time
    tags[i] = tag
    return times, tags


@njit(cache=True)
def drop_first(times: Any, tags: Any, size: int) -> None:
    """Removes the event at index 0 of ``size`` events. The caller counts."""
    last = size - 1
    time = times[last]
    tag = tags[last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        right = child + 1
        if right < last and (times[right] < times[child] or (times[right] == times[child] and tags[right] < tags[child])):
            child = right
        if time < times[child] or (time == times[child] and tag <= tags[child]):
            break
        times[i] = times[child]
        tags[i] = tags[child]
        i = child
    times[i] = time
    tags[i] = tag
