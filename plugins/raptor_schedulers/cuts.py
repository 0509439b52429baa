"""Ways to cut the result of a compute into boxes, and what each costs.

A cut is a grid. Parts along an axis are only worth trying where they make the largest interval shorter, so an axis of
extent e has about 2 * sqrt(e) of them. Axes along which a cut also divides the weights (output channels) are tried
with every number of parts, or with a few where there are several such axes; over the other axes the grid with the
smallest largest box, then the smallest surface (least halo), is taken for a few budgets of lanes; for as many lanes as
there can be, grids of other proportions, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box, BoxArray, from_array, grid, to_array
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.cost import box_kernel, weight_axes
from raptor_core.targets.machine import Machine

Indices = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Cut:
    """One way to cut: ``boxes`` [lanes, 2, rank], and what it costs. Cuts are equal when they are the same object.

    ``homes`` [lanes, 2], where there is one, names for every lane the operand and its fragment that the lane carries
    over, on whose core it should run. ``lane_ns`` is the time of the largest lane, ``energy_ns`` the dynamic energy of
    all lanes as Machine.kernel_energy_ns gives it; ``lane_crossbars`` and ``total_crossbars`` are those of the widest
    lane and of all.
    """

    boxes: BoxArray
    lane_ns: float
    energy_ns: float
    lane_crossbars: int
    total_crossbars: int
    homes: Indices | None = None

    @property
    def lanes(self) -> int:
        """Number of boxes."""
        return int(self.boxes.shape[0])


@attrs.frozen
class LaneCosts:
    """What one lane takes: its time, and its dynamic energy as Machine.kernel_energy_ns gives it."""

    time_ns: float
    energy_ns: float


def cut_into(
    op: ComputeOp, parts: Sequence[int], types: Types, machine: Machine, known: dict[Hashable, LaneCosts] | None = None
) -> Cut:
    """The cut with ``parts`` intervals per axis, on the operation's granularity, with its costs.

    ``known`` keeps the costs of lanes of ``op`` for other cuts of it.
    """
    known = {} if known is None else known
    shape = types[op.results[0]].shape
    granularity = op.cut_granularity(types)
    units = [math.ceil(extent / g) for extent, g in zip(shape, granularity, strict=True)]
    boxes = grid(units, parts) * np.array(granularity, dtype=np.int64)
    boxes = np.minimum(boxes, np.array(shape, dtype=np.int64))
    samples, counts = _distinct(boxes, parts)
    crossbars = [_crossbars(op, box, types, machine) for box in samples]
    largest = max(samples, key=lambda box: box.elements)
    key = largest.extents, op.kernel_key(largest, types)
    if key not in known:
        kernel = box_kernel(op, largest, types, machine)
        known[key] = LaneCosts(machine.kernel_ns(kernel), machine.kernel_energy_ns(kernel))
    return Cut(
        boxes=boxes,
        lane_ns=known[key].time_ns,
        energy_ns=known[key].energy_ns * len(boxes),
        lane_crossbars=max(crossbars),
        total_crossbars=sum(n * k for n, k in zip(crossbars, counts, strict=True)),
    )


def _distinct(boxes: BoxArray, parts: Sequence[int]) -> tuple[list[Box], list[int]]:
    """One box of a grid of ``parts`` for each shape there is, and how many have it."""
    by_axis = []
    step = boxes.shape[0]
    for axis, n in enumerate(parts):
        step //= n
        edges = boxes[: step * n : step, :, axis].tolist()
        sizes: dict[int, list[list[int]]] = {}
        for edge in edges:
            sizes.setdefault(edge[1] - edge[0], []).append(edge)
        by_axis.append([(found[0], len(found)) for found in sizes.values()])
    chosen = list(itertools.product(*by_axis))
    samples = [Box(tuple(lo for (lo, _), _ in box), tuple(hi for (_, hi), _ in box)) for box in chosen]
    return samples, [math.prod(count for _, count in box) for box in chosen]


def _crossbars(op: ComputeOp, box: Box, types: Types, machine: Machine) -> int:
    """Crossbars of the weights of one lane."""
    return machine.crossbars(op.weight_shapes(box, types, machine.crossbar_rows))


def following_cut(op: ComputeOp, held: Sequence[Cut | None], types: Types, machine: Machine) -> Cut | None:
    """The cut in which every lane carries one fragment of one operand over, where ``op`` allows that.

    ``held`` are the operands' cuts. A core is reckoned to have one lane of every operand.
    """
    boxes: list[Box] = []
    homes: list[tuple[int, int]] = []
    lane_ns, energy_ns = 0.0, 0.0
    for operand, cut in enumerate(held):
        if cut is None:
            return None
        found = [op.carried(operand, box, types) for box in from_array(cut.boxes)]
        kept = [(lane, box) for lane, box in enumerate(found) if box is not None and not box.is_empty]
        if any(box is None for box in found) or not kept:
            return None
        kernel = box_kernel(op, max((box for _, box in kept), key=lambda box: box.elements), types, machine)
        lane_ns += machine.kernel_ns(kernel)
        energy_ns += machine.kernel_energy_ns(kernel) * len(kept)
        boxes.extend(box for _, box in kept)
        homes.extend((operand, lane) for lane, _ in kept)
    shape = types[op.results[0]].shape
    if sum(box.elements for box in boxes) != math.prod(shape) or op.weights_key(boxes[0], types) != ():
        return None
    return Cut(to_array(boxes, len(shape)), lane_ns, energy_ns, 0, 0, np.array(homes, dtype=np.int64))


def candidate_cuts(op: ComputeOp, types: Types, machine: Machine) -> list[Cut]:
    """The cuts worth considering whose lanes fit a core's crossbars, at most one lane per core each."""
    shape = types[op.results[0]].shape
    units = [math.ceil(e / g) for e, g in zip(shape, op.cut_granularity(types), strict=True)]
    grids = dict.fromkeys(_grids(units, weight_axes(op, types), machine.core_count))
    cuts = []
    known: dict[Hashable, LaneCosts] = {}
    for parts in grids:
        cut = cut_into(op, parts, types, machine, known)
        if cut.lane_crossbars <= machine.crossbars_per_core:
            cuts.append(cut)
    return cuts


def narrowest_cut(op: ComputeOp, types: Types, machine: Machine) -> Cut:
    """The cut whose lanes hold the fewest crossbars, with the fewest lanes; there may be more lanes than cores."""
    shape = types[op.results[0]].shape
    granularity = op.cut_granularity(types)
    units = [math.ceil(e / g) for e, g in zip(shape, granularity, strict=True)]
    parts = [1] * len(units)

    def held(axis: int, n: int) -> int:
        size = [
            math.ceil(u / (n if a == axis else p)) * granularity[a]
            for a, (u, p) in enumerate(zip(units, parts, strict=True))
        ]
        box = Box((0,) * len(size), tuple(min(s, e) for s, e in zip(size, shape, strict=True)))
        return _crossbars(op, box, types, machine)

    for axis in weight_axes(op, types):
        parts[axis] = min((held(axis, n), n) for n in _useful_parts(units[axis], units[axis]))[1]
    return cut_into(op, parts, types, machine)


def least_crossbars(op: ComputeOp, types: Types, machine: Machine) -> int:
    """Crossbars that the operation's weights need when nothing is replicated."""
    return _crossbars(op, Box.whole(types[op.results[0]].shape), types, machine)


def _useful_parts(units: int, limit: int) -> list[int]:
    """Numbers of parts up to ``limit`` that each make the largest interval shorter than the one before."""
    parts, best = [], units + 1
    for n in range(1, min(units, limit) + 1):
        size = math.ceil(units / n)
        if size < best:
            parts.append(n)
            best = size
    return parts


def _thinned(parts: Sequence[int]) -> list[int]:
    """A few of ``parts`` (ascending), each at least half as large again as the one before, and the last."""
    kept: list[int] = []
    for n in parts:
        if not kept or n >= kept[-1] * 1.5:
            kept.append(n)
    return [*kept, parts[-1]] if kept[-1] != parts[-1] else kept


def _grids(units: Sequence[int], divided_axes: tuple[int, ...], cores: int) -> Iterator[tuple[int, ...]]:
    other = [axis for axis in range(len(units)) if axis not in divided_axes]
    options = [_useful_parts(units[axis], cores) for axis in divided_axes]
    if len(divided_axes) > 1:
        options = [_thinned(parts) for parts in options]
    for divided in _products(options, cores):
        share = cores // math.prod(divided)
        budgets = {share} if divided_axes and math.prod(divided) > 1 else set()
        step = share
        while step >= 1:
            budgets.add(step)
            step //= 2
        for budget in sorted(budgets):
            for rest in _other_grids([units[axis] for axis in other], budget, budget == share):
                parts = [0] * len(units)
                for axis, n in zip(divided_axes, divided, strict=True):
                    parts[axis] = n
                for axis, n in zip(other, rest, strict=True):
                    parts[axis] = n
                yield tuple(parts)


def _other_grids(units: Sequence[int], lanes: int, most: bool) -> Iterator[tuple[int, ...]]:
    """The best grid over all axes, and strips: cuts along one axis only, whose boxes are long runs in memory.

    For as many lanes as there can be (``most``) also grids between those: a few numbers of parts along each axis, and
    the best grid over the others.
    """
    yield _best_grid(units, lanes)
    for axis, extent in enumerate(units) if most else ():
        others = [*units[:axis], 1, *units[axis + 1 :]]
        for n in _thinned(_useful_parts(extent, lanes)):
            rest = _best_grid(others, lanes // n)
            yield (*rest[:axis], n, *rest[axis + 1 :])
    for axis, extent in enumerate(units):
        if extent > 1 and lanes > 1:
            size = math.ceil(extent / lanes)
            yield tuple(math.ceil(extent / size) if a == axis else 1 for a in range(len(units)))


def _products(options: list[list[int]], limit: int) -> Iterator[tuple[int, ...]]:
    """All choices of one number per list whose product is at most ``limit``."""
    if not options:
        yield ()
        return
    for first in options[0]:
        if first > limit:
            break
        for rest in _products(options[1:], limit // first):
            yield (first, *rest)


def _best_grid(units: Sequence[int], lanes: int) -> tuple[int, ...]:
    """The grid of at most ``lanes`` cells with the smallest largest cell; ties: least surface, then fewest cells."""
    best: tuple[tuple[int, int, int], tuple[int, ...]] | None = None
    for parts in _products([_useful_parts(extent, lanes) for extent in units], lanes):
        sizes = [math.ceil(extent / n) for extent, n in zip(units, parts, strict=True)]
        volume = math.prod(sizes)
        surface = sum(volume // size for size, n in zip(sizes, parts, strict=True) if n > 1)
        score = (volume, surface, math.prod(parts))
        if best is None or score < best[0]:
            best = (score, parts)
    assert best is not None
    return best[1]
