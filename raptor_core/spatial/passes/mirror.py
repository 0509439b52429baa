"""Pass ``mirror``: users of a value get storages of their own where one for all would cost more.

A core holds one storage per value, the bounding box of all that it makes and needs of it. Where a lane reads or writes
only a part of that box, what it touches no longer lies gap-free: it takes more instructions and more messages. A
:class:`Mirror` gives some users of a value storages with just what they need; the price is that what the core makes
itself has to be copied, and that what other users need as well arrives twice.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from raptor_core.ir.module import Module, Rewriter
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.spatial.communication import Mirror
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.passes._storage_costs import SharingCosts, read_members

Readers = list[tuple[int, int]]
"""(number of the operation, operand) of every use."""


@attrs.frozen
class MirrorPass:
    """See the module's text. Notes count the mirrors."""

    name: ClassVar[str] = "mirror"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Never refuses. Option ``mirrors``: false leaves all users of a value on one storage."""
        if not context.options.get("mirrors", True):
            return PassResult(attrs.evolve(module, stage=self.name), {"mirrors": 0})
        operations = [op for op in module.operations if isinstance(op, ComputeOp)]
        rewriter = Rewriter(module)
        renamed: dict[tuple[int, int], str] = {}
        mirrors = 0
        for number, op in enumerate(operations):
            operands = tuple(renamed.get((number, k), value) for k, value in enumerate(op.operands))
            rewriter.append(op if operands == op.operands else attrs.evolve(op, operands=operands))
            value = op.results[0]
            for users in _apart(op, _readers(operations, value), operations, module, context):
                name = rewriter.new_value(f"{value}.mirror", module.types[value])
                rewriter.append(Mirror(name=op.name, operands=(value,), results=(name,)))
                renamed.update(dict.fromkeys(users, name))
                mirrors += 1
        return PassResult(rewriter.finish(stage=self.name), {"mirrors": mirrors})


MIRROR = MirrorPass()


def _readers(operations: list[ComputeOp], value: str) -> Readers:
    return [(n, k) for n, op in enumerate(operations) for k, operand in enumerate(op.operands) if operand == value]


def _apart(
    producer: ComputeOp, readers: Readers, operations: list[ComputeOp], module: Module, context: PassContext
) -> list[Readers]:
    """The users of the producer's result that are better off with a mirror, by mirror."""
    members = read_members(producer, [(operations[n], k) for n, k in readers], module.types)
    costs = SharingCosts(members, module.types, context.machine)
    return [[readers[use] for member in group for use in members[member].uses] for group in costs.best_groups()[1:]]
