"""Compiled walks over the elements that events write and read (kept apart: importing it loads the compiler).

Access k of a core, at place ``order`` [k], touches the runs ``first`` [pattern [k]] up to ``first`` [pattern [k] + 1];
run r holds the elements from ``base`` [k] + ``low`` [r] to ``base`` [k] + ``high`` [r] (exclusive) of the core.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def write_places(place: Any, order: Any, base: Any, pattern: Any, first: Any, low: Any, high: Any) -> tuple[int, int]:
    """Set ``place`` of every element, -1 at first, to that of its write.

    Gives the access and the element that are the first to be written again; (-1, -1) when none is.
    """
    for k in range(base.size):
        for run in range(first[pattern[k]], first[pattern[k] + 1]):
            for element in range(base[k] + low[run], base[k] + high[run]):
                if place[element] >= 0:
                    return k, element
                place[element] = order[k]
    return -1, -1


@njit(cache=True)
def early_read(place: Any, order: Any, base: Any, pattern: Any, first: Any, low: Any, high: Any) -> tuple[int, int]:
    """The first access and element that is read where it is not written yet, ``place`` saying where it is.

    (-1, -1) when all were written before.
    """
    for k in range(base.size):
        for run in range(first[pattern[k]], first[pattern[k] + 1]):
            for element in range(base[k] + low[run], base[k] + high[run]):
                if place[element] < 0 or place[element] >= order[k]:
                    return k, element
    return -1, -1
