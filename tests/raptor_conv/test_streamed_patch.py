"""The strategy streamed-patch: numbers, and the number of products and copies."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_conv.patch_products import StreamedPatch
from raptor_conv.streamed_patch import STREAMED_PATCH
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import lane_kernel
from raptor_core.spatial.cost import nominal_views
from tests.raptor_conv.lanes import compute, instructions
from tests.raptor_conv.problems import PlainMachine, Problem, by_definition, by_onnxruntime, problems, random_order

NHWC = (0, 2, 3, 1)


def realised(problem: Problem, machine: PlainMachine, x_order=None, y_order=None):
    plan, rewriter = problem.rewriter(x_order, y_order)
    assert STREAMED_PATCH.applies(plan, rewriter.types, machine) is None
    STREAMED_PATCH.realise(plan, rewriter, machine, {})
    (op,) = rewriter.operations
    assert isinstance(op, StreamedPatch)
    return plan, rewriter, op


@settings(max_examples=120, deadline=None)
@given(problems(), st.sampled_from([16, 24, 64, 128]), st.integers(0, 10**6))
def test_the_numbers_are_those_of_the_definition(problem: Problem, rows: int, seed: int) -> None:
    rng = random.Random(seed)
    rank = len(problem.x_shape)
    machine = PlainMachine(crossbar_rows=rows, crossbar_columns=16)
    plan, rewriter, _ = realised(problem, machine, random_order(rank, rng), random_order(rank, rng))
    x = problem.x()
    found = compute(rewriter, {"x": x}, rows, rng)["y"]
    np.testing.assert_allclose(found, by_definition(plan, rewriter, x), rtol=1e-4, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([16, 64]), st.data())
def test_every_form_computes_the_same(problem: Problem, rows: int, data: st.DataObject) -> None:
    """Whatever block, bundle and gathering a form has."""
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    rank = len(problem.x_shape)
    plan, rewriter, op = realised(
        problem, PlainMachine(crossbar_rows=rows), random_order(rank, rng), random_order(rank, rng)
    )
    gather = data.draw(st.booleans())
    op = attrs.evolve(
        op,
        block=tuple(data.draw(st.integers(1, 4)) for _ in problem.kernel),
        bundle=data.draw(st.integers(1, 3)),
        gather=gather,
        bias_row=gather and problem.bias and data.draw(st.booleans()),
    )
    rewriter.operations[:] = [op]
    x = problem.x()
    found = compute(rewriter, {"x": x}, rows, rng)["y"]
    np.testing.assert_allclose(found, by_definition(plan, rewriter, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "problem",
    [
        Problem.of(3, 16, (16, 16), (3, 3), pads_begin=(1, 1), pads_end=(1, 1), bias=True, batch=(2,)),
        Problem.of(8, 8, (9, 7), (3, 2), strides=(2, 1), pads_begin=(0, 1), pads_end=(2, 0)),
        Problem.of(8, 12, (11,), (5,), dilations=(2,), groups=4, bias=True),
        Problem.of(4, 6, (5, 6, 4), (2, 3, 1), strides=(1, 2, 1), bias=True),
        Problem.of(40, 20, (4, 4), (1, 1), bias=True),
    ],
)
def test_onnxruntime_agrees(problem: Problem) -> None:
    _, rewriter, _ = realised(problem, PlainMachine(crossbar_rows=64))
    x = problem.x()
    found = compute(rewriter, {"x": x}, 64, random.Random(0))["y"]
    np.testing.assert_allclose(found, by_onnxruntime(problem, rewriter, x), rtol=1e-4, atol=1e-4)


def counts(problem: Problem, machine: PlainMachine, x_order=None, y_order=None) -> tuple[dict[str, int], StreamedPatch]:
    """How often each instruction runs for the whole result."""
    _, rewriter, op = realised(problem, machine, x_order, y_order)
    out = Box.whole(rewriter.types["y"].shape)
    result, operands = nominal_views(op, out, rewriter.types)
    kernel = lane_kernel(op, out, result, operands, rewriter.types, machine.crossbar_rows)
    names = ("product", "copy", "gather", "fill", "add")
    return {name: n for name in names if (n := instructions(kernel, name))}, op


def test_channels_in_whole_crossbar_heights_are_read_in_place() -> None:
    problem = Problem.of(128, 64, (5, 5), (3, 3))
    found, _ = counts(problem, PlainMachine(), NHWC, NHWC)
    assert found == {"product": 9 * 9, "add": 9 * 8}


def test_a_pointwise_convolution_is_read_in_place() -> None:
    found, _ = counts(Problem.of(96, 64, (4, 4), (1, 1)), PlainMachine(), NHWC, NHWC)
    assert found == {"product": 16}


def test_a_matrix_product_is_read_in_place() -> None:
    found, _ = counts(Problem.of(200, 64, (), (), batch=(3,)), PlainMachine())
    assert found == {"product": 6, "add": 3}


def test_remainders_of_runs_are_gathered_into_as_few_products_as_there_can_be() -> None:
    # Three runs of 192: a whole height in place each, and 3 x 64 gathered in two products.
    found, _ = counts(Problem.of(64, 64, (3, 3), (3, 3)), PlainMachine(), NHWC, NHWC)
    assert found == {"product": 5, "copy": 3, "add": 4}


def test_a_spare_row_holds_the_bias() -> None:
    problem = Problem.of(3, 16, (5, 5), (3, 3), bias=True)
    found, op = counts(problem, PlainMachine(), NHWC, NHWC)
    assert op.bias_row
    assert found == {"product": 9, "copy": 27, "fill": 1}
    _, rewriter = problem.rewriter()
    assert op.region(2, Box.whole(rewriter.types["y"].shape), rewriter.types).is_empty


def test_without_a_spare_row_the_bias_is_added() -> None:
    found, op = counts(Problem.of(128, 16, (2, 2), (1, 1), bias=True), PlainMachine(), NHWC, NHWC)
    assert not op.bias_row
    assert found == {"product": 4, "add": 4}


def test_dense_channels_are_gathered_vector_by_vector() -> None:
    found, _ = counts(Problem.of(12, 16, (4, 4), (3, 3)), PlainMachine(), None, NHWC)
    assert found == {"product": 4, "gather": 36}


def test_a_dense_result_is_transposed_at_the_end() -> None:
    found, _ = counts(Problem.of(96, 32, (4, 4), (1, 1)), PlainMachine(), NHWC, None)
    assert found == {"product": 16, "gather": 32}


def test_small_groups_share_products() -> None:
    # Groups of 9 x 4 elements: three of them fill 108 of 128 rows.
    found, op = counts(Problem.of(32, 32, (3, 3), (3, 3), groups=8), PlainMachine(), NHWC, NHWC)
    assert op.bundle == 3
    assert found["product"] == 3


def test_a_reduction_deeper_than_a_core_is_refused() -> None:
    plan, rewriter = Problem.of(700, 4, (3, 3), (3, 3)).rewriter()
    machine = PlainMachine(crossbars_per_core=40)
    assert STREAMED_PATCH.applies(plan, rewriter.types, machine) == (
        "a reduction of 6300 elements needs 50 crossbars of 128 rows on one core, which has 40"
    )
    assert STREAMED_PATCH.applies(plan, rewriter.types, PlainMachine(crossbars_per_core=50)) is None
