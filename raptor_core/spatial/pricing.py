"""What whole operations cost before they are scheduled: one representative lane, and what it has to be sent.

Strategies and layouts are compared by these figures. They are estimates for choosing; a scheduler decides for itself.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

import attrs

from raptor_core.ir.module import Module
from raptor_core.ir.operation import Types
from raptor_core.ir.types import TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.cost import box_kernel, weight_axes
from raptor_core.spatial.plans import ConvPlan
from raptor_core.targets.machine import Machine

_WEIGHT_STEP = 0.7
"""By how much the intervals along weight axes shrink from one cut tried to the next."""


ENERGY_WEIGHT = 0.2
"""How much energy counts against time where alternatives are compared (see Machine.kernel_energy_ns)."""


@attrs.frozen
class SampleCut:
    """A cut as a scheduler might choose it: its largest ``box``, how many ``lanes``, and the ``crossbars`` of all."""

    box: Box
    lanes: int
    crossbars: int


def sample_cuts(op: ComputeOp, types: Types, machine: Machine, crossbars: int | None = None) -> list[SampleCut]:
    """Cuts of the result into at most one lane per core, evenly, on the operation's granularity.

    Axes along which the weights differ are cut as far as makes the products of a lane fewest, all lanes together
    taking at most ``crossbars`` crossbars (default: the machine's) where that can be. Of the other axes, the longest
    are divided first; without weights there is another cut that divides the outermost of the element order first,
    which keeps the boxes gap-free.
    """
    total = machine.core_count * machine.crossbars_per_core if crossbars is None else crossbars
    cutter = _Cutter(op, types, machine, types[op.results[0]].shape, op.cut_granularity(types))
    whole = Box.whole(types[op.results[0]].shape)
    divided = weight_axes(op, types) if op.weight_shapes(whole, types, machine.crossbar_rows) else ()
    other_axes = [axis for axis in types[op.results[0]].order if axis not in divided]
    least, lanes = _cut_weights(cutter, divided, other_axes, total)
    found: list[SampleCut] = []
    for outermost_first in (False,) if cutter.held()[1] else (False, True):
        cutter.parts = list(least)
        for axes in [[axis] for axis in other_axes] if outermost_first else [other_axes]:
            while cutter.cut(axes, lanes):
                pass
        cut = SampleCut(cutter.box(), cutter.lanes, cutter.lanes * cutter.held()[0])
        if cut not in found:
            found.append(cut)
    return found


def _cut_weights(
    cutter: _Cutter, divided: Sequence[int], other_axes: Sequence[int], total: int
) -> tuple[list[int], int]:
    """The parts along the weight axes with the fewest products per lane, and the lanes that crossbars then allow."""
    machine, best = cutter.machine, None
    units = math.prod(cutter.units[axis] for axis in other_axes)
    while True:
        held, matrices = cutter.held()
        lanes = min(machine.core_count, max(cutter.lanes, total // held)) if held else machine.core_count
        overfull = max(0, held - machine.crossbars_per_core)
        excess = max(1.0, cutter.lanes * held / total)
        rounds = math.ceil(units / max(1, min(units, lanes // cutter.lanes)))
        score = (overfull, max(1, matrices) * rounds * excess, cutter.lanes)
        if best is None or score < best[0]:
            best = score, list(cutter.parts), lanes
        if not cutter.cut_cheapest(divided, machine.core_count):
            return best[1], best[2]


@attrs.define
class _Cutter:
    """The number of parts along each axis, while it grows."""

    op: ComputeOp
    types: Types
    machine: Machine
    shape: Sequence[int]
    granularity: Sequence[int]
    parts: list[int] = attrs.field(init=False)
    units: list[int] = attrs.field(init=False)
    _held: dict[tuple[int, ...], tuple[int, int]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.parts = [1] * len(self.shape)
        self.units = [math.ceil(extent / g) for extent, g in zip(self.shape, self.granularity, strict=True)]

    @property
    def lanes(self) -> int:
        return math.prod(self.parts)

    def box(self) -> Box:
        """The first, largest box."""
        sizes = [math.ceil(u / n) * g for u, n, g in zip(self.units, self.parts, self.granularity, strict=True)]
        return Box((0,) * len(sizes), tuple(min(size, extent) for size, extent in zip(sizes, self.shape, strict=True)))

    def held(self) -> tuple[int, int]:
        """The crossbars and the matrices of one lane."""
        key = tuple(self.parts)
        if key not in self._held:
            shapes = self.op.weight_shapes(self.box(), self.types, self.machine.crossbar_rows)
            self._held[key] = self.machine.crossbars(shapes), len(shapes)
        return self._held[key]

    def cut_cheapest(self, axes: Sequence[int], limit: int) -> bool:
        """Cut further along the one of ``axes`` that leaves a lane the fewest crossbars, then matrices."""
        before, options = list(self.parts), []
        for axis in axes:
            self.parts = list(before)
            if self.cut([axis], limit, _WEIGHT_STEP):
                options.append((*self.held(), self.lanes, axis, list(self.parts)))
        self.parts = min(options)[4] if options else before
        return bool(options)

    def cut(self, axes: Sequence[int], limit: int, step: float = 1.0) -> bool:
        """Cut further along the one of ``axes`` with the largest intervals; whether the limit of lanes allowed it.

        The intervals become shorter by the factor ``step`` where the limit allows that, at least by one unit.
        """
        sizes = {axis: math.ceil(self.units[axis] / self.parts[axis]) for axis in axes}
        for axis, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
            if size == 1:
                return False
            others = self.lanes // self.parts[axis]
            for shorter in (min(size - 1, math.ceil(size * step)), size - 1):
                parts = math.ceil(self.units[axis] / shorter)
                if others * parts <= limit:
                    self.parts[axis] = parts
                    return True
        return False


def operation_ns(
    op: ComputeOp, types: Types, machine: Machine, constants: Container[str], crossbars: int | None = None
) -> float:
    """Nanoseconds of one lane of the best sample cut, its operands being sent to it, and the weighed energy of all.

    Operands named in ``constants`` are loaded from the host memory, one lane after the other. An operation that cannot
    do with ``crossbars`` crossbars counts in proportion to what it takes.
    """
    total = machine.core_count * machine.crossbars_per_core if crossbars is None else crossbars
    cuts = sample_cuts(op, types, machine, crossbars)
    return min(_lane_ns(op, cut, types, machine, constants) * max(1.0, cut.crossbars / total) for cut in cuts)


def _lane_ns(op: ComputeOp, cut: SampleCut, types: Types, machine: Machine, constants: Container[str]) -> float:
    kernel = box_kernel(op, cut.box, types, machine)
    time = machine.kernel_ns(kernel) + ENERGY_WEIGHT * cut.lanes * machine.kernel_energy_ns(kernel)
    for k, operand in enumerate(op.operands):
        if not operand:
            continue
        region = op.region(k, cut.box, types).intersect(Box.whole(types[operand].shape))
        if region.is_empty:
            continue
        runs = region_runs(region, types[operand])
        if operand in constants:
            time += cut.lanes * machine.host_ns(region.elements, runs)
        else:
            time += machine.transfer_ns(region.elements, runs)
    return time


def operations_ns(
    ops: Sequence[ComputeOp], types: Types, machine: Machine, constants: Container[str], crossbars: int | None = None
) -> float:
    """Nanoseconds of several operations, one after the other."""
    return sum(operation_ns(op, types, machine, constants, crossbars) for op in ops)


def region_runs(region: Box, type_: TensorType) -> int:
    """The number of gap-free runs of a box in a storage that holds the whole tensor."""
    run = 1
    for axis in reversed(type_.order):
        run *= region.extents[axis]
        if region.extents[axis] != type_.shape[axis]:
            break
    return region.elements // run


def crossbar_share(plan: ConvPlan, module: Module, machine: Machine) -> int:
    """The part of the chip's crossbars that one convolution of a network may reckon with.

    Crossbars buy copies of weights, and time falls with the number of copies; the sum of all times is least where
    each gets crossbars in proportion to the square root of its work.
    """
    plans = [op for op in module.operations if isinstance(op, ConvPlan)]
    total = machine.core_count * machine.crossbars_per_core
    work = _work(plan, module.types)
    everything = sum(math.sqrt(_work(other, module.types)) for other in plans) or 1.0
    return max(1, int(total * min(1.0, math.sqrt(work) / everything)))


def _work(plan: ConvPlan, types: Types) -> int:
    """Multiplications of a convolution."""
    return types[plan.results[0]].elements * types[plan.operands[1]].elements // types[plan.operands[1]].shape[0]
