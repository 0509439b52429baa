"""Programs: every event of the pim dialect at its place in the stream of its core, then records.

No Python loop runs per instruction: events are sorted as arrays, each family fills its instructions by fancy
indexing, and registers are assigned by a compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Operation
from raptor_pim import dialect as pim
from raptor_pim.artifacts.source_map import Source, SourceMap
from raptor_pim.codegen._registers import assign_registers
from raptor_pim.codegen.extents import check_extents
from raptor_pim.codegen.template import ELEMENT_BYTES, expand_kernel
from raptor_pim.isa.opcodes import OPCODES, RD, RS1, RS2, Opcode
from raptor_pim.isa.records import RECORD

Indices = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]

ELEMENT_BITS = 32
_TRANSFER_LIMIT = 2**31 - 1


@attrs.frozen(eq=False)
class _Stream:
    """All instructions of all cores before register assignment, core by core."""

    op: npt.NDArray[np.uint8]
    values: npt.NDArray[np.int32]
    immediate: npt.NDArray[np.int32]
    generic: npt.NDArray[np.int32]


@attrs.frozen(eq=False)
class _Block:
    """A family of events: on ``cores`` at ``order``, each of ``length`` instructions; ``fill`` writes them.

    ``source`` says what they are for.
    ``fill(stream, starts)`` gets the index of each event's first instruction.
    """

    source: Source
    cores: Indices
    order: Indices
    length: int
    fill: Callable[[_Stream, Indices], None]


# Which of rd, rs1, rs2 an opcode takes from a register, [opcode, operand].
_USES = np.zeros((256, 3), dtype=np.bool_)
for _info in OPCODES:
    _USES[int(_info.opcode)] = [bool(_info.registers & bit) for bit in (RD, RS1, RS2)]
_USES.setflags(write=False)


@attrs.frozen(eq=False)
class Programs:
    """The instruction records of every core, an empty array for an idle one, and what they are for."""

    records: tuple[Records, ...]
    source_map: SourceMap


def generate_programs(module: Module, core_count: int) -> Programs:
    """The programs of all cores.

    ``module`` is of the pim dialect, its memory planned and verified. Every program that has instructions starts by
    setting 32-bit element widths. Raises InternalError when a kernel would leave a buffer.
    """
    blocks = _blocks(module)
    sizes = [block.cores.size for block in blocks]
    cores = _joined([block.cores for block in blocks])
    order = _joined([block.order for block in blocks])
    lengths = np.repeat([block.length for block in blocks], sizes).astype(np.int64)
    ranking = np.lexsort((np.arange(cores.size), order, cores))
    starts = np.empty(cores.size, dtype=np.int64)
    starts[ranking] = np.cumsum(lengths[ranking]) - lengths[ranking]
    stream = _empty_stream(int(lengths.sum()))
    for block, own in zip(blocks, np.split(starts, np.cumsum(sizes)[:-1]) if blocks else [], strict=True):
        block.fill(stream, own)
    sources = tuple(dict.fromkeys(block.source for block in blocks))
    number = np.repeat([sources.index(block.source) for block in blocks], sizes).astype(np.int64)[ranking]
    records, ranges = [], []
    for core in range(core_count):
        events = slice(*np.searchsorted(cores[ranking], [core, core + 1]).tolist())
        begin = starts[ranking[events]]
        size = int(lengths[ranking[events]].sum())
        first = int(begin[0]) if begin.size else 0
        program, instruction = _records(stream, slice(first, first + size))
        records.append(program)
        ranges.append(merged_ranges(instruction, begin - first, number[events]))
    return Programs(tuple(records), SourceMap(sources, tuple(ranges)))


def _joined(parts: list[Indices]) -> Indices:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _empty_stream(total: int) -> _Stream:
    return _Stream(
        op=np.zeros(total, dtype=np.uint8),
        values=np.zeros((total, 3), dtype=np.int32),
        immediate=np.zeros(total, dtype=np.int32),
        generic=np.zeros((total, 3), dtype=np.int32),
    )


def _records(stream: _Stream, part: slice) -> tuple[Records, Indices]:
    """The records of one core, and for each of its instructions in ``stream`` the pc of its first record."""
    words, first = assign_registers(
        stream.op[part],
        stream.values[part],
        _USES,
        stream.immediate[part],
        stream.generic[part],
        int(Opcode.SLDI),
    )
    if not words.shape[0]:
        return np.zeros(0, dtype=RECORD), first
    widths = np.array([[int(Opcode.SETBW), 0, ELEMENT_BITS, ELEMENT_BITS, 0]], dtype=np.int32)
    return np.concatenate([widths, words]).astype("<i4").reshape(-1).view(RECORD), first + 1


def merged_ranges(instruction: Indices, begin: Indices, number: Indices) -> Indices:
    """[n, 2] rows of first pc and source: where the source changes from one event to the next.

    ``begin`` are the events' first instructions, ``instruction`` the pc of each instruction, ``number`` the events'
    sources. The first range starts at pc 0.
    """
    kept = begin < instruction.size
    begin, number = begin[kept], number[kept]
    changes = np.flatnonzero(np.diff(number, prepend=-1))
    rows = np.stack([instruction[begin[changes]], number[changes]], axis=1).astype(np.int64)
    if rows.size:
        rows[0, 0] = 0
    return rows


def _blocks(module: Module) -> list[_Block]:
    (buffers,) = module.find(pim.Buffers)
    (groups,) = module.find(pim.Groups)
    shapes = np.array([module.types[name].shape for name in groups.operands], dtype=np.int64).reshape(-1, 2)
    placed = _GroupShapes.of(groups, shapes)
    blocks: list[_Block] = []
    for op in module.operations:
        if isinstance(op, pim.Launch):
            blocks.append(_launch_block(op, buffers, placed))
        elif isinstance(op, pim.Clear):
            address = buffers.addresses[op.buffers] + op.offsets * ELEMENT_BYTES
            blocks.append(_single(op, Opcode.LLDI, op.cores, op.order, (address,), 0, op.elements))
        elif isinstance(op, pim.Load):
            address = buffers.addresses[op.buffers] + op.offsets * ELEMENT_BYTES
            blocks.append(_single(op, Opcode.LD, op.cores, op.order, (address, op.host), 0, op.elements))
        elif isinstance(op, pim.Store):
            address = buffers.addresses[op.buffers] + op.offsets * ELEMENT_BYTES
            blocks.append(_single(op, Opcode.ST, op.cores, op.order, (op.host, address), 0, op.elements))
        elif isinstance(op, pim.Transfer):
            source = buffers.addresses[op.source_buffers] + op.source_offsets * ELEMENT_BYTES
            target = buffers.addresses[op.destination_buffers] + op.destination_offsets * ELEMENT_BYTES
            blocks.append(_single(op, Opcode.SEND, op.sources, op.order, (source,), op.destinations, op.elements))
            blocks.append(_single(op, Opcode.RECV, op.destinations, op.order, (target,), op.sources, op.elements))
    return blocks


def _source(op: Operation) -> Source:
    return Source(op.name, op.kind.partition(".")[2])


def _single(
    op: Operation,
    code: Opcode,
    cores: Indices,
    order: Indices,
    values: tuple[Indices, ...],
    immediate: Indices | int,
    elements: Indices,
) -> _Block:
    """A block of one instruction per event whose length field counts bytes."""
    sizes = elements * ELEMENT_BYTES
    if sizes.size and sizes.max() > _TRANSFER_LIMIT:
        raise InternalError("transfer-too-long", f"a transfer of {sizes.max()} bytes does not fit an instruction")

    def fill(stream: _Stream, starts: Indices) -> None:
        stream.op[starts] = int(code)
        for k, value in enumerate(values):
            stream.values[starts, k] = value.astype(np.uint32).view(np.int32)
        stream.immediate[starts] = immediate
        stream.generic[starts, 2] = sizes

    return _Block(_source(op), cores, order, 1, fill)


@attrs.frozen(eq=False)
class _GroupShapes:
    """Matrix shapes by core and group number."""

    cores: Indices
    numbers: Indices
    rows: Indices
    columns: Indices
    stride: int

    @classmethod
    def of(cls, groups: pim.Groups, shapes: Indices) -> _GroupShapes:
        stride = int(groups.numbers.max()) + 1 if groups.numbers.size else 1
        ranking = np.argsort(groups.cores * stride + groups.numbers)
        chosen = shapes[groups.matrices[ranking]]
        return cls(groups.cores[ranking], groups.numbers[ranking], chosen[:, 0], chosen[:, 1], stride)

    def of_lane(self, core: int, numbers: Indices) -> Indices:
        """(rows, columns) of the matrices in groups ``numbers`` of ``core``, [n, 2]."""
        at = np.searchsorted(self.cores * self.stride + self.numbers, core * self.stride + numbers)
        return np.stack([self.rows[at], self.columns[at]], axis=1)


def _launch_block(op: pim.Launch, buffers: pim.Buffers, placed: _GroupShapes) -> _Block:
    template = expand_kernel(op.kernel)
    used = op.buffers >= 0
    room = np.where(used, buffers.elements[op.buffers] - op.offsets, 0).min(axis=0, initial=2**62)
    weights = placed.of_lane(int(op.cores[0]), op.groups[0]) if op.groups.size else np.zeros((0, 2), dtype=np.int64)
    check_extents(op.name, template, room, weights)
    base = np.where(used, buffers.addresses[op.buffers], 0) + op.offsets * ELEMENT_BYTES
    # One more column, all zero: slot -1 selects it, and the template's offset is then the value itself.
    base = np.concatenate([base, np.zeros((base.shape[0], 1), dtype=np.int64)], axis=1)
    is_product = template.weight >= 0

    def fill(stream: _Stream, starts: Indices) -> None:
        rows = starts[:, None] + np.arange(template.op.size, dtype=np.int64)
        stream.op[rows] = template.op
        for k in range(3):
            stream.values[rows, k] = base[:, template.slot[:, k]] + template.offset[:, k]
        stream.immediate[rows] = template.immediate
        for k in range(3):
            stream.generic[rows, k] = template.generic[:, k]
        if is_product.any():
            stream.generic[rows[:, is_product], 1] = op.groups[:, template.weight[is_product]]

    return _Block(_source(op), op.cores, op.order, template.op.size, fill)
