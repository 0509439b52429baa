"""A little network of operations made for tests: halo, broadcast constant, two layouts, a branch, unneeded operands."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from hypothesis import strategies as st

from raptor_core.ir.module import Module
from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout, TensorType
from raptor_core.spatial.boxes import Box, empty_box, grid
from raptor_core.spatial.compute import ComputeOp, ConvertLayout, Placement, Pointwise, PointwiseFunction
from raptor_core.spatial.kernel import Address, KernelBuilder, View

NHWC = Layout("channels", (1, 2, 0))


@attrs.frozen(kw_only=True)
class Relu(PointwiseFunction):
    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        k.unary("relu", dst, src, count)


@attrs.frozen(kw_only=True)
class Blur(ComputeOp):
    """y[c, i, j] = sum of x[c, i + a, j + b] for a, b in -1, 0, 1, zero outside; plus the constant vector z[c]."""

    kind = "test.blur"

    def region(self, operand: int, out: Box, types: Types) -> Box:
        if operand == 1:
            return Box((out.lo[0],), (out.hi[0],))
        return Box(
            (out.lo[0], out.lo[1] - 1, out.lo[2] - 1),
            (out.hi[0], out.hi[1] + 1, out.hi[2] + 1),
        )

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        x, z = operands
        assert x is not None
        assert z is not None
        with k.loops(out.extents) as (c, i, j):
            k.copy(result.at(c, i, j), z.at(c), 1)
            for a in range(3):
                for b in range(3):
                    k.binary("add", result.at(c, i, j), result.at(c, i, j), x.at(c, i + a, j + b), 1)


@attrs.frozen(kw_only=True)
class Add(ComputeOp):
    kind = "test.add"

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return out

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        with k.runs(result, *operands) as ((dst, a, b), count):
            k.binary("add", dst, a, b, count)


@attrs.frozen(kw_only=True)
class Front(ComputeOp):
    """The first two channels of the operand; other boxes need nothing of it."""

    kind = "test.front"

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return out.intersect(Box.whole((2, 5, 6))) if out.lo[0] < 2 else empty_box(3)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        with k.runs(result) as ((dst,), count):
            k.fill(dst, 2.5, count)
        if operands[0] is not None:
            source = operands[0].addresses()
            k.moves(result.slot, 0, result.addresses()[: source.shape[0]], source)


SHAPE = (4, 5, 6)


def network() -> Module:
    dense = TensorType(SHAPE, layout=Layout.dense(3))
    strip = TensorType(SHAPE, layout=NHWC)
    types = {
        "x": dense,
        "z": TensorType((4,), layout=Layout.dense(1)),
        "a": strip,
        "b": strip,
        "c": strip,
        "d": strip,
        "e": dense,
        "y": dense,
    }
    ops = (
        ConvertLayout(name="a", operands=("x",), results=("a",)),
        Blur(name="b", operands=("a", "z"), results=("b",)),
        Pointwise(name="c", operands=("b",), results=("c",), function=Relu()),
        Add(name="d", operands=("c", "a"), results=("d",)),
        ConvertLayout(name="e", operands=("d",), results=("e",), epilogue=(Relu(),)),
        Front(name="y", operands=("e",), results=("y",)),
    )
    z = np.array([0.5, -3.0, 1.0, 0.0], np.float32)
    return Module(
        name="m", inputs=("x",), outputs=("y", "e"), types=types, constants={"z": z}, operations=ops, stage="schedule"
    )


def expected(x: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    b = sum(padded[:, i : i + 5, j : j + 6] for i in range(3) for j in range(3)) + z[:, None, None]
    e = np.maximum(np.maximum(b, 0) + x, 0)
    y = np.full(SHAPE, 2.5, np.float32)
    y[:2] = e[:2]
    return {"y": y, "e": e}


@st.composite
def placements(draw: st.DrawFn) -> list[Placement]:
    """A random legal placement of every operation of :func:`network` on cores 0 to 4."""
    found, step = [], 0
    for _ in range(6):
        parts = draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)))
        boxes = grid(SHAPE, parts)
        cores = np.array(draw(st.lists(st.integers(0, 4), min_size=len(boxes), max_size=len(boxes))))
        rounds = np.array([int((cores[:n] == core).sum()) for n, core in enumerate(cores)])
        found.append(Placement(boxes, cores, step + rounds))
        step += int(rounds.max()) + 1
    return found
