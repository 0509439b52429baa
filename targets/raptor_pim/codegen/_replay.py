"""Compiled replay of sends and receives (kept apart: importing it loads the compiler)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def replay(starts: Any, is_send: Any, peer: Any, size: Any, position: Any) -> int:
    """Advance every core over matching messages until nothing moves.

    Messages of core c are entries ``starts[c]`` to ``starts[c + 1]``; ``position`` [cores], zero at first, counts
    those of each core that are done. Gives a core that stands at a message whose two sizes differ, or -1.
    """
    cores = starts.size - 1
    queue = np.arange(cores)
    queued = np.ones(cores, np.bool_)
    head, waiting = 0, cores
    while waiting > 0:
        core = queue[head]
        head = (head + 1) % cores
        waiting -= 1
        queued[core] = False
        while starts[core] + position[core] < starts[core + 1]:
            mine = starts[core] + position[core]
            other = peer[mine]
            theirs = starts[other] + position[other]
            if theirs >= starts[other + 1] or peer[theirs] != core or is_send[theirs] == is_send[mine]:
                break
            if size[mine] != size[theirs]:
                return int(core)
            position[core] += 1
            position[other] += 1
            if not queued[other]:
                queue[(head + waiting) % cores] = other
                queued[other] = True
                waiting += 1
    return -1
