"""PIMCOMP instructions as records: addresses of elements become addresses of bytes, names become numbers.

As in PIMCOMP's own timing program, the registers of every instruction are loaded before it: 0 holds the destination,
1 and 2 the sources. Elements are float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from raptor_pim.artifacts.model import ELEMENT_BYTES
from raptor_pim.isa.opcodes import Opcode
from raptor_pim.isa.records import RECORD, Records
from raptor_pimcomp.host import HostImage, HostTensor
from raptor_pimcomp.stream import bad_stream

Row = tuple[int, int, int, int, int, int, int, int]
Fields = Mapping[str, Any]

_BITS = 8 * ELEMENT_BYTES
_WEIGHT_BITS = 8
_UNARY = {"VRELU": Opcode.VRELU, "VTANH": Opcode.VTANH, "VSIGMOID": Opcode.VSIGM}
_BINARY = {"VVADD": Opcode.VVADD, "VVMUL": Opcode.VVMUL, "VVMAX": Opcode.VVMAX, "VSUB": Opcode.VVSUB}
_LARGEST = (1 << 31) - 1


@attrs.frozen(eq=False)
class Translator:
    """What instructions refer to besides local memory.

    ``groups`` maps an array group to its number on its core; ``biases`` a node's number to the byte address of its
    bias; ``first_layers`` are the nodes that the network's input feeds.
    """

    groups: Mapping[tuple[int, int], int]
    biases: Mapping[int, int]
    first_layers: frozenset[int]
    image: HostImage
    source: HostTensor
    result: HostTensor
    core_count: int
    where: str

    def program(self, core: int, instructions: tuple[Fields, ...]) -> Records:
        """The records of one core; instructions that only serve PIMCOMP's own check are left out."""
        rows: list[Row] = [_row(Opcode.SETBW, generic1=_BITS, generic2=_BITS)]
        for number, fields in enumerate(instructions):
            where = f"{self.where}: core {core} instruction {number}"
            operation = fields.get("operation")
            if operation == "VER":
                continue
            translate = _TRANSLATIONS.get(operation) if isinstance(operation, str) else None
            if translate is None:
                raise bad_stream(where, f"operation {str(operation)[:60]!r} is not one that can be imported")
            rows += translate(self, core, fields, where)
        return np.array(rows if len(rows) > 1 else [], dtype=RECORD)


def _row(
    op: Opcode, rd: int = 0, rs1: int = 0, r2: int = 0, generic1: int = 0, generic2: int = 0, size: int = 0
) -> Row:
    return int(op), rd, rs1, 0, r2, generic1, generic2, size


def _load(register: int, value: int) -> Row:
    return _row(Opcode.SLDI, rd=register, r2=value)


def _whole(fields: Fields, name: str, where: str, low: int = 0) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= _LARGEST:
        raise bad_stream(where, f"'{name}' must be a whole number of at least {low}")
    return value


def _address(fields: Fields, name: str, where: str) -> int:
    """Byte address in local memory of the operand ``name``: address and offset."""
    offset = _whole(fields, f"{name}_offset", where) if f"{name}_offset" in fields else 0
    address = (_whole(fields, f"{name}_address", where) + offset) * ELEMENT_BYTES
    if address > _LARGEST:
        raise bad_stream(where, f"the {name.replace('_', ' ')} lies beyond any local memory")
    return address


def _count(fields: Fields, where: str) -> int:
    count = _whole(fields, "element_num", where, 1)
    if count * ELEMENT_BYTES > _LARGEST:
        raise bad_stream(where, "'element_num' is too large")
    return count


def _product(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
    key = (core, _whole(fields, "source", where))
    if key not in self.groups:
        raise bad_stream(where, f"array group {key[1]} does not exist")
    return [
        _load(0, _address(fields, "destination", where)),
        _load(1, _address(fields, "source", where)),
        _row(Opcode.MVMUL, 0, 1, _WEIGHT_BITS, 0, self.groups[key]),
    ]


def _unary(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
    return [
        _load(0, _address(fields, "destination", where)),
        _load(1, _address(fields, "source", where)),
        _row(_UNARY[fields["operation"]], 0, 1, size=_count(fields, where)),
    ]


def _binary(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
    return [
        _load(0, _address(fields, "destination", where)),
        _load(1, _address(fields, "source_1", where)),
        _load(2, _address(fields, "source_2", where)),
        _row(_BINARY[fields["operation"]], 0, 1, 2, size=_count(fields, where)),
    ]


def _move(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
    return [
        _load(0, _address(fields, "destination", where)),
        _load(1, _address(fields, "source", where)),
        _row(Opcode.LMV, 0, 1, size=_count(fields, where) * ELEMENT_BYTES),
    ]


def _fill(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
    value, count = fields.get("imm_value"), _count(fields, where)
    if not isinstance(value, int | float) or isinstance(value, bool) or not np.isfinite(value):
        raise bad_stream(where, "'imm_value' must be a number")
    destination = _load(0, _address(fields, "destination", where))
    if value == 0:
        return [destination, _row(Opcode.LLDI, 0, size=count * ELEMENT_BYTES)]
    source = _load(1, self.image.fill(float(value), count))
    return [destination, source, _row(Opcode.LD, 0, 1, size=count * ELEMENT_BYTES)]


def _host_load(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
    destination, count = _address(fields, "destination", where), _count(fields, where)
    node, offset = _whole(fields, "node_index", where), _whole(fields, "source_offset", where)
    if fields.get("stage") == "BIAS":
        if node not in self.biases:
            raise bad_stream(where, f"the model has no bias for node {node}")
        runs = [(0, self.biases[node] + offset * ELEMENT_BYTES, count)]
    elif node not in self.first_layers:
        raise bad_stream(where, f"node {node} loads what other layers made: only programs of element mode can be run")
    else:
        runs = _tensor_runs(self.source, offset, count, where)
    rows: list[Row] = []
    for first, address, length in runs:
        rows += [_load(0, destination + first * ELEMENT_BYTES), _load(1, address)]
        rows.append(_row(Opcode.LD, 0, 1, size=length * ELEMENT_BYTES))
    return rows


def _host_store(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
    source, count = _address(fields, "source", where), _count(fields, where)
    rows: list[Row] = []
    for first, address, length in _tensor_runs(self.result, _whole(fields, "destination_offset", where), count, where):
        rows += [_load(0, address), _load(1, source + first * ELEMENT_BYTES)]
        rows.append(_row(Opcode.ST, 0, 1, size=length * ELEMENT_BYTES))
    return rows


def _tensor_runs(tensor: HostTensor, first: int, count: int, where: str) -> list[tuple[int, int, int]]:
    if first + count > tensor.elements:
        raise bad_stream(where, f"it reaches beyond the {tensor.elements} elements of '{tensor.info.name}'")
    return tensor.runs(first, count)


def _peer(opcode: Opcode, core_name: str, address_name: str) -> Callable[..., list[Row]]:
    def translate(self: Translator, core: int, fields: Fields, where: str) -> list[Row]:
        partner = _whole(fields, core_name, where)
        if partner >= self.core_count or partner == core:
            raise bad_stream(where, f"'{core_name}' is {partner}, which is no other core")
        size = _count(fields, where) * ELEMENT_BYTES
        return [_load(0, _address(fields, address_name, where)), _row(opcode, 0, r2=partner, size=size)]

    return translate


_TRANSLATIONS: Mapping[str, Callable[[Translator, int, Fields, str], list[Row]]] = {
    "MVMUL": _product,
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(_BINARY, _binary),
    "LMV": _move,
    "LLDI": _fill,
    "LD": _host_load,
    "ST": _host_store,
    "SEND": _peer(Opcode.SEND, "to_core", "source"),
    "RECV": _peer(Opcode.RECV, "from_core", "destination"),
}
