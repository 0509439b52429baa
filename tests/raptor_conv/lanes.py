"""Runs compute operations lane by lane with numpy: random cuts, and storages larger than what a lane needs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from kernel_interpreter import run_kernel
from raptor_core.ir.module import Module, Rewriter
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, lane_kernel
from raptor_core.spatial.kernel import Kernel, Loop, View, packed_strides

_SENTINEL = np.float32(-123456.75)


def compute(
    rewriter: Rewriter | Module, inputs: Mapping[str, np.ndarray], rows: int, rng: random.Random, boxes: int = 4
) -> dict[str, np.ndarray]:
    """All values of the operations, each computed in about ``boxes`` random boxes."""
    values = {**rewriter.constants, **inputs}
    for op in rewriter.operations:
        assert isinstance(op, ComputeOp)
        op.verify(rewriter.types)
        values[op.results[0]] = _Lanes(op, values, rewriter.types, rewriter.constants, rows, rng).run(boxes)
    return values


def random_cut(shape: tuple[int, ...], granularity: tuple[int, ...], rng: random.Random, boxes: int) -> list[Box]:
    """Disjoint boxes that cover ``shape``; most of the time on the granularity."""
    edges = [[0, extent] for extent in shape]
    respected = rng.random() < 0.7
    for _ in range(rng.randrange(boxes) if shape else 0):
        axis = rng.randrange(len(shape))
        step = granularity[axis] if respected else 1
        edge = rng.randrange(shape[axis]) // step * step
        edges[axis] = sorted({*edges[axis], edge})
    cells = itertools.product(*(itertools.pairwise(e) for e in edges))
    return [Box(tuple(lo for lo, _ in cell), tuple(hi for _, hi in cell)) for cell in cells]


def padded_part(value: np.ndarray, box: Box) -> np.ndarray:
    """The elements of a box, zero outside the tensor."""
    found = np.zeros(box.extents, np.float32)
    inner = box.intersect(Box.whole(value.shape))
    if not inner.is_empty:
        back = inner.shift([-lo for lo in box.lo])
        found[tuple(map(slice, back.lo, back.hi))] = value[tuple(map(slice, inner.lo, inner.hi))]
    return found


@attrs.define
class _Lanes:
    op: ComputeOp
    values: Mapping[str, np.ndarray]
    types: Mapping[str, Any]
    constants: Mapping[str, np.ndarray]
    rows: int
    rng: random.Random
    kernels: dict[Any, Kernel] = attrs.field(factory=dict)
    matrices: dict[Any, list[np.ndarray]] = attrs.field(factory=dict)

    def run(self, boxes: int) -> np.ndarray:
        result = np.full(self.types[self.op.results[0]].shape, np.nan, np.float32)
        for box in random_cut(result.shape, self.op.cut_granularity(self.types), self.rng, boxes):
            result[tuple(map(slice, box.lo, box.hi))] = self.lane(box)
        return result

    def lane(self, box: Box) -> np.ndarray:
        op, types = self.op, self.types
        memories, views = [], []
        for slot, name in enumerate(op.operands):
            region = op.region(slot, box, types) if name else None
            if region is None or region.is_empty:
                memories.append(None)
                views.append(None)
                continue
            memory, view = self.storage(slot, name, region, padded_part(self.values[name], region))
            memories.append((memory, 0))
            views.append(view)
        memory, view = self.storage(len(op.operands), op.results[0], box, None)
        key = (op.kernel_key(box, types), view, tuple(views))
        if key not in self.kernels:
            self.kernels[key] = lane_kernel(op, box, view, views, types, self.rows)
        run_kernel(self.kernels[key], [*memories, (memory, 0)], self.weights(box), self.rows)
        addresses = view.addresses()
        outside = np.ones(memory.size, bool)
        outside[addresses] = False
        assert (memory[outside] == _SENTINEL).all(), "wrote outside its box"
        return memory[addresses]

    def weights(self, box: Box) -> list[np.ndarray]:
        """The matrices of a box: as announced, and the same for boxes of one key."""
        op, types = self.op, self.types
        matrices = list(op.weights(box, types, self.constants, self.rows))
        assert tuple(m.shape for m in matrices) == op.weight_shapes(box, types, self.rows)
        assert all(m.dtype == np.float32 and 0 < m.shape[0] <= self.rows for m in matrices)
        known = self.matrices.setdefault(op.weights_key(box, types), matrices)
        assert all(np.array_equal(a, b) for a, b in zip(known, matrices, strict=True))
        return matrices

    def storage(self, slot: int, name: str, box: Box, content: np.ndarray | None) -> tuple[np.ndarray, View]:
        """A flat storage around ``box``: a box of the tensor, which only padding makes reach further."""
        shape, order = self.types[name].shape, self.types[name].order
        tight = self.rng.random() < 0.4
        lo, hi = list(box.lo), list(box.hi)
        for axis, extent in enumerate(shape):
            below, above = self.rng.choice((0, 0, 1, 2)), self.rng.choice((0, 0, 1, 3))
            if not tight:
                lo[axis] -= min(below, max(0, lo[axis])) if lo[axis] >= 0 else below
                hi[axis] += min(above, max(0, extent - hi[axis])) if hi[axis] <= extent else above
        extents = [b - a for a, b in zip(lo, hi, strict=True)]
        strides = packed_strides(extents, order)
        base = sum((a - b) * stride for a, b, stride in zip(box.lo, lo, strides, strict=True))
        view = View(slot, box.extents, base, strides, order)
        blank = np.nan if content is not None else _SENTINEL
        memory = np.full(math.prod(extents) + (self.rows if content is not None else 0), blank, np.float32)
        if content is not None:
            memory[view.addresses()] = content
        return memory, view


def instructions(kernel: Kernel, op: str) -> int:
    """How often an instruction runs."""

    def count(body: Any) -> int:
        total = 0
        for item in body:
            if isinstance(item, Loop):
                total += item.extent * count(item.body)
            elif getattr(item, "op", None) == op:
                total += 1
        return total

    return count(kernel.body)
