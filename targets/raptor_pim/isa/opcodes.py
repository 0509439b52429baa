"""The instruction set as data: number, name, fields and addressing of every opcode."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

import attrs


class Opcode(enum.IntEnum):
    """Opcode numbers as they stand in records. A member's name in lower case is the mnemonic."""

    NOP = 0
    SLDI = 1
    SLD = 2
    SADD = 3
    SSUB = 4
    SMUL = 5
    SADDI = 6
    SMULI = 7
    SETBW = 8
    MVMUL = 9
    VVADD = 10
    VVSUB = 11
    VVMUL = 12
    VVDMUL = 13
    VVMAX = 14
    VVSLL = 15
    VVSRA = 16
    VAVG = 17
    VRELU = 18
    VTANH = 19
    VSIGM = 20
    VSOFTMAX = 21
    VMV = 22
    VRSU = 23
    VRSL = 24
    LD = 25
    ST = 26
    LLDI = 27
    LMV = 28
    SEND = 29
    RECV = 30
    WAIT = 31
    SYNC = 32


class Kind(enum.Enum):
    """Families of instructions that share one record layout."""

    NOTHING = "nothing"
    IMMEDIATE = "immediate"
    HOST_SCALAR = "host scalar"
    SCALAR = "scalar"
    WIDTHS = "widths"
    PRODUCT = "product"
    VECTOR = "vector"
    COPY = "copy"
    FILL = "fill"
    PEER = "peer"
    WAIT = "wait"
    SYNC = "sync"


class Width(enum.Enum):
    """By what an offset on an operand is multiplied: nothing (bytes), or the input or output element width."""

    BYTE = "byte"
    IN = "in"
    OUT = "out"


RD, RS1, RS2 = 1, 2, 4
"""The bits of ``offset_select``, and of :attr:`OpcodeInfo.registers` and :attr:`OpcodeInfo.offsets`."""


def _layout(**fields: str) -> Mapping[str, str]:
    return MappingProxyType(fields)


LAYOUTS: Mapping[Kind, Mapping[str, str]] = MappingProxyType(
    {
        Kind.NOTHING: _layout(),
        Kind.IMMEDIATE: _layout(rd="rd", rs1="rs1", imm="r2_or_imm"),
        Kind.HOST_SCALAR: _layout(rd="rd", rs1="rs1", offset_value="generic2"),
        Kind.SCALAR: _layout(rd="rd", rs1="rs1", rs2="r2_or_imm"),
        Kind.WIDTHS: _layout(ibiw="generic1", obiw="generic2"),
        Kind.PRODUCT: _layout(rd="rd", rs1="rs1", mbiw="r2_or_imm", relu="generic1", group="generic2"),
        Kind.VECTOR: _layout(
            rd="rd", rs1="rs1", rs2="r2_or_imm", offset_select="generic1", offset_value="generic2", len="generic3"
        ),
        Kind.COPY: _layout(rd="rd", rs1="rs1", offset_select="generic1", offset_value="generic2", size="generic3"),
        Kind.FILL: _layout(rd="rd", imm="r2_or_imm", offset_select="generic1", offset_value="generic2", len="generic3"),
        Kind.PEER: _layout(
            rd="rd", core="r2_or_imm", offset_select="generic1", offset_value="generic2", size="generic3"
        ),
        Kind.WAIT: _layout(event_register="generic1", wait_value="generic2"),
        Kind.SYNC: _layout(core="r2_or_imm", event_register="generic1"),
    }
)
"""For every kind: the record field that holds each instruction field."""


@attrs.frozen
class OpcodeInfo:
    """What is to be known about one opcode.

    ``registers`` says which of rd, rs1, rs2 name a register (bits RD, RS1, RS2). ``offsets`` says which registers an
    offset may increase, and ``destination`` by which width the one on rd is multiplied (sources of vector
    instructions use the input width). ``count_field`` is the JSON name of the element or byte count, if it has one.
    """

    opcode: Opcode
    kind: Kind
    registers: int
    offsets: int = 0
    destination: Width = Width.BYTE
    count_field: str | None = None

    @property
    def mnemonic(self) -> str:
        """The name in JSON and in disassembly."""
        return self.opcode.name.lower()

    @property
    def layout(self) -> Mapping[str, str]:
        """The record field of each instruction field that this opcode uses, by JSON name."""
        absent = {name for bit, name in ((RD, "rd"), (RS1, "rs1"), (RS2, "rs2")) if not self.registers & bit}
        fields = {name: column for name, column in LAYOUTS[self.kind].items() if name not in absent}
        if self.count_field == "len" and "size" in fields:
            fields["len"] = fields.pop("size")
        return fields


def _vector(opcode: Opcode, registers: int, offsets: int, destination: Width) -> OpcodeInfo:
    return OpcodeInfo(opcode, Kind.VECTOR, registers, offsets, destination, "len")


_ALL = RD | RS1 | RS2

_TABLE = (
    OpcodeInfo(Opcode.NOP, Kind.NOTHING, 0),
    OpcodeInfo(Opcode.SLDI, Kind.IMMEDIATE, RD),
    OpcodeInfo(Opcode.SLD, Kind.HOST_SCALAR, RD | RS1, RS1),
    OpcodeInfo(Opcode.SADD, Kind.SCALAR, _ALL),
    OpcodeInfo(Opcode.SSUB, Kind.SCALAR, _ALL),
    OpcodeInfo(Opcode.SMUL, Kind.SCALAR, _ALL),
    OpcodeInfo(Opcode.SADDI, Kind.IMMEDIATE, RD | RS1),
    OpcodeInfo(Opcode.SMULI, Kind.IMMEDIATE, RD | RS1),
    OpcodeInfo(Opcode.SETBW, Kind.WIDTHS, 0),
    OpcodeInfo(Opcode.MVMUL, Kind.PRODUCT, RD | RS1),
    _vector(Opcode.VVADD, _ALL, _ALL, Width.IN),
    _vector(Opcode.VVSUB, _ALL, _ALL, Width.IN),
    _vector(Opcode.VVMUL, _ALL, _ALL, Width.OUT),
    _vector(Opcode.VVDMUL, _ALL, RS1 | RS2, Width.OUT),
    _vector(Opcode.VVMAX, _ALL, _ALL, Width.IN),
    _vector(Opcode.VVSLL, _ALL, _ALL, Width.OUT),
    _vector(Opcode.VVSRA, _ALL, _ALL, Width.OUT),
    _vector(Opcode.VAVG, _ALL, RS1, Width.OUT),
    _vector(Opcode.VRELU, RD | RS1, RD | RS1, Width.IN),
    _vector(Opcode.VTANH, RD | RS1, RD | RS1, Width.OUT),
    _vector(Opcode.VSIGM, RD | RS1, RD | RS1, Width.OUT),
    _vector(Opcode.VSOFTMAX, RD | RS1, RD | RS1, Width.OUT),
    _vector(Opcode.VMV, _ALL, 0, Width.IN),
    _vector(Opcode.VRSU, _ALL, RD | RS1, Width.OUT),
    _vector(Opcode.VRSL, _ALL, RD | RS1, Width.OUT),
    OpcodeInfo(Opcode.LD, Kind.COPY, RD | RS1, RD | RS1, Width.BYTE, "size"),
    OpcodeInfo(Opcode.ST, Kind.COPY, RD | RS1, RD | RS1, Width.BYTE, "size"),
    OpcodeInfo(Opcode.LLDI, Kind.FILL, RD, RD, Width.BYTE, "len"),
    OpcodeInfo(Opcode.LMV, Kind.COPY, RD | RS1, RD | RS1, Width.BYTE, "len"),
    OpcodeInfo(Opcode.SEND, Kind.PEER, RD, RD, Width.BYTE, "size"),
    OpcodeInfo(Opcode.RECV, Kind.PEER, RD, RD, Width.BYTE, "size"),
    OpcodeInfo(Opcode.WAIT, Kind.WAIT, 0),
    OpcodeInfo(Opcode.SYNC, Kind.SYNC, 0),
)

OPCODES: tuple[OpcodeInfo, ...] = _TABLE
"""Every opcode's entry, at its number. ``vavg`` always applies its offset to rs1, whatever ``offset_select`` says."""

BY_MNEMONIC: Mapping[str, OpcodeInfo] = MappingProxyType({info.mnemonic: info for info in OPCODES})
"""Every opcode's entry by its name."""

REGISTER_COUNT = 32
"""Scalar registers of a core."""

EVENT_REGISTER_COUNT = 32
"""Event registers of a core."""
