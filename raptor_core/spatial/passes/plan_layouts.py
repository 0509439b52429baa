"""The pass ``plan-layouts``: one element order per value, and explicit conversions where operations disagree.

The layouts on offer are row-major order and those of the installed alternatives. Every operation says which
combinations it can work with; the pass weighs what it costs in each against the conversions between operations.
Network inputs and outputs are row-major. Constants take any layout for nothing.

Option ``layout_planning`` = False takes row-major order wherever an operation offers it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

import attrs

from raptor_core.diagnostics import PluginError, RaptorError
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.types import Layout, TensorType
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.plugins.contracts import LayoutAlternative
from raptor_core.spatial.compute import ComputeOp, ConvertLayout, LayoutChoice, PlanOp
from raptor_core.spatial.passes._layout_search import LayoutSearch, Node
from raptor_core.spatial.passes._strategies import Strategies
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.pricing import operation_ns

GROUP = "raptor.layouts"
OPTION = "layout_planning"
_CHOICES = 64
"""The most combinations of one operation that are weighed."""


@attrs.frozen
class PlanLayoutsPass:
    """See the module's text. Notes count the values in each layout, the conversions, and layouts left out."""

    name: ClassVar[str] = "plan-layouts"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises PluginError when an operation offers no layouts or some that are not on offer."""
        alternatives, broken = _alternatives(context)
        planner = _Planner(module, context, alternatives, context.options.get(OPTION, True) is not False)
        result, conversions = _materialise(module, planner.plan())
        layouts = Counter(t.layout.name for t in result.types.values() if t.layout is not None)
        notes: dict[str, object] = {"layouts": dict(sorted(layouts.items())), "conversions": conversions}
        if broken:
            notes["left_out"] = broken
        return PassResult(attrs.evolve(result, stage=self.name), notes)


PLAN_LAYOUTS = PlanLayoutsPass()


def _alternatives(context: PassContext) -> tuple[list[LayoutAlternative], dict[str, str]]:
    """The installed alternatives by name, and why others are left out."""
    found: list[LayoutAlternative] = []
    broken: dict[str, str] = {}
    for name in sorted(context.plugins.names(GROUP)):
        try:
            found.append(context.plugins.get(GROUP, name))
        except RaptorError as error:
            broken[name] = error.reason or error.message
    return found, broken


@attrs.define(eq=False)
class _Planner:
    """Finds the choice of every operation."""

    module: Module
    context: PassContext
    alternatives: Sequence[LayoutAlternative]
    planning: bool
    _strategies: Strategies | None = attrs.field(default=None, init=False)
    _offers: dict[TensorType, tuple[Layout, ...]] = attrs.field(factory=dict, init=False)
    _costs: dict[Hashable, float] = attrs.field(factory=dict, init=False)

    def plan(self) -> list[LayoutChoice]:
        """The layouts of every operation, in the order of the module."""
        operations = [op for op in self.module.operations if isinstance(op, PlanOp)]
        choices = [self._choices(op) for op in operations]
        if not self.planning:
            return [offered[0] for offered in choices]
        nodes = [self._node(op, offered) for op, offered in zip(operations, choices, strict=True)]
        if not nodes:
            return []
        fixed = {name: _dense(self.module, name) for name in self.module.inputs}
        outputs = {name: _dense(self.module, name) for name in self.module.outputs if name not in self.module.constants}
        search = LayoutSearch(nodes, fixed, outputs, self._conversion_ns)
        return [node.choices[c] for node, c in zip(nodes, search.search(), strict=True)]

    def _node(self, op: PlanOp, choices: Sequence[LayoutChoice]) -> Node:
        operands = tuple(o if o and o not in self.module.constants else None for o in op.operands)
        costs = [self._own_ns(op, choice) for choice in choices] if len(choices) > 1 else [0.0]
        if not any(map(math.isfinite, costs)):
            costs = [0.0] * len(choices)
        return Node(operands, op.results[0], tuple(choices), tuple(costs))

    # ---- choices -------------------------------------------------------------------------------------------------
    def _choices(self, op: PlanOp) -> list[LayoutChoice]:
        names = (*op.operands, op.results[0])
        dense = [(_dense(self.module, name),) if name else () for name in names]
        if not self.planning:
            plain = self._offered(op, dense)
            if plain:
                return plain[:1]
        offered = self._offered(op, [self._offer(self.module.types[name]) if name else () for name in names])
        if not offered:
            raise PluginError(
                "no-layout-choice",
                f"operation {op.kind} '{op.name}' works with none of the layouts on offer",
                where=f"{type(op).__module__}.{type(op).__qualname__}",
                hint="this is a bug in that package: layout_choices must offer row-major order or what is on offer",
            )
        return offered

    def _offered(self, op: PlanOp, candidates: Sequence[Sequence[Layout]]) -> list[LayoutChoice]:
        """The operation's choices, checked; those that want one value in two layouts are left out."""
        kept = []
        for operands, result in itertools.islice(op.layout_choices(self.module.types, candidates), _CHOICES):
            layouts = (*operands, result)
            if len(layouts) != len(candidates) or any(
                layout not in offers for layout, offers in zip(layouts, candidates, strict=True) if offers
            ):
                raise PluginError(
                    "bad-layout-choice",
                    f"operation {op.kind} '{op.name}' chooses layouts that are not on offer",
                    where=f"{type(op).__module__}.{type(op).__qualname__}",
                    reason=f"it chose {[layout.name for layout in layouts]}",
                    hint="this is a bug in that package; report it there",
                )
            wanted: dict[str, tuple[int, ...]] = {}
            pairs = [(name, layout) for name, layout in zip(op.operands, operands, strict=True) if name]
            if all(wanted.setdefault(name, layout.order) == layout.order for name, layout in pairs):
                kept.append((tuple(operands), result))
        return kept

    def _offer(self, type_: TensorType) -> tuple[Layout, ...]:
        """The layouts on offer for a type, row-major first, one of each order."""
        known = self._offers.get(type_)
        if known is None:
            by_order = {Layout.dense(type_.rank).order: Layout.dense(type_.rank)}
            for alternative in self.alternatives:
                layout = alternative.layout(type_)
                if layout is not None and len(layout.order) == type_.rank:
                    by_order.setdefault(layout.order, layout)
            known = self._offers[type_] = tuple(by_order.values())
        return known

    # ---- costs ---------------------------------------------------------------------------------------------------
    def _own_ns(self, op: PlanOp, choice: LayoutChoice) -> float:
        names = [name for name in (*op.operands, op.results[0]) if name]
        layouts = [
            layout for name, layout in zip((*op.operands, op.results[0]), (*choice[0], choice[1]), strict=True) if name
        ]
        types = {n: attrs.evolve(self.module.types[n], layout=x) for n, x in zip(names, layouts, strict=True)}
        if isinstance(op, ConvPlan):
            if self._strategies is None:
                self._strategies = Strategies.of(self.context)
            chosen = self._strategies.choose(op, self.module, {**self.module.types, **types}).chosen
            return math.inf if chosen is None or chosen.cost_ns is None else chosen.cost_ns
        if not isinstance(op, ComputeOp):
            return 0.0
        return self._compute_ns(op, types)

    def _compute_ns(self, op: ComputeOp, types: Mapping[str, TensorType]) -> float:
        key = _geometry_key(op, types, self.module)
        cost = self._costs.get(key) if key is not None else None
        if cost is None:
            try:
                cost = operation_ns(op, types, self.context.machine, self.module.constants)
            except (RaptorError, MemoryError):
                raise
            except Exception as error:
                raise PluginError(
                    "broken-operation",
                    f"operation {op.kind} '{op.name}' failed while its cost was estimated",
                    where=f"{type(op).__module__}.{type(op).__qualname__}",
                    reason=f"{type(error).__name__}: {error}",
                    hint="this is a bug in that package; report it there",
                ) from error
            if key is not None:
                self._costs[key] = cost
        return cost

    def _conversion_ns(self, value: str, source: Layout, target: Layout) -> float:
        type_ = self.module.types[value]
        types = {"source": attrs.evolve(type_, layout=source), "target": attrs.evolve(type_, layout=target)}
        return self._compute_ns(ConvertLayout(name="", operands=("source",), results=("target",)), types)


def _dense(module: Module, value: str) -> Layout:
    return Layout.dense(module.types[value].rank)


def _geometry_key(op: ComputeOp, types: Mapping[str, TensorType], module: Module) -> Hashable | None:
    """What the cost of an operation depends on, or None when it cannot be told."""
    geometry = attrs.evolve(op, name="", operands=(), results=())
    values = tuple((types[v], v in module.constants) if v else None for v in (*op.operands, op.results[0]))
    repeated = tuple(op.operands.index(v) for v in op.operands)
    try:
        hash(geometry)
    except TypeError:
        return None
    return geometry, values, repeated


# ---- the new module ----------------------------------------------------------------------------------------------
def _materialise(module: Module, choices: Sequence[LayoutChoice]) -> tuple[Module, int]:
    """The module with layouts on all values and conversions where they are needed; and how many of those."""
    writer = _Writer(module)
    chosen = iter(choices)
    for op in module.operations:
        if isinstance(op, PlanOp):
            writer.add(op, next(chosen))
        else:
            writer.rewriter.append(op)
    return writer.rewriter.finish(), writer.conversions


@attrs.define(eq=False)
class _Writer:
    """Appends operations with their operands in the layouts that they want.

    ``forms`` has, for each value of the old module, its names in the new one by element order, the made one first.
    """

    module: Module
    rewriter: Rewriter = attrs.field(init=False)
    forms: dict[str, dict[tuple[int, ...], str]] = attrs.field(factory=dict)
    conversions: int = 0

    def __attrs_post_init__(self) -> None:
        self.rewriter = Rewriter(self.module)
        fixed = [*self.module.inputs, *(v for v in self.module.outputs if v in self.module.constants)]
        for value in fixed:
            self._declare(value, value, _dense(self.module, value))

    def add(self, op: PlanOp, choice: LayoutChoice) -> None:
        """The operation, after the conversions that it needs and before one to a network output."""
        layouts, made = choice
        operands = tuple(
            self._operand(value, layout, op.name) if value else value
            for value, layout in zip(op.operands, layouts, strict=True)
        )
        result = op.results[0]
        if result in self.module.outputs and not made.is_dense:
            inner = self.rewriter.new_value(f"{result}.{made.name}", self.module.types[result])
            self._declare(result, inner, made)
            self.rewriter.append(attrs.evolve(op, operands=operands, results=(inner, *op.results[1:])))
            self._declare(result, result, _dense(self.module, result))
            self._append_conversion(inner, result, op.name)
        else:
            self._declare(result, result, made)
            self.rewriter.append(attrs.evolve(op, operands=operands))

    def _operand(self, value: str, layout: Layout, name: str) -> str:
        """The name under which a value is known in a layout; a conversion or copied constant makes it if need be."""
        known = self.forms.get(value, {}).get(layout.order)
        if known is not None:
            return known
        if value in self.module.constants:
            if self.rewriter.types[value].layout is None:
                return self._declare(value, value, layout)
            other = self.rewriter.new_value(f"{value}.{layout.name}", self.module.types[value])
            self.rewriter.constants[other] = self.module.constants[value]
            return self._declare(value, other, layout)
        source = next(iter(self.forms[value].values()))
        target = self.rewriter.new_value(f"{value}.{layout.name}", self.module.types[value])
        self._declare(value, target, layout)
        self._append_conversion(source, target, name)
        return target

    def _append_conversion(self, source: str, target: str, name: str) -> None:
        self.rewriter.append(ConvertLayout(name=name, operands=(source,), results=(target,)))
        self.conversions += 1

    def _declare(self, value: str, form: str, layout: Layout) -> str:
        self.rewriter.types[form] = attrs.evolve(self.module.types[value], layout=layout)
        self.forms.setdefault(value, {})[layout.order] = form
        return form
