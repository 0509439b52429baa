"""The network of the recorded PIMCOMP programs: VGG-8 for 28 x 28 pictures, with seeded weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_CHANNELS = (64, 64, 128, 128, 256, 256)
_HIDDEN = 128


def vgg8(seed: int) -> onnx.ModelProto:
    """Six 3x3 convolutions, a 2x2 max pool after every second, two fully connected layers; values as in the program."""
    builder = _Builder(np.random.default_rng(seed))
    value, channels, side = "input", 1, 28
    for number, width in enumerate(_CHANNELS, start=1):
        weights = builder.weights(f"conv{number}", (width, channels, 3, 3))
        builder.node("Conv", [value, *weights], f"conv{number}", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        value = builder.node("Relu", [f"conv{number}"], f"relu{number}")
        channels = width
        if number % 2 == 0:
            value = builder.node("MaxPool", [value], f"pool{number - 1}", kernel_shape=[2, 2], strides=[2, 2])
            side //= 2
    value = builder.node("Flatten", [value], "flat", axis=1)
    builder.node("Gemm", [value, *builder.weights("fc1", (_HIDDEN, channels * side * side))], "fc1", transB=1)
    builder.node("Relu", ["fc1"], "fcrelu1")
    builder.node("Gemm", ["fcrelu1", *builder.weights("fc2", (10, _HIDDEN))], "output", transB=1)
    return builder.model([1, 1, 28, 28], [1, 10])


class _Builder:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def weights(self, name: str, shape: tuple[int, ...]) -> list[str]:
        """Weights and a bias."""
        scale = np.sqrt(2 / np.prod(shape[1:]))
        for part, size, factor in (("weight", shape, scale), ("bias", shape[:1], 0.1)):
            values = (self._rng.standard_normal(size) * factor).astype(np.float32)
            self._tensors.append(numpy_helper.from_array(values, f"{name}.{part}"))
        return [f"{name}.weight", f"{name}.bias"]

    def node(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        self._nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def model(self, input_shape: list[int], output_shape: list[int]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self._nodes,
            "vgg8",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, input_shape)],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, output_shape)],
            self._tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model
