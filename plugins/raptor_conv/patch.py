"""Patches: the input elements behind one block of neighbouring output positions, as rows of crossbars.

The elements of a patch have a fixed order, and with it a *run*: the number of elements that follow each other without
a gap in any storage of the input, however it is cut. Whole crossbar heights of a run are read in place; what remains
of all runs is either gathered into one scratch area, which needs the fewest products there can be, or read in place
as well, where that needs no more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np
import numpy.typing as npt

from raptor_conv.copies import run_count
from raptor_core.ir.types import TensorType
from raptor_core.spatial.kernel import View, packed_strides
from raptor_core.spatial.plans import Window

Indices = npt.NDArray[np.int64]


@attrs.frozen
class AxisBlock:
    """A block of ``positions`` outputs along one windowed axis: it reads ``extent`` indices, ``step`` apart.

    Tap k of position p is element ``offset(p, k)`` of those.
    """

    positions: int
    extent: int
    step: int
    stride: int
    dilation: int

    @classmethod
    def of(cls, window: Window, axis: int, positions: int) -> AxisBlock:
        """The block of windowed axis number ``axis``."""
        return _axis_block(window.kernel[axis], window.strides[axis], window.dilations[axis], positions)

    def offset(self, position: int, tap: int) -> int:
        """The element of the block that tap ``tap`` of output ``position`` reads."""
        return (position * self.stride + tap * self.dilation) // self.step


@functools.lru_cache(maxsize=4096)
def _axis_block(kernel: int, stride: int, dilation: int, positions: int) -> AxisBlock:
    stride = stride if positions > 1 else 0
    dilation = dilation if kernel > 1 else 0
    step = math.gcd(stride, dilation) or 1
    extent = ((positions - 1) * stride + (kernel - 1) * dilation) // step + 1
    return AxisBlock(positions, extent, step, stride, dilation)


@attrs.frozen
class Patch:
    """The elements as a box with steps, by axis of the input: extent and step 1 on batch axes.

    ``order`` lists the axes from outermost to innermost in the order of the crossbar rows; ``run`` elements in that
    order lie gap-free in every storage.
    """

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    order: tuple[int, ...]
    run: int

    @property
    def elements(self) -> int:
        """The length of the reduction."""
        return math.prod(self.shape)

    def view(self, x: View, base: int) -> View:
        """The patch in a storage, its first element at ``base``."""
        strides = tuple(stride * step for stride, step in zip(x.strides, self.steps, strict=True))
        return View(x.slot, self.shape, base, strides, self.order)

    def packed(self, slot: int, base: int) -> View:
        """The patch gathered without gaps."""
        return View(slot, self.shape, base, packed_strides(self.shape, self.order), self.order)


def make_patch(
    x: TensorType, channel_axis: int, channels: int, blocks: Sequence[AxisBlock], *, whole: bool, reorder: bool
) -> Patch:
    """The patch of ``channels`` channels (``whole``: all that any storage holds) and of ``blocks``.

    With ``reorder``, channels become innermost where that makes the elements easier to gather and nothing of the
    patch can be read in place anyway.
    """
    shape, steps = [1] * x.rank, [1] * x.rank
    shape[channel_axis] = channels
    for k, block in enumerate(blocks):
        shape[channel_axis + 1 + k], steps[channel_axis + 1 + k] = block.extent, block.step
    spatial = range(channel_axis + 1, channel_axis + 1 + len(blocks))
    plain = Patch(tuple(shape), tuple(steps), x.order, _run(x, shape, steps, channel_axis, spatial, whole))
    if not reorder:
        return plain
    order = (*(axis for axis in x.order if axis != channel_axis), channel_axis)
    other = Patch(plain.shape, plain.steps, order, 1)
    nominal = View(0, x.shape, 0, packed_strides(x.shape, x.order), x.order)
    counts = [run_count(patch.packed(0, 0), patch.view(nominal, 0)) for patch in (plain, other)]
    return other if counts[1] < counts[0] else plain


def _run(
    x: TensorType, shape: Sequence[int], steps: Sequence[int], channel_axis: int, spatial: range, whole: bool
) -> int:
    """Elements that are gap-free in any storage: up to the first axis of which a storage may hold more."""
    run, room = 1, 1
    for axis in reversed(x.order):
        if shape[axis] > 1:
            if room != run or steps[axis] != 1:
                break
            run *= shape[axis]
        if axis == channel_axis:
            room = room * shape[axis] if whole else 0
        elif axis in spatial or x.shape[axis] > 1:
            room = 0
    return run


@attrs.frozen
class Tiling:
    """How the rows of a patch are spread over crossbars of ``rows`` rows.

    ``gather``: remainders of runs are gathered, behind a constant one (the bias) where ``bias_row`` says so; without
    it they are read in place, one product for each run.
    """

    patch: Patch
    rows: int
    gather: bool
    bias_row: bool = False

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.patch.elements // self.patch.run

    @property
    def rest(self) -> int:
        """Elements of a run that fill no whole crossbar height."""
        return self.patch.run % self.rows

    @cached_property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """(first element in patch order, elements) of every tile read from the input's storage."""
        tiles = []
        for start in range(0, self.patch.elements, self.patch.run):
            lengths = [self.rows] * (self.patch.run // self.rows)
            if self.rest and not self.gather:
                lengths.append(self.rest)
            for k, length in enumerate(lengths):
                tiles.append((start + k * self.rows, length))
        return tuple(tiles)

    @property
    def gathered(self) -> int:
        """Elements of the scratch area, the constant one included."""
        return (self.runs * self.rest if self.gather else 0) + self.bias_row

    @property
    def gathered_tiles(self) -> tuple[tuple[int, int], ...]:
        """(first element of the scratch area, elements) of every tile read from there."""
        size = self.gathered
        return tuple((start, min(self.rows, size - start)) for start in range(0, size, self.rows))

    @property
    def products(self) -> int:
        """Number of products for one block of positions."""
        return len(self.in_place) + len(self.gathered_tiles)

    @property
    def heights(self) -> tuple[int, ...]:
        """The rows of every tile, those in place first."""
        return tuple(length for _, length in (*self.in_place, *self.gathered_tiles))

    @property
    def has_spare_row(self) -> bool:
        """Whether a constant one can be gathered without another product."""
        return self.gather and self.rest > 0 and (self.runs * self.rest) % self.rows != 0

    @property
    def gains_by_gathering(self) -> bool:
        """Whether gathering the remainders saves products."""
        return self.rest > 0 and -(-self.runs * self.rest // self.rows) < self.runs

    def row_elements(self) -> list[Indices]:
        """For every tile the elements, in patch order, of its rows; -1 is the constant one."""
        tiles = [np.arange(start, start + length) for start, length in self.in_place]
        if self.gathered:
            first = np.arange(self.runs)[:, None] * self.patch.run + self.patch.run - self.rest
            sequence = (first + np.arange(self.rest if self.gather else 0)).ravel()
            sequence = np.concatenate([np.full(int(self.bias_row), -1, np.int64), sequence])
            tiles.extend(sequence[start : start + length] for start, length in self.gathered_tiles)
        return tiles
