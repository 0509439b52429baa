"""Depthwise convolution on the vector unit: no crossbars, each tap's weights as a vector over channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from raptor_conv.convolution import ConvCompute
from raptor_conv.copies import copy_view, strided_run
from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.kernel import Address, Affine, KernelBuilder, View, packed_strides


@attrs.frozen(kw_only=True)
class Depthwise(ConvCompute):
    """result[n, c, o] = sum over taps t of x[n, c, o * strides + t * dilations - pads_begin] * taps[t, c].

    Operands: x and taps, a constant [taps (in row-major order), channels] with the bias as one more row where
    ``has_bias`` says so. ``wide``: one instruction covers as many axes as lie gap-free, with the weights repeated over
    them once per lane; otherwise no more than a channel vector, where channels are innermost.
    """

    kind = "conv.depthwise"

    has_bias: bool = False
    wide: bool = True

    def verify(self, types: Types) -> None:
        x, taps, result = (types[value] for value in (*self.operands, *self.results))
        rows = math.prod(self.window_kernel) + self.has_bias
        channels = x.shape[self.channel_axis]
        if taps.shape != (rows, channels) or result.shape[self.channel_axis] != channels or self.groups != channels:
            raise self.fail(f"{x} with taps {taps} in {self.groups} groups does not give {result}")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        if operand == 1:
            lo, hi = self.channels(out)
            return Box((0, lo), (types[self.operands[1]].shape[0], hi))
        box = out
        for k, axis in enumerate(self.spatial_axes):
            box = box.replace(axis, *self.window.input_interval(k, out.lo[axis], out.hi[axis]))
        return box

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        x, taps = operands
        assert x is not None
        assert taps is not None
        sources = self._sources(x, result)
        run = strided_run(result, sources[0])
        inner = result.order[len(result.order) - run.axes :]
        if not self.wide and self.channel_axis in inner:
            after = inner[inner.index(self.channel_axis) + 1 :]
            if all(result.shape[axis] == 1 for axis in after):
                inner = inner[inner.index(self.channel_axis) :]
        _Body(k, self, result, sources, taps, inner, run.stride).emit()

    def _sources(self, x: View, result: View) -> list[View]:
        """What each tap reads, as a view of the result's shape."""
        strides, steps = list(x.strides), list(x.strides)
        for axis, stride, dilation in zip(self.spatial_axes, self.strides, self.dilations, strict=True):
            strides[axis] *= stride
            steps[axis] *= dilation
        sources = []
        for tap in np.ndindex(*self.window_kernel):
            shift = sum(t * steps[axis] for t, axis in zip(tap, self.spatial_axes, strict=True))
            sources.append(View(x.slot, result.shape, x.base + shift, tuple(strides), result.order))
        return sources


@attrs.frozen
class _Body:
    """Multiplies and adds over runs of the ``inner`` axes; ``stride`` is the sources' between elements of a run."""

    k: KernelBuilder
    op: Depthwise
    result: View
    sources: Sequence[View]
    taps: View
    inner: tuple[int, ...]
    stride: int

    @property
    def run_shape(self) -> tuple[int, ...]:
        """The extents of a run, by axis."""
        return tuple(extent if axis in self.inner else 1 for axis, extent in enumerate(self.result.shape))

    def emit(self) -> None:
        k, channel = self.k, self.op.channel_axis
        count = math.prod(self.run_shape)
        outer = [axis for axis in self.result.order if axis not in self.inner]
        outer.sort(key=lambda axis: axis != channel)
        is_vector = self.run_shape == tuple(
            extent if axis == channel else 1 for axis, extent in enumerate(self.run_shape)
        )
        in_place = is_vector and self.taps.strides[1] == 1 and channel in self.inner
        vectors = None if in_place else k.scratch(count * self.taps.shape[0])
        partial = k.scratch(count) if len(self.sources) > 1 else None
        gathered = k.scratch(count) if self.stride != 1 and count > 1 else None
        index: list[Affine | int] = [0] * len(self.result.shape)
        by_channel = channel in outer
        with k.loop(self.result.shape[channel] if by_channel else 1) as c:
            if by_channel:
                index[channel] = c
            if vectors is not None:
                self._expand(vectors, c, count)
            rest = outer[1:] if by_channel else outer
            with k.loops([self.result.shape[axis] for axis in rest]) as variables:
                for axis, variable in zip(rest, variables, strict=True):
                    index[axis] = variable
                weights = [
                    vectors + t * count if vectors is not None else self.taps.at(t, 0)
                    for t in range(self.taps.shape[0])
                ]
                self._accumulate(index, weights, count, partial, gathered)

    def _expand(self, vectors: Address, channel: Affine, count: int) -> None:
        """Write the weights of every tap, and the bias, as vectors over a run."""
        order = self.result.order
        spread = [0] * len(order)
        spread[self.op.channel_axis] = self.taps.strides[1]
        packed = packed_strides(self.run_shape, order)
        for t in range(self.taps.shape[0]):
            src = self.taps.at(t, channel)
            dst = View(vectors.slot, self.run_shape, t * count, packed, order)
            source = View(src.slot, self.run_shape, src.offset.constant, tuple(spread), order)
            copy_view(self.k, dst, source, src_origin=Affine(0, src.offset.terms))

    def _accumulate(
        self,
        index: Sequence[Affine | int],
        weights: Sequence[Address],
        count: int,
        partial: Address | None,
        gathered: Address | None,
    ) -> None:
        k, dst = self.k, self.result.at(*index)
        for t, source in enumerate(self.sources):
            src = source.at(*index)
            if gathered is not None:
                k.gather(gathered, src, self.stride, count)
                src = gathered
            if t == 0:
                k.binary("mul", dst, src, weights[0], count)
                if self.op.has_bias:
                    k.binary("add", dst, dst, weights[-1], count)
                continue
            assert partial is not None
            k.binary("mul", partial, src, weights[t], count)
            k.binary("add", dst, dst, partial, count)
