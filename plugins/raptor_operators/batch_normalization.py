"""BatchNormalization with constant statistics: a factor and an addend for every channel."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_operators.append import append_binary
from raptor_operators.lowering import Lowering, Values, attribute, data_operand


class BatchNormalizationLowering(Lowering):
    """Inference only: scale, bias, mean and variance are constant."""

    name: ClassVar[str] = "BatchNormalization"
    summary: ClassVar[str] = "normalisation by constant statistics of each channel"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        if attribute(node, "training_mode", 0):
            return "training_mode is 1: statistics of the batch cannot be computed"
        rank = module.types[node.operands[0]].rank
        return None if rank >= 2 else f"a tensor of {rank} axes has no channel axis"

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value = data_operand(rewriter, node.operands[0])
        factor, addend = _factor_and_addend(node, rewriter.constants)
        shape = (-1,) + (1,) * (rewriter.types[value].rank - 2)
        factors = rewriter.new_constant(f"{node.results[0]}.factor", factor.reshape(shape))
        addends = rewriter.new_constant(f"{node.results[0]}.addend", addend.reshape(shape))
        scaled = append_binary(rewriter, node.name, "mul", value, factors)
        append_binary(rewriter, node.name, "add", scaled, addends, node.results[0])


def _factor_and_addend(node: OnnxNode, values: Values) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    scale, bias, mean, variance = (np.asarray(values[value], dtype=np.float64) for value in node.operands[1:5])
    with np.errstate(all="ignore"):  # a negative variance gives nan, as it does in onnxruntime
        factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        return factor, bias - mean * factor


BATCH_NORMALIZATION = BatchNormalizationLowering()
