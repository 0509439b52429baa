"""Evaluates a lowered module box by box: random cuts, random layouts, storages larger than what is needed."""

from __future__ import annotations

import importlib
import itertools
import random
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, lane_kernel
from raptor_core.spatial.kernel import View, packed_strides
from raptor_core.spatial.plans import ConvPlan
from tests.raptor_operators.lane_interpreter import run_kernel

_PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
_SENTINEL = np.float32(-123456.75)


def lowerings() -> dict[str, Any]:
    """The lowerings that the project registers, by operator."""
    entries = tomllib.loads(_PYPROJECT.read_text())["project"]["entry-points"]["raptor.operator_lowerings"]
    found = {}
    for operator, target in entries.items():
        module, _, name = target.partition(":")
        found[operator] = getattr(importlib.import_module(module), name)
    return found


LOWERINGS = lowerings()


def refusals(module: Module) -> list[str]:
    """Why the nodes of a module are refused."""
    reasons = [LOWERINGS[node.operator].check(node, module) for node in module.operations]
    return [reason for reason in reasons if reason is not None]


def lower(module: Module) -> Module:
    """The module after all lowerings, each operation verified."""
    assert refusals(module) == []
    rewriter = Rewriter(module)
    for node in module.operations:
        LOWERINGS[node.operator].lower(node, rewriter)
    lowered = rewriter.finish(stage="lower")
    defined = {*lowered.inputs, *lowered.constants}
    for op in lowered.operations:
        op.verify(lowered.types)
        assert defined.issuperset(op.operands), f"{op} reads what is not yet defined"
        assert not defined.intersection(op.results)
        defined.update(op.results)
    assert defined.issuperset(lowered.outputs)
    return lowered


@attrs.define
class Evaluation:
    """One evaluation of a lowered module with pseudo-random choices."""

    module: Module
    random: random.Random
    maximum_boxes: int = 6

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs for ``inputs``."""
        values = {**self.module.constants, **inputs}
        for op in self.module.operations:
            if isinstance(op, ConvPlan):
                values[op.results[0]] = convolve(op, values, self.module)
            else:
                assert isinstance(op, ComputeOp)
                values[op.results[0]] = self._compute(op, values)
            assert values[op.results[0]].shape == self.module.types[op.results[0]].shape
        return [values[name] for name in self.module.outputs]

    def _compute(self, op: ComputeOp, values: Mapping[str, np.ndarray]) -> np.ndarray:
        types = dict(self.module.types)
        names = (*op.operands, *op.results)
        offered = {name: self._layouts(types[name].rank) for name in names}
        choices = list(op.layout_choices(types, [offered[name] for name in names]))
        assert choices, "no layout choice"
        sources, target = self.random.choice(choices)
        # One value has one layout: where an operand stands twice the choice must agree with itself.
        for name, layout in zip(names, (*sources, target), strict=True):
            assert layout in offered[name]
            types[name] = attrs.evolve(types[name], layout=layout)
        result = np.full(types[op.results[0]].shape, np.nan, np.float32)
        kernels: dict[Any, Any] = {}
        for box in self._cut(result.shape, op.cut_granularity(types)):
            self._lane(op, box, values, types, result, kernels)
        return result

    def _layouts(self, rank: int) -> list[Layout]:
        orders = [tuple(range(rank))]
        if rank > 2:
            orders.append((0, *range(2, rank), 1))
            orders.append(tuple(self.random.sample(range(rank), rank)))
        return [Layout("dense" if n == 0 else f"order{n}", order) for n, order in enumerate(orders)]

    def _cut(self, shape: tuple[int, ...], granularity: tuple[int, ...]) -> list[Box]:
        intervals, boxes = [], self.random.randint(1, self.maximum_boxes)
        respected = self.random.random() < 0.8
        axes = list(range(len(shape)))
        edges_of: dict[int, list[int]] = {axis: [0, shape[axis]] for axis in axes}
        for _ in range(boxes - 1 if axes else 0):
            axis = self.random.choice(axes)
            step = granularity[axis] if respected else 1
            edge = self.random.randrange(shape[axis]) // step * step
            if edge not in edges_of[axis]:
                edges_of[axis] = sorted([*edges_of[axis], edge])
        intervals = [list(itertools.pairwise(edges_of[axis])) for axis in axes]
        cells = itertools.product(*intervals)
        return [Box(tuple(lo for lo, _ in cell), tuple(hi for _, hi in cell)) for cell in cells]

    def _storage(self, slot: int, box: Box, order: tuple[int, ...], content: np.ndarray | None):
        """A flat storage of a box around ``box`` and the view of ``box`` in it; NaN around a given content."""
        tight = self.random.random() < 0.4
        before = [0 if tight else self.random.choice((0, 0, 1, 2)) for _ in box.lo]
        after = [0 if tight else self.random.choice((0, 0, 1, 3)) for _ in box.lo]
        extents = [b + n + a for b, n, a in zip(before, box.extents, after, strict=True)]
        strides = packed_strides(extents, order)
        base = sum(b * stride for b, stride in zip(before, strides, strict=True))
        flat = np.full(int(np.prod(extents, dtype=np.int64)), np.nan if content is not None else _SENTINEL, np.float32)
        view = View(slot, box.extents, base, strides, order)
        if content is not None:
            flat[view.addresses()] = content
        return flat, view

    def _lane(self, op, box, values, types, result, kernels) -> None:
        storages, views = [], []
        for slot, name in enumerate(op.operands):
            region = op.region(slot, box, types)
            if region.is_empty:
                storages.append(None)
                views.append(None)
                continue
            flat, view = self._storage(slot, region, types[name].order, gather(values[name], region))
            storages.append(flat)
            views.append(view)
        flat, view = self._storage(len(op.operands), box, types[op.results[0]].order, None)
        key = (op.kernel_key(box, types), view, tuple(views))
        if key not in kernels:
            kernels[key] = lane_kernel(op, box, view, views, types, 128)
        run_kernel(kernels[key], storages, flat)
        addresses = view.addresses()
        result[tuple(slice(lo, hi) for lo, hi in zip(box.lo, box.hi, strict=True))] = flat[addresses]
        outside = np.ones(flat.size, bool)
        outside[addresses] = False
        assert (flat[outside] == _SENTINEL).all(), "wrote outside its box"


def gather(value: np.ndarray, box: Box) -> np.ndarray:
    """The elements of a box, zero outside the tensor."""
    found = np.zeros(box.extents, np.float32)
    inner = box.intersect(Box.whole(value.shape))
    if not inner.is_empty:
        source = tuple(slice(lo, hi) for lo, hi in zip(inner.lo, inner.hi, strict=True))
        back = inner.shift([-lo for lo in box.lo])
        found[tuple(slice(lo, hi) for lo, hi in zip(back.lo, back.hi, strict=True))] = value[source]
    return found


def convolve(plan: ConvPlan, values: Mapping[str, np.ndarray], module: Module) -> np.ndarray:
    """A ConvPlan by its definition."""
    x = values[plan.operands[0]].astype(np.float64)
    w = values[plan.operands[1]].astype(np.float64)
    shape = module.types[plan.results[0]].shape
    region = plan.region(Box.whole(shape), module.types)
    assert region.lo[plan.channel_axis] == 0
    padded = np.zeros(region.extents)
    inner = region.intersect(Box.whole(x.shape))
    back = inner.shift([-lo for lo in region.lo])
    padded[tuple(map(slice, back.lo, back.hi))] = x[tuple(map(slice, inner.lo, inner.hi))]
    outputs = w.shape[0] // plan.groups
    grouped = np.moveaxis(np.zeros(shape), plan.channel_axis, -1)
    for taps in itertools.product(*map(range, plan.window_kernel)):
        part = padded
        for n, axis in enumerate(plan.spatial_axes):
            start = taps[n] * plan.dilations[n]
            indices = start + plan.strides[n] * np.arange(shape[axis])
            part = part.take(indices, axis=axis)
        part = np.moveaxis(part, plan.channel_axis, -1)
        for group in range(plan.groups):
            channels = part[..., group * w.shape[1] : (group + 1) * w.shape[1]]
            matrix = w[(slice(group * outputs, (group + 1) * outputs), slice(None), *taps)]
            grouped[..., group * outputs : (group + 1) * outputs] += channels @ matrix.T
    if len(plan.operands) == 3:
        grouped += values[plan.operands[2]]
    return np.moveaxis(grouped, -1, plan.channel_axis).astype(np.float32)
