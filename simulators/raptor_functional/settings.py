"""The options of the functional simulator, and their values once parsed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from raptor_core.diagnostics import UsageError
from raptor_core.options import Option

DEFAULT_DEFERRAL_BUDGET = 10_000
_LARGEST_SEED = 2**64 - 1
_UINT32_MAXIMUM = 2**32 - 1

OPTIONS = (
    Option(
        "mode", str, "one sample, or a batch that runs through", default="latency", choices=("latency", "throughput")
    ),
    Option(
        "schedule_policy",
        str,
        "the order in which cores that can run do run",
        default="greedy",
        choices=("greedy", "randomized", "adversarial"),
    ),
    Option("schedule_seed", int, "seed of the randomized order", default=0, minimum=0, maximum=_LARGEST_SEED),
    Option(
        "global_barrier", bool, "no core begins an iteration before all have finished the one before", default=False
    ),
    Option("dump_ranges", str, "host memory to give back as bytes: ADDRESS,SIZE,..."),
    Option(
        "adversarial_target",
        str,
        "WCORE:WPC:RCORE:RPC:BEGIN:END[:RITER:WMIN], the writer and the reader to disorder and the host bytes",
    ),
    Option(
        "deferral_budget",
        int,
        "how often the reader may be deferred",
        default=DEFAULT_DEFERRAL_BUDGET,
        minimum=1,
    ),
    Option("core_stall", str, "CORE:CYCLES,... delays cores at the start by scheduler turns"),
    Option("target_stall", str, "CORE:PC[:ITERATION]:CYCLES,... delays cores when they reach an instruction"),
    Option("provenance_trace", str, "file for the trace of where every byte comes from (slow)"),
)


@attrs.frozen
class AdversarialTarget:
    """A store and a load of the same host bytes whose order is to be put to the test.

    The reader, standing at its instruction (in ``reader_iteration``, or in any), is deferred until the writer has
    completed its own in an iteration of at least ``least_iteration`` (default: one after the reader's).
    """

    writer: int
    writer_pc: int
    reader: int
    reader_pc: int
    begin: int
    end: int
    reader_iteration: int | None = None
    least_iteration: int | None = None


@attrs.frozen
class TargetStall:
    """A core delayed by ``turns`` when it reaches ``pc``, in one iteration or in every one."""

    core: int
    pc: int
    iteration: int | None
    turns: int


@attrs.frozen
class RunSettings:
    """The options of one run, checked one by one; what depends on the program is checked later."""

    throughput: bool = False
    policy: str = "greedy"
    seed: int = 0
    global_barrier: bool = False
    dump_ranges: tuple[tuple[int, int], ...] = ()
    target: AdversarialTarget | None = None
    deferral_budget: int = DEFAULT_DEFERRAL_BUDGET
    core_stalls: tuple[tuple[int, int], ...] = ()
    target_stalls: tuple[TargetStall, ...] = ()
    provenance_trace: Path | None = None

    @property
    def plain(self) -> bool:
        """Whether the cores run in the plain order, without diagnostics."""
        return self.policy == "greedy" and not self.core_stalls and not self.target_stalls


def parse_settings(options: Mapping[str, Any]) -> RunSettings:
    """The settings of resolved options. Raises UsageError for a text that cannot be read."""
    target = _target(options.get("adversarial_target"))
    policy = options["schedule_policy"]
    if policy == "adversarial" and target is None:
        raise UsageError("no-adversarial-target", "the adversarial order needs --adversarial-target")
    if policy != "adversarial" and target is not None:
        raise UsageError(
            "unused-adversarial-target",
            "--adversarial-target is for the adversarial order only",
            hint="add --schedule-policy adversarial",
        )
    trace = options.get("provenance_trace")
    return RunSettings(
        throughput=options["mode"] == "throughput",
        policy=policy,
        seed=options["schedule_seed"],
        global_barrier=options["global_barrier"],
        dump_ranges=_ranges(options.get("dump_ranges")),
        target=target,
        deferral_budget=options["deferral_budget"],
        core_stalls=_core_stalls(options.get("core_stall")),
        target_stalls=_target_stalls(options.get("target_stall")),
        provenance_trace=Path(trace) if trace else None,
    )


def _numbers(flag: str, text: str, form: str, separator: str = ":") -> list[int]:
    """Whole numbers, decimal or with 0x, none negative."""
    try:
        numbers = [int(part, 0) for part in text.split(separator)]
    except ValueError:
        numbers = [-1]
    if any(number < 0 for number in numbers):
        raise _bad(flag, text, form)
    return numbers


def _bad(flag: str, text: str, form: str) -> UsageError:
    return UsageError(
        "bad-option-value", f"bad value '{text[:100]}' for {flag}", reason=f"it must have the form {form}"
    )


def _ranges(text: str | None) -> tuple[tuple[int, int], ...]:
    flag, form = "--dump-ranges", "ADDRESS,SIZE[,ADDRESS,SIZE...], a size for every address"
    if not text:
        return ()
    numbers = _numbers(flag, text, form, ",")
    if len(numbers) % 2 or any(number > _UINT32_MAXIMUM for number in numbers):
        raise _bad(flag, text, form)
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _target(text: str | None) -> AdversarialTarget | None:
    flag, form = "--adversarial-target", "WCORE:WPC:RCORE:RPC:BEGIN:END[:RITER:WMIN] with BEGIN < END"
    if not text:
        return None
    numbers = _numbers(flag, text, form)
    if len(numbers) not in (6, 8) or numbers[4] >= numbers[5]:
        raise _bad(flag, text, form)
    return AdversarialTarget(*numbers)


def _core_stalls(text: str | None) -> tuple[tuple[int, int], ...]:
    flag, form = "--core-stall", "CORE:CYCLES[,CORE:CYCLES...] with positive CYCLES"
    stalls = []
    for part in text.split(",") if text else ():
        numbers = _numbers(flag, part, form)
        if len(numbers) != 2 or numbers[1] < 1:
            raise _bad(flag, part, form)
        stalls.append((numbers[0], numbers[1]))
    return tuple(stalls)


def _target_stalls(text: str | None) -> tuple[TargetStall, ...]:
    flag, form = "--target-stall", "CORE:PC[:ITERATION]:CYCLES[,...] with positive CYCLES"
    stalls = []
    for part in text.split(",") if text else ():
        numbers = _numbers(flag, part, form)
        if len(numbers) not in (3, 4) or numbers[-1] < 1:
            raise _bad(flag, part, form)
        iteration = numbers[2] if len(numbers) == 4 else None
        stalls.append(TargetStall(numbers[0], numbers[1], iteration, numbers[-1]))
    return tuple(stalls)
