"""Pass ``order-events``: the total order of all events, by list scheduling on the chip's own costs.

Before it, events run step by step as the scheduler placed them. See raptor_pim.ordering.list_schedule.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from raptor_core.ir.module import Module
from raptor_core.passes.base import PassContext, PassResult
from raptor_pim.machine import PimMachine
from raptor_pim.ordering.events import one_by_one, read_events, with_places

OPTION = "event_ordering"


@attrs.frozen
class OrderEventsPass:
    """See the module's text. Notes: the number of events, and the predicted latency in ms."""

    name: ClassVar[str] = "order-events"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Never refuses. Option ``event_ordering``: false leaves the order as it is."""
        machine = context.machine
        module = attrs.evolve(module, stage=self.name)
        if not context.options.get(OPTION, True):
            return PassResult(module)
        from raptor_pim.ordering.dependencies import read_dependencies
        from raptor_pim.ordering.list_schedule import best_order

        assert isinstance(machine, PimMachine)
        module = one_by_one(module)
        events = read_events(module, machine)
        if not events.count:
            return PassResult(module)
        order = best_order(events, read_dependencies(module, events, machine.crossbar_rows), machine)
        notes = {"events": events.count, "predicted_ms": round(order.predicted_ns / 1e6, 6)}
        return PassResult(with_places(module, order.place), notes)


ORDER_EVENTS = OrderEventsPass()
