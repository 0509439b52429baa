"""The strategy packed-im2col: numbers, products saved, refusals."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raptor_conv.packed_im2col import PACKED_IM2COL
from raptor_conv.patch_products import StreamedPatch
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import lane_kernel
from raptor_core.spatial.cost import nominal_views
from tests.raptor_conv.lanes import compute, instructions
from tests.raptor_conv.problems import PlainMachine, Problem, by_definition, by_onnxruntime, problems, random_order

NHWC = (0, 2, 3, 1)


def realised(problem: Problem, machine: PlainMachine, x_order=None, y_order=None):
    plan, rewriter = problem.rewriter(x_order, y_order)
    PACKED_IM2COL.realise(plan, rewriter, machine, {})
    (op,) = rewriter.operations
    assert isinstance(op, StreamedPatch)
    return plan, rewriter, op


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([16, 64, 128]), st.integers(0, 10**6))
def test_the_numbers_are_those_of_the_definition(problem: Problem, rows: int, seed: int) -> None:
    rng = random.Random(seed)
    rank = len(problem.x_shape)
    machine = PlainMachine(crossbar_rows=rows, crossbar_columns=64)
    plan, rewriter = problem.rewriter()
    assume(PACKED_IM2COL.applies(plan, rewriter.types, machine) is None)
    plan, rewriter, op = realised(problem, machine, random_order(rank, rng), random_order(rank, rng))
    assert np.prod(op.block) > 1
    x = problem.x()
    found = compute(rewriter, {"x": x}, rows, rng)["y"]
    np.testing.assert_allclose(found, by_definition(plan, rewriter, x), rtol=1e-4, atol=1e-4)


def test_onnxruntime_agrees() -> None:
    problem = Problem.of(3, 8, (13, 11), (3, 3), strides=(2, 1), pads_begin=(1, 1), pads_end=(0, 1), bias=True)
    _, rewriter, _ = realised(problem, PlainMachine())
    x = problem.x()
    found = compute(rewriter, {"x": x}, 128, random.Random(0))["y"]
    np.testing.assert_allclose(found, by_onnxruntime(problem, rewriter, x), rtol=1e-4, atol=1e-4)


def test_few_channels_need_a_fraction_of_the_products() -> None:
    problem = Problem.of(3, 64, (32, 32), (3, 3), pads_begin=(1, 1), pads_end=(1, 1), bias=True)
    _, rewriter, op = realised(problem, PlainMachine(), NHWC, NHWC)
    out = Box.whole(rewriter.types["y"].shape)
    result, operands = nominal_views(op, out, rewriter.types)
    kernel = lane_kernel(op, out, result, operands, rewriter.types, 128)
    assert instructions(kernel, "product") <= 32 * 32 / 6


@pytest.mark.parametrize(
    ("problem", "machine", "reason"),
    [
        (Problem.of(4, 4, (), (), batch=(8,)), PlainMachine(), "a matrix product has no neighbouring positions"),
        (Problem.of(4, 4, (3, 3), (3, 3)), PlainMachine(), "there is only one output position"),
        (
            Problem.of(128, 4, (9, 9), (3, 3)),
            PlainMachine(crossbars_per_core=9),
            "not even two positions fit the 9 crossbars of a core",
        ),
        (
            Problem.of(256, 4, (9, 9), (3, 3)),
            PlainMachine(crossbars_per_core=9),
            "a reduction of 2304 elements needs 18 crossbars of 128 rows on one core, which has 9",
        ),
    ],
)
def test_refusals(problem: Problem, machine: PlainMachine, reason: str) -> None:
    plan, rewriter = problem.rewriter()
    assert PACKED_IM2COL.applies(plan, rewriter.types, machine) == reason
