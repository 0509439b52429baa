"""What to say of a program that does not come to its end."""

from __future__ import annotations

from collections.abc import Sequence

from raptor_core.diagnostics import RaptorError
from raptor_performance.engine import Run
from raptor_performance.kernels import constants as k
from raptor_pim.isa.disassembler import disassemble_at
from raptor_pim.isa.opcodes import Opcode
from raptor_pim.isa.records import Records

_SHOWN = 20
_HELD = (k.SENDING, k.RECEIVING, k.WAITING, k.AT_HOST)


def check_finished(run: Run, programs: Sequence[Records], where: str) -> None:
    """Raises RaptorError when some core did not finish: which, at what pc, and what it waits for."""
    status = run.core[:, k.STATUS].tolist()
    unfinished = [core for core, state in enumerate(status) if state != k.FINISHED]
    if not unfinished:
        return
    details = [_state(core, status[core], run, programs[core]) for core in unfinished[:_SHOWN]]
    if len(unfinished) > _SHOWN:
        details.append(f"... and {len(unfinished) - _SHOWN} more cores")
    cycle = _cycle(run, status)
    stopped = any(status[core] == k.STOPPED for core in unfinished)
    endless = [core for core in unfinished if status[core] == k.UNRETIRED]
    if cycle:
        code, message, reason = "deadlock", "the program comes to a deadlock", _cycle_text(cycle)
    elif endless and not stopped:
        code, message = "time-out", "the program never ends"
        reason = f"the last instruction of core {endless[0]} leaves no trace in the reorder buffer, which ends a core"
    elif stopped:
        code, message = "time-out", "the program does not end in time"
        reason = f"the limit is {run.end / 1e9:g} ms of simulated time (sim_config.latency_timeout_ms)"
    else:
        code, message, reason = "deadlock", "the program comes to a stop before its end", "cores wait for ever"
    raise RaptorError(
        code,
        message,
        where=where,
        reason=f"{reason}; {len(unfinished)} of {len(status)} cores did not finish",
        details=details,
        hint="sends and recvs must pair up in order, and every wait needs its tokens",
    )


def blocked_cores(run: Run) -> list[int]:
    """The cores that another party still holds."""
    return [core for core, state in enumerate(run.core[:, k.STATUS].tolist()) if state in _HELD]


def _state(core: int, status: int, run: Run, records: Records) -> str:
    row = run.core[core]
    pc = _held_pc(run, core) if status in _HELD else min(int(row[k.PC]), records.size - 1)
    text = f"core {core} pc {pc} of {records.size}: {disassemble_at(records, pc)}"
    if status == k.SENDING:
        return f"{text}: waits for core {row[k.PEER]} to receive"
    if status == k.RECEIVING:
        return f"{text}: waits for core {row[k.PEER]} to send"
    if status == k.WAITING:
        return f"{text}: waits for tokens in register {row[k.PEER]}"
    if status == k.UNRETIRED:
        what = "nop never leaves the reorder buffer" if records["op"][pc] == Opcode.NOP else "it never retires"
        return f"{text}: {what}"
    return f"{text}: out of time"


def _held_pc(run: Run, core: int) -> int:
    row = run.core[core]
    if row.size == k.CORE_COLUMNS:
        return int(row[k.HELD_PC])
    return int(row[k.ENTRIES + row[k.TRANSFER_ENTRY] * k.ENTRY_COLUMNS + k.E_PC])


def _cycle(run: Run, status: Sequence[int]) -> list[int]:
    """Cores that wait for each other in a ring by send and recv."""
    visited: set[int] = set()
    for first in range(len(status)):
        path: list[int] = []
        core = first
        while status[core] in (k.SENDING, k.RECEIVING) and core not in visited:
            visited.add(core)
            path.append(core)
            core = int(run.core[core, k.PEER])
        if core in path:
            return path[path.index(core) :]
    return []


def _cycle_text(cycle: Sequence[int]) -> str:
    return "each waits for the next: " + " -> ".join(f"core {core}" for core in (*cycle, cycle[0]))
