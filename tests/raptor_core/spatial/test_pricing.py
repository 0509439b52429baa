"""Estimates for whole operations: sample cuts keep within the machine, costs follow what is sent."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raptor_core.ir.module import Module
from raptor_core.ir.types import Layout, TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.kernel import Kernel
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.pricing import crossbar_share, operation_ns, region_runs, sample_cuts


@attrs.frozen
class Machine:
    core_count: int = 6
    crossbars_per_core: int = 4
    crossbar_rows: int = 16

    def crossbars(self, shapes: Any) -> int:
        return sum(-(-columns // 16) for _, columns in shapes)

    def kernel_energy_ns(self, kernel: Kernel) -> float:
        return 0.0

    def kernel_ns(self, kernel: Kernel) -> float:
        return 0.0

    def transfer_ns(self, elements: float, runs: float = 1) -> float:
        return elements + 100 * runs

    def host_ns(self, elements: float, runs: float = 1) -> float:
        return 1000 * elements


@attrs.frozen(kw_only=True)
class Columns(ComputeOp):
    """Matrices of 16 rows, as many as ``tiles``, one column per index of axis 1; needs its own box of each operand."""

    kind = "test.columns"

    tiles: int = 1

    def region(self, operand: int, out: Box, types: Any) -> Box:
        return out

    def weight_shapes(self, out: Box, types: Any, rows: int) -> tuple[tuple[int, int], ...]:
        return ((16, out.extents[1]),) * self.tiles

    def weights_key(self, out: Box, types: Any) -> tuple[int, int]:
        return out.lo[1], out.hi[1]

    def build(self, *_: Any) -> None:
        return None


def op_of(tiles: int) -> Columns:
    return Columns(name="n", operands=("x",), results=("y",), tiles=tiles)


@given(
    st.integers(1, 40),
    st.integers(1, 80),
    st.integers(1, 30),
    st.integers(0, 4),
    st.integers(1, 12),
    st.integers(1, 4),
)
def test_sample_cuts_keep_within_cores_and_crossbars(
    height: int, channels: int, width: int, tiles: int, cores: int, per_core: int
) -> None:
    types = dict.fromkeys("xy", TensorType((1, channels, height, width)))
    machine = Machine(cores, per_core)
    for cut in sample_cuts(op_of(tiles), types, cast(Any, machine)):
        held = machine.crossbars(((16, cut.box.extents[1]),) * tiles)
        assert 1 <= cut.lanes <= cores
        assert cut.crossbars == cut.lanes * held
        assert Box.whole((1, channels, height, width)).contains(cut.box)
        assert not cut.box.is_empty
        assert cut.box.elements * cut.lanes >= channels * height * width
        if tiles <= per_core and -(-channels // 16) <= cores:
            assert held <= per_core


def test_fewer_crossbars_make_fewer_lanes() -> None:
    types = dict.fromkeys("xy", TensorType((1, 16, 6, 6)))
    (all_of_them,) = sample_cuts(op_of(2), types, cast(Any, Machine()))
    (few,) = sample_cuts(op_of(2), types, cast(Any, Machine()), 6)
    assert (all_of_them.lanes, few.lanes) == (6, 3)


def test_operands_are_sent_and_constants_loaded_lane_after_lane() -> None:
    types = dict.fromkeys("xy", TensorType((1, 12, 6, 6)))
    sent = operation_ns(op_of(0), types, cast(Any, Machine()), ())
    loaded = operation_ns(op_of(0), types, cast(Any, Machine()), {"x"})
    assert sent == 72 + 100
    assert loaded == 6 * 72 * 1000


def test_what_exceeds_the_crossbars_counts_in_proportion() -> None:
    types = dict.fromkeys("xy", TensorType((1, 16, 1, 1)))
    within = operation_ns(op_of(4), types, cast(Any, Machine()), (), 4)
    assert operation_ns(op_of(4), types, cast(Any, Machine()), (), 1) == 4 * within


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (0, 2, 1, 3), (3, 2, 1, 0)])
def test_runs_of_a_region(order: tuple[int, ...]) -> None:
    type_ = TensorType((1, 4, 6, 8), layout=Layout("o", order))
    region = Box((0, 0, 2, 1), (1, 4, 4, 5)) if order[-1] != 3 else Box((0, 0, 2, 0), (1, 4, 4, 8))
    found = region_runs(region, type_)
    addresses = np.arange(type_.elements).reshape([type_.shape[a] for a in order])
    view = addresses.transpose(np.argsort(order))[tuple(map(slice, region.lo, region.hi))]
    assert found == 1 + int((np.diff(np.sort(view.ravel())) != 1).sum())


def test_crossbars_are_shared_by_the_square_root_of_the_work() -> None:
    types = {"x": TensorType((1, 4, 8, 8)), "w": TensorType((4, 4, 1, 1)), "v": TensorType((4, 4, 3, 3))}
    types.update(dict.fromkeys("yz", TensorType((1, 4, 8, 8))))
    fields = {"strides": (1, 1), "dilations": (1, 1)}
    small = ConvPlan(
        name="a",
        operands=("x", "w"),
        results=("y",),
        window_kernel=(1, 1),
        pads_begin=(0, 0),
        pads_end=(0, 0),
        **fields,
    )
    large = ConvPlan(
        name="b",
        operands=("y", "v"),
        results=("z",),
        window_kernel=(3, 3),
        pads_begin=(1, 1),
        pads_end=(1, 1),
        **fields,
    )
    module = Module(name="m", types=types, operations=(small, large))
    shares = [crossbar_share(plan, module, cast(Any, Machine())) for plan in (small, large)]
    assert shares == [6, 18]
