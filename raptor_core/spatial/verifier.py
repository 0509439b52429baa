"""Checks of spatial modules: operations that fit the stage, placements that are sound."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from raptor_core.ir.module import Module
from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import BoxArray, from_array, intersect_pairs, to_array
from raptor_core.spatial.communication import Mirror
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.spatial.stages import STAGE_OPERATIONS

Indices = npt.NDArray[np.int64]

_GRID_CELLS = 1 << 22
_PAIRS = 1 << 20


def verify_spatial(module: Module) -> None:
    """Raise InternalError unless the operations belong to the module's stage and all placements are sound.

    The boxes of a placement are disjoint and cover the result; cores and steps are not negative; no core has two
    lanes in one step; a lane's step comes after those of all lanes that make what it needs.
    """
    allowed = STAGE_OPERATIONS.get(module.stage)
    if allowed is not None:
        for op in module.operations:
            if not isinstance(op, allowed):
                raise op.fail(f"operations of this kind may not remain in stage {module.stage}")
    placed = [op for op in module.operations if isinstance(op, ComputeOp) and op.placement is not None]
    for op in placed:
        _check_boxes(op, _placement(op), module.types)
    _check_steps(placed)
    makers = {op.results[0]: op for op in placed}
    makers.update({op.results[0]: makers[op.operands[0]] for op in module.find(Mirror) if op.operands[0] in makers})
    for op in placed:
        for k, operand in enumerate(op.operands):
            if operand in makers:
                _check_data_flow(op, k, makers[operand], module.types)


def _placement(op: ComputeOp) -> Placement:
    assert op.placement is not None
    return op.placement


def _check_boxes(op: ComputeOp, placement: Placement, types: Types) -> None:
    type_ = types[op.results[0]]
    boxes, cores, order = placement.boxes, placement.cores, placement.order
    if boxes.ndim != 3 or boxes.shape[1:] != (2, type_.rank):
        raise op.fail(f"its placement has boxes of shape {boxes.shape} for a result of {type_.rank} axes")
    if cores.shape != boxes.shape[:1] or order.shape != boxes.shape[:1]:
        raise op.fail(
            f"its placement has {len(boxes)} boxes, cores of shape {cores.shape} and order of shape {order.shape}"
        )
    if any(array.dtype.kind != "i" for array in (boxes, cores, order)):
        raise op.fail("its placement is not made of integers")
    if len(boxes) and (int(cores.min()) < 0 or int(order.min()) < 0):
        raise op.fail("its placement has a negative core or step")
    inside = (boxes[:, 0] >= 0) & (boxes[:, 1] <= np.array(type_.shape, dtype=np.int64))
    full = boxes[:, 0] < boxes[:, 1]
    wrong = np.flatnonzero(~(inside & full).all(axis=1))
    if wrong.size:
        lane = int(wrong[0])
        raise op.fail(f"the box of lane {lane}, {_words(boxes[lane])}, is empty or reaches outside {type_}")
    overlap = overlapping_pair(boxes)
    if overlap is not None:
        first, second = overlap
        raise op.fail(
            f"the boxes of lanes {first} and {second} overlap: {_words(boxes[first])} and {_words(boxes[second])}"
        )
    covered = int((boxes[:, 1] - boxes[:, 0]).prod(axis=1).sum())
    if covered != type_.elements:
        raise op.fail(f"its boxes cover {covered} of the {type_.elements} elements of {type_}")


def overlapping_pair(boxes: BoxArray) -> tuple[int, int] | None:
    """Two (non-empty) boxes that share an index, or None when all are disjoint."""
    count, _, rank = boxes.shape
    if count < 2 or (rank and _is_disjoint_grid(boxes)):
        return None
    block = max(1, _PAIRS // count)
    for begin in range(0, count, block):
        i, j, _ = intersect_pairs(boxes[begin : begin + block], boxes)
        other = np.flatnonzero(i + begin != j)
        if other.size:
            return int(i[other[0]] + begin), int(j[other[0]])
    return None


def _is_disjoint_grid(boxes: BoxArray) -> bool:
    """Whether the boxes are disjoint, by counting how many cover each cell between their edges.

    False also when there are too many cells to count.
    """
    rank = boxes.shape[2]
    edges = [np.unique(boxes[:, :, axis]) for axis in range(rank)]
    if np.prod([float(e.size) for e in edges]) > _GRID_CELLS:
        return False
    corners = np.stack([np.searchsorted(edges[axis], boxes[:, :, axis]) for axis in range(rank)], axis=2)
    cover = np.zeros([e.size for e in edges], dtype=np.int64)
    for ends in itertools.product((0, 1), repeat=rank):
        index = tuple(corners[:, end, axis] for axis, end in enumerate(ends))
        np.add.at(cover, index, -1 if sum(ends) % 2 else 1)
    for axis in range(rank):
        np.cumsum(cover, axis=axis, out=cover)
    return int(cover.max()) <= 1


def _check_steps(placed: list[ComputeOp]) -> None:
    if not placed:
        return
    placements = [_placement(op) for op in placed]
    cores = np.concatenate([placement.cores for placement in placements])
    steps = np.concatenate([placement.order for placement in placements])
    owners = np.repeat(np.arange(len(placed)), [placement.cores.size for placement in placements])
    ranking = np.lexsort((owners, cores, steps))
    again = (np.diff(steps[ranking]) == 0) & (np.diff(cores[ranking]) == 0)
    clash = np.flatnonzero(again)
    if clash.size:
        first, second = ranking[clash[0]], ranking[clash[0] + 1]
        raise placed[int(owners[second])].fail(
            f"core {int(cores[first])} has two lanes in step {int(steps[first])}; "
            f"the other is of '{placed[int(owners[first])].name}'"
        )


def _check_data_flow(op: ComputeOp, operand: int, maker: ComputeOp, types: Types) -> None:
    """A lane's step is after those of the lanes of ``maker`` whose boxes it needs."""
    own, made = _placement(op), _placement(maker)
    early = np.flatnonzero(own.order <= made.order.max(initial=-1))
    if not early.size:
        return
    rank = types[op.operands[operand]].rank
    regions = [op.region(operand, out, types) for out in from_array(own.boxes[early])]
    for lane, region in zip(early.tolist(), regions, strict=True):
        if len(region.lo) != rank or len(region.hi) != rank:
            raise op.fail(f"lane {lane} needs a box of {len(region.lo)} axes of '{op.operands[operand]}', not {rank}")
    needs = to_array(regions, rank)
    block = max(1, _PAIRS // len(made.boxes))
    for begin in range(0, early.size, block):
        lanes = early[begin : begin + block]
        i, j, _ = intersect_pairs(needs[begin : begin + block], made.boxes)
        late = np.flatnonzero(made.order[j] >= own.order[lanes[i]])
        if late.size:
            lane, source = int(lanes[i[late[0]]]), int(j[late[0]])
            raise op.fail(
                f"lane {lane} in step {int(own.order[lane])} needs '{op.operands[operand]}' from lane {source} of "
                f"'{maker.name}', which runs in step {int(made.order[source])}"
            )


def _words(box: BoxArray) -> str:
    return " x ".join(f"{lo}..{hi}" for lo, hi in zip(box[0].tolist(), box[1].tolist(), strict=True)) or "the scalar"
