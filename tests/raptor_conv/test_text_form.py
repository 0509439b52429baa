"""The operations of the conv dialect read back from text."""

from __future__ import annotations

import pytest

from raptor_conv.depthwise import DEPTHWISE
from raptor_conv.dialect import DIALECT
from raptor_conv.input_k_tiled import INPUT_K_TILED
from raptor_conv.packed_im2col import PACKED_IM2COL
from raptor_conv.streamed_patch import STREAMED_PATCH
from raptor_core.ir.equality import modules_equal
from raptor_core.ir.parser import parse_module
from raptor_core.ir.printer import print_module
from raptor_core.ir.verifier import verify_module
from raptor_core.spatial.dialect import DIALECT as SPATIAL
from tests.raptor_conv.problems import PlainMachine, Problem

WIDE = Problem.of(24, 8, (6, 6), (3, 3), bias=True)
THIN = Problem.of(8, 8, (6, 6), (3, 3), groups=8, bias=True)


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [(STREAMED_PATCH, WIDE), (PACKED_IM2COL, WIDE), (INPUT_K_TILED, WIDE), (DEPTHWISE, THIN)],
)
def test_a_realised_module_reads_back(strategy, problem: Problem) -> None:
    plan, rewriter = problem.rewriter((0, 2, 3, 1), (0, 2, 3, 1))
    strategy.realise(plan, rewriter, PlainMachine(), {})
    module = rewriter.finish(stage="realise")
    verify_module(module)
    text, arrays = print_module(module)
    dialects = {dialect.name: dialect for dialect in (DIALECT, SPATIAL)}
    again = parse_module(text, arrays, dialects, file="m.rir")
    assert modules_equal(module, again)
