"""The plan that several kinds of plugin share: convolution, of which a matrix product is the case without a window.

Every other plan operation lives in the package of its operator lowering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import LayoutChoice, PlanOp


@attrs.frozen(kw_only=True)
class Window:
    """The geometry that convolution and pooling share, one entry per windowed (spatial) axis.

    Output index o reads input indices ``o * strides + k * dilations - pads_begin`` for k < ``kernel``.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]

    def input_interval(self, axis: int, lo: int, hi: int) -> tuple[int, int]:
        """The input indices that output indices lo .. hi-1 read along windowed axis ``axis``."""
        start = lo * self.strides[axis] - self.pads_begin[axis]
        last = (hi - 1) * self.strides[axis] - self.pads_begin[axis] + (self.kernel[axis] - 1) * self.dilations[axis]
        return start, last + 1


@attrs.frozen(kw_only=True)
class ConvPlan(PlanOp):
    """A convolution (cross-correlation, as ONNX defines Conv) or matrix product with constant weights.

    Operands: x; w, a constant [out_channels, in_channels / groups, *kernel]; optionally b, a constant
    [out_channels]. ``channel_axis`` is the axis of channels in x and in the result: 1 for ONNX Conv, the last axis
    for a matrix product [..., K] x [K, N], whose w is the transpose [N, K] and whose window has no axes. All axes
    but axis 0... and the channel axis that the window covers are ``spatial_axes``; every other axis is a batch axis.
    """

    kind = "spatial.conv"

    window_kernel: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()
    groups: int = 1
    channel_axis: int = 1

    @property
    def window(self) -> Window:
        """The window geometry over :attr:`spatial_axes`."""
        return Window(
            kernel=self.window_kernel,
            strides=self.strides,
            dilations=self.dilations,
            pads_begin=self.pads_begin,
            pads_end=self.pads_end,
        )

    @property
    def spatial_axes(self) -> tuple[int, ...]:
        """The axes that the window moves over: those right after the channel axis."""
        return tuple(range(self.channel_axis + 1, self.channel_axis + 1 + len(self.window_kernel)))

    def verify(self, types: Types) -> None:
        x, w, result = types[self.operands[0]], types[self.operands[1]], types[self.results[0]]
        n = len(self.window_kernel)
        sizes = {len(self.strides), len(self.dilations), len(self.pads_begin), len(self.pads_end)}
        if sizes != {n} or w.rank != n + 2 or w.shape[2:] != self.window_kernel:
            raise self.fail(f"window of {n} axes does not agree with weights {w}")
        if x.shape[self.channel_axis] != w.shape[1] * self.groups or w.shape[0] % self.groups:
            raise self.fail(f"channels of {x} do not agree with weights {w} in {self.groups} groups")
        if result.shape[self.channel_axis] != w.shape[0] or result.rank != x.rank:
            raise self.fail(f"result {result} does not agree with weights {w}")

    def region(self, out: Box, types: Types) -> Box:
        """The box of x that the result box needs, all groups' channels included; see ComputeOp.region."""
        box = out.replace(self.channel_axis, *self.input_channels(out, types))
        for k, axis in enumerate(self.spatial_axes):
            box = box.replace(axis, *self.window.input_interval(k, out.lo[axis], out.hi[axis]))
        return box

    def input_channels(self, out: Box, types: Types) -> tuple[int, int]:
        """The interval of input channels that the result channels of ``out`` read: whole groups."""
        w = types[self.operands[1]]
        per_group_out, per_group_in = w.shape[0] // self.groups, w.shape[1]
        lo, hi = out.lo[self.channel_axis], out.hi[self.channel_axis]
        return lo // per_group_out * per_group_in, -(-hi // per_group_out) * per_group_in

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        """Any layout of x; a result whose channels are innermost where that is on offer."""
        weights = tuple(Layout.dense(types[o].rank) for o in self.operands[1:])
        innermost = [layout for layout in candidates[-1] if layout.order[-1] == self.channel_axis]
        return [((x, *weights), result) for x in candidates[0] for result in innermost or candidates[-1]]
