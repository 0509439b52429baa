"""A kernel as arrays: one row per machine instruction, operands still relative to slots.

A row has up to three register operands. Operand k of a row has a ``slot`` and a byte ``offset`` into it, or slot -1
and an absolute value (a stride or a bound). The record's other fields are constants of the row.
"""

from __future__ import annotations

import struct
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.spatial.kernel import Instr, Kernel, Loop, Moves, Operand
from raptor_pim.isa.opcodes import Opcode

Indices = npt.NDArray[np.int64]

ELEMENT_BYTES = 4
PRODUCT_WEIGHT_BITS = 8
"""The ``mbiw`` field of every product; it matters for timing only."""

_VECTOR = {
    "add": Opcode.VVADD,
    "sub": Opcode.VVSUB,
    "mul": Opcode.VVMUL,
    "max": Opcode.VVMAX,
    "dot": Opcode.VVDMUL,
    "relu": Opcode.VRELU,
    "tanh": Opcode.VTANH,
    "sigmoid": Opcode.VSIGM,
    "softmax": Opcode.VSOFTMAX,
}
_CLAMP = {"clamp_max": Opcode.VRSU, "clamp_min": Opcode.VRSL}

# Columns of the working array: opcode, three (slot, offset) pairs, immediate, generic 1 to 3, weight index.
_OP, _SLOT, _OFFSET, _IMM, _G1, _G2, _G3, _WEIGHT, _WIDTH = 0, 1, 4, 7, 8, 9, 10, 11, 12
_ABSOLUTE = -1


@attrs.frozen(eq=False)
class Template:
    """The rows of one kernel; all arrays have its number of rows as first extent.

    ``op`` opcode numbers; ``slot`` and ``offset`` [rows, 3] the operands rd, rs1, rs2 (slot -1: ``offset`` is the
    value itself); ``immediate`` the record's r2_or_imm where rs2 is no register; ``generic`` [rows, 3];
    ``weight`` the kernel's weight number of a product, else -1.
    """

    op: npt.NDArray[np.uint8]
    slot: Indices
    offset: Indices
    immediate: Indices
    generic: Indices
    weight: Indices


def expand_kernel(kernel: Kernel) -> Template:
    """All instructions of ``kernel`` in order, loops unrolled by array arithmetic."""
    rows, _ = _expand(kernel.body, 0)
    return Template(
        op=rows[:, _OP].astype(np.uint8),
        slot=rows[:, _SLOT : _SLOT + 3].copy(),
        offset=rows[:, _OFFSET : _OFFSET + 3].copy(),
        immediate=rows[:, _IMM].copy(),
        generic=rows[:, _G1 : _G3 + 1].copy(),
        weight=rows[:, _WEIGHT].copy(),
    )


def _expand(body: tuple[Any, ...], depth: int) -> tuple[Indices, Indices]:
    """Rows [n, _WIDTH] of a body at loop depth ``depth``, and the byte strides [n, 3, depth] of their operands."""
    parts: list[tuple[Indices, Indices]] = []
    pending: list[tuple[list[int], list[tuple[int, ...]]]] = []

    def flush() -> None:
        if pending:
            rows = np.array([row for row, _ in pending], dtype=np.int64)
            strides = np.array([s for _, s in pending], dtype=np.int64).reshape(len(pending), 3, depth)
            parts.append((rows, strides))
            pending.clear()

    for item in body:
        if isinstance(item, Instr):
            pending.extend(_instruction(item, depth))
            continue
        flush()
        if isinstance(item, Loop):
            parts.append(_unroll(item, depth))
        elif isinstance(item, Moves):
            rows = _moves(item)
            parts.append((rows, np.zeros((rows.shape[0], 3, depth), dtype=np.int64)))
        else:
            raise TypeError(f"a kernel body cannot hold {type(item).__name__}")
    flush()
    if not parts:
        return np.zeros((0, _WIDTH), dtype=np.int64), np.zeros((0, 3, depth), dtype=np.int64)
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([strides for _, strides in parts])


def _unroll(loop: Loop, depth: int) -> tuple[Indices, Indices]:
    rows, strides = _expand(loop.body, depth + 1)
    turns = np.arange(loop.extent, dtype=np.int64)
    repeated = np.repeat(rows[None], loop.extent, axis=0)
    repeated[:, :, _OFFSET : _OFFSET + 3] += turns[:, None, None] * strides[None, :, :, depth]
    outer = np.repeat(strides[None, :, :, :depth], loop.extent, axis=0)
    count = loop.extent * rows.shape[0]
    return repeated.reshape(count, _WIDTH), outer.reshape(count, 3, depth)


def _row(op: int, operands: list[Operand | int | None], depth: int, **fields: int) -> tuple[list[int], list[Any]]:
    """One row and its operands' byte strides. An operand is an address, a plain value, or absent."""
    row = [0] * _WIDTH
    row[_OP], row[_WEIGHT] = int(op), -1
    strides: list[tuple[int, ...]] = []
    for k in range(3):
        operand = operands[k] if k < len(operands) else None
        row[_SLOT + k] = _ABSOLUTE
        if isinstance(operand, Operand):
            row[_SLOT + k] = operand.slot
            row[_OFFSET + k] = operand.offset * ELEMENT_BYTES
            padded = (*operand.strides, *([0] * depth))[:depth]
            strides.append(tuple(s * ELEMENT_BYTES for s in padded))
        else:
            row[_OFFSET + k] = int(operand or 0)
            strides.append((0,) * depth)
    for name, value in fields.items():
        row[_FIELDS[name]] = value
    return row, strides


_FIELDS = {"imm": _IMM, "g1": _G1, "g2": _G2, "g3": _G3, "weight": _WEIGHT}


def _instruction(instr: Instr, depth: int) -> list[tuple[list[int], list[Any]]]:
    """The machine instructions of one kernel instruction."""
    op, dst, sources, count = instr.op, instr.dst, instr.sources, instr.count
    if op == "product":
        weight = int(instr.immediate)
        fields = {"imm": PRODUCT_WEIGHT_BITS, "g1": int(instr.relu), "weight": weight}
        return [_row(Opcode.MVMUL, [dst, sources[0]], depth, **fields)]
    if op == "copy":
        return [_row(Opcode.LMV, [dst, sources[0]], depth, g3=count * ELEMENT_BYTES)]
    if op == "gather":
        return [_row(Opcode.VMV, [dst, sources[0], int(instr.immediate)], depth, g3=count)]
    if op == "mean":
        return [_row(Opcode.VAVG, [dst, sources[0], int(instr.immediate)], depth, g3=count)]
    if op in _CLAMP:
        return [_row(_CLAMP[op], [dst, sources[0], int(instr.immediate)], depth, g3=count)]
    if op in _VECTOR:
        return [_row(_VECTOR[op], [dst, *sources], depth, g3=count)]
    if op == "fill":
        return _fill(dst, float(instr.immediate), count, depth)
    raise ValueError(f"unknown kernel instruction {op!r}")


def _fill(dst: Operand, value: float, count: int, depth: int) -> list[tuple[list[int], list[Any]]]:
    """Sets ``count`` elements: bytes when all four of the value's are equal, else one element, then repeated."""
    pattern = struct.pack("<f", value)
    if len(set(pattern)) == 1:
        return [_row(Opcode.LLDI, [dst], depth, imm=pattern[0], g3=count * ELEMENT_BYTES)]
    rows = []
    for k, byte in enumerate(pattern):
        row, strides = _row(Opcode.LLDI, [dst], depth, imm=byte, g3=1)
        row[_OFFSET] += k
        rows.append((row, strides))
    if count > 1:
        rest = Operand(dst.slot, dst.offset + 1, dst.strides)
        rows.append(_row(Opcode.VMV, [rest, dst, 0], depth, g3=count - 1))
    return rows


def _moves(moves: Moves) -> Indices:
    count = moves.count.size
    rows = np.zeros((count, _WIDTH), dtype=np.int64)
    plain = (moves.stride == 1) | (moves.count == 1)
    rows[:, _OP] = np.where(plain, int(Opcode.LMV), int(Opcode.VMV))
    rows[:, _SLOT] = moves.dst_slot
    rows[:, _SLOT + 1] = moves.src_slot
    rows[:, _SLOT + 2] = _ABSOLUTE
    rows[:, _OFFSET] = moves.dst * ELEMENT_BYTES
    rows[:, _OFFSET + 1] = moves.src * ELEMENT_BYTES
    rows[:, _OFFSET + 2] = np.where(plain, 0, moves.stride)
    rows[:, _G3] = np.where(plain, moves.count * ELEMENT_BYTES, moves.count)
    rows[:, _WEIGHT] = -1
    return rows
