"""Pass ``stage-inputs``: what many lanes would read from the host again and again is brought onto the cores once.

The host memory serves the whole chip through one port. Where the boxes that an operation's lanes need of a network
input or of a constant overlap (the halos of a convolution, a bias that every lane adds), each core would load its part
from the host. A copy in between is loaded once, in long runs, and its pieces then go from core to core, side by side.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Operation, Types
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, ConvertLayout
from raptor_core.spatial.pricing import sample_cuts
from raptor_core.targets.machine import Machine

_WORTH_STAGING = 1.25
"""How many times over the elements of an input must be read for a copy on the cores to pay."""


@attrs.frozen
class StageInputsPass:
    """See the module's text. Notes name the staged inputs and constants."""

    name: ClassVar[str] = "stage-inputs"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Never refuses. Option ``input_staging``: false leaves the module as it is."""
        if not context.options.get("input_staging", True):
            return PassResult(attrs.evolve(module, stage=self.name), {"staged": []})
        hosted = (*module.inputs, *module.constants)
        staged = {value: module.types[value] for value in hosted if _is_shared(module, value, context.machine)}
        rewriter = Rewriter(module)
        names: dict[str, str] = {}
        for value, type_ in staged.items():
            names[value] = rewriter.new_value(f"{value}.staged", type_)
            rewriter.append(ConvertLayout(name=f"{value}.staged", operands=(value,), results=(names[value],)))
        for op in module.operations:
            rewriter.append(_reading(op, names, module.types, context.machine))
        return PassResult(rewriter.finish(stage=self.name), {"staged": list(staged)})


STAGE_INPUTS = StageInputsPass()


def _is_shared(module: Module, value: str, machine: Machine) -> bool:
    """Whether some operation reads the value so often that staging pays."""
    return any(
        _overlapping(op, k, module.types, machine)
        for op in module.operations
        for k, operand in enumerate(op.operands)
        if operand == value
    )


def _overlapping(op: Operation, operand: int, types: Types, machine: Machine) -> bool:
    """Whether the lanes of ``op`` together need much more of an operand than it holds."""
    assert isinstance(op, ComputeOp)
    if machine.core_count < 2:
        return False
    type_ = types[op.operands[operand]]
    whole = Box.whole(type_.shape)
    cuts = sample_cuts(op, types, machine)
    read = min(op.region(operand, cut.box, types).intersect(whole).elements * cut.lanes for cut in cuts)
    return read > _WORTH_STAGING * type_.elements


def _reading(op: Operation, names: dict[str, str], types: Types, machine: Machine) -> Operation:
    """``op`` with staged values in place of what it reads again and again."""
    operands = tuple(
        names[value] if value in names and _overlapping(op, k, types, machine) else value
        for k, value in enumerate(op.operands)
    )
    return op if operands == op.operands else attrs.evolve(op, operands=operands)
