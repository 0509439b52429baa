"""The operation behind kernel-split."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import attrs
import numpy as np

from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box, empty_box
from raptor_core.spatial.compute import ComputeOp, Constants, Matrix
from raptor_core.spatial.kernel import Affine, KernelBuilder, View
from raptor_core.spatial.plans import Window


@attrs.frozen(kw_only=True)
class TapProducts(ComputeOp):
    """A convolution of one group, one kernel position (tap) after the other.

    Operands: x; the weights [out_channels, in_channels, *kernel], resident; optionally the bias, a data operand. For
    every output position and tap the channel vector of x at that tap is multiplied where it lies. The fields are those
    of ConvPlan.
    """

    kind = "kernel_split.tap_products"

    window_kernel: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()
    channel_axis: int = 1

    def verify(self, types: Types) -> None:
        for value in (self.operands[0], self.results[0]):
            if types[value].order[-1] != self.channel_axis:
                raise self.fail(f"the channels of '{value}' are not innermost")

    # ---- geometry ------------------------------------------------------------------------------------------------
    def region(self, operand: int, out: Box, types: Types) -> Box:
        lo, hi = out.lo[self.channel_axis], out.hi[self.channel_axis]
        if operand == 1:
            return empty_box(types[self.operands[1]].rank)
        if operand == 2:
            return Box((lo,), (hi,))
        box = out.replace(self.channel_axis, 0, types[self.operands[0]].shape[self.channel_axis])
        window = Window(
            kernel=self.window_kernel,
            strides=self.strides,
            dilations=self.dilations,
            pads_begin=self.pads_begin,
            pads_end=self.pads_end,
        )
        for k in range(len(self.window_kernel)):
            axis = self.channel_axis + 1 + k
            box = box.replace(axis, *window.input_interval(k, out.lo[axis], out.hi[axis]))
        return box

    # ---- weights -------------------------------------------------------------------------------------------------
    def weight_shapes(self, out: Box, types: Types, rows: int) -> tuple[tuple[int, int], ...]:
        columns = out.extents[self.channel_axis]
        return tuple((height, columns) for height in tile_heights(types[self.operands[1]].shape, rows))

    def weights(self, out: Box, types: Types, constants: Constants, rows: int) -> tuple[Matrix, ...]:
        lo, hi = out.lo[self.channel_axis], out.hi[self.channel_axis]
        w = constants[self.operands[1]][lo:hi]
        matrices = []
        for tap in np.ndindex(*self.window_kernel):
            matrix = w[(slice(None), slice(None), *tap)].T
            for start in range(0, matrix.shape[0], rows):
                matrices.append(np.ascontiguousarray(matrix[start : start + rows], dtype=np.float32))
        return tuple(matrices)

    def weights_key(self, out: Box, types: Types) -> Hashable:
        return out.lo[self.channel_axis], out.hi[self.channel_axis]

    # ---- body ----------------------------------------------------------------------------------------------------
    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        x, bias = operands[0], operands[2] if len(operands) > 2 else None
        assert x is not None
        columns = result.shape[self.channel_axis]
        starts = range(0, x.shape[self.channel_axis], rows)
        taps = list(np.ndindex(*self.window_kernel))
        partial = k.scratch(columns) if len(taps) * len(starts) > 1 else None
        axes = [axis for axis in result.order if axis != self.channel_axis]
        with k.loops([result.shape[axis] for axis in axes]) as variables:
            position: list[Affine | int] = [0] * len(result.shape)
            for axis, variable in zip(axes, variables, strict=True):
                position[axis] = variable
            dst = result.at(*position)
            for number, tap in enumerate(taps):
                source = x.at(*self._input_index(position, tap))
                for part, start in enumerate(starts):
                    weight = number * len(starts) + part
                    if weight == 0:
                        k.product(dst, source, 0, columns)
                        continue
                    assert partial is not None
                    k.product(partial, source + start, weight, columns)
                    k.binary("add", dst, dst, partial, columns)
            if bias is not None:
                k.binary("add", dst, dst, bias.at(0), columns)

    def _input_index(self, position: Sequence[Affine | int], tap: Sequence[int]) -> list[Affine | int]:
        """Where a tap reads x for an output position, relative to the region."""
        index = list(position)
        for n, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True)):
            axis = self.channel_axis + 1 + n
            index[axis] = index[axis] * stride + tap[n] * dilation
        return index


def tile_heights(weights: Sequence[int], rows: int) -> list[int]:
    """The rows of every matrix for weights [out_channels, in_channels, *kernel]: per tap, the channels in parts."""
    channels = weights[1]
    heights = [min(rows, channels - start) for start in range(0, channels, rows)]
    return heights * math.prod(weights[2:])
