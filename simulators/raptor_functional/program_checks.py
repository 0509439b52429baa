"""What only a numerical execution asks of a program, beyond the rules of the instruction set."""

from __future__ import annotations

import numpy as np

from raptor_core.diagnostics import RaptorError
from raptor_pim.artifacts import Artifact
from raptor_pim.isa import Opcode, Records, disassemble_at

WIDTHS = (8, 16, 32)
"""Element widths in bits that have a meaning in numbers."""


def check_programs(artifact: Artifact) -> None:
    """Refuses element widths without a meaning, means of nothing, and products without weights.

    Raises RaptorError naming core, pc and instruction.
    """
    for core, records in enumerate(artifact.programs):
        op = records["op"]
        widths = op == Opcode.SETBW
        unknown = widths & ~(np.isin(records["generic1"], WIDTHS) & np.isin(records["generic2"], WIDTHS))
        if unknown.any():
            reason = f"elements are numbers at widths of {', '.join(map(str, WIDTHS))} bits only"
            raise _refusal(core, int(unknown.argmax()), records, reason)
        empty = (op == Opcode.VAVG) & (records["generic3"] == 0)
        if empty.any():
            raise _refusal(core, int(empty.argmax()), records, "the mean of no elements is undefined")
        products = op == Opcode.MVMUL
        if not artifact.config.weights and products.any():
            reason = "the artifact has no weights, so its products have no value"
            raise _refusal(core, int(products.argmax()), records, reason)


def _refusal(core: int, pc: int, records: Records, reason: str) -> RaptorError:
    return RaptorError(
        "not-numeric",
        "the program cannot be executed numerically",
        where=f"core {core} pc {pc}: {disassemble_at(records, pc)}",
        reason=reason,
        hint="the performance simulator needs no numbers and may still run it",
    )
