"""Estimates of what a cut makes its operands travel."""

from __future__ import annotations

import math

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box, BoxArray, run_lengths, to_array
from raptor_core.spatial.compute import ComputeOp
from raptor_core.targets.machine import Machine

Numbers = npt.NDArray[np.float64]

_SAMPLES = 6


@attrs.frozen(eq=False)
class Overlap:
    """How the boxes that lanes need of one operand meet the fragments that hold it.

    ``needed`` [lanes] elements of each need inside the tensor; ``shared`` [lanes, fragments] elements in common, in
    ``runs`` [lanes, fragments] pieces that are contiguous on both sides.
    """

    needed: Numbers
    shared: Numbers
    runs: Numbers


def regions(op: ComputeOp, operand: int, boxes: BoxArray, types: Types) -> BoxArray:
    """What the lanes need of an operand, inside its tensor, [lanes, 2, rank]."""
    needs = [op.region(operand, Box(tuple(lo), tuple(hi)), types) for lo, hi in boxes.tolist()]
    type_ = types[op.operands[operand]]
    return np.clip(to_array(needs, type_.rank), 0, np.array(type_.shape, dtype=np.int64))


def volumes(boxes: BoxArray) -> Numbers:
    """Elements of each box."""
    return np.asarray(np.maximum(boxes[:, 1] - boxes[:, 0], 0).prod(axis=1), dtype=np.float64)


def overlap(needs: BoxArray, fragments: BoxArray, order: tuple[int, ...]) -> Overlap:
    """The overlap of needs with fragments whose elements lie in ``order``."""
    lo = np.maximum(needs[:, None, 0], fragments[None, :, 0])
    hi = np.minimum(needs[:, None, 1], fragments[None, :, 1])
    extents = np.maximum(hi - lo, 0)
    shared = extents.prod(axis=-1).astype(np.float64)
    whole = (extents == (needs[:, 1] - needs[:, 0])[:, None]) & (extents == (fragments[:, 1] - fragments[:, 0])[None])
    length = run_lengths(extents, whole, order)
    return Overlap(volumes(needs), shared, np.where(shared > 0, shared / np.maximum(length, 1), 0))


def sample_boxes(boxes: BoxArray) -> BoxArray:
    """A few of a cut's boxes, evenly chosen, to estimate by."""
    return boxes[np.unique(np.linspace(0, boxes.shape[0] - 1, _SAMPLES).astype(np.int64))]


def edge_ns(
    op: ComputeOp,
    operand: int,
    lanes: int,
    sample: BoxArray,
    types: Types,
    fragments: BoxArray | None,
    machine: Machine,
) -> float:
    """Estimated time to bring one operand where a cut's ``lanes`` need it; ``sample`` holds the boxes of some of them.

    ``fragments`` are the boxes in which cores hold the operand; None: it comes from the host.
    A lane is assumed to sit with the fragment it shares most with, one lane with each fragment; lanes beyond their
    number have nothing at home. A core receives what its lane needs and sends what others need of its fragment, one
    after another; the host port serves all lanes one after another. Elements that more lanes need than there are
    fragments are passed on by those that have them (raptor_core.spatial.multicast).
    """
    needs = regions(op, operand, sample, types)
    elements = volumes(needs)
    if not elements.any():
        return 0.0
    type_ = types[op.operands[operand]]
    if fragments is None:
        whole = np.array([[[0] * type_.rank, list(type_.shape)]], dtype=np.int64)
        runs = overlap(needs, whole, type_.order).runs
        return machine.host_ns(float(elements.mean()) * lanes, float(runs.mean()) * lanes)
    met = overlap(needs, fragments, type_.order)
    at_home = met.shared.argmax(axis=1)
    rows = np.arange(at_home.size)
    share = lanes / fragments.shape[0]
    away_share = max(0.0, 1.0 - 1.0 / share)
    total = met.runs.sum(axis=1)
    remote = elements - met.shared[rows, at_home]
    messages = total - met.runs[rows, at_home]
    if away_share == 0 and remote.max() <= 0:
        return 0.0
    worst, count = (elements, total) if away_share else (remote, messages)
    received = machine.transfer_ns(float(worst.max()), float(count[worst.argmax()]))
    sent = away_share * elements.mean() + (1 - away_share) * remote.mean()
    sends = away_share * total.mean() + (1 - away_share) * messages.mean()
    straight = machine.transfer_ns(float(sent) * share, float(sends) * share)
    receivers = lanes * float(elements.mean()) / type_.elements
    if share <= 1 or receivers <= 1 or not sends:
        return received + straight
    own = max(share / receivers, 1.0)
    passed_on = machine.transfer_ns(float(sent) * own, float(sends) * own)
    passed_on += math.log2(receivers) * machine.transfer_ns(float(sent / sends))
    return received + min(straight, passed_on)
