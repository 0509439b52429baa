"""Products over patches of the input, one block of output positions after the other."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import attrs

from raptor_conv.convolution import ConvCompute, plan_geometry
from raptor_conv.copies import copy_view
from raptor_conv.patch import AxisBlock, Tiling
from raptor_conv.products import Part, emit_products
from raptor_conv.tiling import Bundle, bundles, full_weights, tile_matrices, tile_reduction
from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box, empty_box
from raptor_core.spatial.compute import Constants, Matrix
from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_core.spatial.plans import ConvPlan


@attrs.frozen(kw_only=True)
class StreamedPatch(ConvCompute):
    """A convolution or matrix product as products of patches with resident weights; operands are those of the plan.

    ``block`` is the number of output positions that share one product, by windowed axis (empty: one): the matrices
    hold the kernel once for each, moved along the rows. ``bundle`` groups share a product, their kernels along the
    diagonal. What cannot be read in place in whole crossbar heights is gathered into a scratch area, or, without
    ``gather``, read in place run by run. ``bias_row`` holds the bias in the weights; otherwise it is a data operand.
    ``channel_step``: boxes start at multiples of so many output channels.
    """

    kind = "conv.streamed_patch"

    block: tuple[int, ...] = ()
    bundle: int = 1
    gather: bool = True
    bias_row: bool = False
    channel_step: int = 1

    @property
    def plan(self) -> ConvPlan:
        """The plan whose result this operation computes."""
        return ConvPlan(name=self.name, operands=self.operands, results=self.results, **plan_geometry(self))

    def verify(self, types: Types) -> None:
        self.plan.verify(types)
        if self.block and (len(self.block) != len(self.window_kernel) or min(self.block) < 1):
            raise self.fail(f"block {self.block} does not fit a window of {len(self.window_kernel)} axes")
        if self.bundle < 1 or self.channel_step < 1:
            raise self.fail("bundle and channel_step are at least 1")
        if self.bias_row and (len(self.operands) < 3 or not self.gather):
            raise self.fail("the bias can stand in the weights only when there is one and patches are gathered")

    # ---- geometry ------------------------------------------------------------------------------------------------
    def region(self, operand: int, out: Box, types: Types) -> Box:
        if operand == 0:
            return self.plan.region(out, types)
        if operand == 2 and not self.bias_row:
            lo, hi = self.channels(out)
            return Box((lo,), (hi,))
        return empty_box(types[self.operands[operand]].rank)

    def cut_granularity(self, types: Types) -> tuple[int, ...]:
        steps = [1] * types[self.results[0]].rank
        steps[self.channel_axis] = self.channel_step
        for axis, positions in zip(self.spatial_axes, self.block, strict=False):
            steps[axis] = positions
        return tuple(steps)

    # ---- weights -------------------------------------------------------------------------------------------------
    def weight_shapes(self, out: Box, types: Types, rows: int) -> tuple[tuple[int, int], ...]:
        blocks = self.blocks(out)
        positions = math.prod(block.positions for block in blocks)
        shapes: list[tuple[int, int]] = []
        for bundle in self.bundles(out, types):
            tiling = self.tiling(bundle, blocks, types, rows)
            shapes.extend((height, bundle.columns * positions) for height in tiling.heights)
        return tuple(shapes)

    def weights(self, out: Box, types: Types, constants: Constants, rows: int) -> tuple[Matrix, ...]:
        w, blocks = constants[self.operands[1]], self.blocks(out)
        columns = self._column_order(types)
        matrices: list[Matrix] = []
        for bundle in self.bundles(out, types):
            tiling = self.tiling(bundle, blocks, types, rows)
            full = full_weights(w, tiling.patch, self.channel_axis, blocks, bundle, self.groups)
            bias = constants[self.operands[2]][bundle.lo : bundle.hi] if self.bias_row else None
            matrices.extend(tile_matrices(tiling, full, columns, bias))
        return tuple(matrices)

    def weights_key(self, out: Box, types: Types) -> Hashable:
        return (*self.channels(out), *(block.positions for block in self.blocks(out)))

    # ---- body ----------------------------------------------------------------------------------------------------
    def kernel_key(self, out: Box, types: Types) -> Hashable:
        """With several groups, where inside its first group the box begins."""
        return out.lo[self.channel_axis] % self.outputs_per_group(types)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        x = operands[0]
        assert x is not None
        target = channels_innermost(k, result, self.channel_axis)
        bias = operands[2] if len(operands) > 2 else None
        blocks, found = self.blocks(out), self.bundles(out, types)
        inputs = types[self.operands[1]].shape[1]
        parts = [
            Part(
                tiling=self.tiling(bundle, blocks, types, rows),
                first_input=(bundle.first_group - found[0].first_group) * inputs,
                target=target,
                first_output=bundle.lo - out.lo[self.channel_axis],
                columns=bundle.columns,
                bias=bias,
            )
            for bundle in found
        ]
        emit_products(k, self, out.extents, blocks, x, parts)
        if target is not result:
            copy_view(k, result, target)

    # ---- parts ---------------------------------------------------------------------------------------------------
    def outputs_per_group(self, types: Types) -> int:
        """Output channels of a group."""
        return types[self.operands[1]].shape[0] // self.groups

    def blocks(self, out: Box) -> tuple[AxisBlock, ...]:
        """The block of output positions by windowed axis, no larger than the box."""
        return axis_blocks(self, out, self.block)

    def bundles(self, out: Box, types: Types) -> list[Bundle]:
        """The bundles of groups that the box's channels belong to."""
        return bundles(*self.channels(out), self.outputs_per_group(types), self.bundle)

    def bundles_of_all(self, types: Types) -> list[Bundle]:
        """The bundles of all output channels."""
        return bundles(0, types[self.operands[1]].shape[0], self.outputs_per_group(types), self.bundle)

    def tiling(self, bundle: Bundle, blocks: tuple[AxisBlock, ...], types: Types, rows: int) -> Tiling:
        """How the reduction of a bundle is spread over crossbars."""
        x, w = types[self.operands[0]], types[self.operands[1]]
        return tile_reduction(
            x,
            self.channel_axis,
            bundle.groups * w.shape[1],
            blocks,
            rows,
            whole=self.groups == 1,
            gather=self.gather,
            bias_row=self.bias_row,
        )

    def _column_order(self, types: Types) -> tuple[int, ...]:
        order = types[self.results[0]].order
        return (*(axis for axis in order if axis != self.channel_axis), self.channel_axis)


def channels_innermost(k: KernelBuilder, result: View, channel_axis: int) -> View:
    """The result's view if its channels are gap-free, else one of a scratch area of its shape whose channels are."""
    if result.strides[channel_axis] == 1 or result.shape[channel_axis] == 1:
        return result
    order = (*(axis for axis in result.order if axis != channel_axis), channel_axis)
    return View.packed(k.scratch(math.prod(result.shape)).slot, result.shape, order)


def axis_blocks(op: ConvCompute, out: Box, sizes: Sequence[int]) -> tuple[AxisBlock, ...]:
    """The block of output positions by windowed axis: ``sizes`` (empty: 1 each), but no larger than the box."""
    window, extents = op.window, [out.extents[axis] for axis in op.spatial_axes]
    return tuple(
        AxisBlock.of(window, k, min(size, extent))
        for k, (size, extent) in enumerate(zip(sizes or [1] * len(extents), extents, strict=True))
    )
