"""Strategy ``input-k-tiled``: the reduction is cut into slices of input channels, computed apart and added up.

It takes reductions that no core can hold, and spreads few positions over many cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from raptor_conv.convolution import plan_geometry
from raptor_conv.forms import Form, FormEstimator
from raptor_conv.partial_products import PartialProducts, SumPartials
from raptor_conv.patch import AxisBlock, Tiling
from raptor_conv.tiling import tile_reduction
from raptor_core.ir.module import Rewriter
from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout, TensorType
from raptor_core.options import Option
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.pricing import crossbar_share, operations_ns
from raptor_core.targets.machine import Machine

_PRICED = 2


@attrs.frozen
class InputKTiledStrategy:
    """See the module's text. Applies to one group whose reduction is longer than a crossbar is high."""

    name: ClassVar[str] = "input-k-tiled"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "the reduction in slices on several cores, partial sums added"
    options: ClassVar[tuple[Option, ...]] = ()

    def applies(self, plan: ConvPlan, types: Types, machine: Machine) -> str | None:
        """Refuses groups, short reductions, and windows that no core could hold for one input channel."""
        w = types[plan.operands[1]]
        if plan.groups != 1:
            return f"it takes one group, not {plan.groups}"
        if w.shape[1] < 2:
            return "there is only one input channel"
        reduction = w.elements // w.shape[0]
        if reduction <= machine.crossbar_rows:
            return f"a reduction of {reduction} elements fits the {machine.crossbar_rows} rows of one crossbar"
        if not FormEstimator(plan, types, machine, 1).sliced():
            return f"one input channel alone needs more than the {machine.crossbars_per_core} crossbars of a core"
        return None

    def realise(self, plan: ConvPlan, rewriter: Rewriter, machine: Machine, options: Mapping[str, Any]) -> None:
        """A :class:`PartialProducts` and a :class:`SumPartials`."""
        share = crossbar_share(plan, rewriter.module, machine)
        estimator = FormEstimator(plan, rewriter.types, machine, share)
        forms = estimator.best(estimator.sliced(), _PRICED)
        variants = [(form, gather) for form in forms for gather in _gathering(plan, rewriter.types, form, machine)]
        costs = []
        for form, gather in variants:
            trial = Rewriter(attrs.evolve(rewriter.module, types=rewriter.types, constants=rewriter.constants))
            ops = _append(plan, trial, form, gather, machine)
            costs.append(operations_ns(ops, trial.types, machine, trial.constants, share))
        form, gather = variants[costs.index(min(costs))]
        _append(plan, rewriter, form, gather, machine)


INPUT_K_TILED = InputKTiledStrategy()


def _append(plan: ConvPlan, rewriter: Rewriter, form: Form, gather: bool, machine: Machine) -> list[ComputeOp]:
    """Append the two operations of a form."""
    result = rewriter.types[plan.results[0]]
    slices = -(-rewriter.types[plan.operands[0]].shape[plan.channel_axis] // form.slice_channels)
    order = (0, *(axis + 1 for axis in result.order))
    name = result.layout.name if result.layout is not None else "dense"
    type_ = TensorType((slices, *result.shape), result.element, Layout(name, order))
    partials = rewriter.new_value(f"{plan.results[0]}.partials", type_)
    op = PartialProducts(
        name=plan.name,
        operands=plan.operands,
        results=(partials,),
        slice_channels=form.slice_channels,
        block=form.block,
        gather=gather,
        bias_row=len(plan.operands) > 2 and _tiling(plan, rewriter.types, form, machine, gather=gather).has_spare_row,
        **plan_geometry(plan),
    )
    channels = result.shape[plan.channel_axis]
    positions = result.elements // channels
    total = SumPartials(
        name=plan.name,
        operands=(partials,),
        results=plan.results,
        channel_axis=plan.channel_axis,
        channel_step=-(-channels // -(-machine.core_count // positions)),
    )
    rewriter.extend([op, total])
    return [op, total]


def _gathering(plan: ConvPlan, types: Types, form: Form, machine: Machine) -> tuple[bool, ...]:
    """Whether remainders of runs may be gathered, and whether they may be read in place."""
    if not _tiling(plan, types, form, machine, gather=True).rest:
        return (False,)
    gains = _tiling(plan, types, form, machine, gather=False).gains_by_gathering
    return (True,) if gains else (True, False)


def _tiling(plan: ConvPlan, types: Types, form: Form, machine: Machine, *, gather: bool) -> Tiling:
    """The tiling of a whole slice."""
    return tile_reduction(
        types[plan.operands[0]],
        plan.channel_axis,
        form.slice_channels,
        tuple(AxisBlock.of(plan.window, k, size) for k, size in enumerate(form.block)),
        machine.crossbar_rows,
        whole=False,
        gather=gather,
        bias_row=False,
    )
