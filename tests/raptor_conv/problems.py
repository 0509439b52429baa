"""Random convolution problems, their plans, and their results by definition and by onnxruntime."""

from __future__ import annotations

import itertools
import random

import attrs
import numpy as np
from hypothesis import strategies as st

from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.types import Layout, TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.kernel import Kernel
from raptor_core.spatial.plans import ConvPlan


@attrs.frozen(kw_only=True)
class Problem:
    """The numbers of a convolution. ``batch`` are the extents before the channels, ``after`` those behind the rest."""

    batch: tuple[int, ...] = (1,)
    inputs: int = 1
    outputs: int = 1
    extents: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    kernel: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()
    groups: int = 1
    bias: bool = False

    @classmethod
    def of(cls, inputs: int, outputs: int, extents: tuple[int, ...], kernel: tuple[int, ...], **fields) -> Problem:
        """A problem with defaults for what is not given."""
        n = len(kernel)
        plain = {"strides": (1,) * n, "dilations": (1,) * n, "pads_begin": (0,) * n, "pads_end": (0,) * n}
        return cls(inputs=inputs, outputs=outputs, extents=extents, kernel=kernel, **{**plain, **fields})

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (*self.batch, self.inputs, *self.extents, *self.after)

    @property
    def result_extents(self) -> tuple[int, ...]:
        return tuple(
            (extent + before + behind - (k - 1) * d - 1) // s + 1
            for extent, before, behind, k, d, s in zip(
                self.extents, self.pads_begin, self.pads_end, self.kernel, self.dilations, self.strides, strict=True
            )
        )

    def rewriter(self, x_order=None, y_order=None, seed: int = 0) -> tuple[ConvPlan, Rewriter]:
        """The plan and a rewriter that knows its values: x, w, b and y."""
        random_numbers = np.random.default_rng(seed)
        w = random_numbers.standard_normal((self.outputs, self.inputs // self.groups, *self.kernel)).astype(np.float32)
        constants = {"w": w}
        if self.bias:
            constants["b"] = random_numbers.standard_normal(self.outputs).astype(np.float32)
        y_shape = (*self.batch, self.outputs, *self.result_extents, *self.after)
        types = {
            "x": TensorType(self.x_shape, layout=x_order and Layout("x", tuple(x_order))),
            "y": TensorType(y_shape, layout=y_order and Layout("y", tuple(y_order))),
            **{name: TensorType(data.shape) for name, data in constants.items()},
        }
        plan = ConvPlan(
            name="conv",
            operands=("x", "w", "b") if self.bias else ("x", "w"),
            results=("y",),
            window_kernel=self.kernel,
            strides=self.strides,
            dilations=self.dilations,
            pads_begin=self.pads_begin,
            pads_end=self.pads_end,
            groups=self.groups,
            channel_axis=len(self.batch),
        )
        plan.verify(types)
        module = Module(
            name="m",
            stage="plan-layouts",
            inputs=("x",),
            outputs=("y",),
            types=types,
            constants=constants,
            operations=(plan,),
        )
        return plan, Rewriter(module)

    def x(self, seed: int = 0) -> np.ndarray:
        """Numbers for x."""
        return np.random.default_rng(seed + 1000).standard_normal(self.x_shape).astype(np.float32)


def by_definition(plan: ConvPlan, rewriter: Rewriter, x: np.ndarray) -> np.ndarray:
    """The convolution, tap by tap, in double precision."""
    w = rewriter.constants[plan.operands[1]].astype(np.float64)
    shape, channels = rewriter.types[plan.results[0]].shape, plan.channel_axis
    region = plan.region(Box.whole(shape), rewriter.types)
    padded = np.zeros(region.extents)
    inner = region.intersect(Box.whole(x.shape))
    back = inner.shift([-lo for lo in region.lo])
    padded[tuple(map(slice, back.lo, back.hi))] = x[tuple(map(slice, inner.lo, inner.hi))]
    result = np.moveaxis(np.zeros(shape), channels, -1)
    per_group = w.shape[0] // plan.groups
    for taps in itertools.product(*map(range, plan.window_kernel)):
        part = padded
        for n, axis in enumerate(plan.spatial_axes):
            part = part.take(taps[n] * plan.dilations[n] + plan.strides[n] * np.arange(shape[axis]), axis=axis)
        part = np.moveaxis(part, channels, -1)
        for group in range(plan.groups):
            matrix = w[(slice(group * per_group, (group + 1) * per_group), slice(None), *taps)]
            source = part[..., group * w.shape[1] : (group + 1) * w.shape[1]]
            result[..., group * per_group : (group + 1) * per_group] += source @ matrix.T
    if len(plan.operands) > 2:
        result = result + rewriter.constants[plan.operands[2]]
    return np.moveaxis(result, -1, channels).astype(np.float32)


def by_onnxruntime(problem: Problem, rewriter: Rewriter, x: np.ndarray) -> np.ndarray:
    """The convolution by onnxruntime, for one batch axis and at least one spatial axis."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    pads = [*problem.pads_begin, *problem.pads_end]
    node = helper.make_node(
        "Conv",
        ["x", *rewriter.constants],
        ["y"],
        strides=problem.strides,
        dilations=problem.dilations,
        pads=pads,
        group=problem.groups,
    )
    graph = helper.make_graph(
        [node],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, rewriter.types["y"].shape)],
        [numpy_helper.from_array(data, name) for name, data in rewriter.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@st.composite
def problems(draw: st.DrawFn, *, depthwise: bool = False, groups: bool = True) -> Problem:
    """Convolutions and matrix products of every geometry, small."""
    n = draw(st.integers(0, 3))
    number = st.integers
    kernel = tuple(draw(number(1, 4 if n < 3 else 2)) for _ in range(n))
    dilations = tuple(draw(number(1, 2)) for _ in range(n))
    strides = tuple(draw(number(1, 3)) for _ in range(n))
    pads_begin = tuple(draw(number(0, 2)) for _ in range(n))
    pads_end = tuple(draw(number(0, 2)) for _ in range(n))
    extents = tuple(
        draw(number(max(1, (k - 1) * d + 1 - before - behind), 7 if n < 3 else 4))
        if (k - 1) * d + 1 - before - behind <= (7 if n < 3 else 4)
        else (k - 1) * d + 1
        for k, d, before, behind in zip(kernel, dilations, pads_begin, pads_end, strict=True)
    )
    if depthwise:
        group_count = draw(number(1, 20))
        inputs, outputs = group_count, group_count
    else:
        group_count = draw(number(1, 4)) if groups and draw(st.booleans()) else 1
        inputs = group_count * draw(number(1, 24))
        outputs = group_count * draw(number(1, 12))
    return Problem(
        batch=tuple(draw(number(1, 2)) for _ in range(draw(number(0, 2)))),
        inputs=inputs,
        outputs=outputs,
        extents=extents,
        after=(draw(number(1, 2)),) if draw(number(0, 9)) == 0 else (),
        kernel=kernel,
        strides=strides,
        dilations=dilations,
        pads_begin=pads_begin,
        pads_end=pads_end,
        groups=group_count,
        bias=draw(st.booleans()),
    )


@attrs.frozen
class PlainMachine:
    """A machine with round figures."""

    crossbar_rows: int = 128
    crossbar_columns: int = 128
    core_count: int = 6
    crossbars_per_core: int = 96

    def crossbars(self, shapes) -> int:
        return sum(-(-columns // self.crossbar_columns) for _, columns in shapes)

    def kernel_energy_ns(self, kernel: Kernel) -> float:
        return 0.0

    def kernel_ns(self, kernel: Kernel) -> float:
        return self._ns(kernel.body)

    def _ns(self, body) -> float:
        total = 0.0
        for item in body:
            if hasattr(item, "extent"):
                total += item.extent * self._ns(item.body)
            elif hasattr(item, "op"):
                total += 1700.0 if item.op == "product" else 20.0 + item.count
            else:
                total += float((20 + item.count).sum())
        return total

    def transfer_ns(self, elements: float, runs: float = 1) -> float:
        return 50 * runs + elements

    def distance_ns(self) -> np.ndarray:
        return np.zeros((self.core_count, self.core_count))

    def host_ns(self, elements: float, runs: float = 1) -> float:
        return 40 * runs + 2 * elements


def random_order(rank: int, rng: random.Random) -> tuple[int, ...]:
    """Row-major, channels last for the usual axes, or anything."""
    plain = tuple(range(rank))
    last = (0, *range(2, rank), 1) if rank > 2 else plain
    return rng.choice([plain, last, tuple(rng.sample(range(rank), rank))])
