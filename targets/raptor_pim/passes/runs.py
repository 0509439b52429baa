"""Boxes inside storages as contiguous runs of elements."""

from __future__ import annotations

import math

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.spatial.boxes import BoxArray
from raptor_core.spatial.kernel import packed_strides

Indices = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Runs:
    """Runs of many boxes: ``box`` the index of the box a run belongs to (ascending), its ``elements``, and its
    ``offsets`` [runs, storages]: element offsets from the start of each storage."""

    box: Indices
    elements: Indices
    offsets: Indices


def box_runs(boxes: BoxArray, storages: list[BoxArray], order: tuple[int, ...]) -> Runs:
    """The longest runs that are contiguous in every storage at once.

    ``boxes`` [n, 2, rank] lie inside each of the ``storages``, arrays of the same shape: the box that the storage
    holds, elements in ``order``. Runs of a box come in order of address.
    """
    count = boxes.shape[0]
    extents = boxes[:, 1] - boxes[:, 0]
    held = [storage[:, 1] - storage[:, 0] for storage in storages]
    signatures, inverse = np.unique(np.concatenate([extents, *held], axis=1), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    rank = boxes.shape[2]
    parts: list[tuple[Indices, Indices, Indices]] = []
    for k, signature in enumerate(signatures.tolist()):
        members = np.flatnonzero(inverse == k)
        extent = signature[:rank]
        shapes = [signature[rank * (s + 1) : rank * (s + 2)] for s in range(len(storages))]
        length, pattern = _pattern(extent, shapes, order)
        base = np.stack(
            [
                ((boxes[members, 0] - storage[members, 0]) * np.array(packed_strides(shape, order), np.int64)).sum(
                    axis=1
                )
                for storage, shape in zip(storages, shapes, strict=True)
            ],
            axis=1,
        )
        offsets = (base[:, None, :] + pattern[None, :, :]).reshape(-1, len(storages))
        parts.append((np.repeat(members, pattern.shape[0]), np.full(offsets.shape[0], length), offsets))
    if not count:
        empty = np.zeros(0, dtype=np.int64)
        return Runs(empty, empty, np.zeros((0, len(storages)), dtype=np.int64))
    box, elements, offsets = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    by_box = np.argsort(box, kind="stable")
    return Runs(box[by_box], elements[by_box], offsets[by_box])


def _pattern(extent: list[int], shapes: list[list[int]], order: tuple[int, ...]) -> tuple[int, Indices]:
    """Length of a run, and the offset of every run from the box's first element, [runs, storages]."""
    inner = 0
    for axis in reversed(order):
        inner += 1
        if any(shape[axis] != extent[axis] for shape in shapes):
            break
    outer, run = order[: len(order) - inner], order[len(order) - inner :]
    length = math.prod(extent[axis] for axis in run)
    offsets = np.zeros((1, len(shapes)), dtype=np.int64)
    strides = np.array([packed_strides(shape, order) for shape in shapes], dtype=np.int64).reshape(len(shapes), -1)
    for axis in outer:
        steps = np.arange(extent[axis], dtype=np.int64)[:, None] * strides[:, axis]
        offsets = (offsets[:, None, :] + steps[None, :, :]).reshape(-1, len(shapes))
    return length, offsets
