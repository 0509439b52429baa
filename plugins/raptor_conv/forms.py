"""Which blocks of positions and slices of the reduction are worth pricing for a convolution.

There are many, so a formula picks a few: the time of all products over the lanes that the plan's share of the
crossbars allows. The machine's own figures then decide between those.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import attrs

from raptor_conv.patch import AxisBlock
from raptor_core.ir.operation import Types
from raptor_core.spatial.kernel import Instr, Kernel, Operand
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.pricing import ENERGY_WEIGHT
from raptor_core.targets.machine import Machine

_T = TypeVar("_T")

_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
_POSITIONS = 16
_SLICED_POSITIONS = 6
_FILLED_TILES = (1, 2, 3, 4, 6, 8, 12)
_PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)


@attrs.frozen
class Form:
    """A block of output positions by windowed axis, and the input channels of one slice of the reduction."""

    block: tuple[int, ...]
    slice_channels: int


@attrs.frozen
class FormEstimator:
    """Estimates the time of forms of one plan; ``share`` is the number of crossbars it may use."""

    plan: ConvPlan
    types: Types
    machine: Machine
    share: int
    _memory: dict[tuple[str, int], Any] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    @cached_property
    def inputs(self) -> int:
        """Input channels of one group."""
        return self.types[self.plan.operands[1]].shape[1]

    @cached_property
    def output_extents(self) -> tuple[int, ...]:
        """Extents of the result along the windowed axes."""
        shape = self.types[self.plan.results[0]].shape
        return tuple(shape[axis] for axis in self.plan.spatial_axes)

    def blocks(self) -> Iterator[tuple[int, ...]]:
        """Blocks of more than one position, up to a limit, that lie inside the result."""
        options = [[size for size in _SIZES if size <= extent] for extent in self.output_extents]
        for block in itertools.product(*options):
            if 1 < math.prod(block) <= _POSITIONS:
                yield block

    def packed(self) -> list[Form]:
        """Blocks of more than one position, the reduction whole."""
        return [Form(block, self.inputs) for block in self.blocks()]

    def sliced(self) -> list[Form]:
        """Slices of the reduction, for blocks of few positions; of single channels where no larger slices fit."""
        one = (1,) * len(self.plan.window_kernel)
        blocks = [one, *(block for block in self.blocks() if math.prod(block) <= _SLICED_POSITIONS)]
        even = [-(-self.inputs // parts) for parts in _PARTS if parts <= self.inputs]
        found = [
            Form(block, channels) for block in blocks for channels in dict.fromkeys([*even, *self._filling(block)])
        ]
        fitting = [form for form in found if self.fits(form)]
        return fitting or [form for form in (Form(one, 1),) if self.fits(form)]

    def _filling(self, block: tuple[int, ...]) -> Iterator[int]:
        """Channels of slices that leave the least rows of their last product unused."""
        taps = self._taps(block)
        for tiles in _FILLED_TILES:
            channels = tiles * self.machine.crossbar_rows // taps
            if 0 < channels < self.inputs:
                yield channels

    def _taps(self, block: tuple[int, ...]) -> int:
        """Elements of each input channel that a block reads."""
        return math.prod(extents[size] for extents, size in zip(self._extents, block, strict=True))

    def tiles(self, form: Form) -> int:
        """Products for one block and slice of one group."""
        return -(-form.slice_channels * self._taps(form.block) // self.machine.crossbar_rows)

    def fits(self, form: Form) -> bool:
        """Whether a core can hold what one output channel needs."""
        return self.tiles(form) * self._crossbars(math.prod(form.block)) <= self.machine.crossbars_per_core

    def time_ns(self, form: Form) -> float:
        """The time of all products of the plan, spread over cores as far as crossbars allow, and their energy."""
        machine, groups = self.machine, self.plan.groups
        result = self.types[self.plan.results[0]]
        outputs = result.shape[self.plan.channel_axis] // groups
        tiles, positions = self.tiles(form), math.prod(form.block)
        slices = -(-self.inputs // form.slice_channels)
        held = tiles * self._crossbars(positions * outputs)
        column_parts = -(-held // machine.crossbars_per_core)
        pieces = column_parts * slices * groups
        covered = math.prod(-(-e // size) for e, size in zip(self.output_extents, form.block, strict=True))
        blocks = covered * self._planes
        copies = max(1, min(blocks, self.share // (held * slices * groups), machine.core_count // pieces))
        rounds = -(-blocks // copies) * -(-pieces * copies // machine.core_count)
        excess = max(1.0, held * slices * groups / self.share)
        sums = machine.transfer_ns(slices * result.elements / machine.core_count, slices) if slices > 1 else 0.0
        columns = -(-positions * outputs // column_parts)
        energy = ENERGY_WEIGHT * blocks * pieces * tiles * self._product_energy_ns(columns)
        return rounds * tiles * self._product_ns(columns) * excess + sums + energy

    def best(self, forms: Iterable[Form], count: int) -> list[Form]:
        """The ``count`` forms with the least time, those that fit a core only."""
        return heapq.nsmallest(count, (form for form in forms if self.fits(form)), key=self.time_ns)

    @cached_property
    def _extents(self) -> tuple[dict[int, int], ...]:
        """For each windowed axis the input indices that a block of each size reads."""
        window = self.plan.window
        return tuple({size: AxisBlock.of(window, k, size).extent for size in _SIZES} for k in range(len(window.kernel)))

    @cached_property
    def _planes(self) -> int:
        """Output positions that no block joins: those along batch axes."""
        result = self.types[self.plan.results[0]]
        return result.elements // result.shape[self.plan.channel_axis] // math.prod(self.output_extents)

    def _crossbars(self, columns: int) -> int:
        """Crossbars of one matrix."""
        return self._remembered("crossbars", columns, lambda: self.machine.crossbars([(1, columns)]))

    def _product_ns(self, columns: int) -> float:
        """The time of one product."""
        return self._remembered("product", columns, lambda: self.machine.kernel_ns(_product(columns)))

    def _product_energy_ns(self, columns: int) -> float:
        """The energy of one product."""
        return self._remembered("energy", columns, lambda: self.machine.kernel_energy_ns(_product(columns)))

    def _remembered(self, what: str, columns: int, compute: Callable[[], _T]) -> _T:
        if (what, columns) not in self._memory:
            self._memory[what, columns] = compute()
        value: _T = self._memory[what, columns]
        return value


def _product(columns: int) -> Kernel:
    """A kernel of one product."""
    return Kernel(1, (), (Instr("product", Operand(1, 0), (Operand(0, 0),), 0, 0, False, columns),))
