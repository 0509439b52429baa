"""Concat."""

from __future__ import annotations

from typing import ClassVar

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.spatial.boxes import Box
from raptor_operators.lowering import Lowering, attribute, data_operand, normalised_axis
from raptor_operators.pieces import Piece
from raptor_operators.rearrange import Rearrange


class ConcatLowering(Lowering):
    """Operands one after the other along an axis."""

    name: ClassVar[str] = "Concat"
    summary: ClassVar[str] = "joining along any axis"
    data_inputs: ClassVar[int | None] = None

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        rank = module.types[node.results[0]].rank
        axis = attribute(node, "axis", None)
        if axis is None or not -rank <= axis < rank:
            return f"axis {axis} is outside a tensor of {rank} axes"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        shape = rewriter.types[node.results[0]].shape
        axis = normalised_axis(node.attributes["axis"], len(shape))
        operands = tuple(data_operand(rewriter, operand) for operand in node.operands)
        pieces, start = [], 0
        for number, operand in enumerate(operands):
            stop = start + rewriter.types[operand].shape[axis]
            offsets = tuple(-start if a == axis else 0 for a in range(len(shape)))
            pieces.append(
                Piece(
                    operand=number,
                    box=Box.whole(shape).replace(axis, start, stop),
                    axes=tuple(range(len(shape))),
                    offsets=offsets,
                    steps=(1,) * len(shape),
                )
            )
            start = stop
        rewriter.append(Rearrange(name=node.name, operands=operands, results=node.results[:1], pieces=tuple(pieces)))


CONCAT = ConcatLowering()
