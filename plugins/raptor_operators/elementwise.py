"""Add, Sub, Mul, Div by a constant, and Sum."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Array, Module, Rewriter
from raptor_core.spatial.compute import PointwiseFunction
from raptor_operators.append import append_binary, append_expand, append_pointwise
from raptor_operators.functions import AddScalar, MultiplyScalar, SubtractFrom
from raptor_operators.lowering import Lowering, constant, data_operand, float32


class ElementwiseLowering(Lowering):
    """Two operands with numpy broadcasting, each constant or computed at run time."""

    name: ClassVar[str] = "elementwise"
    summary: ClassVar[str] = "Add, Sub and Mul with broadcasting"
    data_inputs: ClassVar[int | None] = 2

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        function = node.op_type.lower()
        value, scalar = self._scalar_form(node, rewriter)
        if value is not None and scalar is not None:
            append_pointwise(rewriter, node.name, value, scalar, node.results[0])
            return
        a, b = (data_operand(rewriter, operand) for operand in node.operands)
        append_binary(rewriter, node.name, function, a, b, node.results[0])

    def _scalar_form(self, node: OnnxNode, rewriter: Rewriter) -> tuple[str | None, PointwiseFunction | None]:
        """The run-time operand and the function of its elements, when the other operand is one constant number."""
        for position in (1, 0):
            value = node.operands[1 - position]
            array = constant(rewriter.constants, node, position)
            same_shape = rewriter.types[value].shape == rewriter.types[node.results[0]].shape
            if array is not None and array.size == 1 and same_shape and value not in rewriter.constants:
                return value, _scalar_function(node.op_type, float(float32(array).reshape(())), position)
        return None, None


def _scalar_function(op_type: str, number: float, position: int) -> PointwiseFunction:
    if op_type == "Mul":
        return MultiplyScalar(factor=number)
    if op_type == "Add":
        return AddScalar(addend=number)
    return AddScalar(addend=-number) if position == 1 else SubtractFrom(minuend=number)


class DivLowering(Lowering):
    """Division by a constant, as multiplication by its reciprocal."""

    name: ClassVar[str] = "Div"
    summary: ClassVar[str] = "division by a constant"
    data_inputs: ClassVar[int | None] = 2

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        divisor = constant(module.constants, node, 1)
        if divisor is None:
            return "the divisor is computed at run time, and the machine has no division"
        reciprocal = _reciprocal(divisor)
        exact = (reciprocal == 0) | (np.abs(reciprocal) >= np.finfo(np.float32).tiny)
        if np.any((~np.isfinite(reciprocal) & (float32(divisor) != 0)) | ~exact):
            return "the reciprocal of the divisor cannot be represented in float32"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        divisor = constant(rewriter.constants, node, 1)
        assert divisor is not None
        value, reciprocal = data_operand(rewriter, node.operands[0]), _reciprocal(divisor)
        if reciprocal.size == 1 and rewriter.types[value].shape == rewriter.types[node.results[0]].shape:
            function = MultiplyScalar(factor=float(reciprocal.reshape(())))
            append_pointwise(rewriter, node.name, value, function, node.results[0])
            return
        factors = rewriter.new_constant(f"{node.operands[1]}.reciprocal", reciprocal)
        append_binary(rewriter, node.name, "mul", value, factors, node.results[0])


def _reciprocal(divisor: Array) -> Array:
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return float32(np.float32(1) / float32(divisor))


class SumLowering(Lowering):
    """The sum of any number of operands, with broadcasting."""

    name: ClassVar[str] = "Sum"
    summary: ClassVar[str] = "sum of any number of operands"
    data_inputs: ClassVar[int | None] = None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        operands = [data_operand(rewriter, operand) for operand in node.operands]
        shape = rewriter.types[node.results[0]].shape
        if len(operands) == 1:
            append_expand(rewriter, node.name, operands[0], shape, node.results[0])
            return
        total = operands[0]
        for number, operand in enumerate(operands[1:], 2):
            result = node.results[0] if number == len(operands) else None
            total = append_binary(rewriter, node.name, "add", total, operand, result)


ELEMENTWISE = ElementwiseLowering()
DIV = DivLowering()
SUM = SumLowering()
