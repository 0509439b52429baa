"""What an instruction in the dispatcher reads and writes in local memory, and scalar instructions, compiled.

The reference derives address conflicts from these ranges; its peculiarities are kept: both ends of a range belong to
it, an offset on rs1 or rs2 applies when *offset_value* has that operand's bit, ``ld`` and ``st`` take the local
register as 0, and ``lmv`` covers one address.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from raptor_performance.kernels import constants as k
from raptor_performance.kernels.formulas import product_bytes

_RD, _RS1, _RS2 = 1, 2, 4
_INPUT_WIDE = (1 << k.VVADD) | (1 << k.VVSUB) | (1 << k.VVMAX) | (1 << k.VRELU)
"""Vector instructions whose offset on rd counts elements of the input width."""
_NARROW_WRITE = (1 << k.VVADD) | (1 << k.VVSUB) | (1 << k.VVMAX)
"""Vector instructions whose written range counts elements of the input width."""
_ONE_READ = (1 << k.VRELU) | (1 << k.VTANH) | (1 << k.VSIGM) | (1 << k.VAVG)
_NO_RD_OFFSET = (1 << k.VVDMUL) | (1 << k.VAVG)
_NO_RS2_OFFSET = (1 << k.VRSU) | (1 << k.VRSL)


@njit(cache=True, inline="always")
def _word(value: int) -> Any:
    """The value as a signed 32-bit integer."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@njit(cache=True)
def apply_scalar(record: Any, row: Any, registers: Any) -> None:
    """The effect of an instruction that decode carries out. ``sld`` changes nothing: the host holds no data here."""
    op = record[0] & 255
    rd = (record[0] >> 8) & 31
    rs1 = registers[(record[0] >> 16) & 31]
    value = record[1]
    if op == k.SETBW:
        row[k.IN_BITS] = record[2]
        row[k.OUT_BITS] = record[3]
    elif op == k.SLDI:
        registers[rd] = value
    elif op == k.SADDI:
        registers[rd] = _word(rs1 + value)
    elif op == k.SMULI:
        registers[rd] = _word(rs1 * value)
    elif op == k.SADD:
        registers[rd] = _word(rs1 + registers[value & 31])
    elif op == k.SSUB:
        registers[rd] = _word(rs1 - registers[value & 31])
    elif op == k.SMUL:
        registers[rd] = _word(rs1 * registers[value & 31])


@njit(cache=True, inline="always")
def _range(slot: Any, column: int, begin: int, size: int) -> None:
    slot[column] = begin
    slot[column + 1] = begin + size


@njit(cache=True)
def decode_ranges(record: Any, row: Any, registers: Any, groups: Any, slot: Any, t: Any) -> None:
    """Sets the ranges of ``slot`` (a row of an entry) to those of a real instruction."""
    for column in (k.E_READ, k.E_READ2, k.E_WRITE):
        slot[column] = k.FAR
        slot[column + 1] = -k.FAR
    op = record[0] & 255
    rd = registers[(record[0] >> 8) & 31]
    rs1 = registers[(record[0] >> 16) & 31]
    in_bytes = (row[k.IN_BITS] + 7) >> 3
    out_bytes = (row[k.OUT_BITS] + 7) >> 3
    if op == k.MVMUL:
        _range(slot, k.E_READ, rs1, t.rows * in_bytes)
        _range(slot, k.E_WRITE, rd, product_bytes(record[1], groups[record[3]], out_bytes, t))
    elif op <= k.LAST_VECTOR:
        if op != k.VMV:
            _vector_ranges(op, record, rd, rs1, registers[record[1] & 31], in_bytes, out_bytes, slot)
    else:
        _transfer_ranges(op, record, rd, rs1, slot)


@njit(cache=True)
def _vector_ranges(
    op: int, record: Any, rd: int, rs1: int, rs2: int, in_bytes: int, out_bytes: int, slot: Any
) -> None:
    select, offset, length = record[2], record[3], record[4]
    if offset & _RS1:
        rs1 += in_bytes * offset
    if offset & _RS2 and not (_NO_RS2_OFFSET >> op) & 1:
        rs2 += in_bytes * offset
    if select & _RD and not (_NO_RD_OFFSET >> op) & 1:
        rd += offset * (in_bytes if (_INPUT_WIDE >> op) & 1 else out_bytes)
    _range(slot, k.E_READ, rs1, length * in_bytes)
    if not (_ONE_READ >> op) & 1:
        _range(slot, k.E_READ2, rs2, length * in_bytes)
    if op == k.VAVG:
        _range(slot, k.E_WRITE, rd, out_bytes)
    else:
        _range(slot, k.E_WRITE, rd, length * (in_bytes if (_NARROW_WRITE >> op) & 1 else out_bytes))


@njit(cache=True)
def _transfer_ranges(op: int, record: Any, rd: int, rs1: int, slot: Any) -> None:
    size = record[4]
    if op == k.LD or op == k.ST:
        rd = 0
        rs1 = 0
    if record[2] & _RD:
        rd += record[3]
    if record[3] & _RS1:
        rs1 += record[3]
    if op == k.LD or op == k.RECV:
        _range(slot, k.E_WRITE, rd, size)
    elif op == k.ST or op == k.SEND:
        _range(slot, k.E_READ, rs1, size)
    elif op == k.LLDI:
        _range(slot, k.E_WRITE, rd, 1)
    elif op == k.LMV:
        _range(slot, k.E_READ, rs1, 0)
        _range(slot, k.E_WRITE, rd, 0)


@njit(cache=True, inline="always")
def _meet(a: Any, at: int, b: Any, bt: int) -> Any:
    return a[at] <= b[bt + 1] and b[bt] <= a[at + 1]


@njit(cache=True)
def conflict(slot: Any, entry: Any) -> Any:
    """Whether an instruction must wait for one before it: read against write either way (not write against write)."""
    return (
        _meet(slot, k.E_WRITE, entry, k.E_READ)
        or _meet(slot, k.E_WRITE, entry, k.E_READ2)
        or _meet(slot, k.E_READ, entry, k.E_WRITE)
        or _meet(slot, k.E_READ2, entry, k.E_WRITE)
    )
