"""The comparison that all numeric tests of the operators make."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from raptor_core.ir.module import Module
from tests.raptor_operators.evaluation import Evaluation, lower, refusals
from tests.raptor_operators.graphs import make_model, make_module, reference


def check_model(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], seed: int = 0, rounds: int = 2) -> Module:
    """The model, lowered and computed box by box, gives what onnxruntime gives. Returns the lowered module."""
    expected = reference(model, inputs)
    module = lower(make_module(model))
    for n in range(rounds):
        found = Evaluation(module, random.Random(f"{seed}.{n}")).run(inputs)
        for name, a, b in zip(module.outputs, found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-5, err_msg=name)
    return module


def check_node(
    op_type: str,
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    operands: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
    seed: int = 0,
    rounds: int = 2,
    **attributes: object,
) -> Module:
    """A single node against onnxruntime; operands are the inputs, then the constants, unless given."""
    constants = constants or {}
    names = list(operands) if operands is not None else [*inputs, *constants]
    node = helper.make_node(op_type, names, list(outputs), name="node", **attributes)
    return check_model(make_model([node], inputs, constants, outputs, opset), inputs, seed, rounds)


def refusal(
    op_type: str,
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    operands: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
    **attributes: object,
) -> str:
    """The one reason for which a node is refused."""
    constants = constants or {}
    names = list(operands) if operands is not None else [*inputs, *constants]
    node = helper.make_node(op_type, names, list(outputs), name="node", **attributes)
    (reason,) = refusals(make_module(make_model([node], inputs, constants, outputs, opset)))
    return reason


def floats(seed: int, *shape: int) -> np.ndarray:
    """Pseudo-random float32 numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
