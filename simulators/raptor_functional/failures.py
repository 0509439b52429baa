"""Answers of the kernels as errors that a person can act on."""

from __future__ import annotations

import numpy as np

from raptor_core.diagnostics import InternalError, RaptorError
from raptor_functional.kernels import state as codes
from raptor_functional.machine import Machine
from raptor_pim.isa import Opcode, disassemble_at

_SHOWN = 40


def place(machine: Machine, core: int, pc: int) -> str:
    """Where an instruction stands and what it says."""
    records = machine.artifact.programs[core]
    text = disassemble_at(records, pc) if pc < records.size else "end of the program"
    return f"core {core} pc {pc}: {text}"


def runtime_error(machine: Machine, status: int) -> RaptorError:
    """The error that a kernel answered with ``status`` (negative)."""
    info = [int(value) for value in machine.state.info]
    core, pc, first, second = info[1], info[2], info[3], info[4]
    span = f"bytes {first} to {first + second}"
    reasons = {
        codes.LOCAL_ADDRESS: f"{span} are not in local memory, whose addresses are 0 to {codes.LOCAL_LIMIT - 1}",
        codes.HOST_ADDRESS: f"{span} are not in host memory, which has {machine.state.host.size}",
        codes.SHIFT_COUNT: f"the shift count of element {first} is {_count(second)}; counts are 0..31",
        codes.NOT_AN_INTEGER: f"element {first} is not a number that fits a 32-bit integer",
        codes.NEGATIVE_STRIDE: f"the stride is {first}; it cannot be negative",
        codes.TRANSFER_SIZE: _sizes(machine, core, pc, first, second) if status == codes.TRANSFER_SIZE else "",
    }
    if status not in reasons:
        return InternalError("unknown-kernel-answer", f"a kernel answered {status}")
    return RaptorError(
        "runtime-error",
        f"the program failed on core {core} in iteration {int(machine.state.iteration[core])}",
        where=place(machine, core, pc),
        reason=reasons[status],
        hint="the program is wrong; if it was compiled by Raptor, this is a fault in Raptor",
    )


def _count(value: int) -> str:
    return "not a 32-bit integer" if value == np.iinfo(np.int64).max else str(value)


def _sizes(machine: Machine, core: int, pc: int, peer: int, peer_size: int) -> str:
    own = int(machine.artifact.programs[core]["generic3"][pc])
    peer_place = place(machine, peer, int(machine.state.pc[peer]))
    return f"it moves {own} bytes, and its counterpart {peer_size} ({peer_place})"


def deadlock_error(machine: Machine) -> RaptorError:
    """The report of a deadlock: every blocked core, what it waits for, and a cycle of waiting cores if there is one."""
    doing = machine.state.doing
    blocked = [core for core in range(machine.core_count) if doing[core] != codes.FINISHED]
    details = [_waiting(machine, core) for core in blocked[:_SHOWN]]
    if len(blocked) > _SHOWN:
        details.append(f"and {len(blocked) - _SHOWN} more blocked cores")
    cycle = _cycle({core: _awaited(machine, core) for core in blocked})
    if cycle:
        chain = " -> ".join(f"core {core}" for core in [*cycle, cycle[0]])
        reason = f"these cores wait for each other: {chain}"
    else:
        reason = "they wait for cores that have finished or for events that nobody signals any more"
    return RaptorError(
        "deadlock",
        f"deadlock: {len(blocked)} cores are blocked and none can run",
        where="; ".join(f"core {core} pc {int(machine.state.pc[core])}" for core in blocked[:4]),
        reason=reason,
        details=details,
        hint="the program is wrong; if it was compiled by Raptor, this is a fault in Raptor",
    )


def _waiting(machine: Machine, core: int) -> str:
    state = machine.state
    kind, pc = int(state.doing[core]), int(state.pc[core])
    word = state.code[state.first[core] + pc]
    iteration = f"iteration {int(state.iteration[core])}"
    if kind == codes.AT_BARRIER:
        return f"core {core} before {iteration}: waits at the global barrier"
    if kind == codes.AT_WAIT:
        register = int(word[codes.WORD_G1])
        have = int(state.events[core, register])
        signallers = ", ".join(f"core {c}" for c in _signallers(machine, core, register)) or "nobody"
        what = f"event {register} is {have}, needs {int(word[codes.WORD_G2])}; {signallers} could still signal it"
    else:
        peer = int(word[codes.WORD_R2])
        action = "receive" if kind == codes.AT_SEND else "send"
        what = f"waits for core {peer} to {action}"
        if state.doing[peer] == codes.FINISHED:
            what += ", which has finished"
    return f"{place(machine, core, pc)} ({iteration}): {what}"


def _signallers(machine: Machine, core: int, register: int) -> list[int]:
    """The cores that still have a ``sync`` of this event before them."""
    found = []
    for other, records in enumerate(machine.artifact.programs):
        if machine.state.doing[other] == codes.FINISHED:
            continue
        last = int(machine.state.iteration[other]) + 1 >= int(machine.state.batch[codes.BATCH_SIZE])
        rest = records[int(machine.state.pc[other]) if last else 0 :]
        mask = (rest["op"] == Opcode.SYNC) & (rest["r2_or_imm"] == core) & (rest["generic1"] == register)
        if mask.any():
            found.append(other)
    return found


def _awaited(machine: Machine, core: int) -> list[int]:
    """The cores that could end the waiting of ``core``."""
    state = machine.state
    kind = int(state.doing[core])
    if kind == codes.AT_BARRIER:
        late = np.flatnonzero((state.doing != codes.FINISHED) & (state.doing != codes.AT_BARRIER))
        return [int(other) for other in late]
    word = state.code[state.first[core] + state.pc[core]]
    if kind == codes.AT_WAIT:
        return _signallers(machine, core, int(word[codes.WORD_G1]))
    return [int(word[codes.WORD_R2])]


def _cycle(awaited: dict[int, list[int]]) -> list[int]:
    """Cores that wait for each other in a ring, in order; empty when there is none."""
    settled: set[int] = set()
    for start in awaited:
        path: list[int] = []
        branches = [iter([start])]
        while branches:
            core = next(branches[-1], None)
            if core is None:
                branches.pop()
                if path:
                    settled.add(path.pop())
            elif core in path:
                return path[path.index(core) :]
            elif core in awaited and core not in settled:
                path.append(core)
                branches.append(iter(awaited[core]))
    return []
