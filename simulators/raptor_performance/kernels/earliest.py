"""Which core does something first: a tree of minima over cores, compiled."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def set_key(tree: Any, core: int, key: int) -> None:
    """Sets the key of ``core``. ``tree`` [2 * n], n a power of two: keys from n on, minima of pairs below."""
    at = tree.size // 2 + core
    if tree[at] == key:
        return
    tree[at] = key
    at >>= 1
    while at >= 1:
        least = min(tree[2 * at], tree[2 * at + 1])
        if tree[at] == least:
            break
        tree[at] = least
        at >>= 1


@njit(cache=True)
def first_core(tree: Any) -> Any:
    """The core with the least key, the lowest of several."""
    at = 1
    half = tree.size // 2
    while at < half:
        at = 2 * at if tree[2 * at] <= tree[2 * at + 1] else 2 * at + 1
    return at - half
