"""The element-wise operation of two operands with numpy broadcasting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs

from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout, TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice
from raptor_core.spatial.kernel import BINARY, Address, Affine, KernelBuilder, View, packed_strides
from raptor_operators.views import Located, copy_cost, copy_view, instruction_cost, loop_index, strided_run


@attrs.frozen(kw_only=True)
class Binary(ComputeOp):
    """result = a ``function`` b, where function is an element-wise instruction: add, sub, mul or max.

    The operands' axes are aligned with the result's from the last one on; an axis that is missing or of extent 1 is
    repeated. Both operands may be the same value.
    """

    kind = "operators.binary"

    function: str

    def verify(self, types: Types) -> None:
        result = types[self.results[0]].shape
        if self.function not in BINARY:
            raise self.fail(f"{self.function!r} is not one of {BINARY}")
        for operand in self.operands:
            shape = types[operand].shape
            aligned = zip(shape, result[len(result) - len(shape) :], strict=False)
            if len(shape) > len(result) or any(extent not in (1, whole) for extent, whole in aligned):
                raise self.fail(f"operand of shape {shape} does not broadcast to {result}")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        shape = types[self.operands[operand]].shape
        first = len(out.lo) - len(shape)
        lo = tuple(0 if extent == 1 else low for extent, low in zip(shape, out.lo[first:], strict=True))
        hi = tuple(1 if extent == 1 else high for extent, high in zip(shape, out.hi[first:], strict=True))
        return Box(lo, hi)

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        """The result's layout for every operand of its shape; repeated operands take it where it is on offer."""
        result = types[self.results[0]]
        choices: list[LayoutChoice] = []
        for layout in candidates[-1]:
            operands = [
                _operand_layout(types[operand], result, layout, offered)
                for operand, offered in zip(self.operands, candidates[:-1], strict=True)
            ]
            known = [operand for operand in operands if operand is not None]
            if len(known) == len(operands):
                choices.append((tuple(known), layout))
        return choices

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        sources = [_broadcast(view, result) for view in operands if view is not None]
        plans = [_Plan.of(result, sources, axes) for axes in range(result.run_axes()[0] + 1)]
        best = min(plans, key=lambda plan: (plan.cost, -plan.axes))
        _Emitter(k, self.function, result, best).emit(0, ())


def _operand_layout(
    operand: TensorType, result: TensorType, layout: Layout, offered: Sequence[Layout]
) -> Layout | None:
    if layout in offered:
        return layout
    return offered[0] if operand.shape != result.shape and offered else None


def _broadcast(view: View, result: View) -> View:
    """The operand's view in the result's shape: repeated axes have stride 0."""
    missing = len(result.shape) - len(view.shape)
    strides = [0] * missing + [
        0 if extent == 1 else stride for extent, stride in zip(view.shape, view.strides, strict=True)
    ]
    return View(view.slot, result.shape, view.base, tuple(strides), result.order)


def _inner(view: View, outer: Sequence[int]) -> View:
    """The part of a view at index 0 of the ``outer`` axes."""
    shape = tuple(1 if axis in outer else extent for axis, extent in enumerate(view.shape))
    return attrs.evolve(view, shape=shape)


@attrs.frozen
class _Source:
    """An operand for a given run: read in place, or repeated into a packed scratch at loop depth ``depth``."""

    view: View
    expanded: View | None = None
    depth: int = 0


@attrs.frozen
class _Plan:
    """A body whose instructions cover the ``axes`` innermost axes of the result at once."""

    axes: int
    outer: tuple[int, ...]
    count: int
    sources: tuple[_Source, ...]
    cost: int

    @classmethod
    def of(cls, result: View, views: Sequence[View], axes: int) -> _Plan:
        outer = result.order[: len(result.order) - axes]
        run = _inner(result, outer)
        count = math.prod(run.shape)
        sources, cost = [], math.prod(result.shape) // count * instruction_cost(count)
        for view in views:
            inner = _inner(view, outer)
            # A packed stand-in for the run: the result itself may be larger than the run in storage.
            packed = View.packed(0, run.shape, result.order)
            straight = strided_run(packed, inner)
            if count == 1 or (straight.count == count and straight.stride == 1):
                sources.append(_Source(view))
                continue
            fixed = [axis for axis in outer if view.strides[axis] and view.shape[axis] > 1]
            depth = outer.index(fixed[-1]) + 1 if fixed else 0
            cost += math.prod(result.shape[axis] for axis in outer[:depth]) * _expansion_cost(packed, inner)
            sources.append(_Source(view, packed, depth))
        return cls(axes, outer, count, tuple(sources), cost)


def _period(packed: View, source: View) -> tuple[int, int]:
    """How many innermost axes have to be copied, and their elements, when all further ones only repeat them."""
    axes, period = len(packed.order), math.prod(packed.shape)
    for axis in packed.order:
        if packed.shape[axis] > 1 and source.strides[axis] != 0:
            break
        axes -= 1
        period //= packed.shape[axis]
    return axes, period


def _doublings(period: int, total: int) -> list[tuple[int, int]]:
    """(filled so far, elements to copy) for filling ``total`` elements with the first ``period`` ones."""
    steps = []
    while period < total:
        step = min(period, total - period)
        steps.append((period, step))
        period += step
    return steps


def _expansion_cost(packed: View, source: View) -> int:
    axes, period = _period(packed, source)
    if period == 1:
        return instruction_cost(math.prod(packed.shape))
    outer = packed.order[: len(packed.order) - axes]
    steps = _doublings(period, math.prod(packed.shape))
    first = copy_cost(_inner(packed, outer), _inner(source, outer))
    return first + sum(instruction_cost(step) for _, step in steps)


def _expand(k: KernelBuilder, dst: Address, packed: View, source: Located) -> None:
    """Fill ``dst`` with the run of a repeated or scattered operand."""
    axes, period = _period(packed, source.view)
    total = math.prod(packed.shape)
    zero = (0,) * len(packed.shape)
    if period == 1:
        k.gather(dst, source.at(*zero), 0, total)
        return
    outer = packed.order[: len(packed.order) - axes]
    view = View(dst.slot, packed.shape, 0, packed_strides(packed.shape, packed.order), packed.order)
    copy_view(k, Located(_inner(view, outer)), Located(_inner(source.view, outer), source.origin))
    for filled, step in _doublings(period, total):
        k.copy(dst + filled, dst, step)


@attrs.define
class _Emitter:
    k: KernelBuilder
    function: str
    result: View
    plan: _Plan
    scratch: dict[int, Address] = attrs.field(factory=dict)

    def emit(self, depth: int, variables: tuple[Affine, ...]) -> None:
        """The loops from ``depth`` inwards; expansions are written as far outside as they may be."""
        plan, result = self.plan, self.result
        index = loop_index(len(result.shape), plan.outer[:depth], variables)
        for position, source in enumerate(plan.sources):
            if source.expanded is not None and source.depth == depth:
                self.scratch[position] = self.k.scratch(plan.count)
                origin = source.view.at(*index).offset + -source.view.base
                inner = Located(_inner(source.view, plan.outer), origin)
                _expand(self.k, self.scratch[position], source.expanded, inner)
        if depth < len(plan.outer):
            with self.k.loop(result.shape[plan.outer[depth]]) as variable:
                self.emit(depth + 1, (*variables, variable))
            return
        a, b = (
            self.scratch[position] if source.expanded is not None else source.view.at(*index)
            for position, source in enumerate(plan.sources)
        )
        self.k.binary(self.function, result.at(*index), a, b, plan.count)
