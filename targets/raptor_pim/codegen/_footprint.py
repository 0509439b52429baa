"""Compiled walk over a kernel's instructions (kept apart: importing it loads the compiler)."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def touch(slot: Any, start: Any, reads: Any, stride: Any, writes: Any, base: Any, needed: Any, written: Any) -> None:
    """Mark in ``written`` what the rows write, and in ``needed`` what they read before they have written it.

    Element e of slot s has its mark at ``base`` [s] + e. ``slot`` and ``start`` [rows, 3] are the destination and the
    sources; a row reads ``reads`` [rows] elements of each source, ``stride`` [rows] apart, then writes ``writes``.
    """
    for row in range(slot.shape[0]):
        for k in range(1, 3):
            if slot[row, k] >= 0:
                at = base[slot[row, k]] + start[row, k]
                for _ in range(reads[row]):
                    if not written[at]:
                        needed[at] = True
                    at += stride[row]
        if slot[row, 0] >= 0:
            at = base[slot[row, 0]] + start[row, 0]
            for e in range(at, at + writes[row]):
                written[e] = True
