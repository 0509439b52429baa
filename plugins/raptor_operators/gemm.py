"""Gemm with one constant factor."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_operators.append import append_binary, append_pointwise, append_product, append_transpose, new_result
from raptor_operators.functions import MultiplyScalar
from raptor_operators.lowering import Lowering, attribute, constant, data_operand, float32, has_input


class GemmLowering(Lowering):
    """Becomes a matrix product with alpha in its weights; beta C is its bias where it is a constant row, else added."""

    name: ClassVar[str] = "Gemm"
    summary: ClassVar[str] = "matrix product with one constant factor, plus a constant or computed addend"
    data_inputs: ClassVar[int | None] = 3

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        if constant(module.constants, node, 0) is None and constant(module.constants, node, 1) is None:
            return "both factors are computed at run time, and crossbars hold a constant one"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        bias = self._constant_row(node, rewriter)
        adds = has_input(node, 2) and bias is None and attribute(node, "beta", 1.0) != 0
        result = node.results[0]
        shape = rewriter.types[result].shape
        target = new_result(rewriter, f"{result}.products", shape, None if adds else result)
        self._product(node, rewriter, bias, target)
        if adds:
            append_binary(rewriter, node.name, "add", target, self._addend(node, rewriter), result)

    def _product(self, node: OnnxNode, rewriter: Rewriter, bias: npt.NDArray[np.float32] | None, result: str) -> None:
        """alpha A B + bias as product with a constant B; with a constant A as the transpose of B' A'."""
        a, b = (data_operand(rewriter, operand) for operand in node.operands[:2])
        trans_a, trans_b = (bool(attribute(node, name, 0)) for name in ("transA", "transB"))
        if b in rewriter.constants:
            if trans_a:
                a = append_transpose(rewriter, node.name, a, (1, 0))
            weights = self._weights(node, rewriter, b, transposed=not trans_b)
            append_product(rewriter, node.name, a, weights, bias=bias, result=result)
            return
        if not trans_b:
            b = append_transpose(rewriter, node.name, b, (1, 0))
        product = append_product(rewriter, node.name, b, self._weights(node, rewriter, a, transposed=trans_a))
        target = result if bias is None else None
        value = append_transpose(rewriter, node.name, product, (1, 0), target)
        if bias is not None:
            addend = rewriter.new_constant(f"{result}.bias", bias)
            append_binary(rewriter, node.name, "add", value, addend, result)

    def _weights(self, node: OnnxNode, rewriter: Rewriter, value: str, *, transposed: bool) -> npt.NDArray[np.float32]:
        matrix = float32(rewriter.constants[value])
        scaled: npt.NDArray[np.float32] = np.float32(attribute(node, "alpha", 1.0)) * matrix
        return scaled.T if transposed else scaled

    def _constant_row(self, node: OnnxNode, rewriter: Rewriter) -> npt.NDArray[np.float32] | None:
        """beta C as one row for all result rows, when C is constant and has only one."""
        addend = constant(rewriter.constants, node, 2)
        beta = np.float32(attribute(node, "beta", 1.0))
        if addend is None or beta == 0:
            return None
        rows, columns = rewriter.types[node.results[0]].shape
        if addend.ndim == 2 and addend.shape[0] != 1 and rows != 1:
            return None
        return float32(beta * np.broadcast_to(float32(addend), (rows, columns))[0])

    def _addend(self, node: OnnxNode, rewriter: Rewriter) -> str:
        """beta C as a value."""
        beta, value = float(attribute(node, "beta", 1.0)), node.operands[2]
        array = rewriter.constants.get(value)
        if array is not None:
            return rewriter.new_constant(f"{value}.scaled", float32(np.float32(beta) * float32(array)))
        if beta == 1:
            return value
        return append_pointwise(rewriter, node.name, value, MultiplyScalar(factor=beta))


GEMM = GemmLowering()
