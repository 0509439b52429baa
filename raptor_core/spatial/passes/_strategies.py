"""The installed convolution strategies: which apply to a plan, and what each would cost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

from raptor_core.diagnostics import PluginError, RaptorError, UsageError, unknown_name
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Types
from raptor_core.options import resolve_options
from raptor_core.passes.base import PassContext
from raptor_core.plugins.contracts import ConvStrategy
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.pricing import crossbar_share, operations_ns
from raptor_core.targets.machine import Machine

GROUP = "raptor.conv_strategies"
AUTO = "auto"
OPTION = "conv_strategy"


@attrs.frozen
class Candidate:
    """One strategy for one plan: what it costs in nanoseconds, or why it cannot be used."""

    strategy: str
    cost_ns: float | None = None
    reason: str | None = None


@attrs.frozen
class Choice:
    """All candidates for a plan, by name, and the strategy chosen (None: none applies)."""

    candidates: tuple[Candidate, ...]
    chosen: Candidate | None

    @property
    def reasons(self) -> list[str]:
        """Why the others cannot be used, one sentence each."""
        return [f"{c.strategy}: {c.reason}" for c in self.candidates if c.reason is not None]


@attrs.define
class Strategies:
    """The strategies of one compilation, with their options. Plans of one geometry are judged once."""

    machine: Machine
    requested: str
    loaded: Mapping[str, tuple[ConvStrategy, Mapping[str, Any]]]
    broken: Mapping[str, str]
    _known: dict[Hashable, Choice] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, context: PassContext) -> Strategies:
        """The strategies that option ``conv_strategy`` asks for: one by name as the first choice, or ``auto``.

        With ``auto`` and for what the named one cannot do, those that fail to load are left out. Raises UsageError
        for an unknown name, PluginError when the named one is broken.
        """
        names = sorted(context.plugins.names(GROUP))
        requested = context.options.get(OPTION) or AUTO
        if requested not in (AUTO, *names):
            raise unknown_name("conv strategy", requested, [AUTO, *names])
        loaded: dict[str, tuple[ConvStrategy, Mapping[str, Any]]] = {}
        broken: dict[str, str] = {}
        for name in names:
            try:
                strategy: ConvStrategy = context.plugins.get(GROUP, name)
            except UsageError:
                raise
            except RaptorError as error:
                if name == requested:
                    raise
                broken[name] = ": ".join(text for text in (error.message, error.reason) if text)
                continue
            declared = {option.name for option in strategy.options}
            given = {key: value for key, value in context.options.items() if key in declared}
            loaded[name] = strategy, resolve_options(strategy.options, given, owner=f"conv strategy {name}")
        return cls(context.machine, requested, loaded, broken)

    def choose(self, plan: ConvPlan, module: Module, types: Types) -> Choice:
        """The named strategy where it applies, else the cheapest; ties go to the first by name.

        ``types`` may give values other layouts than ``module`` does.
        """
        operand_types = tuple(types[value] for value in (*plan.operands, *plan.results))
        geometry = attrs.evolve(plan, name="", operands=(), results=())
        key = (geometry, operand_types)
        choice = self._known.get(key)
        if choice is None:
            choice = self._known[key] = self._choose(plan, attrs.evolve(module, types=types))
        return choice

    def realise(self, plan: ConvPlan, name: str, rewriter: Rewriter) -> list[ComputeOp]:
        """The operations that strategy ``name`` appends for a plan. Raises PluginError when it breaks its contract."""
        strategy, options = self.loaded[name]
        begin, type_ = len(rewriter.operations), rewriter.types[plan.results[0]]
        try:
            strategy.realise(plan, rewriter, self.machine, options)
        except (RaptorError, MemoryError):
            raise
        except Exception as error:
            raise _broken(strategy, plan, f"realise stopped with {type(error).__name__}: {error}") from error
        appended = rewriter.operations[begin:]
        computes = [op for op in appended if isinstance(op, ComputeOp)]
        if len(computes) < len(appended):
            kinds = sorted({op.kind for op in appended if not isinstance(op, ComputeOp)})
            raise _broken(strategy, plan, f"it appended {', '.join(kinds)}, which are not compute operations")
        if not computes or computes[-1].results != plan.results:
            raise _broken(strategy, plan, f"its last operation does not define '{plan.results[0]}'")
        if rewriter.types[plan.results[0]] != type_:
            raise _broken(strategy, plan, f"it changed the type of '{plan.results[0]}'")
        return computes

    def _choose(self, plan: ConvPlan, module: Module) -> Choice:
        candidates = [self._candidate(name, plan, module) for name in self.loaded]
        candidates.extend(Candidate(name, reason=f"broken: {reason}") for name, reason in self.broken.items())
        candidates.sort(key=lambda c: c.strategy)
        usable = [c for c in candidates if c.cost_ns is not None]
        named = [c for c in usable if c.strategy == self.requested]
        chosen = min(named or usable, key=lambda c: (c.cost_ns, c.strategy), default=None)
        return Choice(tuple(candidates), chosen)

    def _candidate(self, name: str, plan: ConvPlan, module: Module) -> Candidate:
        try:
            reason = self._applies(name, plan, module.types)
            if reason is not None:
                return Candidate(name, reason=reason)
            rewriter = Rewriter(module)
            computes = self.realise(plan, name, rewriter)
            for op in computes:
                op.verify(rewriter.types)
            share = crossbar_share(plan, module, self.machine)
            cost = operations_ns(computes, rewriter.types, self.machine, rewriter.constants, share)
        except RaptorError as error:
            if name == self.requested:
                raise
            return Candidate(name, reason=f"broken: {error.reason or error.message}")
        except MemoryError:
            raise
        except Exception as error:
            failure = _broken(self.loaded[name][0], plan, f"its computes stopped with {type(error).__name__}: {error}")
            if name == self.requested:
                raise failure from error
            return Candidate(name, reason=f"broken: {failure.reason}")
        return Candidate(name, cost_ns=float(cost))

    def _applies(self, name: str, plan: ConvPlan, types: Types) -> str | None:
        strategy = self.loaded[name][0]
        try:
            reason = strategy.applies(plan, types, self.machine)
        except (RaptorError, MemoryError):
            raise
        except Exception as error:
            raise _broken(strategy, plan, f"applies stopped with {type(error).__name__}: {error}") from error
        if reason is not None and not isinstance(reason, str):
            raise _broken(strategy, plan, f"applies gave {type(reason).__name__}, neither a reason nor None")
        return reason


def _broken(strategy: ConvStrategy, plan: ConvPlan, reason: str) -> PluginError:
    cls = type(strategy)
    return PluginError(
        "broken-conv-strategy",
        f"conv strategy '{strategy.name}' failed on '{plan.name}'",
        where=f"{cls.__module__}.{cls.__qualname__}",
        reason=reason,
        hint=f"this is a bug in the package {cls.__module__.partition('.')[0]}; report it there",
    )


def plan_words(plan: ConvPlan, types: Types) -> str:
    """A plan in one line, for messages and reports."""
    x, w, result = (types[value] for value in (plan.operands[0], plan.operands[1], plan.results[0]))
    words = [f"{x} -> {result}"]
    if plan.window_kernel:
        words.append("kernel " + "x".join(map(str, plan.window_kernel)))
        for label, values in (("stride", plan.strides), ("dilation", plan.dilations)):
            if any(value != 1 for value in values):
                words.append(f"{label} " + "x".join(map(str, values)))
    else:
        words.append(f"matrix {w.shape[1]}x{w.shape[0]}")
    if plan.groups != 1:
        words.append(f"{plan.groups} groups")
    return ", ".join(words)


def unusable(failures: Sequence[tuple[ConvPlan, Choice]], types: Types) -> RaptorError:
    """The error for plans that no strategy can realise."""
    details = []
    for plan, choice in failures:
        reasons = "; ".join(choice.reasons) or "no strategy is installed"
        details.append(f"'{plan.name}' ({plan_words(plan, types)}): {reasons}")
    return RaptorError(
        "no-conv-strategy",
        f"no strategy can realise {len(failures)} of the network's convolutions",
        details=details,
        hint="choose a target with more crossbars, or install a strategy ('raptor plugins list' shows what there is)",
    )
