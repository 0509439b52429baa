"""Which core runs next: the plain order, and the orders that put a program's independence of it to the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from raptor_core.diagnostics import UsageError
from raptor_functional.failures import deadlock_error, runtime_error
from raptor_functional.kernels import core as kernels
from raptor_functional.kernels import state as codes
from raptor_functional.machine import Machine
from raptor_functional.settings import AdversarialTarget, RunSettings

UNLIMITED = 1 << 62
_PATIENCE = 256
_BUDGET = 2_000_000
"""Instructions between two looks at the outside world, so that a run can be interrupted."""
_SEED_FOR_ZERO = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1

Event = dict[str, Any]
Emit = Callable[[Event], None]
Execute = Callable[[Machine, int], int]


def execute_core(machine: Machine, core: int) -> int:
    """Runs one core until it blocks, finishes or meets a mark; gives the answer of the kernel.

    Raises RaptorError for an error of the program.
    """
    while True:
        status = int(kernels.run_core(machine.state, core, UNLIMITED))
        if status != codes.GROW:
            break
        machine.grow()
    if status < 0:
        raise runtime_error(machine, status)
    return status


def run_plain(machine: Machine) -> None:
    """Runs everything in the plain order. Raises RaptorError for an error of the program or a deadlock."""
    core = int(kernels.next_ready(machine.state, -1))
    while core >= 0:
        status = int(kernels.run_greedy(machine.state, core, _BUDGET))
        if status in (codes.GROW, codes.PAUSED):
            core = int(machine.state.info[codes.INFO_SECOND])
            if status == codes.GROW:
                machine.grow()
        elif status == codes.DEADLOCK:
            raise deadlock_error(machine)
        elif status < 0:
            raise runtime_error(machine, status)
        else:
            return


@attrs.define(eq=False)
class _Random:
    """A xorshift generator with shifts 13, 7 and 17."""

    word: int

    def below(self, limit: int) -> int:
        word = self.word
        word ^= (word << 13) & _MASK
        word ^= word >> 7
        word ^= (word << 17) & _MASK
        self.word = word
        return word % limit


@attrs.define(eq=False)
class _Disorder:
    """The deferral of the reader of an adversarial target."""

    target: AdversarialTarget
    budget: int
    emit: Emit
    deferrals: int = 0
    unchanged: int = 0
    writer_state: tuple[int, ...] = ()
    released_in: int = -1

    def defers(self, machine: Machine, ready: list[int]) -> bool:
        """Whether the reader, which can run and stands at its instruction, is to stand back in favour of others."""
        target, state = self.target, machine.state
        iteration = int(state.iteration[target.reader])
        wanted = target.reader_iteration is None or target.reader_iteration == iteration
        if not wanted or self.released_in == iteration or self._written(machine, iteration):
            return False
        if ready == [target.reader]:
            return self._release(iteration, "NO_ALTERNATIVE_READY_EVENT")
        if self.deferrals >= self.budget:
            return self._release(iteration, "DEFERRAL_LIMIT_REACHED")
        writer = target.writer
        now = (int(state.iteration[writer]), int(state.pc[writer]), int(state.doing[writer]))
        self.unchanged = self.unchanged + 1 if now == self.writer_state else 0
        self.writer_state = now
        if self.unchanged >= _PATIENCE:
            return self._release(iteration, "PRODUCER_BLOCKED_BY_REAL_DEPENDENCY")
        self.deferrals += 1
        self.emit({"event": "deferral", "core": target.reader, "iteration": iteration, "count": self.deferrals})
        return True

    def _written(self, machine: Machine, reader_iteration: int) -> bool:
        target, state = self.target, machine.state
        least = target.least_iteration if target.least_iteration is not None else reader_iteration + 1
        now = (int(state.iteration[target.writer]), int(state.pc[target.writer]))
        return now > (least, target.writer_pc)

    def _release(self, iteration: int, reason: str) -> bool:
        self.released_in = iteration
        core = self.target.reader
        self.emit({"event": "force", "core": core, "iteration": iteration, "reason": reason})
        return False


@attrs.define(eq=False)
class _Turns:
    """The scheduler's clock and the delays that are set on it."""

    settings: RunSettings
    emit: Emit
    turn: int = 0
    until: dict[int, int] = attrs.field(factory=dict)
    served: set[tuple[int, int]] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        for core, turns in self.settings.core_stalls:
            self.until[core] = turns
            self.emit({"event": "stall", "core": core, "turns": turns})

    def awake(self, ready: list[int]) -> list[int]:
        """The ready cores that no delay holds; when all are held, the clock goes on to the first that is not."""
        if not self.until:
            return ready
        if all(core in self.until for core in ready):
            self.turn = max(self.turn, min(self.until[core] for core in ready))
        self.until = {core: end for core, end in self.until.items() if end > self.turn}
        return [core for core in ready if core not in self.until]

    def stalls_at(self, core: int, pc: int, iteration: int) -> bool:
        """Whether a core that has come to ``pc`` is held there, which happens once for each delay and iteration."""
        for number, stall in enumerate(self.settings.target_stalls):
            here = stall.core == core and stall.pc == pc and stall.iteration in (None, iteration)
            if here and (number, iteration) not in self.served:
                self.served.add((number, iteration))
                self.until[core] = self.turn + stall.turns
                self.emit({"event": "stall", "core": core, "pc": pc, "iteration": iteration, "turns": stall.turns})
                return True
        return False


def run_scheduled(machine: Machine, settings: RunSettings, emit: Emit, execute: Execute = execute_core) -> None:
    """Runs everything in the order of ``settings``, telling ``emit`` what the scheduler does.

    ``execute`` runs one core until it blocks, finishes or meets a mark. Raises RaptorError as :func:`run_plain`, and
    UsageError for settings that do not fit the program.
    """
    check_settings(machine, settings)
    _mark(machine, settings)
    emit({"event": "scheduler", "policy": settings.policy, "seed": settings.seed, "budget": settings.deferral_budget})
    random = _Random(settings.seed or _SEED_FOR_ZERO)
    disorder = _Disorder(settings.target, settings.deferral_budget, emit) if settings.target else None
    turns = _Turns(settings, emit)
    state, current, released = machine.state, -1, -1
    while True:
        ready = np.flatnonzero(state.doing == codes.READY).tolist()
        if not ready:
            break
        awake = turns.awake(ready)
        current = _choose(machine, settings, awake, current, released, random, disorder)
        turns.turn += 1
        state.clock[codes.RELEASED] = -1
        while execute(machine, current) == codes.MARKED:
            if _held(machine, current, turns, disorder):
                break
            state.skip_mark[current] = True
        released = int(state.clock[codes.RELEASED])
    if state.clock[codes.UNFINISHED]:
        raise deadlock_error(machine)


def _choose(
    machine: Machine,
    settings: RunSettings,
    awake: list[int],
    current: int,
    released: int,
    random: _Random,
    disorder: _Disorder | None,
) -> int:
    if settings.policy == "randomized":
        return awake[random.below(len(awake))]
    if disorder is not None and _reader_stands(machine, disorder.target) and disorder.target.reader in awake:
        reader, writer = disorder.target.reader, disorder.target.writer
        if disorder.defers(machine, awake):
            if writer in awake:
                disorder.emit({"event": "preference", "core": writer})
                return writer
            awake = [core for core in awake if core != reader]
    if released in awake:
        return released
    return min(awake, key=lambda core: (core <= current, core))


def _reader_stands(machine: Machine, target: AdversarialTarget) -> bool:
    return int(machine.state.pc[target.reader]) == target.reader_pc


def _held(machine: Machine, core: int, turns: _Turns, disorder: _Disorder | None) -> bool:
    """Whether a core that met a mark gives its turn away."""
    pc, iteration = int(machine.state.pc[core]), int(machine.state.iteration[core])
    if turns.stalls_at(core, pc, iteration):
        return True
    if disorder is None or core != disorder.target.reader or pc != disorder.target.reader_pc:
        return False
    ready = np.flatnonzero(machine.state.doing == codes.READY).tolist()
    return disorder.defers(machine, ready)


def _mark(machine: Machine, settings: RunSettings) -> None:
    """Marks the instructions before which the scheduler is to be asked."""
    places = {(stall.core, stall.pc) for stall in settings.target_stalls}
    if settings.target:
        places.add((settings.target.reader, settings.target.reader_pc))
    for core, pc in places:
        machine.state.code[machine.state.first[core] + pc, codes.WORD_OPERANDS] |= codes.MARK_BIT


def check_settings(machine: Machine, settings: RunSettings) -> None:
    """Raises UsageError when settings name a core, an instruction or host bytes that the program has not."""
    places: list[tuple[str, int, int | None]] = [("--core-stall", core, None) for core, _ in settings.core_stalls]
    places += [("--target-stall", stall.core, stall.pc) for stall in settings.target_stalls]
    if settings.target:
        target = settings.target
        places += [("--adversarial-target", target.writer, target.writer_pc)]
        places += [("--adversarial-target", target.reader, target.reader_pc)]
        if target.writer == target.reader:
            raise UsageError("bad-option-value", "writer and reader of --adversarial-target are one core")
        if target.end > machine.state.host.size:
            raise UsageError(
                "bad-option-value",
                "the bytes of --adversarial-target lie outside the host memory",
                reason=f"it has {machine.state.host.size} bytes",
            )
    for flag, core, pc in places:
        if core >= machine.core_count:
            raise UsageError(
                "bad-option-value", f"{flag} names core {core}", hint=f"cores end at {machine.core_count - 1}"
            )
        length = machine.artifact.programs[core].size
        if pc is not None and pc >= length:
            raise UsageError(
                "bad-option-value",
                f"{flag} names pc {pc} of core {core}",
                hint=f"its program has {length} instructions",
            )
