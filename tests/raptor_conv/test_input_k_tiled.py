"""The strategy input-k-tiled: numbers, reductions no core can hold, refusals."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raptor_conv.input_k_tiled import INPUT_K_TILED
from raptor_conv.partial_products import PartialProducts, SumPartials
from raptor_conv.streamed_patch import STREAMED_PATCH
from raptor_core.spatial.boxes import Box
from tests.raptor_conv.lanes import compute
from tests.raptor_conv.problems import PlainMachine, Problem, by_definition, by_onnxruntime, problems, random_order


def realised(problem: Problem, machine: PlainMachine, x_order=None, y_order=None):
    plan, rewriter = problem.rewriter(x_order, y_order)
    INPUT_K_TILED.realise(plan, rewriter, machine, {})
    partial, total = rewriter.operations
    assert isinstance(partial, PartialProducts)
    assert isinstance(total, SumPartials)
    return plan, rewriter, partial


@settings(max_examples=80, deadline=None)
@given(problems(groups=False), st.data())
def test_the_numbers_are_those_of_the_definition(problem: Problem, data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    rank, machine = len(problem.x_shape), PlainMachine(crossbar_rows=16, crossbar_columns=16)
    plan, rewriter = problem.rewriter()
    assume(INPUT_K_TILED.applies(plan, rewriter.types, machine) is None)
    plan, rewriter, partial = realised(problem, machine, random_order(rank, rng), random_order(rank, rng))
    if data.draw(st.booleans()):
        gather = data.draw(st.booleans())
        bias_row = gather and problem.bias and data.draw(st.booleans())
        rewriter.operations[0] = attrs.evolve(partial, gather=gather, bias_row=bias_row)
    x = problem.x()
    found = compute(rewriter, {"x": x}, 16, rng)["y"]
    np.testing.assert_allclose(found, by_definition(plan, rewriter, x), rtol=1e-4, atol=1e-4)


def test_onnxruntime_agrees() -> None:
    problem = Problem.of(40, 8, (6, 5), (3, 3), strides=(1, 2), pads_begin=(1, 1), pads_end=(1, 0), bias=True)
    _, rewriter, _ = realised(problem, PlainMachine())
    x = problem.x()
    found = compute(rewriter, {"x": x}, 128, random.Random(0))["y"]
    np.testing.assert_allclose(found, by_onnxruntime(problem, rewriter, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("problem", [Problem.of(64, 4, (3, 3), (3, 3)), Problem.of(64 * 9, 4, (), ())])
def test_a_reduction_that_no_core_holds_is_spread_over_several(problem: Problem) -> None:
    machine = PlainMachine(crossbar_rows=16, crossbars_per_core=8)
    plan, rewriter = problem.rewriter()
    assert "needs 36 crossbars" in (STREAMED_PATCH.applies(plan, rewriter.types, machine) or "")
    assert INPUT_K_TILED.applies(plan, rewriter.types, machine) is None
    _, rewriter, partial = realised(problem, machine)
    box = Box.whole(rewriter.types[partial.results[0]].shape)
    one = box.replace(0, 0, 1).replace(partial.channel_axis + 1, 0, 1)
    assert machine.crossbars(partial.weight_shapes(one, rewriter.types, 16)) <= 8


def test_only_the_slice_of_the_input_is_needed() -> None:
    _, rewriter, partial = realised(Problem.of(40, 8, (6, 5), (3, 3), bias=True), PlainMachine(crossbar_rows=32))
    partial = attrs.evolve(partial, bias_row=False)
    step = partial.slice_channels
    out = Box((1, 0, 0, 0, 0), (2, 1, 8, 1, 1))
    assert partial.region(0, out, rewriter.types) == Box((0, step, 0, 0), (1, min(40, 2 * step), 3, 3))
    assert partial.region(2, out, rewriter.types).is_empty
    assert partial.region(2, out.replace(0, 0, 1), rewriter.types) == Box((0,), (8,))


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Problem.of(200, 200, (), (), groups=2), "it takes one group, not 2"),
        (Problem.of(1, 4, (200,), (150,)), "there is only one input channel"),
        (Problem.of(8, 4, (9,), (3,)), "a reduction of 24 elements fits the 128 rows of one crossbar"),
        (Problem.of(2, 4, (999,), (900,)), "one input channel alone needs more than the 4 crossbars of a core"),
    ],
)
def test_refusals(problem: Problem, reason: str) -> None:
    plan, rewriter = problem.rewriter()
    assert INPUT_K_TILED.applies(plan, rewriter.types, PlainMachine(crossbars_per_core=4)) == reason
