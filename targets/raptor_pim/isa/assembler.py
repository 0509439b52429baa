"""Instructions as JSON objects, to records and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raptor_core.diagnostics import RaptorError, nearest
from raptor_pim.isa.opcodes import BY_MNEMONIC, OPCODES, RD, RS1, RS2, Kind, Opcode, OpcodeInfo
from raptor_pim.isa.records import RECORD, Records

FIELDS = frozenset(
    (
        "op",
        "rd",
        "rs1",
        "rs2",
        "imm",
        "offset",
        "offset_value",
        "ibiw",
        "obiw",
        "mbiw",
        "relu",
        "group",
        "len",
        "size",
        "core",
        "event_register",
        "wait_value",
    )
)
"""Every field name an instruction object may have. One that its opcode has no use for is not looked at."""

_OPTIONAL = {"relu": 0, "mbiw": 8}
_POSITIONS = {name: index for index, name in enumerate(RECORD.names or ())}
_BYTE_LIMIT, _WORD_MINIMUM, _WORD_MAXIMUM = 255, -(2**31), 2**31 - 1


def assemble(instructions: Sequence[object], *, where: str = "program", truncate_fractions: bool = False) -> Records:
    """The records of a list of instruction objects.

    Each is a mapping with ``op`` and the fields of that opcode (raptor_pim.isa.opcodes); ``offset`` is an object with
    ``offset_select`` and ``offset_value`` and may be absent, ``relu`` defaults to 0 and ``mbiw`` to 8. The source
    register of ``send`` may be given as ``rd`` or ``rs1``; ``rd`` counts when both are there. Numbers may be
    written as whole floats (``0.0``); other floats are refused, or with ``truncate_fractions`` cut to whole numbers
    (streams of other tools have them in ``imm``, where timing does not look). ``where`` names the source in messages.
    Raises RaptorError for an unknown opcode or field, a missing field or a number out of range.
    """
    if truncate_fractions:
        instructions = [_without_fraction(instruction) for instruction in instructions]
    rows = [
        _regular_row(instruction) or _assemble(instruction, where, index)
        for index, instruction in enumerate(instructions)
    ]
    return np.array(rows, dtype=RECORD) if rows else np.zeros(0, dtype=RECORD)


def to_json(records: Records) -> list[dict[str, Any]]:
    """Instruction objects of valid records: the inverse of :func:`assemble`, with every field of each opcode."""
    columns = [records[name].tolist() for name in RECORD.names or ()]
    shapes = [_json_shape(info) for info in OPCODES]
    return [_object(shapes[row[0]], row) for row in zip(*columns, strict=True)]


_Shape = tuple[str, tuple[tuple[str, int], ...], tuple[int, int] | None]


def _json_shape(info: OpcodeInfo) -> _Shape:
    layout = dict(info.layout)
    offset = None
    if "offset_select" in layout:
        offset = (_POSITIONS[layout.pop("offset_select")], _POSITIONS[layout.pop("offset_value")])
    return info.mnemonic, tuple((name, _POSITIONS[column]) for name, column in layout.items()), offset


_SELECT, _VALUE, _OFFSET_FIELDS = _POSITIONS["generic1"], _POSITIONS["generic2"], 2
_UNARY = frozenset(int(info.opcode) for info in OPCODES if info.kind is Kind.VECTOR and not info.registers & RS2)
_REGULAR = {
    info.mnemonic: (int(info.opcode), fields, offset is not None)
    for info in OPCODES
    for _, fields, offset in (_json_shape(info),)
}


def _object(shape: _Shape, row: tuple[int, ...]) -> dict[str, Any]:
    mnemonic, fields, offset = shape
    result: dict[str, Any] = {"op": mnemonic}
    for name, position in fields:
        result[name] = row[position]
    if offset is not None:
        result["offset"] = {"offset_select": row[offset[0]], "offset_value": row[offset[1]]}
    return result


def _without_fraction(instruction: object) -> object:
    imm = instruction.get("imm") if isinstance(instruction, Mapping) else None
    if isinstance(imm, float) and math.isfinite(imm):
        return {**instruction, "imm": math.trunc(imm)}  # type: ignore[dict-item]
    return instruction


def _regular_row(instruction: object) -> tuple[int, ...] | None:
    """The row of an instruction written in full and in order; None for one that needs a closer look."""
    try:
        number, fields, has_offset = _REGULAR[instruction["op"]]  # type: ignore[index]
        if not FIELDS.issuperset(instruction):  # type: ignore[arg-type]
            return None
        if number in _UNARY and "rs2" in instruction:  # type: ignore[operator]
            return None
        row = [number, 0, 0, 0, 0, 0, 0, 0]
        for name, position in fields:
            row[position] = instruction[name]  # type: ignore[index]
        if has_offset:
            offset = instruction["offset"]  # type: ignore[index]
            if len(offset) != _OFFSET_FIELDS:
                return None
            row[_SELECT] = offset["offset_select"]
            row[_VALUE] = offset["offset_value"]
    except (KeyError, TypeError):
        return None
    if any(type(value) is not int for value in row) or row[1] | row[2] > _BYTE_LIMIT or min(row) < _WORD_MINIMUM:
        return None
    return None if max(row) > _WORD_MAXIMUM or min(row[1], row[2]) < 0 else tuple(row)


def _assemble(instruction: object, where: str, index: int) -> tuple[int, ...]:
    if not isinstance(instruction, Mapping):
        raise _bad(where, index, instruction, "an instruction is a JSON object")
    mnemonic = instruction.get("op")
    info = BY_MNEMONIC.get(mnemonic) if isinstance(mnemonic, str) else None
    if info is None:
        raise _unknown_opcode(where, index, instruction)
    for name in instruction:
        if name not in FIELDS:
            raise _unknown_field(where, index, instruction, str(name))
    row = [0] * len(_POSITIONS)
    row[0] = int(info.opcode)
    values = _values(info, instruction, where, index)
    for name, column in info.layout.items():
        row[_POSITIONS[column]] = _number(values, name, column, where, index, instruction)
    if info.kind is Kind.VECTOR and "rs2" not in info.layout and "rs2" in instruction:
        row[_POSITIONS["r2_or_imm"]] = _number(instruction, "rs2", "r2_or_imm", where, index, instruction)
    return tuple(row)


def _values(info: OpcodeInfo, instruction: Mapping[str, Any], where: str, index: int) -> Mapping[str, Any]:
    """The instruction's fields by the names of the opcode's layout, defaults filled in."""
    values = {**_OPTIONAL, **instruction}
    if "offset_value" in info.layout:
        values.setdefault("offset_value", 0)
    if "offset_select" in info.layout:
        values["offset_select"] = 0
        if "offset" in instruction:
            values |= _offset(instruction, where, index)
    if info.opcode is Opcode.SEND and "rd" not in instruction and "rs1" in instruction:
        values["rd"] = values["rs1"]
        if isinstance(values["offset_select"], int) and values["offset_select"] & RS1:
            values["offset_select"] |= RD
    return values


def _offset(instruction: Mapping[str, Any], where: str, index: int) -> Mapping[str, Any]:
    offset = instruction["offset"]
    if not isinstance(offset, Mapping) or set(offset) != {"offset_select", "offset_value"}:
        raise _bad(where, index, instruction, "'offset' is an object with offset_select and offset_value")
    return offset


def _number(values: Mapping[str, Any], name: str, column: str, where: str, index: int, instruction: object) -> int:
    if name not in values:
        raise _bad(where, index, instruction, f"field '{name}' is missing")
    value = values[name]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _bad(where, index, instruction, f"field '{name}' must be a whole number, not {value!r}"[:200])
    low, high = (0, _BYTE_LIMIT) if column in ("rd", "rs1") else (_WORD_MINIMUM, _WORD_MAXIMUM)
    if not low <= value <= high:
        raise _bad(where, index, instruction, f"field '{name}' must be in {low}..{high}")
    return value


def _bad(where: str, index: int, instruction: object, reason: str) -> RaptorError:
    return RaptorError(
        "bad-instruction",
        f"instruction {index} cannot be read: {str(instruction)[:160]}",
        where=where,
        reason=reason,
        hint="see the field names of each opcode in the instruction set reference",
    )


def _unknown_opcode(where: str, index: int, instruction: Mapping[str, Any]) -> RaptorError:
    given = instruction.get("op")
    near = nearest(given, BY_MNEMONIC) if isinstance(given, str) else None
    error = _bad(where, index, instruction, f"there is no opcode {str(given)[:60]!r}")
    error.hint = f"did you mean '{near}'?" if near else f"known: {', '.join(BY_MNEMONIC)}"
    return error


def _unknown_field(where: str, index: int, instruction: Mapping[str, Any], name: str) -> RaptorError:
    near = nearest(name, FIELDS)
    error = _bad(where, index, instruction, f"there is no field {name[:60]!r}")
    error.hint = f"did you mean '{near}'?" if near else f"known: {', '.join(sorted(FIELDS))}"
    return error
