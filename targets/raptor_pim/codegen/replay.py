"""Check of an emitted program: replay all sends and receives and see that every one finds its peer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError
from raptor_pim.codegen._replay import replay
from raptor_pim.isa.opcodes import Opcode

Records = npt.NDArray[np.void]


def replay_communication(programs: Sequence[Records]) -> int:
    """The number of messages, once all of them were seen to complete.

    Raises InternalError naming the cores that wait for each other in a cycle, or a pair of unequal sizes.
    """
    messages = [np.flatnonzero((p["op"] == int(Opcode.SEND)) | (p["op"] == int(Opcode.RECV))) for p in programs]
    starts = np.cumsum([0, *(pcs.size for pcs in messages)]).astype(np.int64)
    if not starts[-1]:
        return 0
    chosen = np.concatenate([program[pcs] for program, pcs in zip(programs, messages, strict=True)])
    position = np.zeros(len(programs), dtype=np.int64)
    is_send = chosen["op"] == int(Opcode.SEND)
    peer = chosen["r2_or_imm"].astype(np.int64)
    mismatch = int(replay(starts, is_send, peer, chosen["generic3"].astype(np.int64), position))
    if mismatch >= 0:
        at = int(starts[mismatch] + position[mismatch])
        other = int(peer[at])
        theirs = chosen[starts[other] + position[other]]
        raise InternalError(
            "communication-mismatch",
            f"core {mismatch} and core {other} exchange a message of two sizes",
            where=f"core {mismatch} pc {messages[mismatch][position[mismatch]]}",
            reason=f"{chosen[at]['generic3']} bytes here, {theirs['generic3']} bytes there",
        )
    stuck = np.flatnonzero(starts[:-1] + position < starts[1:])
    if stuck.size:
        raise InternalError(
            "communication-deadlock",
            f"{stuck.size} cores wait for messages that never come",
            details=_cycle(int(stuck[0]), starts, position, is_send, peer, messages),
            hint="this is a bug in the ordering of transfers; please report it with the --dump-ir folder",
        )
    return int(starts[-1]) // 2


def _cycle(
    core: int,
    starts: npt.NDArray[np.int64],
    position: npt.NDArray[np.int64],
    is_send: npt.NDArray[np.bool_],
    peer: npt.NDArray[np.int64],
    messages: Sequence[npt.NDArray[np.int64]],
) -> list[str]:
    """Who waits for whom, from ``core`` on, until a core repeats or has nothing left."""
    lines: list[str] = []
    seen: set[int] = set()
    while core not in seen:
        seen.add(core)
        if starts[core] + position[core] >= starts[core + 1]:
            lines.append(f"core {core} is at its end")
            break
        at = int(starts[core] + position[core])
        verb = "sends to" if is_send[at] else "receives from"
        lines.append(f"core {core} pc {messages[core][position[core]]} {verb} core {peer[at]}")
        core = int(peer[at])
    return lines
