"""Strategy ``depthwise``: one group per channel, on the vector unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from raptor_conv.convolution import plan_geometry
from raptor_conv.depthwise_products import Depthwise
from raptor_conv.strategies import append_cheapest
from raptor_core.ir.module import Rewriter
from raptor_core.ir.operation import Types
from raptor_core.options import Option
from raptor_core.spatial.plans import ConvPlan
from raptor_core.targets.machine import Machine


@attrs.frozen
class DepthwiseStrategy:
    """See the module's text. Applies where every channel is a group of its own with one output channel."""

    name: ClassVar[str] = "depthwise"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "one group per channel, multiplied and added on the vector unit"
    options: ClassVar[tuple[Option, ...]] = ()

    def applies(self, plan: ConvPlan, types: Types, machine: Machine) -> str | None:
        """Refuses groups of several input or output channels."""
        w = types[plan.operands[1]]
        if w.shape[1] != 1:
            return f"it takes one input channel per group, not {w.shape[1]}"
        if w.shape[0] != plan.groups:
            return f"it takes one output channel per group, not {w.shape[0] // plan.groups}"
        return None

    def realise(self, plan: ConvPlan, rewriter: Rewriter, machine: Machine, options: Mapping[str, Any]) -> None:
        """One :class:`Depthwise`, and its weights as a new constant."""
        w = rewriter.constants[plan.operands[1]]
        rows = [w.reshape(plan.groups, -1).T]
        has_bias = len(plan.operands) > 2
        if has_bias:
            rows.append(rewriter.constants[plan.operands[2]].reshape(1, -1))
        taps = rewriter.new_constant(f"{plan.operands[1]}.taps", np.concatenate(rows))
        op = Depthwise(
            name=plan.name,
            operands=(plan.operands[0], taps),
            results=plan.results,
            has_bias=has_bias,
            **plan_geometry(plan),
        )
        append_cheapest([op, attrs.evolve(op, wide=False)], plan, rewriter, machine)


DEPTHWISE = DepthwiseStrategy()
