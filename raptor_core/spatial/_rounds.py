"""Compiled greedy colouring of transfers into rounds (kept apart: importing it loads the compiler)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Indices = npt.NDArray[np.int64]


@njit(cache=True)
def _colour(step: Any, source: Any, destination: Any, cores: int, rounds: Any) -> None:
    count = step.size
    begin = 0
    while begin < count:
        end = begin
        while end < count and step[end] == step[begin]:
            end += 1
        degree = np.zeros(cores, np.int64)
        for k in range(begin, end):
            degree[source[k]] += 1
            degree[destination[k]] += 1
        limit = 2 * degree.max() + 1
        busy = np.zeros((cores, limit), np.bool_)
        first_free = np.zeros(cores, np.int64)
        for k in range(begin, end):
            a, b = source[k], destination[k]
            r = max(first_free[a], first_free[b])
            while busy[a, r] or busy[b, r]:
                r += 1
            busy[a, r] = True
            busy[b, r] = True
            rounds[k] = r
            while busy[a, first_free[a]]:
                first_free[a] += 1
            while busy[b, first_free[b]]:
                first_free[b] += 1
        begin = end


def transfer_rounds(step: Indices, source: Indices, destination: Indices) -> Indices:
    """A round for every transfer such that, within a step, a core takes part in at most one transfer per round.

    ``step`` is ascending. Greedy edge colouring in the given order: within a step at most one less than twice the
    greatest number of transfers of a core is used.
    """
    rounds = np.zeros(step.size, dtype=np.int64)
    if step.size:
        _colour(step, source, destination, int(max(source.max(), destination.max())) + 1, rounds)
    return rounds
