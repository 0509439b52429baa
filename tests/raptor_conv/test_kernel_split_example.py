"""The example package's strategy: the same numbers, without copies."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.ir.equality import modules_equal
from raptor_core.ir.parser import parse_module
from raptor_core.ir.printer import print_module
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import lane_kernel
from raptor_core.spatial.cost import nominal_views
from raptor_core.spatial.dialect import DIALECT as SPATIAL
from tests.raptor_conv.lanes import compute, instructions
from tests.raptor_conv.problems import PlainMachine, Problem, by_definition, problems

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "raptor-kernel-split"))

from raptor_kernel_split.dialect import DIALECT
from raptor_kernel_split.strategy import KERNEL_SPLIT


def channels_last(problem: Problem) -> tuple[int, ...]:
    rank, channel = len(problem.x_shape), len(problem.batch)
    return (*(axis for axis in range(rank) if axis != channel), channel)


@settings(max_examples=60, deadline=None)
@given(problems(groups=False), st.sampled_from([16, 64]), st.integers(0, 10**6))
def test_the_numbers_are_those_of_the_definition(problem: Problem, rows: int, seed: int) -> None:
    order = channels_last(problem)
    plan, rewriter = problem.rewriter(order, order)
    machine = PlainMachine(crossbar_rows=rows, crossbars_per_core=999)
    assert KERNEL_SPLIT.applies(plan, rewriter.types, machine) is None
    KERNEL_SPLIT.realise(plan, rewriter, machine, {})
    x = problem.x()
    found = compute(rewriter, {"x": x}, rows, random.Random(seed))["y"]
    np.testing.assert_allclose(found, by_definition(plan, rewriter, x), rtol=1e-4, atol=1e-4)


def test_nothing_is_copied() -> None:
    problem = Problem.of(20, 8, (5, 5), (3, 3), bias=True)
    order = channels_last(problem)
    plan, rewriter = problem.rewriter(order, order)
    KERNEL_SPLIT.realise(plan, rewriter, PlainMachine(), {})
    (op,) = rewriter.operations
    out = Box.whole(rewriter.types["y"].shape)
    result, operands = nominal_views(op, out, rewriter.types)
    kernel = lane_kernel(op, out, result, operands, rewriter.types, 128)
    names = ("product", "add", "copy", "gather", "fill")
    assert [instructions(kernel, name) for name in names] == [81, 81, 0, 0, 0]


def test_its_operation_reads_back_from_text() -> None:
    problem = Problem.of(20, 8, (5, 5), (3, 3), bias=True)
    order = channels_last(problem)
    plan, rewriter = problem.rewriter(order, order)
    KERNEL_SPLIT.realise(plan, rewriter, PlainMachine(), {})
    module = rewriter.finish(stage="realise")
    text, arrays = print_module(module)
    dialects = {dialect.name: dialect for dialect in (DIALECT, SPATIAL)}
    assert modules_equal(module, parse_module(text, arrays, dialects, file="m.rir"))


@pytest.mark.parametrize(
    ("problem", "orders", "reason"),
    [
        (Problem.of(4, 4, (5,), (3,), groups=2), (None, None), "it takes one group, not 2"),
        (Problem.of(4, 4, (5,), (3,)), (None, None), "the channels of the input are not innermost in memory"),
        (Problem.of(4, 4, (5,), (3,)), ((0, 2, 1), None), "the channels of the result are not innermost in memory"),
        (
            Problem.of(200, 4, (5,), (3,)),
            ((0, 2, 1), (0, 2, 1)),
            "one output channel needs 6 crossbars, and a core has 4",
        ),
    ],
)
def test_refusals(problem: Problem, orders: tuple, reason: str) -> None:
    plan, rewriter = problem.rewriter(*orders)
    assert KERNEL_SPLIT.applies(plan, rewriter.types, PlainMachine(crossbars_per_core=4)) == reason
