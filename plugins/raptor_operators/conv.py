"""Conv with constant weights, over any number of spatial axes."""

from __future__ import annotations

from typing import ClassVar

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.spatial.plans import ConvPlan
from raptor_operators.append import append_binary, append_reshape, new_result
from raptor_operators.lowering import Lowering, attribute, constant, data_operand, float32, has_input
from raptor_operators.window_attributes import refuse_padding, refuse_window, window_fields


class ConvLowering(Lowering):
    """Becomes a ConvPlan; a bias computed at run time is added afterwards."""

    name: ClassVar[str] = "Conv"
    summary: ClassVar[str] = "convolution with constant weights"
    data_inputs: ClassVar[int | None] = 3

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        x, weights = module.types[node.operands[0]], constant(module.constants, node, 1)
        if weights is None:
            return "the weights are computed at run time, and crossbars hold constant ones"
        if x.rank < 3 or weights.ndim != x.rank:
            return f"weights of {weights.ndim} axes do not fit {x}"
        kernel = weights.shape[2:]
        if tuple(attribute(node, "kernel_shape", kernel)) != kernel:
            return f"kernel_shape {tuple(node.attributes['kernel_shape'])} is not that of the weights, {kernel}"
        groups = attribute(node, "group", 1)
        if groups < 1 or weights.shape[0] % groups or x.shape[1] != weights.shape[1] * groups:
            return f"weights of shape {weights.shape} in {groups} groups do not fit {x}"
        return refuse_window(node, x.rank - 2, kernel) or refuse_padding(node, x, kernel)

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        x, weights = node.operands[0], float32(rewriter.constants[node.operands[1]])
        result, bias = rewriter.types[node.results[0]], constant(rewriter.constants, node, 2)
        adds_bias = has_input(node, 2) and bias is None
        operands = [data_operand(rewriter, x), data_operand(rewriter, node.operands[1])]
        if bias is not None:
            operands.append(data_operand(rewriter, node.operands[2]))
        plan = ConvPlan(
            name=node.name,
            operands=tuple(operands),
            results=(new_result(rewriter, f"{node.results[0]}.products", result.shape, None),)
            if adds_bias
            else node.results[:1],
            groups=attribute(node, "group", 1),
            channel_axis=1,
            **window_fields(node, weights.shape[2:], rewriter.types[x].shape[2:]),
        )
        rewriter.append(plan)
        if adds_bias:
            shape = (weights.shape[0],) + (1,) * (result.rank - 2)
            per_channel = append_reshape(rewriter, node.name, node.operands[2], shape)
            append_binary(rewriter, node.name, "add", plan.results[0], per_channel, node.results[0])


CONV = ConvLowering()
