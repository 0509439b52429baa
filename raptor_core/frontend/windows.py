"""Convolution and pooling nodes whose window does not fit their input."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper

from raptor_core.frontend.elements import static_shape

_OPERATORS = frozenset({"AveragePool", "Conv", "LpPool", "MaxPool"})


def kernel_problem(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], result: onnx.TypeProto | None
) -> str | None:
    """Why the window of a node whose ``result`` has no element fits nowhere in its padded input.

    None for other nodes, and where the window is not to blame. ``types`` has the inputs' types.
    """
    if node.domain or node.op_type not in _OPERATORS or result is None:
        return None
    extents = [dim.dim_value for dim in result.tensor_type.shape.dim]
    x = static_shape(types[node.input[0]])
    kernel = _kernel(node, types)
    if x is None or not kernel or len(x) != len(kernel) + 2 or all(extent > 0 for extent in extents[2:]):
        return None
    given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    pads, dilations = given.get("pads", (0,) * (2 * len(kernel))), given.get("dilations", (1,) * len(kernel))
    if len(pads) != 2 * len(kernel) or len(dilations) != len(kernel):
        return None
    for k, (size, dilation) in enumerate(zip(kernel, dilations, strict=True)):
        span, before, after = (size - 1) * dilation + 1, pads[k], pads[k + len(kernel)]
        extent = x[k + 2]
        if span > extent + before + after:
            dilated = f" ({size} elements, dilation {dilation})" if dilation != 1 else ""
            padded = f" ({extent} and padding {before} and {after})" if before or after else ""
            return (
                f"along axis {k + 2} its kernel of {span}{dilated} is larger than the padded input of "
                f"{extent + before + after}{padded}"
            )
    return None


def _kernel(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> tuple[int, ...]:
    """The kernel's extents; empty when they are not known."""
    for item in node.attribute:
        if item.name == "kernel_shape":
            return tuple(item.ints)
    weights = static_shape(types[node.input[1]]) if node.op_type == "Conv" and len(node.input) > 1 else None
    return weights[2:] if weights is not None else ()
