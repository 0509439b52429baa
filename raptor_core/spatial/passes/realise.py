"""The pass ``realise``: convolution strategies turn every ConvPlan into compute operations.

Option ``conv_strategy`` names a strategy, or is ``auto``. With ``auto``, every installed strategy that applies to a
plan is tried, and the one whose operations cost least is taken; among equals the first by name. A named strategy is
taken wherever it applies, and ``auto`` decides about the rest; a name that applies nowhere is an error. Where the
choices of ``auto`` need more crossbars than the chip has, every plan takes the strategy that needs the fewest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import attrs

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Operation, Types
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.passes._strategies import AUTO, Choice, Strategies, plan_words, unusable
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.product_facts import FACTS_FILE, facts_text

REPORT = "conv_lowering.md"
REPORT_ROWS = 512


@attrs.frozen
class RealisePass:
    """See the module's text. Notes count the convolutions and how often each strategy was taken."""

    name: ClassVar[str] = "realise"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises RaptorError when no strategy can realise a plan or the named one applies nowhere; UsageError for an
        unknown name; PluginError when the strategy to be used is broken."""
        plans = list(module.find(ConvPlan))
        if not plans:
            return PassResult(attrs.evolve(module, stage=self.name), notes={"convolutions": 0})
        strategies = Strategies.of(context)
        choices = {id(plan): strategies.choose(plan, module, module.types) for plan in plans}
        _check(plans, [choices[id(plan)] for plan in plans], strategies, module.types)
        rewriter = _realised(module, choices, strategies)
        if strategies.requested == AUTO and _crossbars(rewriter.operations, rewriter.types, context) > _all(context):
            # Speed is bought with crossbars: where they do not suffice, every plan takes the strategy with the fewest.
            choices = {id(plan): _sparing(choices[id(plan)], plan, module, strategies, context) for plan in plans}
            rewriter = _realised(module, choices, strategies)
        used = Counter(c.chosen.strategy for c in choices.values() if c.chosen is not None)
        notes = {"convolutions": len(plans), "strategies": dict(sorted(used.items()))}
        report = _report(plans, [choices[id(plan)] for plan in plans], strategies, module.types)
        reports = {REPORT: report, FACTS_FILE: facts_text(plans, module.types)}
        return PassResult(rewriter.finish(stage=self.name), notes, reports)


REALISE = RealisePass()


def _realised(module: Module, choices: Mapping[int, Choice], strategies: Strategies) -> Rewriter:
    """The module's operations with every plan realised as chosen."""
    rewriter = Rewriter(module)
    for op in module.operations:
        chosen = choices[id(op)].chosen if isinstance(op, ConvPlan) else None
        if isinstance(op, ConvPlan) and chosen is not None:
            strategies.realise(op, chosen.strategy, rewriter)
        else:
            rewriter.append(op)
    return rewriter


def _all(context: PassContext) -> int:
    """The chip's crossbars."""
    return context.machine.core_count * context.machine.crossbars_per_core


def _crossbars(operations: Iterable[Operation], types: Types, context: PassContext) -> int:
    """Crossbars of the operations' weights, nothing held twice."""
    machine = context.machine
    return sum(
        machine.crossbars(op.weight_shapes(Box.whole(types[op.results[0]].shape), types, machine.crossbar_rows))
        for op in operations
        if isinstance(op, ComputeOp)
    )


def _sparing(choice: Choice, plan: ConvPlan, module: Module, strategies: Strategies, context: PassContext) -> Choice:
    """The choice with the candidate that needs the fewest crossbars; of equals the cheapest."""
    needs: list[tuple[int, float, str]] = []
    for candidate in choice.candidates:
        if candidate.cost_ns is not None:
            trial = Rewriter(module)
            ops = strategies.realise(plan, candidate.strategy, trial)
            needs.append((_crossbars(ops, trial.types, context), candidate.cost_ns, candidate.strategy))
    least = min(needs)[2]
    return attrs.evolve(choice, chosen=next(c for c in choice.candidates if c.strategy == least))


def _check(plans: Sequence[ConvPlan], choices: Sequence[Choice], strategies: Strategies, types: Types) -> None:
    """Every plan has a strategy, and a named one is used at least once."""
    pairs = list(zip(plans, choices, strict=True))
    failures = [(plan, choice) for plan, choice in pairs if choice.chosen is None]
    if failures:
        raise unusable(failures, types)
    name = strategies.requested
    if name == AUTO or any(choice.chosen and choice.chosen.strategy == name for choice in choices):
        return
    plan, choice = pairs[0]
    reason = next(c.reason for c in choice.candidates if c.strategy == name)
    others = [c.strategy for c in choice.candidates if c.cost_ns is not None]
    raise RaptorError(
        "conv-strategy-does-not-apply",
        f"conv strategy '{name}' applies to none of the network's {len(plans)} convolutions",
        where=f"'{plan.name}' ({plan_words(plan, types)})" + (", for example" if len(plans) > 1 else ""),
        reason=reason,
        hint=f"strategies that apply there: {', '.join([AUTO, *others])}",
    )


def _report(plans: Sequence[ConvPlan], choices: Sequence[Choice], strategies: Strategies, types: Types) -> str:
    lines = [
        "# Convolution strategies",
        "",
        f"Requested: {strategies.requested}. Costs are estimated microseconds of one core, for choosing only.",
        "",
        "| node | shapes | chosen | candidates |",
        "|---|---|---|---|",
    ]
    for plan, choice in list(zip(plans, choices, strict=True))[:REPORT_ROWS]:
        candidates = "; ".join(
            f"{c.strategy} {c.cost_ns / 1000:.3f}" if c.cost_ns is not None else f"{c.strategy}: {c.reason}"
            for c in choice.candidates
        )
        chosen = choice.chosen.strategy if choice.chosen is not None else "none"
        lines.append("| " + " | ".join(map(_cell, (plan.name, plan_words(plan, types), chosen, candidates))) + " |")
    if len(plans) > REPORT_ROWS:
        lines += ["", f"{len(plans) - REPORT_ROWS} more convolutions are not shown."]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
