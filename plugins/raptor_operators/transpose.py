"""Transpose."""

from __future__ import annotations

from typing import ClassVar

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_operators.append import append_transpose
from raptor_operators.lowering import Lowering, attribute, data_operand


class TransposeLowering(Lowering):
    """The axes in another order."""

    name: ClassVar[str] = "Transpose"
    summary: ClassVar[str] = "any permutation of the axes"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        rank = module.types[node.operands[0]].rank
        permutation = attribute(node, "perm", None)
        if permutation is not None and sorted(permutation) != list(range(rank)):
            return f"perm={tuple(permutation)} is not a permutation of {rank} axes"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        permutation = attribute(node, "perm", tuple(reversed(range(rewriter.types[value].rank))))
        append_transpose(rewriter, node.name, value, permutation, node.results[0])


TRANSPOSE = TransposeLowering()
