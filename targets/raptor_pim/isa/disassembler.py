"""Records to readable text."""

from __future__ import annotations

from raptor_pim.isa.opcodes import OPCODES, RD, RS1, RS2, Kind, Opcode, OpcodeInfo
from raptor_pim.isa.records import Records

_SELECT_NAMES = ((RD, "rd"), (RS1, "rs1"), (RS2, "rs2"))


def disassemble(records: Records, start: int = 0, stop: int | None = None) -> list[str]:
    """One line of text per instruction in ``records[start:stop]``; only that part is looked at.

    A line is the mnemonic, register operands (``r3``), then the other fields by name, for example
    ``vvadd r2, r0, r1, len=64, offset(rd, rs1)=16``. An unknown opcode gives its number and raw fields.
    """
    part = records[start:stop]
    columns = [part[name].tolist() for name in ("op", "rd", "rs1", "r2_or_imm", "generic1", "generic2", "generic3")]
    return [_line(*row) for row in zip(*columns, strict=True)]


def disassemble_at(records: Records, index: int) -> str:
    """The text of the instruction at ``index``."""
    return disassemble(records, index, index + 1)[0]


def _line(op: int, rd: int, rs1: int, r2_or_imm: int, generic1: int, generic2: int, generic3: int) -> str:
    if op >= len(OPCODES):
        raw = f"rd={rd}, rs1={rs1}, r2_or_imm={r2_or_imm}, generic=({generic1}, {generic2}, {generic3})"
        return f"opcode {op}? {raw}"
    info = OPCODES[op]
    values = {
        "rd": rd,
        "rs1": rs1,
        "r2_or_imm": r2_or_imm,
        "generic1": generic1,
        "generic2": generic2,
        "generic3": generic3,
    }
    parts = []
    for name, column in info.layout.items():
        if name in ("rd", "rs1", "rs2"):
            parts.append(f"r{values[column]}")
        elif name not in ("offset_select", "offset_value"):
            parts.append(f"{name}={values[column]}")
    offset = _offset(info, generic1, generic2)
    if offset:
        parts.append(offset)
    return f"{info.mnemonic} {', '.join(parts)}" if parts else info.mnemonic


def _offset(info: OpcodeInfo, select: int, value: int) -> str | None:
    if "offset_value" not in info.layout or value == 0:
        return None
    if info.kind is Kind.HOST_SCALAR or info.opcode is Opcode.VAVG:
        return f"offset(rs1)={value}"
    if select == 0:
        return None
    names = ", ".join(name for bit, name in _SELECT_NAMES if select & bit)
    return f"offset({names})={value}"
