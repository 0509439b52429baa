"""List scheduling of events: at every moment the work that most of the program still waits for.

Transfers block both their cores, so the order of events decides how long cores wait for each other. Every event has a
*tail*, the longest chain of dependent work after it. Among the events whose inputs are there, the one that can start
early and has a long tail goes first (priority: start - tail). The order of these decisions is one total order; as in
the order before, each core executes its own events in it, so blocking transfers cannot deadlock.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from raptor_pim.artifacts.timing import MemoryTiming
from raptor_pim.machine import RETIRE_CYCLES, PimMachine
from raptor_pim.ordering import _list_schedule as compiled
from raptor_pim.ordering.dependencies import Dependencies
from raptor_pim.ordering.events import Events

Indices = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Order:
    """``place`` [n]: where each event stands in the new order; ``predicted_ns``: when the last one is over."""

    place: Indices
    predicted_ns: float


def best_order(events: Events, dependencies: Dependencies, machine: PimMachine) -> Order:
    """The list schedule, or the order as it is where that is predicted to end sooner."""
    columns = attrs.astuple(events, recurse=False)
    after = attrs.astuple(dependencies, recurse=False)
    chip = _chip(machine)
    duration, tail = np.zeros(events.count), np.zeros(events.count)
    compiled.durations(columns, chip, duration)
    compiled.tails(duration, after, tail)
    place = np.full(events.count, -1, dtype=np.int64)
    end = compiled.list_schedule(columns, after, chip, tail, place)
    listed = Order(place, float(end))
    return min(listed, as_it_is(events, dependencies, machine), key=lambda order: order.predicted_ns)


def as_it_is(events: Events, dependencies: Dependencies, machine: PimMachine) -> Order:
    """The order in which the events stand."""
    columns = attrs.astuple(events, recurse=False)
    end = compiled.replay(columns, attrs.astuple(dependencies, recurse=False), _chip(machine))
    return Order(np.arange(events.count), float(end))


def _chip(machine: PimMachine) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Flit latencies, and the figures that raptor_pim.ordering._list_schedule numbers."""
    chip = machine.configuration.chip_config
    local = MemoryTiming.of(chip.core_config.local_memory_config)
    host = MemoryTiming.of(chip.global_memory_config)
    cost = np.zeros(compiled.RETIRE + 1)
    cost[compiled.PERIOD] = chip.core_config.period
    cost[compiled.WIDTH], cost[compiled.READ], cost[compiled.WRITE] = local.width, local.read_ns, local.write_ns
    cost[compiled.BUS_WIDTH] = chip.network_config.bus_width
    cost[compiled.HOST_WIDTH], cost[compiled.HOST_READ] = host.width, host.read_ns
    cost[compiled.HOST_WRITE] = host.write_ns
    cost[compiled.RETIRE] = RETIRE_CYCLES
    return machine.mesh.latency.astype(np.float64), cost
