"""Small ONNX models for tests of the driver and the command line."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def tiny_network(shape: tuple[int | str, ...] = (1, 2, 4, 4), name: str = "tiny") -> onnx.ModelProto:
    """A convolution and a Relu: input ``x`` [1, 2, 4, 4], output ``y`` [1, 3, 4, 4]."""
    weights = np.random.default_rng(5).standard_normal((3, 2, 3, 3)).astype(np.float32)
    return _model(
        name,
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["y"], name="relu"),
        ],
        {"x": shape},
        {"y": (shape[0], 3, *shape[2:])},
        {"w": weights},
    )


def two_inputs() -> onnx.ModelProto:
    """``a`` + ``b``, both [1, 6]."""
    nodes = [helper.make_node("Add", ["a", "b"], ["y"], name="add")]
    return _model("sum", nodes, {"a": (1, 6), "b": (1, 6)}, {"y": (1, 6)}, {})


def _model(name, nodes, inputs, outputs, initializers) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in inputs.items()],
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in outputs.items()],
        [numpy_helper.from_array(array, key) for key, array in initializers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
