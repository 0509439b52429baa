"""What an instruction does to tags, worked out from the registers before it runs."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import numpy.typing as npt

from raptor_functional.kernels.state import State
from raptor_functional.provenance.tags import Tags
from raptor_pim.isa import OPCODES, Opcode
from raptor_pim.isa.opcodes import RD, RS1, RS2, Kind, Width

Places = npt.NDArray[np.int64]

_UNSIGNED = 0xFFFFFFFF

Read = Callable[[int, int], Tags]
"""Tags of local memory: address and size in bytes."""


@attrs.frozen
class Operands:
    """An instruction with its operands in numbers: addresses with their offsets, counts, widths in bytes."""

    opcode: Opcode
    destination: int
    first: int
    second: int
    bare: int
    """The value of register rs2 without an offset: a stride or a bound."""
    count: int
    width_in: int
    width_out: int
    peer: int
    group: int

    @property
    def result_width(self) -> int:
        """Bytes of an element of the result."""
        return self.width_in if OPCODES[self.opcode].destination is Width.IN else self.width_out


def operands_of(state: State, core: int, pc: int) -> Operands:
    """The operands of the instruction at ``pc`` of ``core`` with the registers as they are."""
    word, imm, g1, g2, g3 = (int(value) for value in state.code[state.first[core] + pc])
    info = OPCODES[word & 255]
    registers = state.registers[core]
    width_in, width_out = int(state.widths[core, 0]), int(state.widths[core, 1])
    destination, first = int(registers[word >> 8 & 31]), int(registers[word >> 16 & 31])
    bare = second = int(registers[imm & 31])
    if info.opcode in (Opcode.LD, Opcode.SLD):
        first &= _UNSIGNED
    if info.opcode is Opcode.ST:
        destination &= _UNSIGNED
    select = g1 & info.offsets
    if info.opcode in (Opcode.VAVG, Opcode.SLD):
        select = RS1
    if "offset_value" in info.layout:
        scale = width_in if info.kind is Kind.VECTOR else 1
        own = {Width.BYTE: 1, Width.IN: width_in, Width.OUT: width_out}[info.destination]
        destination += g2 * own if select & RD else 0
        first += g2 * scale if select & RS1 else 0
        second += g2 * scale if select & RS2 else 0
    return Operands(info.opcode, destination, first, second, bare, g3, width_in, width_out, imm, g2)


def local_result(state: State, core: int, operands: Operands, read: Read) -> Tags:
    """The tags of what a product, vector instruction, fill or copy within the core writes at its destination."""
    opcode, count = operands.opcode, operands.count
    if opcode is Opcode.MVMUL:
        return _product(state, core, operands, read)
    if opcode is Opcode.LLDI:
        return Tags.none(count)
    if opcode is Opcode.LMV:
        return read(operands.first, count)
    if opcode in (Opcode.VMV, Opcode.VAVG):
        gathered = _strided(operands, read)
        return gathered if opcode is Opcode.VMV else gathered.all_merged(operands.width_out)
    size = count * operands.width_in
    tags = read(operands.first, size)
    if OPCODES[opcode].registers & RS2 and opcode not in (Opcode.VRSU, Opcode.VRSL):
        tags = tags.merged_with(read(operands.second, size))
    if opcode is Opcode.VVDMUL:
        return tags.all_merged(operands.width_out)
    if opcode is Opcode.VSOFTMAX:
        return tags.all_merged(count * operands.width_out)
    if operands.result_width == operands.width_in:
        return tags
    return tags.by_element(operands.width_in, operands.width_out)


def _product(state: State, core: int, operands: Operands, read: Read) -> Tags:
    matrix = int(state.group_matrix[state.group_first[core] + operands.group])
    rows = state.rows[state.rows_first[matrix] : state.rows_first[matrix + 1]]
    size = int(state.columns[matrix]) * operands.width_out
    if not rows.size:
        return Tags.none(size)
    tags = read(operands.first, (int(rows[-1]) + 1) * operands.width_in)
    return tags.taken(_bytes_of(rows, operands.width_in)).all_merged(size)


def _strided(operands: Operands, read: Read) -> Tags:
    if not operands.count:
        return Tags.none(0)
    places = np.arange(operands.count, dtype=np.int64) * operands.bare
    lowest, highest = int(places.min()), int(places.max())
    tags = read(operands.first + lowest * operands.width_in, (highest - lowest + 1) * operands.width_in)
    return tags.taken(_bytes_of(places - lowest, operands.width_in))


def _bytes_of(elements: Places, width: int) -> Places:
    """The byte positions of elements of ``width`` bytes, in order."""
    return (elements[:, None] * width + np.arange(width, dtype=np.int64)).reshape(-1)


TRACED_LOCALLY = frozenset(
    info.opcode for info in OPCODES if info.kind in (Kind.PRODUCT, Kind.VECTOR, Kind.FILL) or info.opcode is Opcode.LMV
)
"""The opcodes whose effect stays within the core's local memory."""
