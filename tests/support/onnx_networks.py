"""Random small ONNX networks over the operators that Raptor lowers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """Grows a graph on one value after another, keeping their shapes."""

    def __init__(self, shape: tuple[int, ...], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": shape}
        self.last = "x"

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int, scale: float = 1.0) -> str:
        fan_in = max(1, int(np.prod(shape[1:])))
        return self.constant((self.rng.normal(size=shape) * scale / np.sqrt(fan_in)).astype(np.float32))

    def node(self, op: str, inputs: list[str], **attributes: Any) -> None:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op.lower()}{len(self.nodes)}", **attributes))
        self.last = name
        self.shapes[name] = self._infer(name)

    def _infer(self, name: str) -> tuple[int, ...]:
        model = onnx.shape_inference.infer_shapes(self.model((name,)), strict_mode=True, data_prop=True)
        return tuple(d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim)

    def model(self, outputs: tuple[str, ...] | None = None) -> onnx.ModelProto:
        outputs = outputs or (self.last,)
        shapes = [self.shapes.get(name) for name in outputs]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shapes["x"])],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(outputs, shapes, strict=True)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _conv(draw: st.DrawFn, b: Builder) -> None:
    _, channels, height, width = b.shapes[b.last]
    groups = draw(st.sampled_from([g for g in (1, 2, channels) if channels % g == 0]))
    out = groups * draw(st.integers(1, 6))
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    dilations = [draw(st.integers(1, 2)) for _ in range(2)]
    pads = [draw(st.integers(0, 2)) for _ in range(4)]
    for axis, extent in enumerate((height, width)):
        if extent + pads[axis] + pads[axis + 2] < (kernel[axis] - 1) * dilations[axis] + 1:
            kernel[axis] = 1
    inputs = [b.last, b.weights(out, channels // groups, *kernel)]
    if draw(st.booleans()):
        inputs.append(b.weights(out))
    strides = [draw(st.integers(1, 2)) for _ in range(2)]
    b.node("Conv", inputs, kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=groups)


def _pool(draw: st.DrawFn, b: Builder) -> None:
    _, _, height, width = b.shapes[b.last]
    kernel = [min(draw(st.integers(1, 3)), extent) for extent in (height, width)]
    pads = [draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
    strides = [draw(st.integers(1, 2)) for _ in range(2)]
    op = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    extra = {"count_include_pad": draw(st.integers(0, 1))} if op == "AveragePool" else {}
    b.node(op, [b.last], kernel_shape=kernel, strides=strides, pads=pads, **extra)


def _activation(draw: st.DrawFn, b: Builder) -> None:
    op = draw(st.sampled_from(["Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip"]))
    if op == "Clip":
        bounds = [b.constant(np.float32(-0.3)), b.constant(np.float32(draw(st.sampled_from([0.4, 6.0]))))]
        b.node(op, [b.last, *bounds])
    else:
        b.node(op, [b.last])


def _binary(draw: st.DrawFn, b: Builder) -> None:
    op = draw(st.sampled_from(["Add", "Sub", "Mul"]))
    shape = b.shapes[b.last]
    alike = [name for name, other in b.shapes.items() if other == shape]
    kind = draw(st.sampled_from(["value", "channel", "scalar"]))
    if kind == "value":
        other = draw(st.sampled_from(alike))
    elif kind == "channel" and len(shape) == 4:
        other = b.weights(shape[1], 1, 1)
    else:
        other = b.weights()
    b.node(op, draw(st.permutations([b.last, other])))


def _concat(draw: st.DrawFn, b: Builder) -> None:
    shape = b.shapes[b.last]
    alike = [n for n, s in b.shapes.items() if len(s) == 4 and (s[0], *s[2:]) == (shape[0], *shape[2:])]
    b.node("Concat", [b.last, draw(st.sampled_from(alike))], axis=1)


def _pad(draw: st.DrawFn, b: Builder) -> None:
    pads = [0, 0, draw(st.integers(0, 2)), draw(st.integers(0, 1)), 0, 0, draw(st.integers(0, 1)), 0]
    b.node("Pad", [b.last, b.constant(np.array(pads, np.int64)), b.constant(np.float32(0.5))])


def _transpose(draw: st.DrawFn, b: Builder) -> None:
    b.node("Transpose", [b.last], perm=[0, 1, 3, 2])


_STEPS = (_conv, _conv, _pool, _activation, _activation, _binary, _concat, _pad, _transpose)


def _head(draw: st.DrawFn, b: Builder) -> None:
    if draw(st.booleans()):
        b.node("GlobalAveragePool", [b.last])
    b.node("Flatten", [b.last])
    features = b.shapes[b.last][1]
    units = draw(st.integers(1, 20))
    if draw(st.booleans()):
        b.node("Gemm", [b.last, b.weights(units, features), b.weights(units)], transB=1)
    else:
        b.node("MatMul", [b.last, b.constant((b.rng.normal(size=(features, units)) / features**0.5).astype("f4"))])
    if draw(st.booleans()):
        b.node("Softmax", [b.last], axis=1)


@st.composite
def networks(draw: st.DrawFn) -> onnx.ModelProto:
    """A network of up to seven operators and perhaps a classifier head, at most two outputs."""
    shape = (
        draw(st.sampled_from([1, 1, 2])),
        draw(st.integers(1, 5)),
        draw(st.integers(3, 9)),
        draw(st.integers(3, 9)),
    )
    b = Builder(shape, draw(st.integers(0, 99)))
    for _ in range(draw(st.integers(1, 7))):
        draw(st.sampled_from(_STEPS))(draw, b)
    middle = b.last
    if draw(st.booleans()):
        _head(draw, b)
    outputs = (b.last,) if middle == b.last or draw(st.booleans()) else (b.last, middle)
    return b.model(outputs)


def reference(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What onnxruntime computes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
