"""Convolutions through all spatial passes, executed on the cores of a small chip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pytest

from raptor_conv.depthwise import DEPTHWISE
from raptor_conv.input_k_tiled import INPUT_K_TILED
from raptor_conv.packed_im2col import PACKED_IM2COL
from raptor_conv.streamed_patch import STREAMED_PATCH
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.verifier import verify_module
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.passes.communicate import COMMUNICATE
from raptor_core.spatial.passes.merge import MERGE
from raptor_core.spatial.passes.plan_layouts import PLAN_LAYOUTS
from raptor_core.spatial.passes.realise import REALISE
from raptor_core.spatial.passes.schedule import SCHEDULE
from raptor_core.spatial.plans import ConvPlan
from raptor_layouts.dense import DENSE
from raptor_layouts.nhwc_row_strip import NHWC_ROW_STRIP
from raptor_schedulers.peft import PEFT
from spatial_interpreter import ROWS, execute
from tests.raptor_conv.problems import PlainMachine, Problem, by_definition

STRATEGIES = (DEPTHWISE, INPUT_K_TILED, PACKED_IM2COL, STREAMED_PATCH)
GROUPS: dict[str, dict[str, Any]] = {
    "raptor.conv_strategies": {strategy.name: strategy for strategy in STRATEGIES},
    "raptor.layouts": {layout.name: layout for layout in (DENSE, NHWC_ROW_STRIP)},
    "raptor.schedulers": {PEFT.name: PEFT},
}
PASSES = (PLAN_LAYOUTS, REALISE, MERGE, SCHEDULE, COMMUNICATE)


@attrs.frozen
class Plugins:
    groups: Mapping[str, Mapping[str, Any]]

    def names(self, group: str) -> list[str]:
        return sorted(self.groups[group])

    def has(self, group: str, name: str) -> bool:
        return name in self.groups[group]

    def get(self, group: str, name: str) -> Any:
        return self.groups[group][name]


def chain(*problems: Problem) -> tuple[Module, np.ndarray, np.ndarray]:
    """The convolutions one after the other as a module, an input, and the result by definition."""
    types, constants, operations = {}, {}, []
    x = value = problems[0].x()
    source = "x"
    for number, problem in enumerate(problems):
        plan, rewriter = problem.rewriter(seed=number)
        names = {"x": source, "y": f"y{number}", "w": f"w{number}", "b": f"b{number}"}
        types.update({names[name]: type_ for name, type_ in rewriter.types.items()})
        constants.update({names[name]: data for name, data in rewriter.constants.items()})
        operands = tuple(names[o] for o in plan.operands)
        operations.append(attrs.evolve(plan, name=f"conv{number}", operands=operands, results=(names["y"],)))
        value = by_definition(plan, rewriter, value)
        source = names["y"]
    module = Module(
        name="chain",
        stage="lower",
        inputs=("x",),
        outputs=(source,),
        types=types,
        constants=constants,
        operations=tuple(operations),
    )
    return module, x, value


CHAIN = (
    Problem.of(3, 8, (10, 9), (3, 3), pads_begin=(1, 1), pads_end=(1, 1), bias=True),
    Problem.of(8, 8, (10, 9), (3, 3), pads_begin=(1, 1), pads_end=(1, 1), groups=8, bias=True),
    Problem.of(8, 20, (10, 9), (3, 2), strides=(2, 1), pads_begin=(0, 1), pads_end=(1, 0), groups=2),
    Problem.of(20, 6, (5, 9), (1, 1), bias=True),
)


@pytest.mark.parametrize("strategy", ["auto", *(strategy.name for strategy in STRATEGIES)])
@pytest.mark.parametrize("layout_planning", [True, False])
def test_the_numbers_survive_every_pass(strategy: str, layout_planning: bool) -> None:
    module, x, expected = chain(*CHAIN)
    machine = PlainMachine(crossbar_rows=ROWS, crossbar_columns=16, core_count=7, crossbars_per_core=40)
    options = {"conv_strategy": strategy, "layout_planning": layout_planning}
    context = PassContext(machine, Plugins(GROUPS), options)  # type: ignore[arg-type]
    for pass_ in PASSES:
        module = pass_.run(module, context).module
        verify_module(module)
    (found,) = execute(module, {"x": x}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_weights_are_resident_and_never_loaded_as_data() -> None:
    module, _, _ = chain(CHAIN[0])
    plan = module.operations[0]
    assert isinstance(plan, ConvPlan)
    for strategy in (STREAMED_PATCH, PACKED_IM2COL, INPUT_K_TILED):
        rewriter = Rewriter(module)
        strategy.realise(plan, rewriter, PlainMachine(crossbar_rows=16), {})
        op = rewriter.operations[0]
        assert isinstance(op, ComputeOp)
        box = Box.whole(rewriter.types[op.results[0]].shape)
        assert op.region(1, box, rewriter.types).is_empty
        assert not op.region(0, box, rewriter.types).is_empty
