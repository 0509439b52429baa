"""Relu, LeakyRelu, Clip, Sigmoid and Tanh."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.spatial.compute import PointwiseFunction
from raptor_operators.append import append_pointwise
from raptor_operators.functions import Clip, LeakyRelu, Relu, Sigmoid, Tanh
from raptor_operators.lowering import Lowering, Values, attribute, constant, data_operand


class ActivationLowering(Lowering):
    """Operators that become one function of single elements."""

    name: ClassVar[str] = "activations"
    summary: ClassVar[str] = "Relu, LeakyRelu, Sigmoid, Tanh"

    def function(self, node: OnnxNode, values: Values) -> PointwiseFunction:
        """The function of a node that was not refused."""
        if node.op_type == "LeakyRelu":
            return LeakyRelu(alpha=float(attribute(node, "alpha", 0.01)))
        return {"Relu": Relu, "Sigmoid": Sigmoid, "Tanh": Tanh}[node.op_type]()

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        function = self.function(node, rewriter.constants)
        value = data_operand(rewriter, node.operands[0])
        append_pointwise(rewriter, node.name, value, function, node.results[0])


class ClipLowering(ActivationLowering):
    """Clip, with bounds as attributes (before opset 11) or as constant inputs.

    A bound that is absent, or no tighter than the finite numbers, lets infinities pass.
    """

    name: ClassVar[str] = "Clip"
    summary: ClassVar[str] = "clip to constant bounds"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        for position, label in ((1, "min"), (2, "max")):
            bound = _bound(node, label, module.constants, position)
            if bound is not None and np.isnan(bound):
                return f"the bound '{label}' is NaN"
        return None

    def function(self, node: OnnxNode, values: Values) -> PointwiseFunction:
        lower, upper = _bound(node, "min", values, 1), _bound(node, "max", values, 2)
        limits = np.finfo(np.float32)
        return Clip(
            lower=None if lower is None or lower <= limits.min else lower,
            upper=None if upper is None or upper >= limits.max else upper,
        )


def _bound(node: OnnxNode, attribute_name: str, values: Values, position: int) -> float | None:
    given = attribute(node, attribute_name, None)
    array = constant(values, node, position) if given is None else np.float32(given)
    return None if array is None else float(np.float32(np.asarray(array).reshape(())))


ACTIVATIONS = ActivationLowering()
CLIP = ClipLowering()
