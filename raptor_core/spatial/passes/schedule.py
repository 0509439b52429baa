"""Pass ``schedule``: the scheduler plugin gives every lane its core and step."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from raptor_core.diagnostics import InternalError, PluginError
from raptor_core.ir.module import Module
from raptor_core.ir.verifier import verify_module
from raptor_core.options import resolve_options
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.plugins.contracts import Scheduler
from raptor_core.spatial.compute import ComputeOp

DEFAULT_SCHEDULER = "peft"


@attrs.frozen
class SchedulePass:
    """Asks the scheduler named by option ``scheduler``. Notes count lanes, steps and the cores in use."""

    name: ClassVar[str] = "schedule"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises RaptorError when the network does not fit, PluginError when the scheduler forgets a compute."""
        name = context.options.get("scheduler") or DEFAULT_SCHEDULER
        scheduler: Scheduler = context.plugins.get("raptor.schedulers", name)
        declared = {option.name for option in scheduler.options}
        given = {key: value for key, value in context.options.items() if key in declared}
        options = resolve_options(scheduler.options, given, owner=f"scheduler {name}")
        result = scheduler.schedule(module, context.machine, options)
        placements = []
        for op in result.find(ComputeOp):
            if op.placement is None:
                raise _illegal(name, f"{op.kind} '{op.name}'", "it has no lanes")
            if ((op.placement.cores < 0) | (op.placement.cores >= context.machine.core_count)).any():
                raise _illegal(
                    name, f"{op.kind} '{op.name}'", f"the chip has cores 0 to {context.machine.core_count - 1}"
                )
            placements.append(op.placement)
        try:
            verify_module(attrs.evolve(result, stage=self.name))
        except InternalError as error:
            raise _illegal(name, error.where or module.name, error.reason or error.message) from error
        cores = np.unique(np.concatenate([p.cores for p in placements])) if placements else np.zeros(0)
        notes = {
            "scheduler": name,
            "lanes": sum(p.cores.size for p in placements),
            "steps": 1 + max((int(p.order.max()) for p in placements), default=-1),
            "cores_in_use": int(cores.size),
        }
        return PassResult(result, notes)


SCHEDULE = SchedulePass()


def _illegal(scheduler: str, where: str, reason: str) -> PluginError:
    return PluginError(
        "illegal-schedule",
        f"the scheduler '{scheduler}' broke its contract",
        where=where,
        reason=reason,
        hint="report this to the scheduler's author, with the --dump-ir folder",
    )
