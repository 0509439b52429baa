"""Running one core, and running all of them in the plain order."""

from __future__ import annotations

import numpy as np

from raptor_functional.kernels.elements import check_host
from raptor_functional.kernels.jit import entry_kernel, int64, kernel
from raptor_functional.kernels.product import product
from raptor_functional.kernels.state import (
    ALL_FINISHED,
    AT_BARRIER,
    AT_WAIT,
    BARRIER_COUNT,
    BATCH_BARRIER,
    BATCH_SIZE,
    BLOCKED,
    DEADLOCK,
    FINISHED,
    INFO_CODE,
    INFO_CORE,
    INFO_PC,
    INFO_SECOND,
    MARK_BIT,
    MARKED,
    OK,
    PAUSED,
    READY,
    RELEASED,
    STORED_SAMPLES,
    UNFINISHED,
    State,
)
from raptor_functional.kernels.transfer import meet, move
from raptor_functional.kernels.vector import vector
from raptor_pim.isa.opcodes import Opcode

_SLDI, _SLD, _SADD, _SSUB, _SMUL, _SADDI, _SMULI = (
    int(o) for o in (Opcode.SLDI, Opcode.SLD, Opcode.SADD, Opcode.SSUB, Opcode.SMUL, Opcode.SADDI, Opcode.SMULI)
)
_NOP, _SETBW, _MVMUL, _VVADD, _VVSUB, _VVDMUL, _VVMAX, _VVSRA = (
    int(o)
    for o in (
        Opcode.NOP,
        Opcode.SETBW,
        Opcode.MVMUL,
        Opcode.VVADD,
        Opcode.VVSUB,
        Opcode.VVDMUL,
        Opcode.VVMAX,
        Opcode.VVSRA,
    )
)
_VAVG, _VRELU, _VMV, _VRSL, _LD, _ST, _LMV, _RECV, _WAIT = (
    int(o)
    for o in (
        Opcode.VAVG,
        Opcode.VRELU,
        Opcode.VMV,
        Opcode.VRSL,
        Opcode.LD,
        Opcode.ST,
        Opcode.LMV,
        Opcode.RECV,
        Opcode.WAIT,
    )
)
_UNSIGNED = 0xFFFFFFFF


@entry_kernel
def store_sample(state: State, number: int) -> None:
    """Stores the input tensors of one sample into their host regions."""
    at = 0
    for region in range(state.input_address.size):
        begin = state.input_address[region]
        size = state.input_size[region]
        state.host[begin : begin + size] = state.samples[number, at : at + size]
        at += size
    state.clock[STORED_SAMPLES] = number + 1


@kernel
def _end_iteration(state: State, core: int) -> int:
    """The core has executed its last instruction. OK when it goes on with the next iteration at once."""
    state.iteration[core] += 1
    state.pc[core] = 0
    state.widths[core, 0] = 4
    state.widths[core, 1] = 4
    if state.iteration[core] >= state.batch[BATCH_SIZE]:
        state.doing[core] = FINISHED
        state.clock[UNFINISHED] -= 1
        return BLOCKED
    if state.batch[BATCH_BARRIER] == 0:
        return OK
    state.clock[BARRIER_COUNT] += 1
    if state.clock[BARRIER_COUNT] < state.clock[UNFINISHED]:
        state.doing[core] = AT_BARRIER
        return BLOCKED
    state.clock[BARRIER_COUNT] = 0
    for other in range(state.doing.size):
        if state.doing[other] == AT_BARRIER:
            state.doing[other] = READY
    return OK


@kernel
def _scalar(state: State, core: int, op: int, rd: int, rs1: int, imm: int, offset: int) -> int:
    registers = state.registers[core]
    if op == _SLDI:
        registers[rd] = imm
        return OK
    left = int64(registers[rs1])
    if op == _SLD:
        begin = (left & _UNSIGNED) + offset
        code = check_host(state, begin, 4)
        if code == OK:
            value = 0
            for k in range(4):
                value |= int64(state.host[begin + k]) << (8 * k)
            registers[rd] = np.int32(value)
        return code
    right = int64(imm)
    if op <= _SMUL:
        right = int64(registers[imm & 31])
    if op in (_SADD, _SADDI):
        registers[rd] = np.int32(left + right)
    elif op == _SSUB:
        registers[rd] = np.int32(left - right)
    else:
        registers[rd] = np.int32(left * right)
    return OK


@kernel
def _vector(state: State, core: int, op: int, rd: int, rs1: int, imm: int, select: int, value: int, count: int) -> int:
    """Applies the offsets of a vector instruction and executes it."""
    width_in = state.widths[core, 0]
    d = int64(state.registers[core, rd])
    a = int64(state.registers[core, rs1])
    r2 = int64(state.registers[core, imm & 31])
    b = r2
    if op == _VAVG:
        a += value * width_in
    elif select != 0 and op != _VMV:
        if select & 1 and op != _VVDMUL:
            same = op in (_VVADD, _VVSUB, _VVMAX, _VRELU)
            d += value * (width_in if same else state.widths[core, 1])
        if select & 2:
            a += value * width_in
        if select & 4:
            b += value * width_in
    return vector(state, core, op, d, a, b, r2, count)


@kernel
def _move(state: State, core: int, op: int, rd: int, rs1: int, imm: int, select: int, value: int, size: int) -> int:
    """Applies the offsets of a transfer instruction and executes it."""
    d = int64(state.registers[core, rd])
    a = int64(state.registers[core, rs1])
    if op == _LD:
        a &= _UNSIGNED
    elif op == _ST:
        d &= _UNSIGNED
    if select & 1:
        d += value
    if select & 2:
        a += value
    return move(state, core, op, d, a, imm, size)


@kernel
def _event(state: State, core: int, op: int, peer: int, register: int, value: int) -> int:
    """``wait`` and ``sync``."""
    if op == _WAIT:
        if state.events[core, register] < value:
            state.doing[core] = AT_WAIT
            return BLOCKED
        state.events[core, register] -= value
        return OK
    state.events[peer, register] += 1
    if state.doing[peer] == AT_WAIT:
        at = state.first[peer] + state.pc[peer]
        if state.code[at, 2] == register and state.events[peer, register] >= state.code[at, 3]:
            state.doing[peer] = READY
            state.clock[RELEASED] = peer
    return OK


@entry_kernel
def run_core(state: State, core: int, limit: int) -> int:  # noqa: C901 - the interpreter: one branch per kind
    """Runs ``core`` until it blocks, finishes, meets a mark or an error, or has executed ``limit`` instructions.

    Gives BLOCKED, MARKED, PAUSED, GROW or an error; with the last two nothing of the instruction has happened.
    """
    code = state.code
    base = state.first[core]
    length = state.first[core + 1] - base
    state.doing[core] = READY
    state.info[INFO_PC] = -1
    if state.pc[core] == 0 and state.iteration[core] >= state.clock[STORED_SAMPLES]:
        store_sample(state, state.iteration[core])
    pc = state.pc[core]
    executed = 0
    status = OK
    while True:
        if pc == length:
            status = _end_iteration(state, core)
            pc = 0
            if status != OK:
                break
            if state.iteration[core] >= state.clock[STORED_SAMPLES]:
                store_sample(state, state.iteration[core])
        if executed == limit:
            status = PAUSED
            break
        at = base + pc
        word = code[at, 0]
        op = word & 255
        rd = (word >> 8) & 31
        rs1 = (word >> 16) & 31
        if word & MARK_BIT:
            if not state.skip_mark[core]:
                status = MARKED
                break
            state.skip_mark[core] = False
        imm = int64(code[at, 1])
        g1 = int64(code[at, 2])
        g2 = int64(code[at, 3])
        g3 = int64(code[at, 4])
        if op < _SETBW:
            if op != _NOP:
                status = _scalar(state, core, op, rd, rs1, imm, g2)
        elif op == _SETBW:
            state.widths[core, 0] = g1 // 8
            state.widths[core, 1] = g2 // 8
        elif op == _MVMUL:
            d = int64(state.registers[core, rd])
            status = product(state, core, d, int64(state.registers[core, rs1]), g1, g2)
        elif op <= _VRSL:
            status = _vector(state, core, op, rd, rs1, imm, g1, g2, g3)
        elif op <= _LMV:
            status = _move(state, core, op, rd, rs1, imm, g1, g2, g3)
        elif op <= _RECV:
            state.pc[core] = pc
            status = meet(state, core, op, at)
        else:
            status = _event(state, core, op, imm, g1, g2)
        if status != OK:
            break
        pc += 1
        executed += 1
    state.pc[core] = pc
    state.executed[core] += executed
    if status < 0 and state.info[INFO_PC] < 0:
        state.info[INFO_CORE] = core
        state.info[INFO_PC] = pc
    state.info[INFO_CODE] = status
    return status


@entry_kernel
def next_ready(state: State, after: int) -> int:
    """The next core in cyclic order after ``after`` that can run, -1 when there is none."""
    count = state.doing.size
    for step in range(1, count + 1):
        core = (after + step) % count
        if state.doing[core] == READY:
            return int(core)
    return -1


@entry_kernel
def run_greedy(state: State, core: int, budget: int) -> int:
    """Runs all cores, ``core`` first, each until it blocks, then the one it released last, else the next in order.

    Gives ALL_FINISHED, DEADLOCK, an error, GROW, or PAUSED after about ``budget`` instructions. After PAUSED, and after
    GROW has been served, go on with the core in info[4].
    """
    while core >= 0:
        state.clock[RELEASED] = -1
        before = state.executed[core]
        status = run_core(state, core, budget)
        budget -= state.executed[core] - before
        if status != BLOCKED:
            if status > 0:
                state.info[INFO_SECOND] = core
            return status
        released = state.clock[RELEASED]
        core = released if released >= 0 and state.doing[released] == READY else next_ready(state, core)
    return ALL_FINISHED if state.clock[UNFINISHED] == 0 else DEADLOCK
