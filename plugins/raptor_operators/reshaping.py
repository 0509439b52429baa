"""Reshape, Flatten, Squeeze and Unsqueeze: the shape of the result says everything."""

from __future__ import annotations

from typing import ClassVar

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_operators.append import append_reshape
from raptor_operators.lowering import Lowering, data_operand


class ReshapingLowering(Lowering):
    """The same elements in the result's shape."""

    name: ClassVar[str] = "reshaping"
    summary: ClassVar[str] = "Reshape, Flatten, Squeeze, Unsqueeze"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        x, result = module.types[node.operands[0]], module.types[node.results[0]]
        return None if x.elements == result.elements else f"{x} cannot become {result}"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value, result = data_operand(rewriter, node.operands[0]), node.results[0]
        append_reshape(rewriter, node.name, value, rewriter.types[result].shape, result)


RESHAPING = ReshapingLowering()
