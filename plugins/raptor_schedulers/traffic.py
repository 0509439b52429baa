"""Estimates of what a cut makes its operands travel."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box, BoxArray, to_array
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.targets.machine import Machine

_SAMPLES = 6


@attrs.frozen(eq=False)
class Overlap:
    """How the boxes that lanes need of one operand meet the fragments that hold it.

    ``needed`` [lanes] elements of each need inside the tensor; ``shared`` [lanes, fragments] elements in common;
    ``cores`` [fragments].
    """

    needed: npt.NDArray[np.float64]
    shared: npt.NDArray[np.float64]
    cores: npt.NDArray[np.int64]


def regions(op: ComputeOp, operand: int, boxes: BoxArray, types: Types) -> BoxArray:
    """What the lanes need of an operand, inside its tensor, [lanes, 2, rank]."""
    needs = [op.region(operand, Box(tuple(lo), tuple(hi)), types) for lo, hi in boxes.tolist()]
    type_ = types[op.operands[operand]]
    return np.clip(to_array(needs, type_.rank), 0, np.array(type_.shape, dtype=np.int64))


def volumes(boxes: BoxArray) -> npt.NDArray[np.float64]:
    """Elements of each box."""
    return np.asarray(np.maximum(boxes[:, 1] - boxes[:, 0], 0).prod(axis=1), dtype=np.float64)


def overlap(needs: BoxArray, placement: Placement) -> Overlap:
    """The overlap of needs with a producer's fragments."""
    lo = np.maximum(needs[:, None, 0], placement.boxes[None, :, 0])
    hi = np.minimum(needs[:, None, 1], placement.boxes[None, :, 1])
    shared = np.maximum(hi - lo, 0).prod(axis=-1).astype(np.float64)
    return Overlap(volumes(needs), shared, placement.cores)


def traffic_ns(
    op: ComputeOp, boxes: BoxArray, types: Types, placements: Mapping[str, Placement], machine: Machine
) -> float:
    """Estimated time to bring the operands of a cut's lanes where they are needed.

    A lane is assumed to sit with the fragment it shares most with. Between cores the larger of what one lane
    receives and what one producer sends counts; the host port serves all lanes one after another.
    """
    lanes = boxes.shape[0]
    sample = boxes[np.unique(np.linspace(0, lanes - 1, _SAMPLES).astype(np.int64))]
    total = 0.0
    for k, value in enumerate(op.operands):
        if not value:
            continue
        needs = regions(op, k, sample, types)
        elements = volumes(needs)
        if not elements.any():
            continue
        placement = placements.get(value)
        if placement is None:
            total += machine.host_ns(float(elements.mean()) * lanes, lanes)
            continue
        met = overlap(needs, placement)
        remote = elements - met.shared.max(axis=1)
        messages = np.maximum((met.shared > 0).sum(axis=1) - 1, 0)
        received = machine.transfer_ns(float(remote.max()), float(messages.max())) if remote.max() > 0 else 0.0
        factor = lanes / placement.boxes.shape[0]
        sent = (
            machine.transfer_ns(float(remote.mean()) * factor, float(messages.mean()) * factor)
            if remote.max() > 0
            else 0.0
        )
        total += max(received, sent)
    return total
