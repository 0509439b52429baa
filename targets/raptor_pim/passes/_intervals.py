"""Compiled placement of buffers by lifetime (kept apart: importing it loads the compiler)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Indices = npt.NDArray[np.int64]


@njit(cache=True)
def _place(first: Any, last: Any, size: Any, by_size: Any, address: Any) -> None:
    count = by_size.size
    low = np.empty(count, np.int64)
    high = np.empty(count, np.int64)
    for k in range(count):
        b = by_size[k]
        live = 0
        for j in range(k):
            other = by_size[j]
            if first[other] <= last[b] and first[b] <= last[other]:
                # Insert by address, so that the gaps can be walked in order.
                at = live
                while at > 0 and low[at - 1] > address[other]:
                    low[at] = low[at - 1]
                    high[at] = high[at - 1]
                    at -= 1
                low[at] = address[other]
                high[at] = address[other] + size[other]
                live += 1
        spot = 0
        for j in range(live):
            if low[j] >= spot + size[b]:
                break
            if high[j] > spot:
                spot = high[j]
        address[b] = spot


def place_by_lifetime(first: Indices, last: Indices, size: Indices) -> Indices:
    """Addresses for the buffers of one core: none that live at the same time overlap.

    Largest first, each at the lowest address that is free for its whole lifetime (``first`` .. ``last``, inclusive).
    """
    address = np.zeros(first.size, dtype=np.int64)
    _place(first, last, size, np.argsort(-size, kind="stable"), address)
    return address
