"""The strategy depthwise: numbers, refusals, and the length of its instructions."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_conv.depthwise import DEPTHWISE
from raptor_conv.depthwise_products import Depthwise
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import lane_kernel
from raptor_core.spatial.cost import nominal_views
from tests.raptor_conv.lanes import compute, instructions
from tests.raptor_conv.problems import PlainMachine, Problem, by_definition, by_onnxruntime, problems, random_order

NHWC = (0, 2, 3, 1)
MACHINE = PlainMachine()


def realised(problem: Problem, x_order=None, y_order=None):
    plan, rewriter = problem.rewriter(x_order, y_order)
    assert DEPTHWISE.applies(plan, rewriter.types, MACHINE) is None
    DEPTHWISE.realise(plan, rewriter, MACHINE, {})
    (op,) = rewriter.operations
    assert isinstance(op, Depthwise)
    return plan, rewriter, op


@settings(max_examples=100, deadline=None)
@given(problems(depthwise=True), st.booleans(), st.integers(0, 10**6))
def test_the_numbers_are_those_of_the_definition(problem: Problem, wide: bool, seed: int) -> None:
    rng = random.Random(seed)
    rank = len(problem.x_shape)
    plan, rewriter, op = realised(problem, random_order(rank, rng), random_order(rank, rng))
    rewriter.operations[:] = [attrs.evolve(op, wide=wide)]
    x = problem.x()
    found = compute(rewriter, {"x": x}, 128, rng)["y"]
    np.testing.assert_allclose(found, by_definition(plan, rewriter, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("order", [None, NHWC])
def test_onnxruntime_agrees(bias: bool, order: tuple[int, ...] | None) -> None:
    problem = Problem.of(
        12, 12, (7, 9), (3, 2), strides=(2, 1), pads_begin=(1, 0), pads_end=(1, 1), groups=12, bias=bias
    )
    _, rewriter, _ = realised(problem, order, order)
    x = problem.x()
    found = compute(rewriter, {"x": x}, 128, random.Random(1))["y"]
    del rewriter.constants[rewriter.operations[0].operands[1]]
    np.testing.assert_allclose(found, by_onnxruntime(problem, rewriter, x), rtol=1e-4, atol=1e-4)


def lane(op: Depthwise, rewriter) -> dict[str, int]:
    out = Box.whole(rewriter.types["y"].shape)
    result, operands = nominal_views(op, out, rewriter.types)
    kernel = lane_kernel(op, out, result, operands, rewriter.types, 128)
    return {name: n for name in ("mul", "add", "copy", "gather") if (n := instructions(kernel, name))}


def test_wide_runs_cover_rows_of_channel_vectors() -> None:
    problem = Problem.of(8, 8, (6, 6), (3, 3), groups=8, bias=True)
    _, rewriter, op = realised(problem, NHWC, NHWC)
    # 4 rows; 9 taps and the bias; the 10 vectors are repeated 4 times each.
    assert lane(attrs.evolve(op, wide=True), rewriter) == {"mul": 36, "add": 36, "copy": 40}
    assert lane(attrs.evolve(op, wide=False), rewriter) == {"mul": 144, "add": 144}


def test_the_bias_comes_with_the_weights() -> None:
    problem = Problem.of(8, 8, (6, 6), (3, 3), groups=8, bias=True)
    _, rewriter, op = realised(problem)
    assert op.operands[0] == "x"
    assert rewriter.types[op.operands[1]].shape == (10, 8)
    assert op.region(1, Box((0, 2, 0, 0), (1, 5, 4, 4)), rewriter.types) == Box((0, 2), (10, 5))


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Problem.of(4, 4, (5,), (3,)), "it takes one input channel per group, not 4"),
        (Problem.of(4, 8, (5,), (3,), groups=4), "it takes one output channel per group, not 2"),
    ],
)
def test_other_groups_are_refused(problem: Problem, reason: str) -> None:
    plan, rewriter = problem.rewriter()
    assert DEPTHWISE.applies(plan, rewriter.types, MACHINE) == reason
