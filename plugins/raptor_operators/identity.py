"""Identity, Dropout and Constant, for networks in which they were not folded away."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Array, Module, Rewriter
from raptor_core.ir.types import TensorType
from raptor_operators.append import append_expand
from raptor_operators.lowering import Lowering, attribute, constant, data_operand, float32


class IdentityLowering(Lowering):
    """A copy. Dropout is one as well: a network is compiled for inference."""

    name: ClassVar[str] = "identity"
    summary: ClassVar[str] = "Identity, and Dropout for inference"

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        training = constant(module.constants, node, 2) if node.op_type == "Dropout" else None
        if training is not None and bool(np.any(training)):
            return "training_mode is true: nothing random can be computed"
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        value, result = data_operand(rewriter, node.operands[0]), node.results[0]
        append_expand(rewriter, node.name, value, rewriter.types[value].shape, result)


class ConstantLowering(Lowering):
    """The result becomes a constant of the module."""

    name: ClassVar[str] = "Constant"
    summary: ClassVar[str] = "numeric constants"
    data_inputs: ClassVar[int | None] = 0
    results: ClassVar[int | None] = 0

    def check(self, node: OnnxNode, module: Module) -> str | None:
        return "only numeric constants are supported" if _constant(node) is None else None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        array = _constant(node)
        assert array is not None
        if array.dtype.kind == "f":
            array = float32(array)
        rewriter.constants[node.results[0]] = array
        rewriter.types[node.results[0]] = TensorType(tuple(array.shape), _ELEMENTS[array.dtype.str[1:]])


_ELEMENTS = {"f4": "f32", "i8": "i64", "i4": "i32", "i2": "i16", "i1": "i8", "u1": "u8", "b1": "bool"}


def _constant(node: OnnxNode) -> Array | None:
    """The value of a Constant node, when it is an array of a known element type."""
    for name, dtype in (("value", None), ("value_float", "f4"), ("value_floats", "f4"), ("value_int", "i8")):
        given = attribute(node, name, None)
        if given is not None:
            array = np.asarray(given, dtype=dtype)
            return array if array.dtype.kind == "f" or array.dtype.str[1:] in _ELEMENTS else None
    given = attribute(node, "value_ints", None)
    return None if given is None else np.asarray(given, dtype=np.int64)


IDENTITY = IdentityLowering()
CONSTANT = ConstantLowering()
