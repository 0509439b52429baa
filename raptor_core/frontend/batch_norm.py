"""BatchNormalization folded into the convolution or matrix product before it.

Inference-mode BatchNormalization multiplies every channel by ``f = scale / sqrt(variance + epsilon)`` and adds
``a = bias - mean * f``. Both can be taken into constant weights and bias of the operation that makes the channels:
``f * (W x + b) + a = (f W) x + (f b + a)``. It is done in float64 and rounded once, and only where nothing else reads
the value in between. Where it cannot be done the node stays.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Array, Module, Rewriter
from raptor_core.ir.operation import Operation

_Float64 = npt.NDArray[np.float64]


@attrs.frozen
class _Channels:
    """What BatchNormalization does to each channel: times ``factor``, plus ``addend``."""

    factor: _Float64
    addend: _Float64


@attrs.frozen
class _Folded:
    """The operation that takes a BatchNormalization in: its type, attributes, weight and bias."""

    op_type: str
    attributes: Mapping[str, object]
    weight: _Float64
    bias: _Float64


def fold_batch_norm(module: Module) -> Module:
    """The module with BatchNormalization nodes folded wherever they can be; the nodes before keep their names."""
    rewriter = Rewriter(module)
    users = module.users_of()
    places: dict[str, int] = {}
    for op in module.operations:
        place = places.get(op.operands[0]) if isinstance(op, OnnxNode) and op.operator == "BatchNormalization" else None
        folded = None
        if isinstance(op, OnnxNode) and place is not None:
            before = rewriter.operations[place]
            if (
                isinstance(before, OnnxNode)
                and len(users[op.operands[0]]) == 1
                and op.operands[0] not in module.outputs
            ):
                folded = _fold_pair(before, op, rewriter)
        if folded is not None and place is not None:
            rewriter.operations[place] = folded
            places[folded.results[0]] = place
        else:
            places.update({result: len(rewriter.operations) for result in op.results if result})
            rewriter.append(op)
    return rewriter.finish()


def _fold_pair(before: OnnxNode, norm: OnnxNode, rewriter: Rewriter) -> Operation | None:
    channels = _channels(norm, rewriter.constants)
    with np.errstate(all="ignore"):  # what is not finite is not folded
        folded = _folded(before, channels, rewriter) if channels is not None else None
        if folded is None:
            return None
        weight, bias = folded.weight.astype(np.float32), folded.bias.astype(np.float32)
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        return None
    result = norm.results[0]
    operands = (
        before.operands[0],
        rewriter.new_constant(f"{before.operands[1]}.folded", weight),
        rewriter.new_constant(f"{before.operands[2] if _has_bias(before) else result}.folded_bias", bias),
    )
    return attrs.evolve(
        before, op_type=folded.op_type, attributes=folded.attributes, operands=operands, results=(result,)
    )


def _channels(norm: OnnxNode, constants: Mapping[str, Array]) -> _Channels | None:
    if norm.attributes.get("training_mode") or not norm.results[0] or any(norm.results[1:]):
        return None
    if any(name not in constants or constants[name].dtype != np.float32 for name in norm.operands[1:5]):
        return None
    scale, bias, mean, variance = (constants[name].astype(np.float64) for name in norm.operands[1:5])
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + float(norm.attributes.get("epsilon", 1e-5)))
        addend = bias - mean * factor
    return _Channels(factor, addend)


def _has_bias(node: OnnxNode) -> bool:
    return len(node.operands) > 2 and bool(node.operands[2])


def _folded(node: OnnxNode, channels: _Channels, rewriter: Rewriter) -> _Folded | None:
    constants = rewriter.constants
    names = [node.operands[k] for k in (1, 2) if k < len(node.operands) and node.operands[k]]
    if any(name not in constants for name in names) or node.domain or len(node.results) != 1:
        return None
    if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        return None
    weight = constants[node.operands[1]].astype(np.float64)
    bias = constants[node.operands[2]].astype(np.float64) if _has_bias(node) else None
    if node.op_type in ("Conv", "ConvTranspose"):
        return _fold_conv(node, weight, bias, channels)
    if rewriter.types[node.results[0]].rank != 2 or rewriter.types[node.operands[0]].rank != 2 or weight.ndim != 2:
        return None
    return _fold_product(node, weight, bias, channels)


def _fold_conv(node: OnnxNode, weight: _Float64, bias: _Float64 | None, channels: _Channels) -> _Folded:
    window = (1,) * (weight.ndim - 2)
    if node.op_type == "Conv":
        scaled = weight * channels.factor.reshape(-1, 1, *window)
    else:  # weights of ConvTranspose are [inputs, outputs of a group, window]
        groups = int(node.attributes.get("group", 1))
        split = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
        scaled = (split * channels.factor.reshape(groups, 1, -1, *window)).reshape(weight.shape)
    start = 0.0 if bias is None else bias
    return _Folded(node.op_type, node.attributes, scaled, start * channels.factor + channels.addend)


def _fold_product(node: OnnxNode, weight: _Float64, bias: _Float64 | None, channels: _Channels) -> _Folded:
    """Gemm, and MatMul of two matrices, which becomes a Gemm to have a bias."""
    attributes = dict(node.attributes)
    factor = channels.factor if not attributes.get("transB") else channels.factor[:, None]
    start = 0.0 if bias is None else float(attributes.pop("beta", 1.0)) * bias
    attributes.pop("beta", None)
    return _Folded("Gemm", attributes, weight * factor, start * channels.factor + channels.addend)
