"""Executes a communicated module event by event on per-core storages, in the total order, with plain numpy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernel_interpreter import run_kernel
from raptor_core.ir.module import Module
from raptor_core.spatial.boxes import Box, from_array
from raptor_core.spatial.communication import Clear, Copy, Load, Storage, Store, Transfer
from raptor_core.spatial.compute import ComputeOp, lane_kernel
from raptor_core.spatial.kernel import View, packed_strides

ROWS = 16


class Chip:
    """Storages by (value, core), full of NaN at first."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.box: dict[tuple[str, int], Box] = {}
        self.data: dict[tuple[str, int], np.ndarray] = {}
        for op in module.find(Storage):
            for core, box in zip(op.cores.tolist(), from_array(op.boxes), strict=True):
                self.box[op.operands[0], core] = box
                self.data[op.operands[0], core] = np.full(box.elements + ROWS, np.nan, np.float32)

    def view(self, slot: int, value: str, core: int, box: Box) -> tuple[View, tuple[np.ndarray, int]]:
        storage, order = self.box[value, core], self.module.types[value].order
        assert storage.contains(box)
        strides = packed_strides(storage.extents, order)
        base = sum((a - b) * s for a, b, s in zip(box.lo, storage.lo, strides, strict=True))
        return View(slot, box.extents, 0, strides, order), (self.data[value, core], base)

    def array(self, value: str, core: int, box: Box) -> np.ndarray:
        """A writable numpy view of a box, by logical index."""
        view, (memory, base) = self.view(0, value, core, box)
        return np.lib.stride_tricks.as_strided(memory[base:], view.shape, [4 * s for s in view.strides])


def slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in zip(box.lo, box.hi, strict=True))


def execute(module: Module, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The network outputs of a module after the ``communicate`` pass."""
    chip = Chip(module)
    host = {**{k: np.asarray(v, np.float32) for k, v in module.constants.items()}, **inputs}
    outputs = {value: np.full(module.types[value].shape, np.nan, np.float32) for value in module.outputs}
    events = []
    for op in module.operations:
        if isinstance(op, ComputeOp):
            assert op.placement is not None
            events += [(int(rank), op, k) for k, rank in enumerate(op.placement.order)]
        elif isinstance(op, Clear | Load | Copy | Transfer | Store):
            events += [(int(rank), op, k) for k, rank in enumerate(op.order)]
    events.sort(key=lambda event: event[0])
    assert len({event[0] for event in events}) == len(events)
    for _, op, k in events:
        if isinstance(op, ComputeOp):
            _lane(module, chip, op, k)
            continue
        value, (box,) = op.operands[0], from_array(op.boxes[k : k + 1])
        if isinstance(op, Clear):
            chip.array(value, int(op.cores[k]), box)[...] = 0
        elif isinstance(op, Load):
            chip.array(value, int(op.cores[k]), box)[...] = host[value][slices(box)]
        elif isinstance(op, Store):
            outputs[value][slices(box)] = chip.array(value, int(op.cores[k]), box)
        else:
            sources, destinations = (op.cores, op.cores) if isinstance(op, Copy) else (op.sources, op.destinations)
            source = chip.array(value, int(sources[k]), box)
            assert not np.isnan(source).any(), f"{value} is moved before it is computed"
            chip.array(op.operands[-1], int(destinations[k]), box)[...] = source
    return outputs


def _lane(module: Module, chip: Chip, op: ComputeOp, k: int) -> None:
    (out,) = from_array(op.placement.boxes[k : k + 1])
    core = int(op.placement.cores[k])
    views, slots = [], []
    for number, value in enumerate(op.operands):
        region = op.region(number, out, module.types) if value else None
        if region is None or region.is_empty:
            views.append(None)
            slots.append(None)
        else:
            view, memory = chip.view(number, value, core, region)
            views.append(view)
            slots.append(memory)
    result, memory = chip.view(len(op.operands), op.results[0], core, out)
    kernel = lane_kernel(op, out, result, views, module.types, ROWS)
    weights = op.weights(out, module.types, module.constants, ROWS)
    run_kernel(kernel, [*slots, memory], weights, ROWS)
