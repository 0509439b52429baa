"""Every rule of the verifier refuses the module that breaks it."""

from __future__ import annotations

import time

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.diagnostics import ExitCode, InternalError
from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType
from raptor_core.ir.verifier import verify_module
from raptor_core.spatial.boxes import Box, grid, to_array
from raptor_core.spatial.compute import Placement
from raptor_core.spatial.verifier import overlapping_pair
from text_ir import Sum, module_from

VALID = """
    module "t" stage "realise"
    input %x : f32[1,4,4]
    output %z
    constant %w : f32[1,4,4] = array<f32[1,4,4], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]>
    %y = test.sum(%x, %w) : f32[1,4,4] layout rows(1,0,2) loc("first")
    %z = test.sum(%y, %x) : f32[1,4,4] loc("second")
"""


def refusal(module: Module) -> InternalError:
    with pytest.raises(InternalError) as caught:
        verify_module(module)
    assert caught.value.exit_code is ExitCode.INTERNAL
    return caught.value


def test_a_valid_module_passes() -> None:
    verify_module(module_from(VALID))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("%y = test.sum(%x, %w)", "%y = test.sum(%x, %q)", "its operand 'q' is defined nowhere"),
        ("%y = test.sum(%x, %w)", "%y = test.sum(%z, %w)", "its operand 'z' is defined only later"),
        (
            "%z = test.sum(%y, %x) : f32[1,4,4]",
            "%y = test.sum(%y, %x) : ?",
            "the value 'y' is defined twice, the second time by operation test.sum 'second'",
        ),
        (
            "output %z",
            "input %x : f32[1,4,4]",
            "the value 'x' is defined twice, the second time by the network's inputs",
        ),
        ("output %z", "input %w : ?", "the value 'w' is defined twice, the second time by the constants"),
        ("output %z", "output %q", "the network output 'q' is not defined"),
        ("output %z", "value %q : f32[2]", "there is a type for 'q', which is not defined"),
        ("input %x : f32[1,4,4]", "input %x : ?", "the value 'x' has no type"),
        ("%x) : f32[1,4,4]", "%x) : ?", "the value 'z' has no type"),
        ("rows(1,0,2)", "rows(1,0)", "the value 'y' of type f32[1,4,4] has the layout 'rows' of 2 axes"),
        ("%w : f32[1,4,4]", "%w : f32[4,4]", "the constant 'w' is of type f32[4,4] but its data are float32[1,4,4]"),
        (
            "%w : f32[1,4,4]",
            "%w : f64[1,4,4]",
            "the constant 'w' is of type f64[1,4,4] but its data are float32[1,4,4]",
        ),
        (
            "%x) : f32[1,4,4]",
            '%x) : f32[1,4,4] %q = onnx.node(%x) {op_type = "Relu"} : f32[1]',
            "operations of this kind may not remain in stage realise",
        ),
        ("input %x : f32[1,4,4]", "input %x : f32[1,2,8]", "the operands differ in shape"),
        ("%y = test.sum(%x, %w)", "%y = test.sum(%x)", "its check stopped with IndexError: tuple index out of range"),
    ],
)
def test_each_broken_rule_is_refused(old: str, new: str, reason: str) -> None:
    if "onnx" in new:
        new = new.replace("%q", 'loc("second") %q')
    assert old in VALID
    assert refusal(module_from(VALID.replace(old, new, 1))).reason == reason


def test_faults_of_types_that_no_text_can_hold() -> None:
    module = module_from(VALID)
    negative = attrs.evolve(module, types={**module.types, "x": TensorType((1, -4, 4))})
    assert refusal(negative).reason == "the value 'x' has a negative extent: f32[1,-4,4]"
    unknown = attrs.evolve(module, types={**module.types, "x": TensorType((1,), "q8")})
    assert refusal(unknown).reason == "the value 'x' has the unknown element type 'q8'"


def test_the_whole_messages() -> None:
    assert refusal(module_from(VALID.replace("(%x, %w)", "(%x, %q)"))).render() == (
        "error[invalid-ir]: operation test.sum 'first' is not valid\n"
        "  where    operands ['x', 'q'], results ['y']\n"
        "  reason   its operand 'q' is defined nowhere\n"
        "  help     this is a bug in the pass before; please report it with the --dump-ir folder"
    )
    assert refusal(module_from(VALID.replace("output %z", "output %q"))).render() == (
        "error[invalid-ir]: module 't' is not valid\n"
        "  where    stage realise\n"
        "  reason   the network output 'q' is not defined\n"
        "  help     this is a bug in the pass before; please report it with the --dump-ir folder"
    )


# ---- placements ------------------------------------------------------------------------------------------------
ROWS = grid((1, 4, 4), (1, 4, 1))


def placed(first: dict[str, object] | None = None, second: dict[str, object] | None = None) -> Module:
    """Both operations cut into four rows on four cores, in steps 0 and 1; with changes to the placements."""
    module = module_from(VALID.replace("realise", "schedule"))
    ops = []
    for step, (op, changes) in enumerate(zip(module.operations, (first, second), strict=True)):
        placement = Placement(boxes=ROWS, cores=np.arange(4), order=np.full(4, step))
        ops.append(attrs.evolve(op, placement=attrs.evolve(placement, **(changes or {}))))
    return attrs.evolve(module, operations=tuple(ops))


def test_a_sound_placement_passes() -> None:
    verify_module(placed())
    verify_module(placed({"order": np.array([0, 1, 2, 3])}, {"order": np.array([1, 2, 3, 4])}))


def boxes(*intervals: tuple[int, int]) -> np.ndarray:
    return to_array([Box((0, lo, 0), (1, hi, 4)) for lo, hi in intervals], 3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"boxes": ROWS[:, :, :2]}, "its placement has boxes of shape (4, 2, 2) for a result of 3 axes"),
        ({"cores": np.arange(3)}, "its placement has 4 boxes, cores of shape (3,) and order of shape (4,)"),
        (
            {"order": np.zeros((4, 1), np.int64)},
            "its placement has 4 boxes, cores of shape (4,) and order of shape (4, 1)",
        ),
        ({"cores": np.arange(4.0)}, "its placement is not made of integers"),
        ({"cores": np.array([0, 1, 2, -3])}, "its placement has a negative core or step"),
        ({"order": np.array([0, 0, 0, -1])}, "its placement has a negative core or step"),
        (
            {"boxes": boxes((0, 1), (1, 2), (2, 3), (3, 5))},
            "the box of lane 3, 0..1 x 3..5 x 0..4, is empty or reaches outside f32[1,4,4]",
        ),
        (
            {"boxes": boxes((0, 1), (1, 1), (2, 3), (3, 4))},
            "the box of lane 1, 0..1 x 1..1 x 0..4, is empty or reaches outside f32[1,4,4]",
        ),
        (
            {"boxes": boxes((0, 2), (1, 2), (2, 3), (3, 4))},
            "the boxes of lanes 0 and 1 overlap: 0..1 x 0..2 x 0..4 and 0..1 x 1..2 x 0..4",
        ),
        (
            {"boxes": boxes((0, 1), (1, 2), (2, 3)), "cores": np.arange(3), "order": np.zeros(3, np.int64)},
            "its boxes cover 12 of the 16 elements of f32[1,4,4]",
        ),
        ({"cores": np.array([0, 1, 2, 0])}, "core 0 has two lanes in step 0; the other is of 'first'"),
    ],
)
def test_each_fault_of_a_placement_is_refused(changes: dict[str, object], reason: str) -> None:
    assert refusal(placed(changes)).reason == reason


def test_lanes_of_two_operations_do_not_share_a_step_on_a_core() -> None:
    module = placed({"order": np.zeros(4, np.int64)}, {"order": np.zeros(4, np.int64)})
    assert refusal(module).reason == "core 0 has two lanes in step 0; the other is of 'first'"


def test_a_lane_that_runs_before_what_it_needs_is_refused() -> None:
    module = placed({"order": np.array([0, 0, 5, 0])})
    assert refusal(module).reason == "lane 2 in step 1 needs 'y' from lane 2 of 'first', which runs in step 5"
    same_step = placed(None, {"cores": np.array([4, 5, 6, 7]), "order": np.zeros(4, np.int64)})
    assert refusal(same_step).reason == "lane 0 in step 0 needs 'y' from lane 0 of 'first', which runs in step 0"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_overlaps_are_found_exactly(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 3))
    found = []
    for _ in range(data.draw(st.integers(0, 6))):
        lo = [data.draw(st.integers(0, 4)) for _ in range(rank)]
        found.append(Box(tuple(lo), tuple(low + data.draw(st.integers(1, 3)) for low in lo)))
    pairs = {
        (i, j)
        for i in range(len(found))
        for j in range(len(found))
        if i != j and not found[i].intersect(found[j]).is_empty
    }
    pair = overlapping_pair(to_array(found, rank))
    assert (pair in pairs) if pairs else pair is None


def test_many_lanes_are_verified_quickly() -> None:
    shape = (64, 56, 56)
    cut = grid(shape, (1, 14, 12))
    names = [f"v{k}" for k in range(71)]
    ops = tuple(
        Sum(
            name=names[k + 1],
            operands=(names[k], names[k]),
            results=(names[k + 1],),
            placement=Placement(boxes=cut, cores=np.arange(168), order=np.arange(168) + k),
        )
        for k in range(70)
    )
    module = Module(
        name="t",
        stage="schedule",
        inputs=tuple(names[:1]),
        outputs=tuple(names[-1:]),
        types=dict.fromkeys(names, TensorType(shape)),
        operations=ops,
    )
    begin = time.perf_counter()
    verify_module(module)
    assert time.perf_counter() - begin < 3.0
