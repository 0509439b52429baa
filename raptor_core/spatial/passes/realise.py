"""The pass ``realise``: convolution strategies turn every ConvPlan into compute operations.

Option ``conv_strategy`` names a strategy, or is ``auto``. With ``auto``, every installed strategy that applies to a
plan is tried, and the one whose operations cost least is taken; among equals the first by name. A named strategy is
taken wherever it applies, and ``auto`` decides about the rest; a name that applies nowhere is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import attrs

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Types
from raptor_core.passes.base import PassContext, PassResult
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
        rewriter = Rewriter(module)
        for op in module.operations:
            chosen = choices[id(op)].chosen if isinstance(op, ConvPlan) else None
            if isinstance(op, ConvPlan) and chosen is not None:
                strategies.realise(op, chosen.strategy, rewriter)
            else:
                rewriter.append(op)
        used = Counter(c.chosen.strategy for c in choices.values() if c.chosen is not None)
        notes = {"convolutions": len(plans), "strategies": dict(sorted(used.items()))}
        report = _report(plans, [choices[id(plan)] for plan in plans], strategies, module.types)
        reports = {REPORT: report, FACTS_FILE: facts_text(plans, module.types)}
        return PassResult(rewriter.finish(stage=self.name), notes, reports)


REALISE = RealisePass()


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
