"""When kernel-split applies, and what it makes of a convolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from raptor_core.ir.module import Rewriter
from raptor_core.ir.operation import Types
from raptor_core.options import Option
from raptor_core.spatial.plans import ConvPlan
from raptor_core.targets.machine import Machine
from raptor_kernel_split.tap_products import TapProducts, tile_heights


@attrs.frozen
class KernelSplit:
    """One product per kernel position (and crossbar height of channels), each read in place."""

    name: ClassVar[str] = "kernel-split"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "one product per kernel position, read in place without copies"
    options: ClassVar[tuple[Option, ...]] = ()

    def applies(self, plan: ConvPlan, types: Types, machine: Machine) -> str | None:
        """Needs one group, channels innermost, and room on a core for one output channel."""
        if plan.groups != 1:
            return f"it takes one group, not {plan.groups}"
        for value, what in ((plan.operands[0], "input"), (plan.results[0], "result")):
            if types[value].order[-1] != plan.channel_axis:
                return f"the channels of the {what} are not innermost in memory"
        heights = tile_heights(types[plan.operands[1]].shape, machine.crossbar_rows)
        needed = machine.crossbars([(height, 1) for height in heights])
        if needed > machine.crossbars_per_core:
            return f"one output channel needs {needed} crossbars, and a core has {machine.crossbars_per_core}"
        return None

    def realise(self, plan: ConvPlan, rewriter: Rewriter, machine: Machine, options: Mapping[str, Any]) -> None:
        """One TapProducts operation."""
        rewriter.append(
            TapProducts(
                name=plan.name,
                operands=plan.operands,
                results=plan.results,
                window_kernel=plan.window_kernel,
                strides=plan.strides,
                dilations=plan.dilations,
                pads_begin=plan.pads_begin,
                pads_end=plan.pads_end,
                channel_axis=plan.channel_axis,
            )
        )


KERNEL_SPLIT = KernelSplit()
