"""The modules that spatial passes make are valid and go through the text form unchanged."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

from raptor_core.diagnostics import InternalError
from raptor_core.ir.equality import modules_equal
from raptor_core.ir.files import read_module, write_module
from raptor_core.ir.module import Module
from raptor_core.ir.verifier import verify_module
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import grid
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.spatial.passes.communicate import COMMUNICATE
from text_ir import DIALECTS, module_from

CONTEXT = PassContext(None, None)  # type: ignore[arg-type]


def scheduled(rows: int) -> Module:
    """Two sums on a tensor of ``rows`` rows: one row a core, then two halves on cores 1 and 2."""
    module = module_from(f"""
        module "t" stage "schedule"
        input %x : f32[{rows},4]
        output %z
        %y = test.sum(%x, %x) : f32[{rows},4] loc("first")
        %z = test.sum(%y, %x) : f32[{rows},4] loc("second")
    """)
    cuts = (grid((rows, 4), (rows, 1)), grid((rows, 4), (2, 1)))
    ops = []
    for step, (op, cut) in enumerate(zip(module.operations, cuts, strict=True)):
        assert isinstance(op, ComputeOp)
        cores = np.arange(len(cut)) + step
        ops.append(attrs.evolve(op, placement=Placement(boxes=cut, cores=cores, order=np.full(len(cut), step))))
    return attrs.evolve(module, operations=tuple(ops))


@pytest.mark.parametrize("rows", [4, 40])
def test_a_module_with_placements_and_transfers(rows: int, tmp_path: Path) -> None:
    module = scheduled(rows)
    for stage in (module, COMMUNICATE.run(module, CONTEXT).module):
        verify_module(stage)
        path = tmp_path / f"{stage.stage}.rir"
        write_module(stage, path)
        assert modules_equal(read_module(path, DIALECTS), stage)
        assert path.with_name(path.name + ".npz").exists() == (rows == 40)


def test_operations_of_another_stage_are_refused() -> None:
    module = attrs.evolve(COMMUNICATE.run(scheduled(4), CONTEXT).module, stage="schedule")
    with pytest.raises(InternalError) as caught:
        verify_module(module)
    assert caught.value.message.startswith("operation spatial.storage ")
    assert caught.value.reason == "operations of this kind may not remain in stage schedule"
