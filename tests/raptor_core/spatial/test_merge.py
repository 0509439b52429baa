"""Pointwise operations join the operation before them where nobody else looks at the value between."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np
import pytest

from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import grid
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.spatial.passes.merge import MERGE
from text_ir import module_from, operations_of

CONTEXT = cast(PassContext, cast(Any, None))
HEAD = 'module "t" stage "realise"\ninput %x : f32[2,3]\n'


def merged(text: str) -> tuple[list[str], int]:
    result = MERGE.run(module_from(HEAD + text), CONTEXT)
    assert result.module.stage == "merge"
    return operations_of(result.module), result.notes["merged"]


def test_a_chain_becomes_one_operation_under_its_first_name() -> None:
    assert merged("""
output %d
%a = test.sum(%x, %x) {epilogue = [#test.apply<op = "tanh">]} : f32[2,3] layout r(1,0) loc("sum")
%b = spatial.pointwise(%a) {function = #test.apply} : f32[2,3] layout r(1,0) loc("relu")
%c = spatial.pointwise(%b) {
  epilogue = [#test.apply], function = #test.apply<op = "sigmoid">
} : f32[2,3] layout r(1,0) loc("sigmoid")
%d = spatial.pointwise(%c) {function = #test.apply} : f32[2,3] layout r(1,0) loc("last")
""") == (
        [
            "%d = test.sum(%x, %x) {",
            '  epilogue = [#test.apply<op = "tanh">, #test.apply, #test.apply<op = "sigmoid">, #test.apply, '
            "#test.apply]",
            '} : f32[2,3] layout r(1,0) loc("sum")',
        ],
        3,
    )


def test_a_pointwise_operation_takes_others_in() -> None:
    assert merged("""
output %b
%a = spatial.pointwise(%x) {function = #test.apply} : f32[2,3] loc("first")
%b = spatial.pointwise(%a) {function = #test.apply<op = "tanh">} : f32[2,3] loc("second")
""") == (
        [
            '%b = spatial.pointwise(%x) {epilogue = [#test.apply<op = "tanh">], function = #test.apply} : f32[2,3] '
            'loc("first")'
        ],
        1,
    )


@pytest.mark.parametrize(
    "text",
    [
        # read twice, by two operations
        """
output %c
%a = test.sum(%x, %x) : f32[2,3] loc("sum")
%b = spatial.pointwise(%a) {function = #test.apply} : f32[2,3] loc("relu")
%c = test.sum(%a, %b) : f32[2,3] loc("both")
""",
        # a network output
        """
output %a
output %b
%a = test.sum(%x, %x) : f32[2,3] loc("sum")
%b = spatial.pointwise(%a) {function = #test.apply} : f32[2,3] loc("relu")
""",
        # another layout
        """
output %b
%a = test.sum(%x, %x) : f32[2,3] loc("sum")
%b = spatial.pointwise(%a) {function = #test.apply} : f32[2,3] layout r(1,0) loc("relu")
""",
        # an operand that is not computed
        """
output %b
%b = spatial.pointwise(%x) {function = #test.apply} : f32[2,3] loc("relu")
""",
        # a producer that is not a compute
        """
output %b
%a = test.any(%x) : f32[2,3] loc("any")
%b = spatial.pointwise(%a) {function = #test.apply} : f32[2,3] loc("relu")
""",
    ],
)
def test_what_must_stand_apart_does(text: str) -> None:
    assert merged(text) == (operations_of(module_from(HEAD + text)), 0)


def test_placed_operations_stand_apart() -> None:
    module = module_from(
        HEAD + "output %b\n"
        '%a = test.sum(%x, %x) : f32[2,3] loc("sum")\n'
        '%b = spatial.pointwise(%a) {function = #test.apply} : f32[2,3] loc("relu")\n'
    )
    placement = Placement(boxes=grid((2, 3), (1, 1)), cores=np.array([0]), order=np.array([0]))
    first = module.operations[0]
    assert isinstance(first, ComputeOp)
    placed = attrs.evolve(module, operations=(attrs.evolve(first, placement=placement), module.operations[1]))
    assert MERGE.run(placed, CONTEXT).notes["merged"] == 0


def test_only_the_use_that_is_single_merges() -> None:
    """One branch of two is merged into its own producer, and order is kept."""
    operations, count = merged("""
output %e
%a = test.sum(%x, %x) : f32[2,3] loc("a")
%b = test.sum(%x, %a) : f32[2,3] loc("b")
%c = spatial.pointwise(%b) {function = #test.apply} : f32[2,3] loc("c")
%e = test.sum(%a, %c) : f32[2,3] loc("e")
""")
    assert count == 1
    assert operations == [
        '%a = test.sum(%x, %x) : f32[2,3] loc("a")',
        '%c = test.sum(%x, %a) {epilogue = [#test.apply]} : f32[2,3] loc("b")',
        '%e = test.sum(%a, %c) : f32[2,3] loc("e")',
    ]
