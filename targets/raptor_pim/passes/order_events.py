"""Pass ``order-events``: the total order of all events, by list scheduling on the chip's own costs.

Before it, events run step by step as the scheduler placed them. See raptor_pim.ordering.list_schedule.
"""

from __future__ import annotations

import json
from typing import ClassVar

import attrs

from raptor_core.ir.module import Module
from raptor_core.passes.base import PassContext, PassResult
from raptor_pim.machine import PimMachine
from raptor_pim.ordering.events import one_by_one, read_events, with_places

OPTION = "event_ordering"
REPORT = "schedule.json"


@attrs.frozen
class OrderEventsPass:
    """See the module's text. Notes and report: the number of events, and the predicted latency in ms."""

    name: ClassVar[str] = "order-events"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Never refuses. Option ``event_ordering``: false leaves the order as it is."""
        from raptor_pim.ordering.dependencies import read_dependencies
        from raptor_pim.ordering.list_schedule import as_it_is, best_order

        machine = context.machine
        assert isinstance(machine, PimMachine)
        module = one_by_one(attrs.evolve(module, stage=self.name))
        events = read_events(module, machine)
        if not events.count:
            return PassResult(module)
        dependencies = read_dependencies(module, events, machine.crossbar_rows)
        order = (best_order if context.options.get(OPTION, True) else as_it_is)(events, dependencies, machine)
        notes = {"events": events.count, "predicted_ms": round(order.predicted_ns / 1e6, 6)}
        report = json.dumps({"events": events.count, "predicted_ns": round(order.predicted_ns)}, indent=2) + "\n"
        return PassResult(with_places(module, order.place), notes, {REPORT: report})


ORDER_EVENTS = OrderEventsPass()
