"""The scheduler: legal placements that fit the chip, refusals that say by how much they do not."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout, TensorType
from raptor_core.ir.verifier import verify_module
from raptor_core.options import resolve_options
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import Box, grid
from raptor_core.spatial.compute import ComputeOp, Constants, Matrix, Pointwise
from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_core.spatial.passes.communicate import COMMUNICATE
from raptor_pim.target import TARGET
from raptor_schedulers.cuts import candidate_cuts, following_cut
from raptor_schedulers.peft import PEFT
from raptor_schedulers.traffic import edge_ns
from small_network import SHAPE, Relu, expected, network
from spatial_interpreter import execute

OPTIONS = resolve_options(PEFT.options, {}, owner="peft")


@attrs.frozen(kw_only=True)
class Product(ComputeOp):
    """y[p, n] = sum of x[p, k] W[k, n] for a constant W, its reduction in tiles of one crossbar height."""

    kind = "test.product"

    def region(self, operand: int, out: Box, types: Types) -> Box:
        if operand == 1:
            return Box((0, 0), (0, 0))
        return Box((out.lo[0], 0), (out.hi[0], types[self.operands[0]].shape[1]))

    def weight_shapes(self, out: Box, types: Types, rows: int) -> tuple[tuple[int, int], ...]:
        depth = types[self.operands[0]].shape[1]
        return tuple((min(rows, depth - k), out.extents[1]) for k in range(0, depth, rows))

    def weights_key(self, out: Box, types: Types) -> Hashable:
        return out.lo[1], out.hi[1]

    def weights(self, out: Box, types: Types, constants: Constants, rows: int) -> tuple[Matrix, ...]:
        matrix = constants[self.operands[1]][:, out.lo[1] : out.hi[1]]
        return tuple(matrix[k : k + rows] for k in range(0, matrix.shape[0], rows))

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        x = operands[0]
        assert x is not None
        columns = out.extents[1]
        part = k.scratch(columns)
        with k.loop(out.extents[0]) as p:
            for tile in range(-(-x.shape[1] // rows)):
                target = part if tile else result.at(p, 0)
                k.product(target, x.at(p, tile * rows), tile, columns)
                if tile:
                    k.binary("add", result.at(p, 0), result.at(p, 0), part, columns)


def machine(cores: int, crossbars: int, size: str = "16"):
    options = {"core_count": cores, "crossbar_count": crossbars, "crossbar_size": size}
    return TARGET.configure(options, None, None).machine


def products(widths: Sequence[int], positions: int = 12) -> Module:
    """A chain of matrix products of the given widths on ``positions`` rows."""
    rng = np.random.default_rng(1)
    types = {"v0": TensorType((positions, widths[0]), layout=Layout.dense(2))}
    constants, ops = {}, []
    for k, (depth, width) in enumerate(itertools.pairwise(widths)):
        constants[f"w{k}"] = rng.normal(size=(depth, width)).astype(np.float32)
        types[f"w{k}"] = TensorType((depth, width), layout=Layout.dense(2))
        types[f"v{k + 1}"] = TensorType((positions, width), layout=Layout.dense(2))
        ops.append(Product(name=f"p{k}", operands=(f"v{k}", f"w{k}"), results=(f"v{k + 1}",)))
    return Module(
        name="chain",
        stage="merge",
        inputs=("v0",),
        outputs=(f"v{len(ops)}",),
        types=types,
        constants=constants,
        operations=tuple(ops),
    )


def resident_crossbars(module: Module, chip: object) -> np.ndarray:
    """Crossbars in use per core, every distinct key once."""
    used = np.zeros(chip.core_count, dtype=int)
    for op in module.find(ComputeOp):
        seen = set()
        for box, core in zip(op.placement.boxes.tolist(), op.placement.cores.tolist(), strict=True):
            out = Box(tuple(box[0]), tuple(box[1]))
            key = (core, op.weights_key(out, module.types))
            if key not in seen:
                seen.add(key)
                used[core] += chip.crossbars(op.weight_shapes(out, module.types, chip.crossbar_rows))
    return used


def packs(matrices: Sequence[tuple[int, int]], chip: object) -> bool:
    """Whether matrices of (rows, columns) crossbars, cut into columns, fit the cores: the widest first, where it fits.

    A lane needs whole columns: the products of one column are added up on its core.
    """
    room = [chip.crossbars_per_core] * chip.core_count
    for rows, columns in sorted(matrices, reverse=True):
        for _ in range(columns):
            core = next((core for core, free in enumerate(room) if free >= rows), None)
            if core is None:
                return False
            room[core] -= rows
    return True


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 7), st.integers(0, 9))
def test_the_schedule_is_legal_and_right(cores: int, seed: int) -> None:
    module = PEFT.schedule(network(), machine(cores, 4), OPTIONS)
    verify_module(attrs.evolve(module, stage="schedule"))
    communicated = COMMUNICATE.run(module, PassContext(None, None)).module  # type: ignore[arg-type]
    x = np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)
    outputs = execute(communicated, {"x": x})
    for name, array in expected(x, module.constants["z"]).items():
        np.testing.assert_allclose(outputs[name], array, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 70), min_size=2, max_size=5), st.integers(1, 6), st.integers(1, 30), st.integers(1, 20))
def test_weights_fit_or_the_network_is_refused(widths: list[int], cores: int, crossbars: int, positions: int) -> None:
    chip = machine(cores, crossbars)
    network_ = products(widths, positions)
    try:
        module = PEFT.schedule(network_, chip, OPTIONS)
    except RaptorError as error:
        refusal = error.code
    else:
        refusal = None
    if refusal:
        assert refusal in ("network-too-large", "network-does-not-pack")
        assert not packs([(-(-depth // 16), -(-width // 16)) for depth, width in itertools.pairwise(widths)], chip)
        return
    verify_module(attrs.evolve(module, stage="schedule"))
    assert (resident_crossbars(module, chip) <= crossbars).all()
    x = np.random.default_rng(0).normal(size=(positions, widths[0])).astype(np.float32)
    communicated = COMMUNICATE.run(module, PassContext(None, None)).module  # type: ignore[arg-type]
    (result,) = execute(communicated, {"v0": x}).values()
    reference = x.astype(np.float64)
    for k in range(len(widths) - 1):
        reference = reference @ module.constants[f"w{k}"]
    np.testing.assert_allclose(result, reference, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(reference).max()))


def test_a_network_that_just_fits_is_placed() -> None:
    # 2 products of 4 x 2 crossbars each: 16 in all, on 4 cores of 4.
    module = PEFT.schedule(products([64, 32, 64]), machine(4, 4), OPTIONS)
    assert resident_crossbars(module, machine(4, 4)).sum() == 16


def test_too_large_a_network_says_needed_and_available() -> None:
    with pytest.raises(RaptorError) as caught:
        PEFT.schedule(products([64, 64, 64]), machine(3, 5), OPTIONS)
    text = caught.value.render()
    assert caught.value.code == "network-too-large"
    assert "32 crossbars are needed, 15 are available (3 cores x 5 crossbars of 16 x 16)" in text
    assert "'p0' (16 crossbars)" in text


def test_an_operation_whose_smallest_part_exceeds_a_core_is_named() -> None:
    with pytest.raises(
        RaptorError, match="'p0' alone needs 7, and its smallest part exceeds the 6 crossbars of a core"
    ):
        PEFT.schedule(products([112, 16]), machine(8, 6), OPTIONS)


def test_work_is_spread_over_all_cores() -> None:
    module = PEFT.schedule(products([16, 16, 16], positions=64), machine(8, 4), OPTIONS)
    for op in module.find(ComputeOp):
        assert sorted(op.placement.cores.tolist()) == list(range(8))


def test_lanes_stay_with_their_data() -> None:
    """Two products in a row over the same positions need nothing from another core."""
    module = PEFT.schedule(products([16, 16, 16], positions=64), machine(8, 4), OPTIONS)
    first, second = module.find(ComputeOp)
    home = {
        tuple(map(tuple, box)): core
        for box, core in zip(first.placement.boxes.tolist(), first.placement.cores, strict=True)
    }
    assert all(
        home[tuple(map(tuple, box))] == core
        for box, core in zip(second.placement.boxes.tolist(), second.placement.cores, strict=True)
    )


def test_a_movement_follows_the_fragments_of_its_operand() -> None:
    """Nothing of a pointwise operation between two products moves from core to core, whatever its size."""
    module = products([16, 16], positions=64)
    moved = Pointwise(name="m", operands=("v1",), results=("y",), function=Relu())
    types = {**module.types, "y": module.types["v1"]}
    module = attrs.evolve(module, types=types, outputs=("y",), operations=(*module.operations, moved))
    (cut,) = {
        each.lanes: each for each in candidate_cuts(module.operations[0], types, machine(8, 4)) if each.lanes == 8
    }.values()
    following = following_cut(moved, [cut], types, machine(8, 4))
    assert following is not None
    assert np.array_equal(following.boxes, cut.boxes)
    assert following.homes.tolist() == [[0, lane] for lane in range(8)]
    assert following_cut(moved, [None], types, machine(8, 4)) is None
    product, pointwise = PEFT.schedule(module, machine(8, 4), OPTIONS).find(ComputeOp)
    homes = {
        str(box): core for box, core in zip(product.placement.boxes.tolist(), product.placement.cores, strict=True)
    }
    assert [homes[str(box)] for box in pointwise.placement.boxes.tolist()] == pointwise.placement.cores.tolist()


def test_operations_without_carried_boxes_have_no_following_cut() -> None:
    module = products([16, 16])
    cuts = candidate_cuts(module.operations[0], module.types, machine(4, 4))
    assert following_cut(module.operations[0], [cuts[0], cuts[0]], module.types, machine(4, 4)) is None


def test_scheduling_twice_gives_the_same() -> None:
    first, second = (PEFT.schedule(products([40, 33, 50]), machine(5, 12), OPTIONS) for _ in range(2))
    for a, b in zip(first.find(ComputeOp), second.find(ComputeOp), strict=True):
        assert np.array_equal(a.placement.boxes, b.placement.boxes)
        assert np.array_equal(a.placement.cores, b.placement.cores)
        assert np.array_equal(a.placement.order, b.placement.order)


def test_cuts_are_grids_that_respect_granularity() -> None:
    @attrs.frozen(kw_only=True)
    class Whole(Product):
        kind = "test.whole"

        def cut_granularity(self, types: Types) -> tuple[int, ...]:
            return (5, types[self.results[0]].shape[1])

    module = products([16, 40], positions=13)
    (op,) = module.operations
    whole = Whole(name="w", operands=op.operands, results=op.results)
    cuts = candidate_cuts(whole, module.types, machine(4, 9))
    assert {cut.lanes for cut in cuts} == {1, 2, 3}
    for cut in cuts:
        assert (cut.boxes[:, :, 1] == [0, 40]).all()
        assert set(cut.boxes[:, 0, 0].tolist()) <= {0, 5, 10}
        assert cut.total_crossbars == cut.lanes * 3


def test_a_single_fragment_is_at_home_of_one_lane_only() -> None:
    """Seven of eight lanes receive all they need from its core, which sends it seven times."""
    op = Pointwise(name="relu", operands=("x",), results=("y",), function=Relu())
    types = {"x": TensorType((8, 16)), "y": TensorType((8, 16))}
    chip = machine(8, 4)
    whole = np.array([[[0, 0], [8, 16]]])
    lanes = grid((8, 16), (8, 1))
    message = chip.transfer_ns(16, 1)
    assert edge_ns(op, 0, 8, lanes, types, whole, chip) == pytest.approx(8 * message)
    assert edge_ns(op, 0, 8, lanes, types, lanes, chip) == 0
    assert edge_ns(op, 0, 1, whole, types, whole, chip) == 0
