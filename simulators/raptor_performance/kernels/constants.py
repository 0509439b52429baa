"""Numbers that the compiled kernels and the Python around them share."""

from __future__ import annotations

from typing import NamedTuple

from raptor_pim.isa.opcodes import Opcode

NOP = int(Opcode.NOP)
SLDI = int(Opcode.SLDI)
SLD = int(Opcode.SLD)
SADD = int(Opcode.SADD)
SSUB = int(Opcode.SSUB)
SMUL = int(Opcode.SMUL)
SADDI = int(Opcode.SADDI)
SMULI = int(Opcode.SMULI)
SETBW = int(Opcode.SETBW)
MVMUL = int(Opcode.MVMUL)
VVADD = int(Opcode.VVADD)
VVSUB = int(Opcode.VVSUB)
VVDMUL = int(Opcode.VVDMUL)
VVMAX = int(Opcode.VVMAX)
VRELU = int(Opcode.VRELU)
VTANH = int(Opcode.VTANH)
VSIGM = int(Opcode.VSIGM)
VAVG = int(Opcode.VAVG)
VMV = int(Opcode.VMV)
VRSU = int(Opcode.VRSU)
VRSL = int(Opcode.VRSL)
LD = int(Opcode.LD)
ST = int(Opcode.ST)
LLDI = int(Opcode.LLDI)
LMV = int(Opcode.LMV)
SEND = int(Opcode.SEND)
RECV = int(Opcode.RECV)
WAIT = int(Opcode.WAIT)
SYNC = int(Opcode.SYNC)

FIRST_REAL = MVMUL
"""Opcodes below it take effect while they are decoded (``nop`` aside)."""
LAST_VECTOR = int(Opcode.VRSL)


def _bits(*opcodes: Opcode) -> int:
    return sum(1 << int(opcode) for opcode in opcodes)


TWO_OPERANDS = _bits(Opcode.VVADD, Opcode.VVSUB, Opcode.VVMUL, Opcode.VVDMUL, Opcode.VVMAX, Opcode.VVSLL, Opcode.VVSRA)
"""A bit per opcode: vector instructions that read two vectors."""
OUTPUT_WIDTH = _bits(Opcode.VVMUL, Opcode.VVSLL, Opcode.VVSRA, Opcode.VTANH, Opcode.VSIGM, Opcode.VRSU, Opcode.VRSL)
"""A bit per opcode: vector instructions whose write counts elements of the output width."""

RUNNING, SENDING, RECEIVING, WAITING, AT_HOST, PAUSED, FINISHED, STOPPED, UNRETIRED = range(9)
"""States of a core: able to run; held by a send, a recv, a wait or the host memory; pausing; at its end; out of time;
at its end with a last instruction that never retires."""

# Columns of the table of cores: one row of int64 per core.
STATUS = 0
PC = 1
"""The next instruction."""
STAND = 2
"""Edge from which the next instruction stands in the dispatcher."""
ROOM = 3
"""First cycle in which the reorder buffer has room again."""
IN_BITS = 4
OUT_BITS = 5
ROUNDS = 6
FINISH = 7
"""ps at which the last instruction is freed."""
SWITCH_FREE = 8
"""ps at which the core's switch has no more messages."""
TOKENS = 9
"""Tokens under way from this core."""
HELD_PC = 10
"""The instruction that holds the core, with its start in ps and as an edge."""
SINCE = 11
EDGE = 12
PEER = 13
"""The partner of a send or recv, the register of a wait."""
SIZE = 14
"""Bytes that the held instruction moves, or the count a wait asks for."""
ARRIVAL = 15
"""ps at which a request to send reached its receiver."""
LOCAL_READS = 16
LOCAL_WRITES = 17
HOST_READS = 18
HOST_WRITES = 19
VECTOR_STEPS = 20
PASSES = 21
"""Crossbars x input slices x row slices of all products."""
PRODUCTS = 22
TIME_PRODUCT = 23
TIME_VECTOR = 24
TIME_MOVE = 25
TIME_HOST = 26
TIME_PEER_WAIT = 27
TIME_PEER = 28
TIME_TOKEN = 29
TIME_SYNC = 30
CORE_COLUMNS = 31
"""Columns that every simulation has; those after them serve overlapping instructions only."""
BASE = 31
"""Where the core's records start, their number, where its groups start."""
COUNT = 32
GROUP_BASE = 33
CLOCK = 34
"""The last cycle in which the dispatcher was looked at."""
HEAD = 35
"""Oldest entry of the reorder buffer, number of entries, the last edge at which one was freed."""
USED = 36
FREED = 37
START_EDGE = 38
"""Edge at which the instruction in the dispatcher leaves it; FAR when that is not known yet."""
LOOK_EDGE = 39
"""The next cycle in which the dispatcher may let it go."""
MEMORY_FREE = 40
VECTOR_FREE = 41
"""Edge from which the unit is ready; FAR while it works to an unknown end. Its entry, -1 if it needs no more."""
VECTOR_ENTRY = 42
TRANSFER_FREE = 43
TRANSFER_ENTRY = 44
PLACE = 45
"""Entry of the product that waits for its group, -1 if none; the edge at which it was placed and starts."""
PLACED = 46
PLACE_START = 47
COMMITTED = 48
"""Edge at which the last product was committed; products at work."""
PRODUCTS_RUNNING = 49
REGISTERS = 50
"""The scalar registers."""
SLOT = REGISTERS + 32
"""The instruction in the dispatcher, in the form of an entry."""

# Columns of an entry of the reorder buffer. A core's entries follow its slot.
E_OP = 0
E_PC = 1
E_PHASE = 2
"""ps at which the instruction next does something; FAR when it waits or has nothing left."""
E_BITS = 3
"""Input width of a product."""
E_RETIRED = 4
"""Edge at which it is retired."""
E_START = 5
E_EDGE = 6
E_SIZE = 7
"""Bytes that it moves or writes."""
E_GROUP = 8
E_READ = 9
"""First and last address of two reads and a write; an empty range begins behind its end."""
E_READ2 = 11
E_WRITE = 13
ENTRY_COLUMNS = 15

ENTRIES = SLOT + ENTRY_COLUMNS

FAR = 1 << 60
"""Later than any time or edge."""

# The table of what belongs to no core: one row of int64.
DEPTH, EVENTS, HOST_FREE, TRACED = range(4)
CHIP_COLUMNS = 4
"""Cores ready to run, events in the queue, ps at which the host memory is free, rows in the trace."""

EVENT_REGISTERS = 32

TRACE_COLUMNS = 4
"""Columns of the trace: core, pc, start and end in ps."""

TOKEN_BURST = 64
"""Tokens of one core that may be under way in the queue of events."""


class Timing(NamedTuple):
    """The chip's timing as the kernels need it. Times in ps, memory and crossbar periods in ns, latencies in cycles."""

    period: int
    local_width: int
    local_read: int
    local_write: int
    local_period: float
    host_width: int
    host_read: int
    host_write: int
    host_period: float
    bus_width: int
    vector_width: int
    vector_step: int
    rows: int
    columns: int
    cell_bits: int
    matrix_period: float
    dac_resolution: int
    row_passes: int
    front: int
    back: int
    pipelined: bool
    rob_size: int
    end: int
    """Nothing that starts later happens."""
