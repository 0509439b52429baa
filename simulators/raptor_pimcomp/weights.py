"""The matrices and biases of a PIMCOMP program, from the model that it was made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module
from raptor_pimcomp.stream import ArrayGroup, Stream, bad_stream

Array = npt.NDArray[np.float32]


@attrs.frozen(eq=False)
class LayerWeights:
    """A layer's matrix [reduction, outputs], its rows in the order in which pixels lie in memory, and its bias."""

    matrix: Array
    bias: Array | None


def layer_weights(module: Module, stream: Stream) -> dict[str, LayerWeights]:
    """The weights of every layer that has array groups, by name.

    Raises RaptorError when the model has no such layer, or one of another kind or size.
    """
    makers = {result: op for op in module.operations if isinstance(op, OnnxNode) for result in op.results}
    found = {}
    for name in dict.fromkeys(group.node for group in stream.array_groups):
        op = makers.get(name)
        if op is None or op.op_type not in _READERS:
            made = "does not make" if op is None else f"makes by {op.op_type}, not by Conv or Gemm,"
            raise bad_stream(stream.where, f"its layer '{name}' is one that the model {made} a value of that name")
        if not all(operand in module.constants for operand in op.operands[1:]):
            raise bad_stream(stream.where, f"the weights of layer '{name}' are not constants in the model")
        weights = _READERS[op.op_type](op, module.constants)
        if stream.flattened is not None and stream.flattened[0] == name:
            weights = _permuted(weights, stream.flattened[1], name, stream.where)
        found[name] = weights
    return found


def group_matrix(group: ArrayGroup, weights: Mapping[str, LayerWeights], rows: int, where: str) -> Array:
    """The matrix of one array group, with zero rows up to ``rows``."""
    whole = weights[group.node].matrix
    (top, bottom), (left, right) = group.height, group.columns
    if not (0 <= top < bottom <= whole.shape[0] and 0 <= left < right <= whole.shape[1]) or bottom - top > rows:
        raise bad_stream(
            where,
            f"an array group of layer '{group.node}' has rows {top} to {bottom} and columns {left} to {right}; "
            f"the layer has {whole.shape[0]} x {whole.shape[1]} weights, a crossbar {rows} rows",
        )
    matrix = np.zeros((rows, right - left), dtype=np.float32)
    matrix[: bottom - top] = whole[top:bottom, left:right]
    return matrix


def _convolution(op: OnnxNode, constants: Mapping[str, Any]) -> LayerWeights:
    weights = np.asarray(constants[op.operands[1]], dtype=np.float32)
    outputs, inputs = weights.shape[:2]
    groups = int(op.attributes.get("group", 1))
    window = weights.shape[2:]
    dense = np.zeros((*window, inputs * groups, outputs), dtype=np.float32)
    for number in range(groups):
        of_group = slice(number * outputs // groups, (number + 1) * outputs // groups)
        channels = slice(number * inputs, (number + 1) * inputs)
        dense[..., channels, of_group] = np.moveaxis(weights[of_group], (0, 1), (-1, -2))
    return LayerWeights(dense.reshape(-1, outputs), _bias(op, constants, 1.0))


def _fully_connected(op: OnnxNode, constants: Mapping[str, Any]) -> LayerWeights:
    weights = np.asarray(constants[op.operands[1]], dtype=np.float32)
    matrix = weights.T if op.attributes.get("transB", 0) else weights
    matrix = matrix * np.float32(op.attributes.get("alpha", 1.0))
    bias = _bias(op, constants, float(op.attributes.get("beta", 1.0)))
    return LayerWeights(matrix, None if bias is None else np.broadcast_to(bias, matrix.shape[1:]))


_READERS = {"Conv": _convolution, "Gemm": _fully_connected}


def _bias(op: OnnxNode, constants: Mapping[str, Any], factor: float) -> Array | None:
    if len(op.operands) <= 2:
        return None
    return np.asarray(constants[op.operands[2]], dtype=np.float32).reshape(-1) * np.float32(factor)


def _permuted(weights: LayerWeights, shape: tuple[int, ...], name: str, where: str) -> LayerWeights:
    """The rows as a flattened map arrives: pixel by pixel, not channel by channel."""
    if math.prod(shape) != weights.matrix.shape[0]:
        raise bad_stream(where, f"layer '{name}' has {weights.matrix.shape[0]} inputs, the flattened map is {shape}")
    order = np.arange(weights.matrix.shape[0]).reshape(shape[1:]).transpose(1, 2, 0).reshape(-1)
    return attrs.evolve(weights, matrix=weights.matrix[order])
