"""Compiled search for strided runs in element moves (kept apart: importing it loads the compiler)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Indices = npt.NDArray[np.int64]


@njit(cache=True)
def _mark(dst: Any, src: Any, is_start: Any) -> None:
    k, n = 0, dst.size
    while k < n:
        is_start[k] = True
        end = k + 1
        if end < n and dst[end] == dst[k] + 1 and src[end] >= src[k]:
            stride = src[end] - src[k]
            while end < n and dst[end] == dst[end - 1] + 1 and src[end] - src[end - 1] == stride:
                end += 1
            # A pair that only bridges two longer runs would break the second one: leave its end to the next run.
            if (
                end - k == 2
                and end < n
                and stride != 1
                and dst[end] == dst[end - 1] + 1
                and src[end] == src[end - 1] + 1
            ):
                end -= 1
        k = end


def run_starts(dst: Indices, src: Indices) -> Indices:
    """The index of the first element of every run; ``dst`` is ascending."""
    is_start = np.zeros(dst.size, dtype=np.bool_)
    _mark(dst, src, is_start)
    return np.flatnonzero(is_start)
