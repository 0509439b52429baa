"""The pass ``merge``: element-wise functions move into the operation that makes their operand.

A function that runs in place on a lane's result needs no storage, no lanes and no transfers of its own.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Operation
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.spatial.compute import ComputeOp, Pointwise


@attrs.frozen
class MergePass:
    """See the module's text. Notes count the operations merged."""

    name: ClassVar[str] = "merge"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Merge every pointwise operation whose operand nobody else reads; chains end in one operation."""
        users = module.users_of()
        rewriter = Rewriter(module)
        position: dict[str, int] = {}
        merged = 0
        for op in module.operations:
            place = position.get(op.operands[0]) if isinstance(op, Pointwise) else None
            producer = rewriter.operations[place] if place is not None else None
            if isinstance(op, Pointwise) and place is not None and _may_join(module, users, producer, op):
                assert isinstance(producer, ComputeOp)
                rewriter.operations[place] = attrs.evolve(
                    producer, results=op.results, epilogue=(*producer.epilogue, op.function, *op.epilogue)
                )
                merged += 1
            else:
                place = len(rewriter.operations)
                rewriter.append(op)
            position.update(dict.fromkeys(op.results, place))
        return PassResult(rewriter.finish(stage=self.name), notes={"merged": merged})


MERGE = MergePass()


def _may_join(module: Module, users: dict[str, list[Operation]], producer: Operation | None, op: Pointwise) -> bool:
    operand = op.operands[0]
    return (
        isinstance(producer, ComputeOp)
        and producer.placement is None
        and op.placement is None
        and len(users[operand]) == 1
        and operand not in module.outputs
        and module.types[operand].order == module.types[op.results[0]].order
    )
