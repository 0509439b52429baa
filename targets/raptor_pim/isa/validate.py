"""Checks of whole programs before anything runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_pim.isa.disassembler import disassemble_at
from raptor_pim.isa.opcodes import EVENT_REGISTER_COUNT, OPCODES, RD, REGISTER_COUNT, RS1, RS2, Kind
from raptor_pim.isa.records import RECORD, Records

_Mask = npt.NDArray[np.bool_]
_SHOWN = 10
_SELECT_LIMIT = RD | RS1 | RS2


def _table(holds: Callable[[int], bool]) -> _Mask:
    """A lookup by opcode number, False for unknown ones."""
    table = np.zeros(256, dtype=np.bool_)
    table[: len(OPCODES)] = [holds(number) for number in range(len(OPCODES))]
    table.setflags(write=False)
    return table


def _of_kind(*kinds: Kind) -> _Mask:
    return _table(lambda number: OPCODES[number].kind in kinds)


_KNOWN = _table(lambda number: True)
_USES = {bit: _table(lambda number, bit=bit: bool(OPCODES[number].registers & bit)) for bit in (RD, RS1, RS2)}  # type: ignore[misc]
_COUNTED = _table(lambda number: OPCODES[number].count_field is not None)
_SELECTING = _table(lambda number: "offset_select" in OPCODES[number].layout)
_PRODUCT = _of_kind(Kind.PRODUCT)
_PEER = _of_kind(Kind.PEER)
_NAMES_CORE = _of_kind(Kind.PEER, Kind.SYNC)
_EVENT = _of_kind(Kind.WAIT, Kind.SYNC)
_WAIT = _of_kind(Kind.WAIT)
_WIDTHS = _of_kind(Kind.WIDTHS)
_FILL = _of_kind(Kind.FILL)


@attrs.frozen
class Violation:
    """One instruction that breaks a rule: where it stands and which rule, in one sentence."""

    core: int
    pc: int
    instruction: str
    rule: str

    def __str__(self) -> str:
        return f"core {self.core} pc {self.pc}: {self.instruction}: {self.rule}"


def validate_programs(
    programs: Sequence[Records], *, group_counts: Sequence[int] | None = None, where: str | None = None
) -> None:
    """Checks every instruction of every core.

    ``programs`` holds the records of cores 0, 1, ...; ``group_counts`` the number of crossbar groups of each core
    (None: groups are not checked). ``where`` names the artifact in the message. Checked are opcodes, registers,
    counts, offset selections, groups, widths, peers, event registers and flags; not what depends on values at run
    time. Raises RaptorError listing the first violation of every rule on every core, at most ten of them.
    """
    found: list[Violation] = []
    for core, records in enumerate(programs):
        if records.dtype != RECORD or records.ndim != 1:
            raise TypeError("a program is a one-dimensional array of RECORD")
        groups = None if group_counts is None else group_counts[core]
        found.extend(find_violations(records, core=core, core_count=len(programs), group_count=groups))
        if len(found) > _SHOWN:
            break
    if found:
        raise RaptorError(
            "bad-program",
            f"the program of core {found[0].core} breaks the rules of the instruction set",
            where=where or f"core {found[0].core} pc {found[0].pc}",
            reason=str(found[0]),
            details=[str(violation) for violation in found[1:_SHOWN]],
            hint="compile again; if it was compiled by Raptor, this is a fault in Raptor",
        )


def find_violations(records: Records, *, core: int, core_count: int, group_count: int | None) -> list[Violation]:
    """The first violation of each rule in one core's program, in program order."""
    op = records["op"]
    if not op.size:
        return []
    imm, generic1, generic2, generic3 = (records[f] for f in ("r2_or_imm", "generic1", "generic2", "generic3"))
    last_register = REGISTER_COUNT - 1

    def outside(values: npt.NDArray[np.int32], low: int, high: int) -> _Mask:
        return np.asarray((values < low) | (values > high))

    rules: list[tuple[_Mask, str]] = [
        (~_KNOWN[op], f"opcodes end at {len(OPCODES) - 1}"),
        (records["flags"] != 0, "the flags byte must be 0"),
        (_USES[RD][op] & (records["rd"] > last_register), f"rd must be in 0..{last_register}"),
        (_USES[RS1][op] & (records["rs1"] > last_register), f"rs1 must be in 0..{last_register}"),
        (_USES[RS2][op] & outside(imm, 0, last_register), f"rs2 must be in 0..{last_register}"),
        (_COUNTED[op] & (generic3 < 0), "a count cannot be negative"),
        (_SELECTING[op] & outside(generic1, 0, _SELECT_LIMIT), f"offset_select must be in 0..{_SELECT_LIMIT}"),
        (_PRODUCT[op] & outside(generic1, 0, 1), "relu must be 0 or 1"),
        (_PRODUCT[op] & (imm < 0), "mbiw cannot be negative"),
        (_NAMES_CORE[op] & outside(imm, 0, core_count - 1), f"cores are 0..{core_count - 1}"),
        (_PEER[op] & (imm == core), "a core cannot exchange data with itself"),
        (_EVENT[op] & outside(generic1, 0, EVENT_REGISTER_COUNT - 1), f"events are 0..{EVENT_REGISTER_COUNT - 1}"),
        (_WAIT[op] & (generic2 < 0), "wait_value cannot be negative"),
        (_WIDTHS[op] & ((generic1 < 1) | (generic2 < 1)), "element widths must be positive"),
        (_FILL[op] & outside(imm, -128, 255), "the byte to set must be in -128..255"),
    ]
    if group_count is not None:
        last = (
            f"groups of core {core} are 0..{group_count - 1}" if group_count else f"core {core} has no crossbar group"
        )
        rules.append((_PRODUCT[op] & outside(generic2, 0, group_count - 1), last))
    found = []
    for mask, rule in rules:
        if mask.any():
            pc = int(mask.argmax())
            found.append(Violation(core, pc, disassemble_at(records, pc), rule))
    return sorted(found, key=lambda violation: violation.pc)
