"""Pass ``communicate``: every edge of the scheduled graph becomes local, a transfer between cores, or host traffic.

One rule serves halos, gathers, scatters and broadcasts: for each box that a lane needs, intersect with the boxes that
its producers hold; on the same core nothing happens (a mirror gets a copy), between cores the intersection is sent,
from the host it is loaded. All events then get their place in one total order, in which each core executes its own;
blocking transfers in such an order cannot deadlock (see raptor_core.spatial.communication).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import attrs
import numpy as np

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Operation
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.spatial._rounds import transfer_rounds
from raptor_core.spatial.boxes import BoxArray, from_array, to_array
from raptor_core.spatial.communication import Clear, Copy, Load, Mirror, Storage, Store, Transfer
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.spatial.edges import (
    Indices,
    Needs,
    Pieces,
    fragment_pieces,
    host_pieces,
    padding_boxes,
    storage_boxes,
)
from raptor_core.spatial.multicast import Forwarding, forwarded, straight

# Within one step, events run in this order.
_CLEAR, _LOAD, _COPY, _TRANSFER, _LANE, _STORE = range(6)


@attrs.frozen(eq=False)
class _Family:
    """Events before they have their order: an operation whose ``order`` (or placement) is still to be filled in.

    Of transfers of one step, those of less ``depth`` come first (None: all at once).
    """

    op: Operation
    step: Indices
    phase: int
    depth: Indices | None = None


@attrs.frozen
class CommunicatePass:
    """See the module's text. Notes count transfers, copies, loads and stores, and the elements they move."""

    name: ClassVar[str] = "communicate"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises InternalError when an operation has no placement.

        Option ``multicast``: false sends all pieces from their sources.
        """
        forward = forwarded if context.options.get("multicast", True) else straight
        computes = list(module.find(ComputeOp))
        mirrors = list(module.find(Mirror))
        mirrored = {op.results[0]: op.operands[0] for op in mirrors}
        needs = _collect_needs(computes, module)
        producers: dict[str, ComputeOp] = {op.results[0]: op for op in computes}
        families: list[_Family] = []
        storages: list[Operation] = []
        for value, need in needs.items():
            storages.append(_storage(value, need, producers.get(value)))
            families.extend(_value_families(module, value, need, producers, mirrored, forward))
        for op in computes:
            if op.results[0] not in needs:
                storages.append(_storage(op.results[0], None, op))
            families.append(_Family(op, _placement(op).order, _LANE))
        families.extend(_stores(module, producers))
        ordered = _assign_order(families)
        result = attrs.evolve(
            module, stage=self.name, operations=_after_definitions(module, [*mirrors, *storages, *ordered])
        )
        return PassResult(result, notes=_figures(ordered))


COMMUNICATE = CommunicatePass()


def _placement(op: ComputeOp) -> Placement:
    if op.placement is None:
        raise InternalError("not-scheduled", f"operation {op.kind} '{op.name}' has no placement")
    return op.placement


def _collect_needs(computes: Sequence[ComputeOp], module: Module) -> dict[str, Needs]:
    """What all lanes need of each value, by value, in order of first use."""
    found: dict[str, list[tuple[BoxArray, Indices, Indices]]] = {}
    for op in computes:
        placement = _placement(op)
        outs = from_array(placement.boxes)
        for k, value in enumerate(op.operands):
            if not value:
                continue
            regions = [op.region(k, out, module.types) for out in outs]
            used = np.array([not region.is_empty for region in regions], dtype=bool)
            if used.any():
                boxes = to_array(regions, module.types[value].rank)[used]
                found.setdefault(value, []).append((boxes, placement.cores[used], placement.order[used]))
    return {
        value: Needs(*(np.concatenate(parts) for parts in zip(*entries, strict=True)))
        for value, entries in found.items()
    }


def _storage(value: str, need: Needs | None, producer: ComputeOp | None) -> Storage:
    boxes = [] if need is None else [need.boxes]
    cores = [] if need is None else [need.cores]
    if producer is not None:
        placement = _placement(producer)
        boxes.append(placement.boxes)
        cores.append(placement.cores)
    held, bounds = storage_boxes(np.concatenate(boxes), np.concatenate(cores))
    return Storage(name=value, operands=(value,), cores=held, boxes=bounds)


def _value_families(
    module: Module,
    value: str,
    need: Needs,
    producers: Mapping[str, ComputeOp],
    mirrored: Mapping[str, str],
    forward: Callable[[Pieces], Forwarding],
) -> Iterator[_Family]:
    """The clears, loads, copies and transfers that bring one value, or mirror of one, to where it is needed."""
    shape = module.types[value].shape
    source = mirrored.get(value, value)
    producer = producers.get(source)
    layer = producer.name if producer is not None else value
    held, bounds = storage_boxes(need.boxes, need.cores)
    padding, owners = padding_boxes(bounds, held, shape)
    if owners.size:
        first_use = np.full(int(held.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first_use, need.cores, need.steps)
        unordered = np.zeros(owners.size, dtype=np.int64)
        clear = Clear(name=layer, operands=(value,), cores=owners, boxes=padding, order=unordered)
        yield _Family(clear, first_use[owners], _CLEAR)
    if producer is None:
        pieces = host_pieces(need, shape)
        if pieces.steps.size:
            load = Load(
                name=layer, operands=(value,), cores=pieces.destinations, boxes=pieces.boxes, order=pieces.steps
            )
            yield _Family(load, pieces.steps, _LOAD)
        return
    placement = _placement(producer)
    pieces, own = fragment_pieces(need, placement.boxes, placement.cores, shape)
    operands = (source,) if source == value else (source, value)
    if pieces.steps.size:
        yield from _transfers(layer, operands, forward(pieces))
    if source != value and own.steps.size:
        copy = Copy(name=layer, operands=operands, cores=own.destinations, boxes=own.boxes, order=own.steps)
        yield _Family(copy, own.steps, _COPY)


def _transfers(layer: str, operands: tuple[str, ...], found: Forwarding) -> Iterator[_Family]:
    """Pieces from their sources, and those passed on, which come from where the first ones went."""
    for which, names in ((found.depth == 1, operands), (found.depth > 1, operands[-1:])):
        if not which.any():
            continue
        pieces = found.pieces
        transfer = Transfer(
            name=layer,
            operands=names,
            sources=pieces.sources[which],
            destinations=pieces.destinations[which],
            boxes=pieces.boxes[which],
            order=pieces.steps[which],
        )
        yield _Family(transfer, transfer.order, _TRANSFER, found.depth[which])


def _stores(module: Module, producers: Mapping[str, ComputeOp]) -> Iterator[_Family]:
    for value in module.outputs:
        if value not in producers:
            raise InternalError("output-without-producer", f"network output '{value}' is not computed on the chip")
        placement = _placement(producers[value])
        store = Store(
            name=producers[value].name,
            operands=(value,),
            cores=placement.cores,
            boxes=placement.boxes,
            order=placement.order,
        )
        yield _Family(store, placement.order, _STORE)


def _assign_order(families: list[_Family]) -> list[Operation]:
    """The families' operations with every event's rank in the total order: by step, phase, depth, round, and family."""
    sizes = [family.step.size for family in families]
    step = np.concatenate([family.step for family in families])
    depth = np.concatenate([np.zeros_like(f.step) if f.depth is None else f.depth for f in families])
    phase = np.repeat([family.phase for family in families], sizes)
    rounds = np.zeros(step.size, dtype=np.int64)
    is_transfer = phase == _TRANSFER
    if is_transfer.any():
        transfers = [family.op for family in families if isinstance(family.op, Transfer)]
        sources = np.concatenate([op.sources for op in transfers])
        destinations = np.concatenate([op.destinations for op in transfers])
        steps = step[is_transfer] * (int(depth.max()) + 1) + depth[is_transfer]
        by_step = np.argsort(steps, kind="stable")
        coloured = np.empty(by_step.size, dtype=np.int64)
        coloured[by_step] = transfer_rounds(steps[by_step], sources[by_step], destinations[by_step])
        rounds[is_transfer] = coloured
    ranking = np.lexsort((np.arange(step.size), rounds, depth, phase, step))
    order = np.empty(step.size, dtype=np.int64)
    order[ranking] = np.arange(step.size)
    ordered: list[Operation] = []
    begin = 0
    for family, size in zip(families, sizes, strict=True):
        own = order[begin : begin + size]
        begin += size
        if isinstance(family.op, ComputeOp):
            placement = attrs.evolve(_placement(family.op), order=own)
            ordered.append(attrs.evolve(family.op, placement=placement))
        else:
            ordered.append(attrs.evolve(family.op, order=own))  # type: ignore[call-arg]
    return ordered


def _after_definitions(module: Module, operations: list[Operation]) -> tuple[Operation, ...]:
    """``operations`` with every compute followed by the storages and movements of its result; host values first."""
    position = {op.results[0]: k for k, op in enumerate(module.operations)}

    def place(op: Operation) -> tuple[int, int]:
        if isinstance(op, ComputeOp | Mirror):
            return position[op.results[0]], 0
        return position.get(op.operands[-1], -1), 1 if isinstance(op, Storage) else 2

    return tuple(sorted(operations, key=place))


def _figures(operations: list[Operation]) -> dict[str, int]:
    figures = {}
    for label, labels, kind in (
        ("transfer", "transfers", Transfer),
        ("copy", "copies", Copy),
        ("load", "loads", Load),
        ("store", "stores", Store),
    ):
        families = [op for op in operations if isinstance(op, kind)]
        boxes = [op.boxes for op in families]
        figures[labels] = sum(b.shape[0] for b in boxes)
        figures[f"{label}_elements"] = sum(int((b[:, 1] - b[:, 0]).prod(axis=1).sum()) for b in boxes)
    return figures
