"""Multicast by forwarding: a piece that many cores need is passed on by those that have it already.

A core that sends one piece to n others is busy for n messages. Where the cores that have received it send it on, along
a binomial tree, the last one has it after about log2(n) messages, and no core sends more than that.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.spatial.edges import Pieces

Indices = npt.NDArray[np.int64]

_GAIN = 0.8
"""Forwarding is chosen where the busiest core has at most this part of the messages that it has without."""


@attrs.frozen(eq=False)
class Forwarding:
    """``pieces`` with their senders, and each piece's ``depth`` [n]: how many messages bring it (1: the first)."""

    pieces: Pieces
    depth: Indices


def straight(pieces: Pieces) -> Forwarding:
    """All pieces from their sources."""
    return Forwarding(pieces, np.ones(pieces.steps.size, dtype=np.int64))


def forwarded(pieces: Pieces) -> Forwarding:
    """The pieces along binomial trees, or straight from their sources where no core is spared much by that.

    Receivers stand in a tree by the step in which they need the piece, so none waits for one that needs it later.
    """
    if pieces.steps.size < 3:
        return straight(pieces)
    keys = np.concatenate([pieces.sources[:, None], pieces.boxes.reshape(pieces.steps.size, -1)], axis=1)
    _, tree = np.unique(keys, axis=0, return_inverse=True)
    tree = tree.ravel()
    by_tree = np.lexsort((np.arange(tree.size), pieces.steps, tree))
    first = np.searchsorted(tree[by_tree], np.arange(tree.max() + 1))
    rank = np.arange(tree.size) - first[tree[by_tree]] + 1
    parent = rank - (1 << np.floor(np.log2(rank)).astype(np.int64))
    senders = pieces.sources.copy()
    passed_on = parent > 0
    at = first[tree[by_tree]] + parent - 1
    senders[by_tree[passed_on]] = pieces.destinations[by_tree[at[passed_on]]]
    depth = np.empty(tree.size, dtype=np.int64)
    depth[by_tree] = _ones(rank)
    received = np.bincount(pieces.destinations, minlength=int(max(pieces.sources.max(), pieces.destinations.max())) + 1)
    loads = [int((received + np.bincount(s, minlength=received.size)).max()) for s in (pieces.sources, senders)]
    if loads[1] + int(depth.max()) > _GAIN * loads[0]:
        return straight(pieces)
    return Forwarding(attrs.evolve(pieces, sources=senders), depth)


def _ones(numbers: Indices) -> Indices:
    """The number of ones in the binary form of each (non-negative) number."""
    count = np.zeros_like(numbers)
    while numbers.any():
        count += numbers & 1
        numbers = numbers >> 1
    return count
