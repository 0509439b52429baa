"""What the strategies have in common: choosing the cheapest of several forms, and reasons in one wording."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from raptor_conv.convolution import plan_geometry
from raptor_conv.patch import AxisBlock
from raptor_conv.patch_products import StreamedPatch
from raptor_core.ir.module import Rewriter
from raptor_core.ir.operation import Types
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.pricing import crossbar_share, operations_ns
from raptor_core.targets.machine import Machine


def append_cheapest(forms: Iterable[ComputeOp], plan: ConvPlan, rewriter: Rewriter, machine: Machine) -> None:
    """Append the form that costs least with the plan's share of the crossbars; ties: the first."""
    share = crossbar_share(plan, rewriter.module, machine)
    found = list(forms)
    if len(found) > 1:
        found.sort(key=lambda op: operations_ns([op], rewriter.types, machine, rewriter.constants, share))
    rewriter.append(found[0])


def patch_forms(plan: ConvPlan, types: Types, machine: Machine, block: tuple[int, ...] = ()) -> list[StreamedPatch]:
    """The forms of :class:`StreamedPatch` worth pricing for a block: remainders gathered, and read in place."""
    rows, w = machine.crossbar_rows, types[plan.operands[1]]
    sizes = block or (1,) * len(plan.window_kernel)
    blocks = tuple(AxisBlock.of(plan.window, k, size) for k, size in enumerate(sizes))
    has_bias = len(plan.operands) > 2
    reduction = w.shape[1]
    for axis_block in blocks:
        reduction *= axis_block.extent
    bundle = min(plan.groups, max(1, (rows - has_bias) // reduction)) if plan.groups > 1 else 1
    op = StreamedPatch(
        name=plan.name,
        operands=plan.operands,
        results=plan.results,
        block=block,
        bundle=bundle,
        channel_step=_channel_step(plan, types, machine),
        **plan_geometry(plan),
    )
    whole = op.bundles_of_all(types)[0]
    gathered = op.tiling(whole, blocks, types, rows)
    in_place = attrs.evolve(op, gather=False)
    if not gathered.rest:
        return [in_place]
    forms = [attrs.evolve(op, bias_row=has_bias and gathered.has_spare_row)]
    if not in_place.tiling(whole, blocks, types, rows).gains_by_gathering:
        forms.append(in_place)
    return forms


def _channel_step(plan: ConvPlan, types: Types, machine: Machine) -> int:
    """Whole groups, where a core can hold one: then no input is sent to two cores for the sake of one group."""
    if plan.groups == 1:
        return 1
    outputs = types[plan.operands[1]].shape[0] // plan.groups
    return outputs if crossbars_of(plan, types, machine, outputs) <= machine.crossbars_per_core else 1


def crossbars_of(plan: ConvPlan, types: Types, machine: Machine, columns: int) -> int:
    """Crossbars that ``columns`` output channels of one group need, one position at a time."""
    w, rows = types[plan.operands[1]], machine.crossbar_rows
    reduction = w.elements // w.shape[0]
    heights = [rows] * (reduction // rows) + ([reduction % rows] if reduction % rows else [])
    return machine.crossbars([(height, columns) for height in heights])


def refuse_deep(plan: ConvPlan, types: Types, machine: Machine) -> str | None:
    """Why one output channel's reduction does not fit a core, or None."""
    needed = crossbars_of(plan, types, machine, 1)
    if needed <= machine.crossbars_per_core:
        return None
    w = types[plan.operands[1]]
    return (
        f"a reduction of {w.elements // w.shape[0]} elements needs {needed} crossbars of {machine.crossbar_rows} rows "
        f"on one core, which has {machine.crossbars_per_core}"
    )
