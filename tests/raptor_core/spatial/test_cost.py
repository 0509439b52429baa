"""Costs of boxes come from the kernels that would run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import attrs
import pytest

from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout, TensorType
from raptor_core.spatial.boxes import Box, empty_box
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.cost import box_cost, nominal_views, weight_axes
from raptor_core.spatial.kernel import Instr, Kernel, KernelBuilder, Loop, View
from text_ir import Apply, Sum


@attrs.frozen(kw_only=True)
class Halo(ComputeOp):
    """Needs one index more on each side of axis 1 of operand 0, and nothing of operand 1."""

    kind = "test.halo"

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return out.replace(1, out.lo[1] - 1, out.hi[1] + 1) if operand == 0 else empty_box(2)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        source = operands[0]
        assert source is not None
        k.product(result.at(0, 0), source.at(0, 0), 0, rows)


LAST = Layout("columns", (1, 0))
TYPES = {"x": TensorType((4, 6), layout=LAST), "w": TensorType((3, 3)), "y": TensorType((4, 6))}


def test_views_are_packed_in_the_order_of_their_layouts() -> None:
    op = Halo(name="n", operands=("x", "w", ""), results=("y",))
    result, operands = nominal_views(op, Box((0, 0), (2, 3)), TYPES)
    assert result == View(slot=3, shape=(2, 3), base=0, strides=(3, 1), order=(0, 1))
    assert operands == (View(slot=0, shape=(2, 5), base=0, strides=(1, 2), order=(1, 0)), None, None)


class Machine:
    """Counts elements that instructions touch; crossbars have 16 rows."""

    crossbar_rows = 16

    def kernel_energy_ns(self, kernel: Kernel) -> float:
        return 0.0

    def kernel_ns(self, kernel: Kernel) -> float:
        def total(body: tuple[Any, ...]) -> int:
            return sum(item.extent * total(item.body) if isinstance(item, Loop) else self.one(item) for item in body)

        return float(total(kernel.body))

    def one(self, instr: Instr) -> int:
        return instr.count or instr.columns


def test_the_cost_is_the_machines_for_body_and_epilogue() -> None:
    types = dict.fromkeys(("a", "b", "c"), TensorType((4, 6)))
    op = Sum(name="n", operands=("a", "b"), results=("c",))
    machine = cast(Any, Machine())
    assert box_cost(op, Box((0, 0), (2, 3)), types, machine) == 6
    assert box_cost(attrs.evolve(op, epilogue=(Apply(), Apply())), Box((0, 0), (2, 3)), types, machine) == 18


def test_the_crossbar_height_is_the_machines() -> None:
    op = Halo(name="n", operands=("x", "w"), results=("y",))
    assert box_cost(op, Box((0, 0), (2, 3)), TYPES, cast(Any, Machine())) == 16


@attrs.frozen(kw_only=True)
class Blocks(ComputeOp):
    """Weights differ by channel (axis 0) and, as those of convolutions do, by the size of a block of five rows."""

    kind = "test.blocks"

    def cut_granularity(self, types: Types) -> tuple[int, ...]:
        return (2, 5)

    def weights_key(self, out: Box, types: Types) -> tuple[int, ...]:
        return out.lo[0], out.hi[0], min(5, out.extents[1])


@pytest.mark.parametrize("rows", [10, 11, 13, 14, 23])
@pytest.mark.parametrize("channels", [4, 7])
def test_only_axes_of_other_weights_are_weight_axes(rows: int, channels: int) -> None:
    types = {"x": TensorType((channels, rows)), "y": TensorType((channels, rows))}
    assert weight_axes(Blocks(name="b", operands=("x",), results=("y",)), types) == (0,)


def test_an_axis_of_one_unit_is_no_weight_axis() -> None:
    types = {"x": TensorType((2, 5)), "y": TensorType((2, 5))}
    assert weight_axes(Blocks(name="b", operands=("x",), results=("y",)), types) == ()
