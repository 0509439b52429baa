"""What the computes of all convolution strategies share: the geometry of the plan they realise."""

from __future__ import annotations

from typing import Any

import attrs

from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.plans import ConvPlan, Window


@attrs.frozen(kw_only=True)
class ConvCompute(ComputeOp):
    """A compute with the geometry of a :class:`ConvPlan`, fields of the same names and meaning."""

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
        """The axes that the window moves over."""
        first = self.channel_axis + 1
        return tuple(range(first, first + len(self.window_kernel)))

    def channels(self, out: Box) -> tuple[int, int]:
        """The interval of output channels of a box."""
        return out.lo[self.channel_axis], out.hi[self.channel_axis]


_GEOMETRY = ("window_kernel", "strides", "dilations", "pads_begin", "pads_end", "groups", "channel_axis")


def plan_geometry(op: ConvPlan | ConvCompute) -> dict[str, Any]:
    """The fields that :class:`ConvPlan` and :class:`ConvCompute` share."""
    return {field: getattr(op, field) for field in _GEOMETRY}
