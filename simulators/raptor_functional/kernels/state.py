"""The state of a running chip, as arrays that the kernels share, and the codes they answer with."""

from __future__ import annotations

from typing import Any, NamedTuple

# What a core is doing.
READY = 0
AT_SEND = 1
AT_RECV = 2
AT_WAIT = 3
AT_BARRIER = 4
FINISHED = 5

# What a kernel answers. Zero and up: no error. BLOCKED: the core waits or has finished.
OK = 0
BLOCKED = 1
PAUSED = 2
"""The core has executed as many instructions as it was allowed."""
MARKED = 3
"""The core stands before an instruction marked for the scheduler."""
GROW = 4
"""A core's local memory is too small: info[1] is the core, info[3] the bytes it needs."""
ALL_FINISHED = 5
DEADLOCK = 6

# Errors. info[1] is the core, info[2] the pc; info[3] and info[4] are particulars.
LOCAL_ADDRESS = -1
"""info[3] the first address, info[4] the count of bytes."""
HOST_ADDRESS = -2
"""info[3] the first address, info[4] the count of bytes."""
SHIFT_COUNT = -3
"""info[3] the element, info[4] the count (or the largest int64 when it is no number)."""
NOT_AN_INTEGER = -4
"""info[3] the element."""
NEGATIVE_STRIDE = -5
"""info[3] the stride."""
TRANSFER_SIZE = -6
"""info[3] the peer, info[4] its size."""

# Positions in ``info``.
INFO_CODE, INFO_CORE, INFO_PC, INFO_FIRST, INFO_SECOND = 0, 1, 2, 3, 4

CHUNK_ELEMENTS = 1024

# Positions in ``clock``: one-element counters that several kernels change.
RELEASED, BARRIER_COUNT, STORED_SAMPLES, UNFINISHED = 0, 1, 2, 3

LOCAL_LIMIT = 1 << 31
"""One more than the largest local byte address."""

# The instruction words of a record.
WORD_OPERANDS, WORD_R2, WORD_G1, WORD_G2, WORD_G3 = 0, 1, 2, 3, 4
MARK_BIT = 1 << 24
"""In the first word (the record's flags byte): the scheduler wants to be asked before this instruction."""


class State(NamedTuple):
    """Everything a kernel needs. Sizes: C cores, N instructions, M distinct matrices, R output ranges, B samples.

    Program: ``code`` int32 [N, 5] the records of all cores; ``first`` int64 [C + 1] where each core's begin.
    Cores: ``pc``, ``iteration``, ``executed`` int64 [C]; ``doing`` int8 [C]; ``skip_mark`` bool [C]; ``registers``
    int32 [C, 32]; ``events`` int64 [C, 32]; ``widths`` int32 [C, 2] bytes of an input and of an output element.
    Local memory: ``local`` int64 [C] address of each core's bytes, ``capacity`` and ``peak`` int64 [C].
    Host: ``host`` uint8.
    Matrices: ``group_first`` int64 [C + 1] and ``group_matrix`` int64: the matrix of each group; ``weights`` float32
    all elements; ``matrix_first``, ``columns`` int64 [M]; ``rows_first`` int64 [M + 1] and ``rows`` int64 the
    numbers of the rows that are not all zero; ``sums`` float32 as long as the widest matrix; ``chunk`` float32 a
    buffer.
    Batch: ``iterations``, ``barrier`` as int64 [2]; ``samples`` uint8 [B, S]; ``input_address``, ``input_size``
    int64; ``range_begin``, ``range_end``, ``range_offset`` int64 [R]; ``recorded`` uint8 [B, bytes of all ranges].
    Answers: ``info`` int64 [5]; ``clock`` int64 [4].
    """

    code: Any
    first: Any
    pc: Any
    iteration: Any
    executed: Any
    doing: Any
    skip_mark: Any
    registers: Any
    events: Any
    widths: Any
    local: Any
    capacity: Any
    peak: Any
    host: Any
    group_first: Any
    group_matrix: Any
    weights: Any
    matrix_first: Any
    columns: Any
    rows_first: Any
    rows: Any
    sums: Any
    chunk: Any
    batch: Any
    samples: Any
    input_address: Any
    input_size: Any
    range_begin: Any
    range_end: Any
    range_offset: Any
    recorded: Any
    info: Any
    clock: Any


BATCH_SIZE, BATCH_BARRIER = 0, 1
