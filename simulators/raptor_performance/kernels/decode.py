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
def apply_scalar(words: Any, i: int, row: Any) -> None:
    """The effect of instruction ``i``, which decode carries out, on the core of ``row``.

    ``sld`` changes nothing: the host holds no data here.
    """
    op = words[i, 0] & 255
    rd = k.REGISTERS + ((words[i, 0] >> 8) & 31)
    rs1 = row[k.REGISTERS + ((words[i, 0] >> 16) & 31)]
    value = words[i, 1]
    if op == k.SETBW:
        row[k.IN_BITS] = words[i, 2]
        row[k.OUT_BITS] = words[i, 3]
    elif op == k.SLDI:
        row[rd] = value
    elif op == k.SADDI:
        row[rd] = _word(rs1 + value)
    elif op == k.SMULI:
        row[rd] = _word(rs1 * value)
    elif op == k.SADD:
        row[rd] = _word(rs1 + row[k.REGISTERS + (value & 31)])
    elif op == k.SSUB:
        row[rd] = _word(rs1 - row[k.REGISTERS + (value & 31)])
    elif op == k.SMUL:
        row[rd] = _word(rs1 * row[k.REGISTERS + (value & 31)])


@njit(cache=True, inline="always")
def _range(row: Any, column: int, begin: int, size: int) -> None:
    row[k.SLOT + column] = begin
    row[k.SLOT + column + 1] = begin + size


@njit(cache=True)
def decode_ranges(words: Any, i: int, row: Any, group_size: Any, t: Any) -> None:
    """Sets the ranges of the dispatcher's slot in ``row`` to those of instruction ``i``, a real one."""
    for column in (k.E_READ, k.E_READ2, k.E_WRITE):
        row[k.SLOT + column] = k.FAR
        row[k.SLOT + column + 1] = -k.FAR
    op = words[i, 0] & 255
    rd = row[k.REGISTERS + ((words[i, 0] >> 8) & 31)]
    rs1 = row[k.REGISTERS + ((words[i, 0] >> 16) & 31)]
    in_bytes = (row[k.IN_BITS] + 7) >> 3
    out_bytes = (row[k.OUT_BITS] + 7) >> 3
    if op == k.MVMUL:
        crossbars = group_size[row[k.GROUP_BASE] + words[i, 3]]
        _range(row, k.E_READ, rs1, t.rows * in_bytes)
        _range(row, k.E_WRITE, rd, product_bytes(words[i, 1], crossbars, out_bytes, t))
    elif op <= k.LAST_VECTOR:
        if op != k.VMV:
            rs2 = row[k.REGISTERS + (words[i, 1] & 31)]
            _vector_ranges(op, words[i, 2], words[i, 3], words[i, 4], rd, rs1, rs2, in_bytes, out_bytes, row)
    else:
        _transfer_ranges(op, words[i, 2], words[i, 3], words[i, 4], rd, rs1, row)


@njit(cache=True)
def _vector_ranges(
    op: int,
    select: int,
    offset: int,
    length: int,
    rd: int,
    rs1: int,
    rs2: int,
    in_bytes: int,
    out_bytes: int,
    row: Any,
) -> None:
    if offset & _RS1:
        rs1 += in_bytes * offset
    if offset & _RS2 and not (_NO_RS2_OFFSET >> op) & 1:
        rs2 += in_bytes * offset
    if select & _RD and not (_NO_RD_OFFSET >> op) & 1:
        rd += offset * (in_bytes if (_INPUT_WIDE >> op) & 1 else out_bytes)
    _range(row, k.E_READ, rs1, length * in_bytes)
    if not (_ONE_READ >> op) & 1:
        _range(row, k.E_READ2, rs2, length * in_bytes)
    if op == k.VAVG:
        _range(row, k.E_WRITE, rd, out_bytes)
    else:
        _range(row, k.E_WRITE, rd, length * (in_bytes if (_NARROW_WRITE >> op) & 1 else out_bytes))


@njit(cache=True)
def _transfer_ranges(op: int, select: int, offset: int, size: int, rd: int, rs1: int, row: Any) -> None:
    if op == k.LD or op == k.ST:
        rd = 0
        rs1 = 0
    if select & _RD:
        rd += offset
    if offset & _RS1:
        rs1 += offset
    if op == k.LD or op == k.RECV:
        _range(row, k.E_WRITE, rd, size)
    elif op == k.ST or op == k.SEND:
        _range(row, k.E_READ, rs1, size)
    elif op == k.LLDI:
        _range(row, k.E_WRITE, rd, 1)
    elif op == k.LMV:
        _range(row, k.E_READ, rs1, 0)
        _range(row, k.E_WRITE, rd, 0)


@njit(cache=True, inline="always")
def _meet(row: Any, a: int, b: int) -> Any:
    return row[a] <= row[b + 1] and row[b] <= row[a + 1]


@njit(cache=True)
def conflict(row: Any, entry: int) -> Any:
    """Whether the instruction in the slot must wait for the entry at column ``entry``.

    Reads are compared with writes either way; writes never with writes.
    """
    return (
        _meet(row, k.SLOT + k.E_WRITE, entry + k.E_READ)
        or _meet(row, k.SLOT + k.E_WRITE, entry + k.E_READ2)
        or _meet(row, k.SLOT + k.E_READ, entry + k.E_WRITE)
        or _meet(row, k.SLOT + k.E_READ2, entry + k.E_WRITE)
    )
