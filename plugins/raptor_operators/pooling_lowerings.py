"""MaxPool, AveragePool and GlobalAveragePool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.types import TensorType
from raptor_operators.global_average_pool import GlobalAveragePool
from raptor_operators.lowering import Lowering, attribute, data_operand
from raptor_operators.pooling import AveragePool, MaxPool
from raptor_operators.window_attributes import refuse_padding, refuse_window, window_fields


class PoolLowering(Lowering):
    """Pooling over a window. The rounding of ceil_mode is in the shape of the result."""

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        x = module.types[node.operands[0]]
        if x.rank < 3:
            return f"{x} has no windowed axis"
        kernel = attribute(node, "kernel_shape", ())
        reason = refuse_window(node, x.rank - 2, kernel) or refuse_padding(node, x, kernel)
        if reason is None and attribute(node, "ceil_mode", 0):
            fields = window_fields(node, kernel, x.shape[2:])
            reason = _refuse_last_window(fields, x.shape[2:], module.types[node.results[0]])
        return reason


def _refuse_last_window(fields: Mapping[str, Any], extents: Sequence[int], result: TensorType) -> str | None:
    """By the standard no window starts in the padding at the end, so a result that has one is of the wrong shape."""
    starts = [
        (count - 1) * stride - pad
        for count, stride, pad in zip(result.shape[2:], fields["strides"], fields["pads_begin"], strict=True)
    ]
    if all(start < extent for start, extent in zip(starts, extents, strict=True)):
        return None
    return f"with ceil_mode the last window of {result} starts behind the operand, where no window may start"


class MaxPoolLowering(PoolLowering):
    """The index result is refused, so storage_order, which only says how it counts, plays no part."""

    name: ClassVar[str] = "MaxPool"
    summary: ClassVar[str] = "max pooling, without the indices of the maxima"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        fields = window_fields(node, node.attributes["kernel_shape"], rewriter.types[value].shape[2:])
        rewriter.append(MaxPool(name=node.name, operands=(value,), results=node.results[:1], **fields))


class AveragePoolLowering(PoolLowering):
    """A window that is the whole operand becomes a GlobalAveragePool."""

    name: ClassVar[str] = "AveragePool"
    summary: ClassVar[str] = "average pooling, padding counted or not"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        extents, kernel = rewriter.types[value].shape[2:], tuple(node.attributes["kernel_shape"])
        fields = window_fields(node, kernel, extents)
        is_global = kernel == extents and not any((*fields["pads_begin"], *fields["pads_end"]))
        if is_global and set(fields["dilations"]) == {1} and set(rewriter.types[node.results[0]].shape[2:]) == {1}:
            rewriter.append(GlobalAveragePool(name=node.name, operands=(value,), results=node.results[:1]))
            return
        counted = bool(attribute(node, "count_include_pad", 0))
        rewriter.append(
            AveragePool(
                name=node.name, operands=(value,), results=node.results[:1], count_include_pad=counted, **fields
            )
        )


class GlobalAveragePoolLowering(Lowering):
    """The mean of each channel."""

    name: ClassVar[str] = "GlobalAveragePool"
    summary: ClassVar[str] = "the mean of each channel"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        x = module.types[node.operands[0]]
        return None if x.rank >= 2 else f"{x} has no channel axis"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        rewriter.append(GlobalAveragePool(name=node.name, operands=(value,), results=node.results[:1]))


MAX_POOL = MaxPoolLowering()
AVERAGE_POOL = AveragePoolLowering()
GLOBAL_AVERAGE_POOL = GlobalAveragePoolLowering()
