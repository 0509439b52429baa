"""Build well-known network topologies as ONNX files with seeded synthetic weights.

Needs only numpy and onnx (onnxruntime too for ``--check``)::

    python build_models.py --list
    python build_models.py resnet18 --out DIR
    python build_models.py resnet18 yolo11n --out DIR --bn folded --check

The graphs follow the published topologies (layer order, shapes, strides, pads, groups); the numbers in them are
synthetic.  Weights are He-uniform, scaled by the estimated second moment of the tensor they multiply, so activations
neither vanish nor explode and outputs stay comparable with an absolute tolerance.

Every weight comes from raw Philox counter bits keyed by (model family, tensor name, seed).  No library call that may
round differently between machines is involved, so one command gives one file: the printed sha256 is reproducible for
a given onnx version's protobuf layout, and a weight keeps its value when the batch-norm mode or another layer changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32


@dataclass(frozen=True)
class Tensor:
    """A value in the graph under construction: name, static shape and estimated mean of squares."""

    name: str
    shape: tuple[int, ...]
    m2: float = 1.0


# How an activation changes the mean of squares of a zero-mean unit-variance signal.
ACT_M2 = {"relu": 0.5, "relu6": 0.49, "silu": 0.356, "tanh": 0.394, "sigmoid": 0.293, "gelu": 0.425, None: 1.0}
IR_OF_OPSET = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}


class Net:
    """Graph builder that tracks shapes, multiply-accumulates and signal power."""

    def __init__(self, family: str, *, seed: int, bn: str, opset: int, batch: int, dynamic_batch: bool):
        if opset not in IR_OF_OPSET:
            raise SystemExit(f"--opset {opset}: supported are {min(IR_OF_OPSET)} to {max(IR_OF_OPSET)}")
        self.family, self.seed, self.bn_mode, self.opset = family, seed, bn, opset
        self.batch, self.dynamic_batch = batch, dynamic_batch
        self.nodes: list[onnx.NodeProto] = []
        self.inits: dict[str, np.ndarray] = {}
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.macs = 0
        self.trainable = 0

    # ---- numbers -------------------------------------------------------------------------------------------------
    def uniform(self, name: str, shape: Sequence[int], low: float = -1.0, high: float = 1.0) -> np.ndarray:
        """Deterministic float32 values in [low, high): 24 random bits each, exact in float32 before scaling."""
        digest = hashlib.sha256(f"{self.family}/{name}/{self.seed}".encode()).digest()
        count = int(np.prod(shape)) if len(shape) else 1
        raw = np.random.Philox(key=int.from_bytes(digest[:16], "little")).random_raw((count + 1) // 2)
        bits = raw.astype("<u8").view("<u4")[:count] >> np.uint32(8)
        unit = bits.astype(F32) * F32(2.0**-24)
        return (unit * F32(high - low) + F32(low)).astype(F32).reshape(tuple(shape))

    def _he(self, name: str, shape: Sequence[int], fan_in: int, m2: float, gain: float) -> np.ndarray:
        bound = math.sqrt(3.0 * gain / (fan_in * m2))
        return self.uniform(name, shape, -bound, bound)

    def const(self, name: str, value: np.ndarray, *, trainable: bool = False) -> str:
        if name in self.inits:
            if not np.array_equal(self.inits[name], value):
                raise ValueError(f"initializer {name!r} defined twice with different values")
            return name
        self.inits[name] = value
        if trainable:
            self.trainable += int(value.size)
        return name

    def ints(self, name: str, values: Sequence[int]) -> str:
        return self.const(name, np.asarray(values, dtype=np.int64))

    # ---- graph ---------------------------------------------------------------------------------------------------
    def node(self, op: str, inputs: Sequence[str], name: str, n_out: int = 1, **attrs: object) -> list[str]:
        outs = [f"{name}_out"] if n_out == 1 else [f"{name}_out{k}" for k in range(n_out)]
        self.nodes.append(helper.make_node(op, list(inputs), outs, name=name, **attrs))
        return outs

    def input(self, name: str, shape: Sequence[int]) -> Tensor:
        tensor = Tensor(name, (self.batch, *shape[1:]))
        self.inputs.append(tensor)
        return tensor

    def output(self, tensor: Tensor, name: str) -> None:
        """Rename the producing node's output, so that graph outputs have readable names."""
        for node in self.nodes:
            for field in (node.output, node.input):
                for k, value in enumerate(field):
                    if value == tensor.name:
                        field[k] = name
        self.outputs.append(Tensor(name, tensor.shape, tensor.m2))

    # ---- layers --------------------------------------------------------------------------------------------------
    def conv(
        self,
        x: Tensor,
        cout: int,
        k: int | tuple[int, int],
        *,
        s: int | tuple[int, int] = 1,
        p: int | Sequence[int] = 0,
        g: int = 1,
        bias: bool = True,
        gain: float = 1.0,
        name: str,
        fold: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Tensor:
        kh, kw = (k, k) if isinstance(k, int) else k
        sh, sw = (s, s) if isinstance(s, int) else s
        pads = [p] * 4 if isinstance(p, int) else list(p)
        n, cin, h, w = x.shape
        wshape = (cout, cin // g, kh, kw)
        weight = self._he(f"{name}.weight", wshape, wshape[1] * kh * kw, x.m2, gain)
        b = self.uniform(f"{name}.bias", (cout,), -0.1, 0.1) if bias else None
        if fold is not None:
            scale, shift = fold
            weight = (weight.astype(np.float64) * scale[:, None, None, None]).astype(F32)
            b = ((0.0 if b is None else b.astype(np.float64)) * scale + shift).astype(F32)
        ins = [x.name, self.const(f"{name}.weight", weight, trainable=True)]
        if b is not None:
            ins.append(self.const(f"{name}.bias", b, trainable=True))
        (out,) = self.node(
            "Conv", ins, name, kernel_shape=[kh, kw], strides=[sh, sw], pads=pads, dilations=[1, 1], group=g
        )
        ho = (h + pads[0] + pads[2] - kh) // sh + 1
        wo = (w + pads[1] + pads[3] - kw) // sw + 1
        self.macs += n * cout * ho * wo * wshape[1] * kh * kw
        return Tensor(out, (n, cout, ho, wo), gain)

    def _bn_params(self, c: int, m2: float, name: str, gscale: float, eps: float):
        gamma = self.uniform(f"{name}.gamma", (c,), 0.8 * gscale, 1.2 * gscale)
        beta = self.uniform(f"{name}.beta", (c,), -0.2, 0.2)
        mean = self.uniform(f"{name}.mean", (c,), -0.2 * math.sqrt(m2), 0.2 * math.sqrt(m2))
        var = self.uniform(f"{name}.var", (c,), 0.8 * m2, 1.25 * m2)
        scale = gamma.astype(np.float64) / np.sqrt(var.astype(np.float64) + eps)
        return gamma, beta, mean, var, scale, beta.astype(np.float64) - mean.astype(np.float64) * scale

    def batchnorm(self, x: Tensor, name: str, *, gscale: float = 1.0, eps: float = 1e-5) -> Tensor:
        gamma, beta, mean, var, _, _ = self._bn_params(x.shape[1], x.m2, name, gscale, eps)
        ins = [x.name]
        for key, value in (("gamma", gamma), ("beta", beta), ("mean", mean), ("var", var)):
            ins.append(self.const(f"{name}.{key}", value, trainable=key in ("gamma", "beta")))
        (out,) = self.node("BatchNormalization", ins, name, epsilon=eps)
        return Tensor(out, x.shape, 1.02 * gscale * gscale)

    def conv_bn(
        self,
        x: Tensor,
        cout: int,
        k,
        *,
        s=1,
        p=0,
        g: int = 1,
        bias: bool = False,
        gscale: float = 1.0,
        act: str | None = "relu",
        eps: float = 1e-5,
        name: str,
    ) -> Tensor:
        """Convolution, batch normalization (kept or folded into the convolution) and activation."""
        if self.bn_mode == "folded":
            _, _, _, _, scale, shift = self._bn_params(cout, 1.0, f"{name}.bn", gscale, eps)
            y = self.conv(x, cout, k, s=s, p=p, g=g, bias=bias, name=name, fold=(scale, shift))
            y = Tensor(y.name, y.shape, 1.02 * gscale * gscale)
        else:
            y = self.conv(x, cout, k, s=s, p=p, g=g, bias=bias, name=name)
            y = self.batchnorm(y, f"{name}.bn", gscale=gscale, eps=eps)
        return self.act(y, act, f"{name}.{act}")

    def gemm(self, x: Tensor, cout: int, name: str, *, gain: float = 1.0) -> Tensor:
        n, cin = x.shape
        weight = self.const(f"{name}.weight", self._he(f"{name}.weight", (cout, cin), cin, x.m2, gain), trainable=True)
        b = self.const(f"{name}.bias", self.uniform(f"{name}.bias", (cout,), -0.1, 0.1), trainable=True)
        (out,) = self.node("Gemm", [x.name, weight, b], name, alpha=1.0, beta=1.0, transB=1)
        self.macs += n * cin * cout
        return Tensor(out, (n, cout), gain)

    def linear(self, x: Tensor, cout: int, name: str, *, gain: float = 1.0) -> Tensor:
        """MatMul by a constant plus a bias Add, on the last axis of an N-D tensor."""
        cin = x.shape[-1]
        weight = self.const(f"{name}.weight", self._he(f"{name}.weight", (cin, cout), cin, x.m2, gain), trainable=True)
        b = self.const(f"{name}.bias", self.uniform(f"{name}.bias", (cout,), -0.1, 0.1), trainable=True)
        (y,) = self.node("MatMul", [x.name, weight], f"{name}.matmul")
        (y,) = self.node("Add", [y, b], f"{name}.add")
        self.macs += int(np.prod(x.shape)) * cout
        return Tensor(y, (*x.shape[:-1], cout), gain)

    def matmul(self, a: Tensor, b: Tensor, name: str) -> Tensor:
        (out,) = self.node("MatMul", [a.name, b.name], name)
        shape = (*a.shape[:-1], b.shape[-1])
        self.macs += int(np.prod(shape)) * a.shape[-1]
        return Tensor(out, shape, a.m2 * b.m2 * a.shape[-1])

    def act(self, x: Tensor, kind: str | None, name: str) -> Tensor:
        m2 = x.m2 * ACT_M2[kind]
        if kind is None:
            return x
        if kind == "relu6":
            lo, hi = self.const("relu6_min", np.asarray(0, F32)), self.const("relu6_max", np.asarray(6, F32))
            (out,) = self.node("Clip", [x.name, lo, hi], name)
        elif kind == "silu":
            (gate,) = self.node("Sigmoid", [x.name], f"{name}.sigmoid")
            (out,) = self.node("Mul", [x.name, gate], f"{name}.mul")
        elif kind == "gelu" and self.opset >= 20:
            (out,) = self.node("Gelu", [x.name], name, approximate="none")
        elif kind == "gelu":
            (y,) = self.node("Div", [x.name, self.const("sqrt2", np.asarray(math.sqrt(2.0), F32))], f"{name}.div")
            (y,) = self.node("Erf", [y], f"{name}.erf")
            (y,) = self.node("Add", [y, self.const("one", np.asarray(1, F32))], f"{name}.add")
            (y,) = self.node("Mul", [x.name, y], f"{name}.mul")
            (out,) = self.node("Mul", [y, self.const("half", np.asarray(0.5, F32))], f"{name}.scale")
        else:
            (out,) = self.node({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[kind], [x.name], name)
        return Tensor(out, x.shape, m2)

    def pool(self, x: Tensor, kind: str, k, name: str, *, s=1, p: int | Sequence[int] = 0) -> Tensor:
        kh, kw = (k, k) if isinstance(k, int) else k
        sh, sw = (s, s) if isinstance(s, int) else s
        pads = [p] * 4 if isinstance(p, int) else list(p)
        (out,) = self.node(kind, [x.name], name, kernel_shape=[kh, kw], strides=[sh, sw], pads=pads)
        n, c, h, w = x.shape
        shape = (n, c, (h + pads[0] + pads[2] - kh) // sh + 1, (w + pads[1] + pads[3] - kw) // sw + 1)
        return Tensor(
            out, shape, x.m2 * (2.2 if kind == "MaxPool" and min(sh, sw) > 1 else 1.8 if kind == "MaxPool" else 0.7)
        )

    def gap(self, x: Tensor, name: str) -> Tensor:
        (out,) = self.node("GlobalAveragePool", [x.name], name)
        return Tensor(out, (*x.shape[:2], 1, 1), 0.6 * x.m2)

    def flatten(self, x: Tensor, name: str) -> Tensor:
        (out,) = self.node("Flatten", [x.name], name, axis=1)
        return Tensor(out, (x.shape[0], int(np.prod(x.shape[1:]))), x.m2)

    def add(self, a: Tensor, b: Tensor, name: str) -> Tensor:
        (out,) = self.node("Add", [a.name, b.name], name)
        return Tensor(out, a.shape, a.m2 + b.m2)

    def concat(self, xs: Sequence[Tensor], name: str, axis: int = 1) -> Tensor:
        (out,) = self.node("Concat", [x.name for x in xs], name, axis=axis)
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        return Tensor(out, tuple(shape), sum(x.m2 * x.shape[axis] for x in xs) / shape[axis])

    def split(self, x: Tensor, sizes: Sequence[int], name: str, axis: int = 1) -> list[Tensor]:
        outs = self.node("Split", [x.name, self.ints(f"{name}.sizes", sizes)], name, n_out=len(sizes), axis=axis)
        result = []
        for out, size in zip(outs, sizes, strict=True):
            shape = list(x.shape)
            shape[axis] = size
            result.append(Tensor(out, tuple(shape), x.m2))
        return result

    def reshape(self, x: Tensor, shape: Sequence[int], name: str) -> Tensor:
        """Reshape; the batch axis is copied (0) when it stays first, so the graph also works with a dynamic batch."""
        target = [0 if k == 0 and d == x.shape[0] else d for k, d in enumerate(shape)]
        (out,) = self.node("Reshape", [x.name, self.ints(f"{name}.shape", target)], name)
        return Tensor(out, tuple(shape), x.m2)

    def transpose(self, x: Tensor, perm: Sequence[int], name: str) -> Tensor:
        (out,) = self.node("Transpose", [x.name], name, perm=list(perm))
        return Tensor(out, tuple(x.shape[k] for k in perm), x.m2)

    def softmax(self, x: Tensor, name: str, axis: int = -1) -> Tensor:
        (out,) = self.node("Softmax", [x.name], name, axis=axis)
        return Tensor(out, x.shape, 1.0 / x.shape[axis] ** 2)

    def dropout(self, x: Tensor, ratio: float, name: str) -> Tensor:
        (out,) = self.node("Dropout", [x.name, self.const(f"{name}.ratio", np.asarray(ratio, F32))], name)
        return Tensor(out, x.shape, x.m2)

    def lrn(self, x: Tensor, name: str) -> Tensor:
        (out,) = self.node("LRN", [x.name], name, size=5, alpha=1e-4, beta=0.75, bias=1.0)
        return Tensor(out, x.shape, x.m2)

    def layernorm(self, x: Tensor, name: str) -> Tensor:
        if self.opset < 17:
            raise SystemExit(f"{self.family}: LayerNormalization exists from opset 17 on, not {self.opset}")
        c = x.shape[-1]
        g = self.const(f"{name}.gamma", self.uniform(f"{name}.gamma", (c,), 0.8, 1.2), trainable=True)
        b = self.const(f"{name}.beta", self.uniform(f"{name}.beta", (c,), -0.1, 0.1), trainable=True)
        (out,) = self.node("LayerNormalization", [x.name, g, b], name, axis=-1, epsilon=1e-5)
        return Tensor(out, x.shape, 1.0)

    def upsample2(self, x: Tensor, name: str) -> Tensor:
        scales = self.const("upsample2.scales", np.asarray([1, 1, 2, 2], F32))
        (out,) = self.node(
            "Resize",
            [x.name, "", scales],
            name,
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        )
        n, c, h, w = x.shape
        return Tensor(out, (n, c, 2 * h, 2 * w), x.m2)

    # ---- finish --------------------------------------------------------------------------------------------------
    def model(self, name: str) -> onnx.ModelProto:
        def info(t: Tensor) -> onnx.ValueInfoProto:
            dims: list[int | str] = list(t.shape)
            if self.dynamic_batch:
                dims[0] = "batch"
            return helper.make_tensor_value_info(t.name, TensorProto.FLOAT, dims)

        graph = helper.make_graph(
            self.nodes,
            name,
            [info(t) for t in self.inputs],
            [info(t) for t in self.outputs],
            [numpy_helper.from_array(v, k) for k, v in self.inits.items()],
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            producer_name="build_models",
        )
        model.ir_version = IR_OF_OPSET[self.opset]
        return model


# ---- topologies ------------------------------------------------------------------------------------------------------
def resnet(n: Net, depths: Sequence[int]) -> None:
    """ResNet v1 with basic blocks (He et al. 2015, table 1), as the ONNX model zoo's resnet18-v1 and resnet34-v1."""
    x = n.input("data", (1, 3, 224, 224))
    x = n.conv_bn(x, 64, 7, s=2, p=3, name="stem.conv")
    x = n.pool(x, "MaxPool", 3, "stem.pool", s=2, p=1)
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            stride = 2 if stage and block == 0 else 1
            tag = f"stage{stage + 1}.{block}"
            y = n.conv_bn(x, width, 3, s=stride, p=1, name=f"{tag}.conv1")
            y = n.conv_bn(y, width, 3, p=1, act=None, gscale=0.5, name=f"{tag}.conv2")
            if stride != 1 or x.shape[1] != width:
                x = n.conv_bn(x, width, 1, s=stride, act=None, name=f"{tag}.down")
            power = x.m2 + 0.6 * y.m2  # the shortcut is non-negative, so the ReLU takes little of it
            x = n.act(n.add(x, y, f"{tag}.add"), "relu", f"{tag}.relu")
            x = Tensor(x.name, x.shape, power)
    x = n.gap(x, "gap")
    x = n.flatten(x, "flatten")
    n.output(n.gemm(x, 1000, "fc"), "logits")


INCEPTION = (  # name, 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection (Szegedy et al. 2014, table 1)
    ("3a", 64, 96, 128, 16, 32, 32),
    ("3b", 128, 128, 192, 32, 96, 64),
    ("4a", 192, 96, 208, 16, 48, 64),
    ("4b", 160, 112, 224, 24, 64, 64),
    ("4c", 128, 128, 256, 24, 64, 64),
    ("4d", 112, 144, 288, 32, 64, 64),
    ("4e", 256, 160, 320, 32, 128, 128),
    ("5a", 256, 160, 320, 32, 128, 128),
    ("5b", 384, 192, 384, 48, 128, 128),
)


def googlenet(n: Net, *, lrn: bool = True, softmax: bool = True) -> None:
    """GoogLeNet as in the BVLC model (ONNX model zoo, opset 12 file): pools padded by two at the far ends only."""

    def cr(x: Tensor, c: int, k: int, name: str, s: int = 1) -> Tensor:
        return n.act(n.conv(x, c, k, s=s, p=k // 2, name=name), "relu", f"{name}.relu")

    x = n.input("data_0", (1, 3, 224, 224))
    x = cr(x, 64, 7, "conv1.7x7_s2", s=2)
    x = n.pool(x, "MaxPool", 3, "pool1.3x3_s2", s=2, p=(0, 0, 2, 2))
    x = n.lrn(x, "pool1.norm1") if lrn else x
    x = cr(x, 64, 1, "conv2.3x3_reduce")
    x = cr(x, 192, 3, "conv2.3x3")
    x = n.lrn(x, "conv2.norm2") if lrn else x
    x = n.pool(x, "MaxPool", 3, "pool2.3x3_s2", s=2, p=(0, 0, 2, 2))
    for tag, c1, r3, c3, r5, c5, pp in INCEPTION:
        name = f"inception_{tag}"
        a = cr(x, c1, 1, f"{name}.1x1")
        b = cr(cr(x, r3, 1, f"{name}.3x3_reduce"), c3, 3, f"{name}.3x3")
        c = cr(cr(x, r5, 1, f"{name}.5x5_reduce"), c5, 5, f"{name}.5x5")
        d = cr(n.pool(x, "MaxPool", 3, f"{name}.pool", p=1), pp, 1, f"{name}.pool_proj")
        x = n.concat([a, b, c, d], f"{name}.output")
        if tag in ("3b", "4e"):
            x = n.pool(x, "MaxPool", 3, f"pool{int(tag[0])}.3x3_s2", s=2, p=(0, 0, 2, 2))
    x = n.pool(x, "AveragePool", 7, "pool5.7x7_s1")
    x = n.dropout(x, 0.4, "pool5.dropout")
    x = n.reshape(x, (x.shape[0], 1024), "pool5.flat")
    x = n.gemm(x, 1000, "loss3.classifier", gain=4.0)
    n.output(n.softmax(x, "softmax") if softmax else x, "prob" if softmax else "logits")


def vgg8(n: Net, *, divide: int = 1, fc: int = 1024) -> None:
    """VGG-8: 2x128C3-MP2-2x256C3-MP2-2x512C3-MP2-1024FC-10FC, on 1x28x28 digits; widths divided by `divide`."""
    x = n.input("image", (1, 1, 28, 28))
    for k, width in enumerate((128, 128, 256, 256, 512, 512)):
        x = n.act(n.conv(x, width // divide, 3, p=1, name=f"conv{k + 1}"), "relu", f"relu{k + 1}")
        if k % 2:
            x = n.pool(x, "MaxPool", 2, f"pool{k // 2 + 1}", s=2)
    x = n.flatten(x, "flatten")
    x = n.act(n.gemm(x, fc // divide, "fc1"), "relu", "relu7")
    n.output(n.gemm(x, 10, "fc2", gain=4.0), "logits")


def vgg16(n: Net) -> None:
    """VGG-16 configuration D (Simonyan and Zisserman 2014). 138 million parameters: a 553 MB file."""
    x = n.input("data", (1, 3, 224, 224))
    for stage, (depth, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))):
        for k in range(depth):
            name = f"conv{stage + 1}_{k + 1}"
            x = n.act(n.conv(x, width, 3, p=1, name=name), "relu", f"{name}.relu")
        x = n.pool(x, "MaxPool", 2, f"pool{stage + 1}", s=2)
    x = n.flatten(x, "flatten")
    for k in (6, 7):
        x = n.dropout(n.act(n.gemm(x, 4096, f"fc{k}"), "relu", f"fc{k}.relu"), 0.5, f"fc{k}.dropout")
    n.output(n.gemm(x, 1000, "fc8", gain=4.0), "logits")


def alexnet(n: Net) -> None:
    """AlexNet in its single-tower form (Krizhevsky 2014, the torchvision widths)."""
    x = n.input("data", (1, 3, 224, 224))
    for k, (c, ks, s, p, pool) in enumerate(
        ((64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False), (256, 3, 1, 1, False), (256, 3, 1, 1, True))
    ):
        x = n.act(n.conv(x, c, ks, s=s, p=p, name=f"conv{k + 1}"), "relu", f"relu{k + 1}")
        x = n.pool(x, "MaxPool", 3, f"pool{k + 1}", s=2) if pool else x
    x = n.flatten(x, "flatten")
    for k in (6, 7):
        x = n.act(n.gemm(n.dropout(x, 0.5, f"fc{k}.dropout"), 4096, f"fc{k}"), "relu", f"fc{k}.relu")
    n.output(n.gemm(x, 1000, "fc8", gain=4.0), "logits")


def alexnet_bvlc(n: Net) -> None:
    """The original two-group AlexNet with LRN, as the ONNX model zoo's bvlcalexnet (conv1 without padding)."""
    x = n.input("data_0", (1, 3, 224, 224))
    x = n.act(n.conv(x, 96, 11, s=4, name="conv1"), "relu", "relu1")
    x = n.pool(n.lrn(x, "norm1"), "MaxPool", 3, "pool1", s=2)
    x = n.act(n.conv(x, 256, 5, p=2, g=2, name="conv2"), "relu", "relu2")
    x = n.pool(n.lrn(x, "norm2"), "MaxPool", 3, "pool2", s=2)
    x = n.act(n.conv(x, 384, 3, p=1, name="conv3"), "relu", "relu3")
    x = n.act(n.conv(x, 384, 3, p=1, g=2, name="conv4"), "relu", "relu4")
    x = n.act(n.conv(x, 256, 3, p=1, g=2, name="conv5"), "relu", "relu5")
    x = n.pool(x, "MaxPool", 3, "pool5", s=2, p=(0, 0, 1, 1))
    x = n.reshape(x, (x.shape[0], 9216), "pool5.flat")
    for k in (6, 7):
        x = n.dropout(n.act(n.gemm(x, 4096, f"fc{k}"), "relu", f"fc{k}.relu"), 0.5, f"fc{k}.dropout")
    n.output(n.softmax(n.gemm(x, 1000, "fc8", gain=4.0), "softmax"), "prob")


def squeezenet(n: Net) -> None:
    """SqueezeNet 1.1 (the 1.1 release of Iandola et al. 2016), classifier with the ReLU before global pooling."""

    def cr(x: Tensor, c: int, k: int, name: str, s: int = 1, p: int = 0) -> Tensor:
        return n.act(n.conv(x, c, k, s=s, p=p, name=name), "relu", f"{name}.relu")

    x = n.input("data_0", (1, 3, 224, 224))
    x = n.pool(cr(x, 64, 3, "conv1", s=2), "MaxPool", 3, "pool1", s=2)
    for k, (squeeze, expand) in enumerate(
        ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)), start=2
    ):
        y = cr(x, squeeze, 1, f"fire{k}.squeeze1x1")
        x = n.concat(
            [cr(y, expand, 1, f"fire{k}.expand1x1"), cr(y, expand, 3, f"fire{k}.expand3x3", p=1)], f"fire{k}.concat"
        )
        x = n.pool(x, "MaxPool", 3, f"pool{k}", s=2) if k in (3, 5) else x
    x = cr(n.dropout(x, 0.5, "dropout"), 1000, 1, "conv10")
    n.output(n.softmax(n.gap(x, "pool10"), "softmax", axis=1), "prob")


def mobilenetv2(n: Net) -> None:
    """MobileNetV2 1.0 (Sandler et al. 2018, table 2), ReLU6 as Clip, as the ONNX model zoo's mobilenetv2-12."""
    x = n.input("input", (1, 3, 224, 224))
    x = n.conv_bn(x, 32, 3, s=2, p=1, act="relu6", name="stem")
    block = 0
    for t, c, repeat, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for k in range(repeat):
            block += 1
            name, s = f"block{block}", stride if k == 0 else 1
            hidden, y = x.shape[1] * t, x
            if t != 1:
                y = n.conv_bn(y, hidden, 1, act="relu6", name=f"{name}.expand")
            y = n.conv_bn(y, hidden, 3, s=s, p=1, g=hidden, act="relu6", name=f"{name}.dw")
            keep = s == 1 and x.shape[1] == c
            y = n.conv_bn(y, c, 1, act=None, gscale=0.5 if keep else 1.0, name=f"{name}.project")
            x = n.add(x, y, f"{name}.add") if keep else y
    x = n.conv_bn(x, 1280, 1, act="relu6", name="head")
    n.output(n.gemm(n.flatten(n.gap(x, "gap"), "flatten"), 1000, "fc"), "logits")


def mobilenetv1_vww(n: Net) -> None:
    """MobileNetV1 0.25 at 96x96, the MLPerf Tiny visual wake words model (TensorFlow SAME pads, hence asymmetric)."""
    x = n.input("image", (1, 3, 96, 96))
    x = n.conv_bn(x, 8, 3, s=2, p=(0, 0, 1, 1), bias=True, eps=1e-3, name="stem")
    for k, (c, s) in enumerate(
        (
            (16, 1),
            (32, 2),
            (32, 1),
            (64, 2),
            (64, 1),
            (128, 2),
            (128, 1),
            (128, 1),
            (128, 1),
            (128, 1),
            (128, 1),
            (256, 2),
            (256, 1),
        )
    ):
        pads = (0, 0, 1, 1) if s == 2 else 1
        x = n.conv_bn(x, x.shape[1], 3, s=s, p=pads, g=x.shape[1], bias=True, eps=1e-3, name=f"block{k + 1}.dw")
        x = n.conv_bn(x, c, 1, bias=True, eps=1e-3, name=f"block{k + 1}.pw")
    x = n.pool(x, "AveragePool", x.shape[2:], "pool")
    n.output(n.softmax(n.gemm(n.flatten(x, "flatten"), 2, "fc"), "softmax"), "prob")


def resnet8(n: Net) -> None:
    """ResNet-8 for CIFAR-10, the MLPerf Tiny image classification model (convolutions keep their biases)."""
    x = n.input("image", (1, 3, 32, 32))
    x = n.conv_bn(x, 16, 3, p=1, bias=True, eps=1e-3, name="stem")
    for stage, width in enumerate((16, 32, 64), start=1):
        s = 1 if stage == 1 else 2
        pads = 1 if s == 1 else (0, 0, 1, 1)
        y = n.conv_bn(x, width, 3, s=s, p=pads, bias=True, eps=1e-3, name=f"stage{stage}.conv1")
        y = n.conv_bn(y, width, 3, p=1, bias=True, eps=1e-3, act=None, gscale=0.7, name=f"stage{stage}.conv2")
        x = x if s == 1 else n.conv(x, width, 1, s=s, name=f"stage{stage}.down")
        x = n.act(n.add(x, y, f"stage{stage}.add"), "relu", f"stage{stage}.relu")
    x = n.pool(x, "AveragePool", 8, "pool", s=8)
    n.output(n.softmax(n.gemm(n.flatten(x, "flatten"), 10, "fc", gain=4.0), "softmax"), "prob")


def ds_cnn(n: Net) -> None:
    """DS-CNN on 49x10 MFCCs, the MLPerf Tiny keyword spotting model (12 classes)."""
    x = n.input("mfcc", (1, 1, 49, 10))
    x = n.conv_bn(x, 64, (10, 4), s=2, p=(4, 1, 5, 1), bias=True, eps=1e-3, name="stem")
    x = n.dropout(x, 0.2, "stem.dropout")
    for k in range(1, 5):
        x = n.conv_bn(x, 64, 3, p=1, g=64, bias=True, eps=1e-3, name=f"block{k}.dw")
        x = n.conv_bn(x, 64, 1, bias=True, eps=1e-3, name=f"block{k}.pw")
    x = n.dropout(x, 0.4, "dropout")
    x = n.pool(x, "AveragePool", (25, 5), "pool", s=(25, 5))
    n.output(n.softmax(n.gemm(n.flatten(x, "flatten"), 12, "fc", gain=4.0), "softmax"), "prob")


def autoencoder(n: Net) -> None:
    """Dense autoencoder 640-128x4-8-128x4-640, the MLPerf Tiny anomaly detection model."""
    x = n.input("frames", (1, 640))
    for k, width in enumerate((128, 128, 128, 128, 8, 128, 128, 128, 128), start=1):
        x = n.gemm(x, width, f"fc{k}")
        if n.bn_mode == "folded":
            *_, scale, shift = n._bn_params(width, 1.0, f"fc{k}.bn", 1.0, 1e-3)
            w, b = n.inits[f"fc{k}.weight"], n.inits[f"fc{k}.bias"]
            n.inits[f"fc{k}.weight"] = (w.astype(np.float64) * scale[:, None]).astype(F32)
            n.inits[f"fc{k}.bias"] = (b.astype(np.float64) * scale + shift).astype(F32)
            x = Tensor(x.name, x.shape, 1.02)
        else:
            x = n.batchnorm(x, f"fc{k}.bn", eps=1e-3)
        x = n.act(x, "relu", f"fc{k}.relu")
    n.output(n.gemm(x, 640, "fc10"), "reconstruction")


def mlp_mnist(n: Net) -> None:
    """LeNet-300-100, the classic three-layer perceptron for 28x28 digits."""
    x = n.flatten(n.input("image", (1, 1, 28, 28)), "flatten")
    x = n.act(n.gemm(x, 300, "fc1"), "relu", "relu1")
    x = n.act(n.gemm(x, 100, "fc2"), "relu", "relu2")
    n.output(n.gemm(x, 10, "fc3", gain=4.0), "logits")


def lenet5(n: Net, *, modern: bool = False) -> None:
    """LeNet-5 on 28x28 digits: tanh and average pooling (1998), or ReLU and max pooling."""
    act, pool = ("relu", "MaxPool") if modern else ("tanh", "AveragePool")
    x = n.input("image", (1, 1, 28, 28))
    x = n.act(n.conv(x, 6, 5, p=2, name="conv1"), act, "act1")
    x = n.pool(x, pool, 2, "pool1", s=2)
    x = n.act(n.conv(x, 16, 5, name="conv2"), act, "act2")
    x = n.flatten(n.pool(x, pool, 2, "pool2", s=2), "flatten")
    x = n.act(n.gemm(x, 120, "fc1"), act, "act3")
    x = n.act(n.gemm(x, 84, "fc2"), act, "act4")
    n.output(n.gemm(x, 10, "fc3", gain=4.0), "logits")


def unet_small(n: Net, *, deconv: bool = False) -> None:
    """A three-level U-Net, 16 to 128 channels, on 3x64x64; decoder by nearest Resize plus 3x3 (or ConvTranspose)."""

    def double(x: Tensor, c: int, name: str) -> Tensor:
        for k in (1, 2):
            x = n.act(n.conv(x, c, 3, p=1, name=f"{name}.conv{k}"), "relu", f"{name}.relu{k}")
        return x

    x = n.input("image", (1, 3, 64, 64))
    skips = []
    for level, c in enumerate((16, 32, 64)):
        x = double(x, c, f"enc{level}")
        skips.append(x)
        x = n.pool(x, "MaxPool", 2, f"enc{level}.pool", s=2)
    x = double(x, 128, "middle")
    for level, c in ((2, 64), (1, 32), (0, 16)):
        if deconv:
            cin, name = x.shape[1], f"dec{level}.up"
            w = n._he(f"{name}.weight", (cin, c, 2, 2), cin, x.m2, 1.0)
            ins = [
                x.name,
                n.const(f"{name}.weight", w, trainable=True),
                n.const(f"{name}.bias", n.uniform(f"{name}.bias", (c,), -0.1, 0.1), trainable=True),
            ]
            (out,) = n.node("ConvTranspose", ins, name, kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4)
            n.macs += int(np.prod(x.shape)) * c * 4
            x = Tensor(out, (x.shape[0], c, 2 * x.shape[2], 2 * x.shape[3]), 1.0)
        else:
            x = n.conv(n.upsample2(x, f"dec{level}.up"), c, 3, p=1, name=f"dec{level}.upconv")
        x = double(n.concat([skips[level], x], f"dec{level}.concat"), c, f"dec{level}")
    n.output(n.act(n.conv(x, 1, 1, name="head"), "sigmoid", "head.sigmoid"), "mask")


# ---- YOLO11n ---------------------------------------------------------------------------------------------------------
def yolo11n(n: Net, *, softmax: bool = True, raw: bool = False) -> None:
    """YOLO11 nano detector, 80 classes, 640x640.

    ``softmax=False`` drops both Softmax nodes (attention, box distribution) and rescales the constant next to each.
    ``raw`` ends at the three head maps (64 box plus 80 class channels each) instead of decoded boxes.
    """
    silu, hw = "silu", 640

    def cbs(x: Tensor, c: int, k: int, name: str, s: int = 1, g: int = 1, act: str | None = silu) -> Tensor:
        return n.conv_bn(x, c, k, s=s, p=k // 2, g=g, act=act, eps=1e-3, name=name)

    def bottleneck(x: Tensor, hidden: int, name: str) -> Tensor:
        y = cbs(cbs(x, hidden, 3, f"{name}.cv1"), x.shape[1], 3, f"{name}.cv2")
        return n.add(x, y, f"{name}.add")

    def c3k(x: Tensor, name: str) -> Tensor:
        half = x.shape[1] // 2
        y = cbs(x, half, 1, f"{name}.cv1")
        for k in range(2):
            y = bottleneck(y, half, f"{name}.m{k}")
        y = n.concat([y, cbs(x, half, 1, f"{name}.cv2")], f"{name}.concat")
        return cbs(y, x.shape[1], 1, f"{name}.cv3")

    def c3k2(x: Tensor, c_out: int, inner: int, name: str, big: bool) -> Tensor:
        x = cbs(x, 2 * inner, 1, f"{name}.cv1")
        a, b = n.split(x, (inner, inner), f"{name}.split")
        y = c3k(b, f"{name}.m0") if big else bottleneck(b, inner // 2, f"{name}.m0")
        return cbs(n.concat([a, b, y], f"{name}.concat"), c_out, 1, f"{name}.cv2")

    def sppf(x: Tensor, name: str) -> Tensor:
        parts = [cbs(x, x.shape[1] // 2, 1, f"{name}.cv1")]
        for k in range(3):
            parts.append(n.pool(parts[-1], "MaxPool", 5, f"{name}.pool{k}", p=2))
        return cbs(n.concat(parts, f"{name}.concat"), x.shape[1], 1, f"{name}.cv2")

    def attention(x: Tensor, name: str) -> Tensor:
        batch, c, h, w = x.shape
        heads, key = c // 64, 32
        qkv = cbs(x, c + 2 * key * heads, 1, f"{name}.qkv", act=None)
        qkv = n.reshape(qkv, (batch, heads, 2 * key + 64, h * w), f"{name}.heads")
        q, k, v = n.split(qkv, (key, key, 64), f"{name}.split", axis=2)
        scale = key**-0.5 if softmax else key**-0.5 / (h * w)
        (scaled,) = n.node("Mul", [q.name, n.const(f"{name}.scale", np.asarray(scale, F32))], f"{name}.scaled")
        q = n.transpose(Tensor(scaled, q.shape, q.m2 * scale**2), (0, 1, 3, 2), f"{name}.qt")
        score = n.matmul(q, k, f"{name}.qk")
        score = n.softmax(score, f"{name}.softmax") if softmax else score
        y = n.matmul(v, n.transpose(score, (0, 1, 3, 2), f"{name}.pt"), f"{name}.pv")
        y = Tensor(n.reshape(y, x.shape, f"{name}.merge").name, x.shape, 0.1)
        pe = cbs(n.reshape(v, x.shape, f"{name}.vmap"), c, 3, f"{name}.pe", g=c, act=None)
        return cbs(n.add(y, pe, f"{name}.add"), c, 1, f"{name}.proj", act=None)

    def c2psa(x: Tensor, name: str) -> Tensor:
        c = x.shape[1]
        y = cbs(x, c, 1, f"{name}.cv1")
        a, b = n.split(y, (c // 2, c // 2), f"{name}.split")
        b = n.add(b, attention(b, f"{name}.attn"), f"{name}.add1")
        ffn = cbs(cbs(b, c, 1, f"{name}.ffn0"), c // 2, 1, f"{name}.ffn1", act=None)
        b = n.add(b, ffn, f"{name}.add2")
        return cbs(n.concat([a, b], f"{name}.concat"), c, 1, f"{name}.cv2")

    x = n.input("images", (1, 3, hw, hw))
    x = cbs(cbs(x, 16, 3, "m0", s=2), 32, 3, "m1", s=2)
    x = cbs(c3k2(x, 64, 16, "m2", False), 64, 3, "m3", s=2)
    p3 = c3k2(x, 128, 32, "m4", False)
    p4 = c3k2(cbs(p3, 128, 3, "m5", s=2), 128, 64, "m6", True)
    x = c3k2(cbs(p4, 256, 3, "m7", s=2), 256, 128, "m8", True)
    p5 = c2psa(sppf(x, "m9"), "m10")
    n4 = c3k2(n.concat([n.upsample2(p5, "m11"), p4], "m12"), 128, 64, "m13", False)
    n3 = c3k2(n.concat([n.upsample2(n4, "m14"), p3], "m15"), 64, 32, "m16", False)
    n4 = c3k2(n.concat([cbs(n3, 64, 3, "m17", s=2), n4], "m18"), 128, 64, "m19", False)
    n5 = c3k2(n.concat([cbs(n4, 128, 3, "m20", s=2), p5], "m21"), 256, 128, "m22", True)

    batch, boxes, classes = n.batch, [], []
    for level, x in enumerate((n3, n4, n5)):
        name = f"m23.box{level}"
        x = cbs(cbs(x, 64, 3, f"{name}.0"), 64, 3, f"{name}.1")
        boxes.append(n.conv(x, 64, 1, name=f"{name}.2"))
    for level, x in enumerate((n3, n4, n5)):
        name = f"m23.cls{level}"
        for k in range(2):
            x = cbs(x, x.shape[1], 3, f"{name}.{k}.dw", g=x.shape[1])
            x = cbs(x, 80, 1, f"{name}.{k}.pw")
        classes.append(n.conv(x, 80, 1, name=f"{name}.2"))
    if raw:
        for level, pair in enumerate(zip(boxes, classes, strict=True)):
            n.output(n.concat(pair, f"m23.head{level}"), f"head{level}")
        return

    def flat(maps: Sequence[Tensor], name: str) -> Tensor:
        parts = [
            n.reshape(m, (batch, m.shape[1], m.shape[2] * m.shape[3]), f"{name}{k}.flat") for k, m in enumerate(maps)
        ]
        return n.concat(parts, f"{name}.concat", axis=2)

    box, cls = flat(boxes, "m23.box"), flat(classes, "m23.cls")
    anchors, strides = [], []
    for size in (80, 40, 20):
        ys, xs = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5, indexing="ij")
        anchors.append(np.stack([xs.ravel(), ys.ravel()]))
        strides.append(np.full(size * size, hw / size))
    anchor = n.const("m23.anchors", np.concatenate(anchors, 1)[None].astype(F32))
    stride = n.const("m23.strides", np.concatenate(strides)[None].astype(F32))
    total = box.shape[2]
    y = n.transpose(n.reshape(box, (batch, 4, 16, total), "m23.dfl.split"), (0, 2, 1, 3), "m23.dfl.t")
    y = n.softmax(y, "m23.dfl.softmax", axis=1) if softmax else y
    bins = (np.arange(16) / (1 if softmax else 16)).astype(F32).reshape(1, 16, 1, 1)
    n.const("m23.dfl.weight", bins, trainable=True)
    (dist,) = n.node(
        "Conv",
        [y.name, "m23.dfl.weight"],
        "m23.dfl.conv",
        kernel_shape=[1, 1],
        strides=[1, 1],
        pads=[0] * 4,
        dilations=[1, 1],
        group=1,
    )
    n.macs += batch * 16 * 4 * total
    dist = n.reshape(Tensor(dist, (batch, 1, 4, total)), (batch, 4, total), "m23.dfl.merge")
    zero, two, four, axis = (n.ints(f"m23.{k}", [v]) for k, v in (("i0", 0), ("i2", 2), ("i4", 4), ("i1", 1)))
    (lt,) = n.node("Slice", [dist.name, zero, two, axis], "m23.lt")
    (rb,) = n.node("Slice", [dist.name, two, four, axis], "m23.rb")
    (x1,) = n.node("Sub", [anchor, lt], "m23.x1y1")
    (x2,) = n.node("Add", [anchor, rb], "m23.x2y2")
    (mid,) = n.node("Add", [x1, x2], "m23.sum")
    (mid,) = n.node("Div", [mid, n.const("m23.two", np.asarray(2, F32))], "m23.center")
    (wh,) = n.node("Sub", [x2, x1], "m23.size")
    (xywh,) = n.node("Concat", [mid, wh], "m23.xywh", axis=1)
    (xywh,) = n.node("Mul", [xywh, stride], "m23.pixels")
    scores = n.act(cls, "sigmoid", "m23.scores")
    y = n.concat([Tensor(xywh, (batch, 4, total)), scores], "m23.output")
    n.output(y, "output0")


# ---- transformers ----------------------------------------------------------------------------------------------------
def self_attention(n: Net, x: Tensor, heads: int, name: str, *, fused: bool) -> Tensor:
    batch, seq, dim = x.shape
    head = dim // heads
    if fused:  # one qkv product, split on a leading axis, as ViT implementations export it
        qkv = n.linear(x, 3 * dim, f"{name}.qkv")
        qkv = n.reshape(qkv, (batch, seq, 3, heads, head), f"{name}.heads")
        qkv = n.transpose(qkv, (2, 0, 3, 1, 4), f"{name}.order")
        parts = []
        for k, key in enumerate("qkv"):
            index = n.const(f"index{k}", np.asarray(k, np.int64))
            (out,) = n.node("Gather", [qkv.name, index], f"{name}.{key}", axis=0)
            parts.append(Tensor(out, qkv.shape[1:], qkv.m2))
        q, k, v = parts
    else:
        q, k, v = (
            n.transpose(
                n.reshape(n.linear(x, dim, f"{name}.{key}"), (batch, seq, heads, head), f"{name}.{key}.heads"),
                (0, 2, 1, 3),
                f"{name}.{key}.order",
            )
            for key in "qkv"
        )
    scale = n.const("attention.scale", np.asarray(head**-0.5, F32))
    (q_scaled,) = n.node("Mul", [q.name, scale], f"{name}.scaled")
    score = n.matmul(Tensor(q_scaled, q.shape, q.m2 / head), n.transpose(k, (0, 1, 3, 2), f"{name}.kt"), f"{name}.qk")
    y = n.matmul(n.softmax(score, f"{name}.softmax"), v, f"{name}.pv")
    y = n.transpose(Tensor(y.name, y.shape, 0.3), (0, 2, 1, 3), f"{name}.back")
    return n.linear(n.reshape(y, x.shape, f"{name}.merge"), dim, f"{name}.proj", gain=0.3)


def vit_block(n: Net, x: Tensor, heads: int, mlp: int, name: str) -> Tensor:
    """Pre-norm transformer block (Dosovitskiy et al. 2020)."""
    y = self_attention(n, n.layernorm(x, f"{name}.ln1"), heads, f"{name}.attn", fused=True)
    x = n.add(x, y, f"{name}.add1")
    y = n.act(n.linear(n.layernorm(x, f"{name}.ln2"), mlp, f"{name}.fc1"), "gelu", f"{name}.gelu")
    return n.add(x, n.linear(y, x.shape[2], f"{name}.fc2", gain=0.3), f"{name}.add2")


def bert_block(n: Net, x: Tensor, heads: int, mlp: int, name: str) -> Tensor:
    """Post-norm transformer block (Devlin et al. 2018)."""
    x = n.layernorm(n.add(x, self_attention(n, x, heads, f"{name}.attn", fused=False), f"{name}.add1"), f"{name}.ln1")
    y = n.linear(n.act(n.linear(x, mlp, f"{name}.fc1"), "gelu", f"{name}.gelu"), x.shape[2], f"{name}.fc2", gain=0.3)
    return n.layernorm(n.add(x, y, f"{name}.add2"), f"{name}.ln2")


def vit_single(n: Net) -> None:
    x = n.input("tokens", (1, 197, 192))
    n.output(vit_block(n, x, 3, 768, "block"), "out")


def vit_tiny(n: Net) -> None:
    """ViT-Ti/16 at 224x224: 12 blocks of width 192 with 3 heads."""
    if n.dynamic_batch:
        raise SystemExit("vit-tiny: the class token is a constant of the batch size, so --dynamic-batch is not offered")
    x = n.input("image", (1, 3, 224, 224))
    x = n.conv(x, 192, 16, s=16, name="patch")
    x = n.transpose(n.reshape(x, (n.batch, 192, 196), "patch.flat"), (0, 2, 1), "patch.tokens")
    cls = np.repeat(n.uniform("cls", (1, 1, 192)), n.batch, axis=0)
    n.const("cls", cls)
    n.trainable += 192
    x = n.concat([Tensor("cls", (n.batch, 1, 192)), x], "tokens", axis=1)
    pos = n.const("pos", n.uniform("pos", (1, 197, 192), -0.5, 0.5), trainable=True)
    (out,) = n.node("Add", [x.name, pos], "embed")
    x = Tensor(out, x.shape)
    for k in range(12):
        x = vit_block(n, x, 3, 768, f"block{k}")
    x = n.layernorm(x, "norm")
    (out,) = n.node("Gather", [x.name, n.const("first", np.asarray(0, np.int64))], "cls_token", axis=1)
    n.output(n.gemm(Tensor(out, (n.batch, 192)), 1000, "head", gain=4.0), "logits")


def bert_tiny(n: Net, layers: int) -> None:
    """BERT-tiny encoder layers: width 128, 2 heads, 512 hidden, 64 tokens of embeddings."""
    x = n.input("embeddings", (1, 64, 128))
    for k in range(layers):
        x = bert_block(n, x, 2, 512, f"layer{k}")
    n.output(x, "out")


# ---- catalogue -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Entry:
    """One model: its family (weights are shared by variants), builder, defaults and published facts."""

    family: str
    build: Callable[[Net], None]
    about: str
    opset: int = 13
    bn: str = "unfolded"
    params: int | None = None  # published trainable parameters, batch norm kept
    macs: int | None = None  # at the default batch size
    large: bool = False


MODELS: dict[str, Entry] = {
    "resnet18": Entry(
        "resnet18", lambda n: resnet(n, (2, 2, 2, 2)), "ResNet-18 v1, ImageNet", params=11_689_512, macs=1_814_073_344
    ),
    "resnet34": Entry(
        "resnet34", lambda n: resnet(n, (3, 4, 6, 3)), "ResNet-34 v1, ImageNet", params=21_797_672, macs=3_663_761_408
    ),
    "googlenet": Entry(
        "googlenet", googlenet, "GoogLeNet (BVLC), 2 LRN, Dropout, Softmax", params=6_998_552, macs=1_582_671_872
    ),
    "googlenet-pim": Entry(
        "googlenet",
        lambda n: googlenet(n, lrn=False, softmax=False),
        "GoogLeNet without the 2 LRN and the final Softmax",
        params=6_998_552,
        macs=1_582_671_872,
    ),
    "vgg8": Entry("vgg8", vgg8, "VGG-8, widths 128-128-256-256-512-512-1024-10, MNIST"),
    "vgg8-pimcomp": Entry(
        "vgg8-pimcomp",
        lambda n: vgg8(n, divide=2, fc=256),
        "VGG-8, widths 64-64-128-128-256-256-128-10: the one the published comparison used",
    ),
    "vgg8-half": Entry("vgg8-half", lambda n: vgg8(n, divide=2), "VGG-8 at half width"),
    "vgg16": Entry("vgg16", vgg16, "VGG-16 D, ImageNet", params=138_357_544, macs=15_470_264_320, large=True),
    "alexnet": Entry("alexnet", alexnet, "AlexNet, single tower", params=61_100_840, macs=714_188_480, large=True),
    "alexnet-bvlc": Entry(
        "alexnet-bvlc", alexnet_bvlc, "AlexNet, grouped, LRN", params=60_965_224, macs=654_560_384, large=True
    ),
    "squeezenet": Entry("squeezenet", squeezenet, "SqueezeNet 1.1", params=1_235_496, macs=349_151_936),
    "mobilenetv2": Entry(
        "mobilenetv2", mobilenetv2, "MobileNetV2 1.0", bn="folded", params=3_504_872, macs=300_774_272
    ),
    "mobilenetv1-vww": Entry(
        "mobilenetv1-vww", mobilenetv1_vww, "MobileNetV1 0.25 (MLPerf Tiny wake words)", params=216_322, macs=7_489_664
    ),
    "resnet8": Entry("resnet8", resnet8, "ResNet-8 (MLPerf Tiny image classification)", params=78_186, macs=12_501_632),
    "ds-cnn": Entry("ds-cnn", ds_cnn, "DS-CNN (MLPerf Tiny keyword spotting)", params=23_756, macs=2_656_768),
    "autoencoder": Entry(
        "autoencoder", autoencoder, "Dense autoencoder (MLPerf Tiny anomaly detection)", params=267_928, macs=264_192
    ),
    "mlp-mnist": Entry("mlp-mnist", mlp_mnist, "LeNet-300-100", params=266_610, macs=266_200),
    "lenet5": Entry("lenet5", lenet5, "LeNet-5, tanh and average pooling", params=61_706, macs=416_520),
    "lenet5-relu": Entry(
        "lenet5", lambda n: lenet5(n, modern=True), "LeNet-5, ReLU and max pooling", params=61_706, macs=416_520
    ),
    "unet-small": Entry("unet-small", unet_small, "U-Net 16-128, nearest Resize"),
    "unet-small-deconv": Entry("unet-small", lambda n: unet_small(n, deconv=True), "U-Net 16-128, ConvTranspose"),
    "yolo11n": Entry(
        "yolo11n", yolo11n, "YOLO11 nano, decoded boxes", opset=17, bn="folded", params=2_624_080, macs=3_271_251_200
    ),
    "yolo11n-nosoftmax": Entry(
        "yolo11n",
        lambda n: yolo11n(n, softmax=False),
        "YOLO11 nano without its 2 Softmax",
        opset=17,
        bn="folded",
        params=2_624_080,
        macs=3_271_251_200,
    ),
    "yolo11n-raw": Entry(
        "yolo11n", lambda n: yolo11n(n, raw=True), "YOLO11 nano up to the three head maps", opset=17, bn="folded"
    ),
    "yolo11n-raw-nosoftmax": Entry(
        "yolo11n",
        lambda n: yolo11n(n, softmax=False, raw=True),
        "YOLO11 nano head maps, no Softmax",
        opset=17,
        bn="folded",
    ),
    "vit-block": Entry("vit", vit_single, "One ViT-Ti block, 197x192", opset=17),
    "vit-tiny": Entry("vit", vit_tiny, "ViT-Ti/16, 224x224", opset=17, params=5_717_416),
    "bert-tiny-block": Entry("bert-tiny", lambda n: bert_tiny(n, 1), "One BERT-tiny layer, 64x128", opset=17),
    "bert-tiny": Entry("bert-tiny", lambda n: bert_tiny(n, 2), "BERT-tiny encoder, 2 layers", opset=17),
}


def build(
    name: str, *, seed: int = 0, bn: str = "auto", opset: int | None = None, batch: int = 1, dynamic_batch: bool = False
) -> tuple[onnx.ModelProto, Net]:
    """Build one model; returns it with the builder that holds its counts."""
    entry = MODELS[name]
    net = Net(
        entry.family,
        seed=seed,
        bn=entry.bn if bn == "auto" else bn,
        opset=opset or entry.opset,
        batch=batch,
        dynamic_batch=dynamic_batch,
    )
    entry.build(net)
    if entry.params is not None and net.bn_mode == "unfolded" and net.trainable != entry.params:
        raise AssertionError(f"{name}: {net.trainable} trainable parameters, published: {entry.params}")
    if entry.macs is not None and net.macs != entry.macs * batch:
        raise AssertionError(f"{name}: {net.macs} multiply-accumulates, expected {entry.macs * batch}")
    return net.model(name), net


def sample_input(net: Net) -> dict[str, np.ndarray]:
    """A reproducible input: uniform in [-sqrt(3), sqrt(3)), that is zero mean and unit variance."""
    return {t.name: net.uniform(f"sample/{t.name}", t.shape, -math.sqrt(3), math.sqrt(3)) for t in net.inputs}


def check(path: Path, model: onnx.ModelProto, net: Net) -> dict[str, object]:
    """ONNX checker, strict shape inference against the builder's shapes, one onnxruntime run on the sample input."""
    onnx.checker.check_model(str(path), full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    for want, got in zip(net.outputs, inferred.graph.output, strict=True):
        dims = tuple(d.dim_value or net.batch for d in got.type.tensor_type.shape.dim)
        if dims != want.shape:
            raise AssertionError(f"{path.name}: output {want.name} has shape {dims}, expected {want.shape}")
    import onnxruntime as ort

    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    results = session.run(None, sample_input(net))
    report = {}
    for want, value in zip(net.outputs, results, strict=True):
        if value.shape != want.shape or not np.isfinite(value).all():
            raise AssertionError(f"{path.name}: output {want.name}: shape {value.shape} or non-finite values")
        report[want.name] = {"std": float(value.std()), "min": float(value.min()), "max": float(value.max())}
    return report


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="NAME", help="models to build (see --list)")
    parser.add_argument("--out", type=Path, default=Path("."), help="output folder, made if missing")
    parser.add_argument("--list", action="store_true", help="list the models and stop")
    parser.add_argument("--all", action="store_true", help="all models but the large ones (vgg16, alexnet)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--bn",
        choices=("auto", "folded", "unfolded"),
        default="auto",
        help="batch normalization: kept as nodes or folded; auto follows the published ONNX file",
    )
    parser.add_argument("--opset", type=int, help="13 to 22 (transformers need 17; from 20 on Gelu is one node)")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dynamic-batch", action="store_true", help="leave the batch axis symbolic in the file")
    parser.add_argument("--external-data", action="store_true", help="weights in a side file NAME.onnx.data")
    parser.add_argument("--sample", action="store_true", help="also write NAME.input.npz")
    parser.add_argument("--check", action="store_true", help="check with onnx and run once with onnxruntime")
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of text")
    args = parser.parse_args(argv)
    if args.list:
        for name, entry in MODELS.items():
            print(f"{name:22s} {entry.about}")
        return 0
    names = list(args.models) + ([n for n, e in MODELS.items() if not e.large] if args.all else [])
    unknown = [n for n in names if n not in MODELS]
    if unknown or not names:
        parser.error(f"unknown model(s): {', '.join(unknown)}; see --list" if unknown else "name a model, or --all")
    if args.batch < 1:
        parser.error("--batch must be at least 1")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        model, net = build(
            name, seed=args.seed, bn=args.bn, opset=args.opset, batch=args.batch, dynamic_batch=args.dynamic_batch
        )
        path = args.out / f"{name}.onnx"
        if args.external_data:
            side = args.out / f"{path.name}.data"
            side.unlink(missing_ok=True)
            onnx.save_model(model, str(path), save_as_external_data=True, location=side.name, size_threshold=1024)
            digest = hashlib.sha256(path.read_bytes() + side.read_bytes()).hexdigest()
        else:
            data = model.SerializeToString(deterministic=True)
            path.write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
        if args.sample:
            np.savez(args.out / f"{name}.input.npz", **sample_input(net))
        row = {
            "model": name,
            "params": net.trainable,
            "macs": net.macs,
            "nodes": len(net.nodes),
            "ops": dict(sorted(Counter(node.op_type for node in net.nodes).items())),
            "inputs": {t.name: list(t.shape) for t in net.inputs},
            "outputs": {t.name: list(t.shape) for t in net.outputs},
            "opset": net.opset,
            "bn": net.bn_mode,
            "file": str(path),
            "bytes": path.stat().st_size,
            "sha256": digest,
        }
        if args.check:
            row["check"] = check(path, model, net)
        if args.json:
            print(json.dumps(row))
        else:
            ops = " ".join(f"{k}:{v}" for k, v in row["ops"].items())
            print(f"{name}: {net.trainable:,} parameters, {net.macs:,} MACs, {len(net.nodes)} nodes, {path}")
            print(f"  {ops}\n  sha256 {digest}")
            for out, stat in row.get("check", {}).items():
                print(f"  {out}: std {stat['std']:.4g}, range [{stat['min']:.4g}, {stat['max']:.4g}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
