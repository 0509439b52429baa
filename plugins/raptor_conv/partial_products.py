"""A reduction spread over several computes: partial sums along a new first axis, then added up."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import attrs

from raptor_conv.convolution import ConvCompute
from raptor_conv.copies import copy_view
from raptor_conv.patch import AxisBlock, Tiling
from raptor_conv.patch_products import axis_blocks, channels_innermost
from raptor_conv.products import Part, emit_products
from raptor_conv.tiling import Bundle, full_weights, tile_matrices, tile_reduction
from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box, empty_box
from raptor_core.spatial.compute import ComputeOp, Constants, Matrix
from raptor_core.spatial.kernel import KernelBuilder, View


@attrs.frozen(kw_only=True)
class PartialProducts(ConvCompute):
    """result[s] = the convolution of input channels s * ``slice_channels`` and up with the weights of those.

    Operands are those of the plan, of one group; the result has an axis of slices before the plan's axes. Slice 0
    includes the bias. ``block``, ``gather`` and ``bias_row`` are those of
    :class:`raptor_conv.patch_products.StreamedPatch`.
    """

    kind = "conv.partial_products"

    slice_channels: int
    block: tuple[int, ...] = ()
    gather: bool = True
    bias_row: bool = False

    def verify(self, types: Types) -> None:
        x, result = types[self.operands[0]], types[self.results[0]]
        slices = -(-x.shape[self.channel_axis] // self.slice_channels)
        if self.groups != 1 or result.rank != x.rank + 1 or result.shape[0] != slices:
            raise self.fail(f"{x} in slices of {self.slice_channels} channels does not give {result}")
        if self.bias_row and (len(self.operands) < 3 or not self.gather):
            raise self.fail("the bias can stand in the weights only when there is one and patches are gathered")

    # ---- geometry ------------------------------------------------------------------------------------------------
    def region(self, operand: int, out: Box, types: Types) -> Box:
        plane = _plane(out)
        if operand == 2 and not self.bias_row and out.lo[0] == 0:
            lo, hi = self.channels(plane)
            return Box((lo,), (hi,))
        if operand != 0:
            return empty_box(types[self.operands[operand]].rank)
        channels = types[self.operands[0]].shape[self.channel_axis]
        box = plane.replace(self.channel_axis, *self._inputs(out.lo[0], out.hi[0], channels))
        for k, axis in enumerate(self.spatial_axes):
            box = box.replace(axis, *self.window.input_interval(k, plane.lo[axis], plane.hi[axis]))
        return box

    def cut_granularity(self, types: Types) -> tuple[int, ...]:
        steps = [1] * types[self.results[0]].rank
        for axis, positions in zip(self.spatial_axes, self.block, strict=False):
            steps[axis + 1] = positions
        return tuple(steps)

    # ---- weights -------------------------------------------------------------------------------------------------
    def weight_shapes(self, out: Box, types: Types, rows: int) -> tuple[tuple[int, int], ...]:
        blocks = axis_blocks(self, _plane(out), self.block)
        lo, hi = self.channels(_plane(out))
        columns = (hi - lo) * math.prod(block.positions for block in blocks)
        first, last = (
            tuple((height, columns) for height in self._tiling(s, blocks, types, rows).heights)
            for s in (out.lo[0], out.hi[0] - 1)
        )
        return first * (out.hi[0] - out.lo[0] - 1) + last

    def weights(self, out: Box, types: Types, constants: Constants, rows: int) -> tuple[Matrix, ...]:
        blocks = axis_blocks(self, _plane(out), self.block)
        lo, hi = self.channels(_plane(out))
        order = [axis - 1 for axis in types[self.results[0]].order if axis not in (0, self.channel_axis + 1)]
        channels = types[self.operands[0]].shape[self.channel_axis]
        matrices: list[Matrix] = []
        for s in range(out.lo[0], out.hi[0]):
            tiling = self._tiling(s, blocks, types, rows)
            first, last = self._inputs(s, s + 1, channels)
            w = constants[self.operands[1]][:, first:last]
            full = full_weights(w, tiling.patch, self.channel_axis, blocks, Bundle(0, 1, lo, hi), 1)
            bias = constants[self.operands[2]][lo:hi] * (s == 0) if self.bias_row else None
            matrices.extend(tile_matrices(tiling, full, [*order, self.channel_axis], bias))
        return tuple(matrices)

    def weights_key(self, out: Box, types: Types) -> Hashable:
        blocks = axis_blocks(self, _plane(out), self.block)
        return (out.lo[0], out.hi[0], *self.channels(_plane(out)), *(block.positions for block in blocks))

    # ---- body ----------------------------------------------------------------------------------------------------
    def kernel_key(self, out: Box, types: Types) -> Hashable:
        """The last slice may be smaller than the others; whether slice 0 adds a bias, its view says."""
        return out.hi[0] == types[self.results[0]].shape[0]

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        x = operands[0]
        assert x is not None
        bias = operands[2] if len(operands) > 2 else None
        plane = _plane(out)
        blocks = axis_blocks(self, plane, self.block)
        slices = [slice_view(result, s) for s in range(result.shape[0])]
        targets = [channels_innermost(k, view, self.channel_axis) for view in slices]
        parts = [
            Part(
                tiling=self._tiling(out.lo[0] + s, blocks, types, rows),
                first_input=s * self.slice_channels,
                target=target,
                first_output=0,
                columns=plane.extents[self.channel_axis],
                bias=bias if out.lo[0] + s == 0 else None,
            )
            for s, target in enumerate(targets)
        ]
        emit_products(k, self, plane.extents, blocks, x, parts)
        for view, target in zip(slices, targets, strict=True):
            if target is not view:
                copy_view(k, view, target)

    def _inputs(self, first: int, last: int, channels: int) -> tuple[int, int]:
        """The input channels of slices first .. last-1."""
        return first * self.slice_channels, min(channels, last * self.slice_channels)

    def _tiling(self, number: int, blocks: tuple[AxisBlock, ...], types: Types, rows: int) -> Tiling:
        x = types[self.operands[0]]
        first, last = self._inputs(number, number + 1, x.shape[self.channel_axis])
        return tile_reduction(
            x,
            self.channel_axis,
            last - first,
            blocks,
            rows,
            whole=False,
            gather=self.gather,
            bias_row=self.bias_row,
        )


def _plane(out: Box) -> Box:
    """The box without its axis of slices."""
    return Box(out.lo[1:], out.hi[1:])


def slice_view(view: View, index: int) -> View:
    """One slice of a view along its first axis, without that axis."""
    order = tuple(axis - 1 for axis in view.order if axis)
    return View(view.slot, view.shape[1:], view.base + index * view.strides[0], view.strides[1:], order)


@attrs.frozen(kw_only=True)
class SumPartials(ComputeOp):
    """result = the sum of the operand over its first axis.

    Boxes start at multiples of ``channel_step`` along ``channel_axis``, so that what a lane is sent lies in long runs.
    """

    kind = "conv.sum_partials"

    channel_axis: int
    channel_step: int = 1

    def cut_granularity(self, types: Types) -> tuple[int, ...]:
        rank = types[self.results[0]].rank
        return tuple(self.channel_step if axis == self.channel_axis else 1 for axis in range(rank))

    def verify(self, types: Types) -> None:
        operand, result = types[self.operands[0]], types[self.results[0]]
        if operand.shape[1:] != result.shape or operand.order != (0, *(axis + 1 for axis in result.order)):
            raise self.fail(f"{operand} does not sum to {result}")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return Box((0, *out.lo), (types[self.operands[0]].shape[0], *out.hi))

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        partials = operands[0]
        assert partials is not None
        slices = [slice_view(partials, index) for index in range(partials.shape[0])]
        with k.runs(result, *slices) as ((dst, *sources), count):
            if len(sources) == 1:
                k.copy(dst, sources[0], count)
            else:
                k.binary("add", dst, sources[0], sources[1], count)
            for source in sources[2:]:
                k.binary("add", dst, dst, source, count)
