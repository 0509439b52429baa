"""Moving bytes: within a core, between a core and the host, and between cores."""

from __future__ import annotations

import numpy as np

from raptor_functional.kernels.elements import check_host, copy_bytes, reserve
from raptor_functional.kernels.jit import bytes_at, int64, kernel
from raptor_functional.kernels.state import (
    AT_RECV,
    AT_SEND,
    BLOCKED,
    OK,
    READY,
    RELEASED,
    TRANSFER_SIZE,
    WORD_G1,
    WORD_G2,
    WORD_G3,
    WORD_OPERANDS,
    WORD_R2,
    State,
)
from raptor_pim.isa.opcodes import Opcode

_LD, _ST, _LMV, _LLDI, _SEND = (int(o) for o in (Opcode.LD, Opcode.ST, Opcode.LMV, Opcode.LLDI, Opcode.SEND))


@kernel
def _record_store(state: State, core: int, source: int, begin: int, size: int) -> None:
    """Notes a store of ``size`` bytes to host address ``begin`` in the outputs of the core's iteration."""
    end = begin + size
    row = state.recorded[state.iteration[core]]
    for number in range(state.range_begin.size):
        low = max(begin, state.range_begin[number])
        high = min(end, state.range_end[number])
        if low < high:
            target = row[state.range_offset[number] + low - state.range_begin[number] :]
            data = bytes_at(source + low - begin, high - low)
            for k in range(high - low):
                target[k] = data[k]


@kernel
def move(state: State, core: int, op: int, d: int, a: int, imm: int, size: int) -> int:
    """``ld``, ``st``, ``lmv`` and ``lldi``; ``d`` and ``a`` are addresses, ``imm`` the byte to set."""
    if op == _LMV:
        code = reserve(state, core, a, size)
        if code == OK:
            code = reserve(state, core, d, size)
        if code == OK:
            base = state.local[core]
            copy_bytes(base + a, base + d, size)
        return code
    if op == _LLDI:
        code = reserve(state, core, d, size)
        if code == OK:
            target = bytes_at(state.local[core] + d, size)
            target[:] = np.uint8(imm & 255)
        return code
    local, remote = (d, a) if op == _LD else (a, d)
    code = check_host(state, remote, size)
    if code == OK:
        code = reserve(state, core, local, size)
    if code != OK or size == 0:
        return code
    host = state.host[remote : remote + size]
    inside = bytes_at(state.local[core] + local, size)
    if op == _LD:
        for k in range(size):
            inside[k] = host[k]
    else:
        for k in range(size):
            host[k] = inside[k]
        _record_store(state, core, state.local[core] + local, remote, size)
    return OK


@kernel
def _buffer_of(state: State, core: int, at: int) -> int:
    """The local address that the ``send`` or ``recv`` at code position ``at`` names."""
    address: int = int64(state.registers[core, (state.code[at, WORD_OPERANDS] >> 8) & 31])
    if state.code[at, WORD_G1] & 1:
        address += int64(state.code[at, WORD_G2])
    return address


@kernel
def meet(state: State, core: int, op: int, at: int) -> int:
    """``send`` or ``recv`` at code position ``at``: completes it for both cores, or blocks this one."""
    peer = state.code[at, WORD_R2]
    sending = op == _SEND
    other = state.first[peer] + state.pc[peer]
    if state.doing[peer] != (AT_RECV if sending else AT_SEND) or state.code[other, WORD_R2] != core:
        state.doing[core] = AT_SEND if sending else AT_RECV
        return BLOCKED
    size = int64(state.code[at, WORD_G3])
    if state.code[other, WORD_G3] != size:
        state.info[3] = peer
        state.info[4] = state.code[other, WORD_G3]
        return TRANSFER_SIZE
    mine = _buffer_of(state, core, at)
    theirs = _buffer_of(state, peer, other)
    code = reserve(state, core, mine, size)
    if code == OK:
        code = reserve(state, peer, theirs, size)
        if code < 0:
            state.info[1] = peer
            state.info[2] = state.pc[peer]
    if code != OK:
        return code
    mine += state.local[core]
    theirs += state.local[peer]
    if sending:
        copy_bytes(mine, theirs, size)
    else:
        copy_bytes(theirs, mine, size)
    state.pc[peer] += 1
    state.executed[peer] += 1
    state.doing[peer] = READY
    state.clock[RELEASED] = peer
    return OK
