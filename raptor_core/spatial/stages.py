"""Which operations may stand in a module after each spatial pass."""

from __future__ import annotations

from collections.abc import Mapping

from raptor_core.ir.operation import Operation
from raptor_core.spatial.communication import Clear, Copy, Load, Mirror, Storage, Store, Transfer
from raptor_core.spatial.compute import ComputeOp, PlanOp

STAGE_OPERATIONS: Mapping[str, tuple[type[Operation], ...]] = {
    "lower": (PlanOp,),
    "plan-layouts": (PlanOp,),
    "realise": (ComputeOp,),
    "merge": (ComputeOp,),
    "stage-inputs": (ComputeOp,),
    "schedule": (ComputeOp,),
    "mirror": (ComputeOp, Mirror),
    "communicate": (ComputeOp, Mirror, Storage, Clear, Load, Copy, Transfer, Store),
}
"""The classes of operations allowed in each stage; stages that are not listed hold any."""
