"""Messages between switches, and the trace, compiled."""

from __future__ import annotations

from typing import Any

from numba import njit

from raptor_performance.kernels import constants as k
from raptor_performance.kernels.formulas import accesses


@njit(cache=True)
def message(source: int, target: int, size: int, ready: int, net: Any, energy: Any, core: Any, t: Any) -> Any:
    """Sends a message of ``size`` bytes that is ready at a time; gives its arrival, when the switch is free again.

    ``net`` is a tuple of ``latency`` (ps) and ``flit_pj`` [cores + 1, cores + 1] of one flit.
    """
    flits = accesses(size, t.bus_width)
    leave = max(ready, core[source, k.SWITCH_FREE])
    if leave <= t.end:
        energy[source] += flits * net[1][source, target]
    arrive = leave + flits * net[0][source, target]
    core[source, k.SWITCH_FREE] = arrive
    return arrive


@njit(cache=True, inline="always")
def trace_row(trace: Any, chip: Any, c: int, pc: int, start: int, end: int) -> None:
    """Notes an instruction of core ``c`` while there is room in the trace."""
    at = chip[k.TRACED]
    if at < trace.shape[0]:
        trace[at, 0] = c
        trace[at, 1] = pc
        trace[at, 2] = start
        trace[at, 3] = end
        chip[k.TRACED] += 1
