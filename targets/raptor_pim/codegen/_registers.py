"""Compiled register assignment (kept apart: importing it loads the compiler).

Operands are values that must stand in registers. A register is loaded (``sldi``) only when none holds the value yet;
the one unused for longest is given up. So equal addresses share a register and nothing is loaded twice in a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from raptor_pim.isa.opcodes import REGISTER_COUNT

Words = npt.NDArray[np.int32]


@njit(cache=True)
def _assign(
    op: Any, values: Any, uses: Any, immediate: Any, generic: Any, load_opcode: int, words: Any, first: Any
) -> int:
    """Writes 20-byte records as five 32-bit words into ``words`` (unless it is empty); gives their number.

    ``first`` [m] gets the index of the first record of every instruction, its register loads included.
    """
    write = words.shape[0] > 0
    held = np.zeros(REGISTER_COUNT, np.int64)
    known = np.zeros(REGISTER_COUNT, np.bool_)
    stamp = np.full(REGISTER_COUNT, -1, np.int64)
    register = np.zeros(3, np.int64)
    n = 0
    for i in range(op.size):
        first[i] = n
        for k in range(3):
            register[k] = 0
            if not uses[op[i], k]:
                continue
            value = values[i, k]
            found = -1
            oldest = 0
            for r in range(REGISTER_COUNT):
                if known[r] and held[r] == value:
                    found = r
                    break
                if stamp[r] < stamp[oldest]:
                    oldest = r
            if found < 0:
                found = oldest
                held[found] = value
                known[found] = True
                if write:
                    words[n, 0] = load_opcode | (found << 8)
                    words[n, 1] = value
                n += 1
            # Operands of one instruction share its stamp, so none of them can push out another.
            stamp[found] = i
            register[k] = found
        if write:
            words[n, 0] = op[i] | (register[0] << 8) | (register[1] << 16)
            words[n, 1] = register[2] if uses[op[i], 2] else immediate[i]
            words[n, 2] = generic[i, 0]
            words[n, 3] = generic[i, 1]
            words[n, 4] = generic[i, 2]
        n += 1
    return n


def assign_registers(
    op: Any, values: Any, uses: Any, immediate: Any, generic: Any, load_opcode: int
) -> tuple[Words, npt.NDArray[np.int64]]:
    """Instruction records as [n, 5] int32 words, register loads included, and [m] the first record of each instruction.

    ``op`` [m] opcode numbers; ``values`` [m, 3] the int32 values of operands rd, rs1, rs2; ``uses`` [256, 3] which
    of them an opcode has; ``immediate`` [m] the r2_or_imm field where rs2 is no register; ``generic`` [m, 3].
    """
    nothing = np.zeros((0, 5), dtype=np.int32)
    first = np.zeros(op.size, dtype=np.int64)
    count = _assign(op, values, uses, immediate, generic, load_opcode, nothing, first)
    words = np.zeros((count, 5), dtype=np.int32)
    if count:
        _assign(op, values, uses, immediate, generic, load_opcode, words, first)
    return words, first
