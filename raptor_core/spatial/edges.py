"""The geometry of one value: from fragments where it is made to boxes where it is needed.

All functions are pure and work on box arrays; :mod:`raptor_core.spatial.passes.communicate` puts them together.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.spatial.boxes import Box, BoxArray, from_array, intersect_pairs, to_array

Indices = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Needs:
    """The boxes of one value that lanes need: ``boxes`` [n, 2, rank] (reaching into padding), ``cores``, ``steps``."""

    boxes: BoxArray
    cores: Indices
    steps: Indices


@attrs.frozen(eq=False)
class Pieces:
    """Boxes to be moved: ``sources`` (a core; -1 for the host) to ``destinations``, for use in ``steps``."""

    boxes: BoxArray
    sources: Indices
    destinations: Indices
    steps: Indices


def clip(boxes: BoxArray, shape: tuple[int, ...]) -> BoxArray:
    """Boxes without the part outside the tensor."""
    limits = np.array(shape, dtype=np.int64)
    return np.clip(boxes, 0, limits)


def storage_boxes(boxes: BoxArray, cores: Indices) -> tuple[Indices, BoxArray]:
    """For each core named, ascending, the bounding box of its boxes."""
    unique, inverse = np.unique(cores, return_inverse=True)
    rank = boxes.shape[2]
    bounds = np.empty((unique.size, 2, rank), dtype=np.int64)
    bounds[:, 0] = np.iinfo(np.int64).max
    bounds[:, 1] = np.iinfo(np.int64).min
    np.minimum.at(bounds[:, 0], inverse, boxes[:, 0])
    np.maximum.at(bounds[:, 1], inverse, boxes[:, 1])
    return unique, bounds


def fragment_pieces(
    needs: Needs, fragments: BoxArray, fragment_cores: Indices, shape: tuple[int, ...]
) -> tuple[Pieces, Pieces]:
    """What must be moved so that every need is met: intersections with fragments, on other cores and on its own.

    Needs are met in order of their steps; what an earlier need of the same core brought is not moved again.
    """
    by_step = np.argsort(needs.steps, kind="stable")
    wanted = clip(needs.boxes[by_step], shape)
    i, j, boxes = intersect_pairs(wanted, fragments)
    destinations, sources, steps = needs.cores[by_step][i], fragment_cores[j], needs.steps[by_step][i]
    remote = destinations != sources
    away, own = (
        _once(Pieces(boxes[part], sources[part], destinations[part], steps[part]), j[part])
        for part in (remote, ~remote)
    )
    return away, own


def host_pieces(needs: Needs, shape: tuple[int, ...]) -> Pieces:
    """What must be loaded from host memory so that every need is met, each element once per core."""
    by_step = np.argsort(needs.steps, kind="stable")
    wanted = clip(needs.boxes[by_step], shape)
    full = (wanted[:, 0] < wanted[:, 1]).all(axis=1)
    destinations = needs.cores[by_step][full]
    pieces = Pieces(wanted[full], np.full(destinations.size, -1), destinations, needs.steps[by_step][full])
    return _once(pieces, np.zeros(destinations.size, dtype=np.int64))


def _once(pieces: Pieces, origin: Indices) -> Pieces:
    """``pieces`` (in order of need) without what an earlier one with the same destination and origin holds."""
    if pieces.destinations.size == 0:
        return pieces
    keys = np.stack([pieces.destinations, origin], axis=1)
    _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    repeated = counts[inverse.ravel()] > 1
    if not repeated.any():
        return pieces
    held: dict[tuple[int, int], list[Box]] = {}
    kept_boxes: list[Box] = []
    kept_index: list[int] = []
    rows = np.flatnonzero(repeated)
    for k, box in zip(rows.tolist(), from_array(pieces.boxes[rows]), strict=True):
        earlier = held.setdefault((int(pieces.destinations[k]), int(origin[k])), [])
        rest = [box]
        for other in earlier:
            rest = [piece for part in rest for piece in part.subtract(other)]
        earlier.extend(rest)
        kept_boxes.extend(rest)
        kept_index.extend([k] * len(rest))
    single = np.flatnonzero(~repeated)
    index = np.concatenate([single, np.array(kept_index, dtype=np.int64)])
    boxes = np.concatenate([pieces.boxes[single], to_array(kept_boxes, pieces.boxes.shape[2])])
    order = np.argsort(index, kind="stable")
    index, boxes = index[order], boxes[order]
    return Pieces(boxes, pieces.sources[index], pieces.destinations[index], pieces.steps[index])


def padding_boxes(storage: BoxArray, cores: Indices, shape: tuple[int, ...]) -> tuple[BoxArray, Indices]:
    """The parts of storages outside the tensor, as disjoint boxes with their cores."""
    whole = Box.whole(shape)
    outside = (storage[:, 0] < 0).any(axis=1) | (storage[:, 1] > np.array(shape)).any(axis=1)
    boxes: list[Box] = []
    owners: list[int] = []
    for k in np.flatnonzero(outside).tolist():
        parts = from_array(storage[k : k + 1])[0].subtract(whole)
        boxes.extend(parts)
        owners.extend([int(cores[k])] * len(parts))
    return to_array(boxes, len(shape)), np.array(owners, dtype=np.int64)
