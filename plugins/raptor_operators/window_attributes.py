"""The window attributes that Conv and pooling nodes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.types import TensorType
from raptor_core.spatial.sizes import MAXIMUM_ELEMENTS
from raptor_operators.lowering import attribute

_AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def auto_pad(node: OnnxNode) -> str:
    """The padding rule; NOTSET when the attribute is absent or empty."""
    return attribute(node, "auto_pad", "NOTSET") or "NOTSET"


def refuse_window(node: OnnxNode, axes: int, kernel: Sequence[int]) -> str | None:
    """Why the window attributes make no sense for ``axes`` windowed axes, or None."""
    if len(kernel) != axes:
        return f"kernel_shape {tuple(kernel)} does not have the {axes} windowed axes of the tensor"
    for name, length, least in (("strides", axes, 1), ("dilations", axes, 1), ("pads", 2 * axes, None)):
        values = attribute(node, name, None)
        if values is not None and (len(values) != length or (least is not None and min(values, default=1) < least)):
            return f"{name}={tuple(values)} is not right for {axes} windowed axes"
    if min(kernel, default=1) < 1:
        return f"kernel_shape {tuple(kernel)} is not positive"
    if auto_pad(node) not in _AUTO_PADS:
        return f"auto_pad '{auto_pad(node)}' is not one of {', '.join(_AUTO_PADS)}"
    return None


def refuse_padding(node: OnnxNode, x: TensorType, kernel: Sequence[int]) -> str | None:
    """Why ``x`` cannot be padded as a node says whose window attributes make sense, or None."""
    fields = window_fields(node, kernel, x.shape[2:])
    pads = zip(x.shape[2:], fields["pads_begin"], fields["pads_end"], strict=True)
    padded = TensorType((*x.shape[:2], *(extent + max(0, before) + max(0, after) for extent, before, after in pads)))
    if padded.elements <= MAXIMUM_ELEMENTS:
        return None
    return f"{x} with its padding is {padded} of {padded.elements} elements, and at most {MAXIMUM_ELEMENTS} are allowed"


def window_fields(node: OnnxNode, kernel: Sequence[int], extents: Sequence[int]) -> dict[str, Any]:
    """The window fields of a plan over axes of ``extents``, automatic padding worked out."""
    axes = len(kernel)
    strides = tuple(attribute(node, "strides", (1,) * axes))
    dilations = tuple(attribute(node, "dilations", (1,) * axes))
    begin, end = _pads(node, kernel, extents, strides, dilations)
    return {
        "window_kernel": tuple(kernel),
        "strides": strides,
        "dilations": dilations,
        "pads_begin": begin,
        "pads_end": end,
    }


def _pads(
    node: OnnxNode, kernel: Sequence[int], extents: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    axes, rule = len(kernel), auto_pad(node)
    if rule == "VALID":
        return (0,) * axes, (0,) * axes
    if rule == "NOTSET":
        pads = tuple(attribute(node, "pads", (0,) * (2 * axes)))
        return pads[:axes], pads[axes:]
    totals = [
        max(0, (-(-extent // stride) - 1) * stride + (size - 1) * dilation + 1 - extent)
        for extent, size, stride, dilation in zip(extents, kernel, strides, dilations, strict=True)
    ]
    less, more = tuple(total // 2 for total in totals), tuple(-(-total // 2) for total in totals)
    return (less, more) if rule == "SAME_UPPER" else (more, less)
