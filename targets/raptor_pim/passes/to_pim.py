"""Pass ``to-pim``: from boxes of values to buffers, kernels and messages of the pim dialect."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.spatial import communication as spatial
from raptor_core.spatial.boxes import Box, BoxArray, from_array
from raptor_core.spatial.compute import ComputeOp, lane_kernel
from raptor_core.spatial.kernel import Kernel, KernelBuilder, View, packed_strides
from raptor_pim import dialect as pim
from raptor_pim.ordering.events import Family, with_lifetimes
from raptor_pim.passes.groups import GroupTable
from raptor_pim.passes.host_memory import host_memory_map
from raptor_pim.passes.runs import Runs, box_runs

Indices = npt.NDArray[np.int64]

_LaneKey = tuple[Any, ...]


@attrs.frozen(eq=False)
class _Held:
    """Where one value lies: the storage's cores (ascending), boxes, and the number of the first one's buffer."""

    cores: Indices
    boxes: BoxArray
    first_buffer: int

    def at(self, cores: Indices) -> tuple[Indices, BoxArray]:
        """Buffer numbers and storage boxes on ``cores``."""
        rows = np.searchsorted(self.cores, cores)
        return rows + self.first_buffer, self.boxes[rows]


@attrs.define(eq=False)
class _BufferTable:
    """Grows the columns of pim.buffers."""

    cores: list[Indices] = attrs.field(factory=list)
    elements: list[Indices] = attrs.field(factory=list)
    owner: list[Indices] = attrs.field(factory=list)
    owners: list[str] = attrs.field(factory=list)
    count: int = 0

    def add(self, owner: str, cores: Indices, elements: Indices) -> int:
        """One buffer per entry; gives the number of the first."""
        first = self.count
        self.cores.append(np.asarray(cores, dtype=np.int64))
        self.elements.append(np.asarray(elements, dtype=np.int64))
        self.owner.append(np.full(len(cores), len(self.owners), dtype=np.int64))
        self.owners.append(owner)
        self.count += len(cores)
        return first

    def finish(self, events: list[Family]) -> pim.Buffers:
        """The table with the lifetimes that ``events`` give the buffers."""
        nobody = np.zeros(self.count, dtype=np.int64)
        table = pim.Buffers(
            name="buffers",
            cores=_join(self.cores),
            elements=_join(self.elements),
            first=nobody,
            last=nobody,
            owner=_join(self.owner),
            owners=tuple(self.owners),
        )
        return with_lifetimes(table, events)


def _join(parts: list[Indices]) -> Indices:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


@attrs.frozen
class ToPimPass:
    """See the module's text. Notes count kernels, launches, buffers, matrices and groups."""

    name: ClassVar[str] = "to-pim"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises RaptorError when the weights of a core do not fit its crossbars."""
        conversion = _Conversion(module, context)
        result = conversion.convert()
        notes = {
            "kernels": sum(1 for _ in result.find(pim.Launch)),
            "launches": sum(op.cores.size for op in result.find(pim.Launch)),
            "buffers": sum(op.cores.size for op in result.find(pim.Buffers)),
            "matrices": sum(len(op.operands) for op in result.find(pim.Groups)),
            "groups": sum(op.cores.size for op in result.find(pim.Groups)),
        }
        return PassResult(result, notes)


TO_PIM = ToPimPass()


@attrs.define(eq=False)
class _Conversion:
    module: Module
    context: PassContext
    buffers: _BufferTable = attrs.field(factory=_BufferTable)
    held: dict[str, _Held] = attrs.field(factory=dict)
    events: list[Family] = attrs.field(factory=list)
    groups: GroupTable = attrs.field(init=False)

    def convert(self) -> Module:
        module = self.module
        self.groups = GroupTable(self.context.machine)
        host = host_memory_map(module)
        for storage in module.find(spatial.Storage):
            value = storage.operands[0]
            elements = (storage.boxes[:, 1] - storage.boxes[:, 0]).prod(axis=1)
            first = self.buffers.add(value, storage.cores, elements)
            self.held[value] = _Held(storage.cores, storage.boxes, first)
        for op in module.operations:
            if isinstance(op, ComputeOp):
                self.events.extend(self._launches(op))
            elif isinstance(op, spatial.Clear):
                self.events.append(self._clear(op))
            elif isinstance(op, spatial.Copy):
                self.events.extend(self._copies(op))
            elif isinstance(op, spatial.Load | spatial.Store):
                self.events.append(self._host_move(op, host))
            elif isinstance(op, spatial.Transfer):
                self.events.append(self._transfer(op))
        group_op, matrices = self.groups.finish()
        operations = (self.buffers.finish(self.events), group_op, host, *self.events)
        kept = set(host.values)
        types = {name: type_ for name, type_ in module.types.items() if name in kept}
        types.update({name: TensorType(tuple(matrix.shape)) for name, matrix in matrices.items()})
        constants = {name: data for name, data in module.constants.items() if name in kept}
        constants.update(matrices)
        return attrs.evolve(module, stage="to-pim", operations=operations, types=types, constants=constants)

    # ---- lanes ---------------------------------------------------------------------------------------------------
    def _launches(self, op: ComputeOp) -> list[pim.Launch]:
        """The lanes of one compute, those with equal kernels together, in order of first appearance."""
        placement = op.placement
        assert placement is not None
        families: dict[_LaneKey, list[int]] = {}
        outs = from_array(placement.boxes)
        cores = placement.cores.tolist()
        views: list[tuple[View, list[View | None]]] = []
        slots = np.full((len(outs), len(op.operands) + 1), -1, dtype=np.int64)
        offsets = np.zeros_like(slots)
        lookup = [self._storages(value) for value in (*op.operands, op.results[0])]
        orders = [self.module.types[value].order if value else () for value in (*op.operands, op.results[0])]
        for lane, (out, core) in enumerate(zip(outs, cores, strict=True)):
            operands: list[View | None] = []
            for k, value in enumerate(op.operands):
                box = op.region(k, out, self.module.types) if value else None
                if box is None or box.is_empty:
                    operands.append(None)
                    continue
                view, slots[lane, k], offsets[lane, k] = _view(k, box, *lookup[k][core], orders[k])
                operands.append(view)
            last = len(op.operands)
            result, slots[lane, last], offsets[lane, last] = _view(last, out, *lookup[last][core], orders[last])
            views.append((result, operands))
            key = (result, tuple(operands), op.kernel_key(out, self.module.types))
            families.setdefault(key, []).append(lane)
        launches = []
        for lanes in families.values():
            result, operands = views[lanes[0]]
            rows = self.context.machine.crossbar_rows
            kernel = lane_kernel(op, outs[lanes[0]], result, operands, self.module.types, rows)
            launches.append(self._launch(op, kernel, lanes, outs, slots[lanes], offsets[lanes]))
        return launches

    def _launch(
        self, op: ComputeOp, kernel: Kernel, lanes: list[int], outs: list[Box], slots: Indices, offsets: Indices
    ) -> pim.Launch:
        placement = op.placement
        assert placement is not None
        cores = placement.cores[lanes]
        columns, shifts = [slots], [offsets]
        for size in kernel.scratch:
            first = self.buffers.add(f"scratch of {op.name}", cores, np.full(cores.size, size))
            columns.append(first + np.arange(cores.size, dtype=np.int64)[:, None])
            shifts.append(np.zeros((cores.size, 1), dtype=np.int64))
        groups = [self._lane_groups(op, outs[lane], core) for lane, core in zip(lanes, cores.tolist(), strict=True)]
        return pim.Launch(
            name=op.name,
            kernel=kernel,
            cores=cores,
            order=placement.order[lanes],
            buffers=np.concatenate(columns, axis=1),
            offsets=np.concatenate(shifts, axis=1),
            groups=np.array(groups, dtype=np.int64).reshape(cores.size, -1),
        )

    def _lane_groups(self, op: ComputeOp, out: Box, core: int) -> tuple[int, ...]:
        types, rows = self.module.types, self.context.machine.crossbar_rows
        key: Hashable = (op.results[0], op.weights_key(out, types))
        return self.groups.place(
            core, key, lambda: op.weights(out, types, self.module.constants, rows), where=f"{op.kind} '{op.name}'"
        )

    def _storages(self, value: str) -> dict[int, tuple[int, Box]]:
        held = self.held.get(value)
        if held is None:  # no lane needs it: a weight, or an absent operand
            return {}
        boxes = from_array(held.boxes)
        return {core: (held.first_buffer + k, boxes[k]) for k, core in enumerate(held.cores.tolist())}

    # ---- movements -----------------------------------------------------------------------------------------------
    def _clear(self, op: spatial.Clear) -> pim.Clear:
        numbers, storages = self.held[op.operands[0]].at(op.cores)
        runs = box_runs(op.boxes, [storages], self.module.types[op.operands[0]].order)
        return pim.Clear(
            name=op.name,
            cores=op.cores[runs.box],
            order=op.order[runs.box],
            buffers=numbers[runs.box],
            offsets=runs.offsets[:, 0],
            elements=runs.elements,
        )

    def _copies(self, op: spatial.Copy) -> Iterator[pim.Launch]:
        """The copies between storages of a core, those with equal kernels together."""
        value, mirror = op.operands
        order = self.module.types[value].order
        sources, targets = self._storages(value), self._storages(mirror)
        families: dict[tuple[View, View], list[tuple[int, tuple[int, int], tuple[int, int]]]] = {}
        for k, (box, core) in enumerate(zip(from_array(op.boxes), op.cores.tolist(), strict=True)):
            source, source_buffer, source_offset = _view(0, box, *sources[core], order)
            target, buffer, offset = _view(1, box, *targets[core], order)
            families.setdefault((target, source), []).append((k, (source_buffer, buffer), (source_offset, offset)))
        for (target, source), found in families.items():
            builder = KernelBuilder(1)
            with builder.runs(target, source) as ((dst, src), count):
                builder.copy(dst, src, count)
            events, buffers, offsets = zip(*found, strict=True)
            rows = list(events)
            yield pim.Launch(
                name=op.name,
                kernel=builder.build(),
                cores=op.cores[rows],
                order=op.order[rows],
                buffers=np.array(buffers, dtype=np.int64),
                offsets=np.array(offsets, dtype=np.int64),
                groups=np.zeros((len(rows), 0), dtype=np.int64),
            )

    def _host_move(self, op: spatial.Load | spatial.Store, host: pim.HostMemory) -> pim.Load | pim.Store:
        value = op.operands[0]
        numbers, storages = self.held[value].at(op.cores)
        type_ = self.module.types[value]
        whole = np.array([[[0] * type_.rank, type_.shape]], dtype=np.int64)
        runs = box_runs(op.boxes, [storages, np.repeat(whole, op.cores.size, axis=0)], type_.order)
        address = host.addresses[host.values.index(value)]
        kind = pim.Load if isinstance(op, spatial.Load) else pim.Store
        return kind(
            name=op.name,
            cores=op.cores[runs.box],
            order=op.order[runs.box],
            buffers=numbers[runs.box],
            offsets=runs.offsets[:, 0],
            host=address + 4 * runs.offsets[:, 1],
            elements=runs.elements,
        )

    def _transfer(self, op: spatial.Transfer) -> pim.Transfer:
        source_numbers, source_storages = self.held[op.operands[0]].at(op.sources)
        numbers, storages = self.held[op.operands[-1]].at(op.destinations)
        runs: Runs = box_runs(op.boxes, [source_storages, storages], self.module.types[op.operands[0]].order)
        return pim.Transfer(
            name=op.name,
            sources=op.sources[runs.box],
            destinations=op.destinations[runs.box],
            order=op.order[runs.box],
            source_buffers=source_numbers[runs.box],
            source_offsets=runs.offsets[:, 0],
            destination_buffers=numbers[runs.box],
            destination_offsets=runs.offsets[:, 1],
            elements=runs.elements,
        )


def _view(slot: int, box: Box, buffer: int, storage: Box, order: tuple[int, ...]) -> tuple[View, int, int]:
    """The view of ``box`` in a storage, with its buffer and the element offset of its first element."""
    strides = packed_strides(storage.extents, order)
    offset = sum((low - origin) * step for low, origin, step in zip(box.lo, storage.lo, strides, strict=True))
    return View(slot, box.extents, 0, strides, order), buffer, offset
