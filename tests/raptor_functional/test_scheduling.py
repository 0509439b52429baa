"""Orders of execution that put a program to the test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from functional_runs import artifact, op, simulate

from raptor_core.diagnostics import UsageError
from raptor_functional.scheduling import _Random

# The writer overwrites host byte 8 in every iteration; the reader reads it once per iteration, and only an event from
# writer to reader orders the two: nothing keeps the writer from running ahead.
WRITER = [
    op("saddi", rd=1, rs1=1, imm=1),
    op("lldi", rd=1, imm=1, len=1),
    op("sldi", rd=2, imm=8),
    op("st", rd=2, rs1=0, size=4),
    op("sync", core=1, event_register=0),
]
READER = [
    op("wait", event_register=0, wait_value=1),
    op("sldi", rd=1, imm=8),
    op("ld", rd=0, rs1=1, size=4),
    op("sldi", rd=2, imm=16),
    op("st", rd=2, rs1=0, size=4),
]
BACK = [*READER, op("sync", core=0, event_register=1)]
PATIENT = [*WRITER, op("wait", event_register=1, wait_value=1)]
TARGET = "0:3:1:2:8:12"


def run(programs: list[Any], iterations: int, **options: Any) -> tuple[list[Any], Any]:
    """The four output bytes of every iteration, and the metrics."""
    made = artifact(programs, outputs_addresses=(16,), outputs_sizes=(4,))
    result = simulate(made, [{}] * iterations, **{"mode": "throughput", **options})
    outputs = [out["output_0"].view(np.uint8).tolist() for out in result.outputs]
    return outputs, result.metrics


def chatter(rounds: int) -> list[list[Any]]:
    """Cores 2 and 3, which take many turns between them."""
    one = [op("sync", core=3, event_register=3), op("wait", event_register=3, wait_value=1)] * rounds
    two = [op("wait", event_register=3, wait_value=1), op("sync", core=2, event_register=3)] * rounds
    return [one, two]


GOOD = [[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"schedule_policy": "randomized", "schedule_seed": 3},
        {"schedule_policy": "adversarial", "adversarial_target": TARGET},
        {"core_stall": "0:9"},
        {"target_stall": "0:3:5,1:2:1:7"},
    ],
)
def test_a_correct_program_does_not_depend_on_the_order(options: dict[str, Any]) -> None:
    assert run([PATIENT, BACK, [op("nop")]], 3, **options)[0] == GOOD


def test_the_adversarial_order_uncovers_a_missing_dependency() -> None:
    programs = [WRITER, READER, *chatter(20)]
    stalls = {"target_stall": "0:0:1:4,0:0:2:4"}
    orderly, _ = run(programs, 3, **stalls)
    assert orderly == GOOD
    disturbed, metrics = run(programs, 3, **stalls, schedule_policy="adversarial", adversarial_target=TARGET)
    assert disturbed[0] == GOOD[1]
    assert metrics["scheduler_deferrals"] > 0


def test_the_reader_is_released_when_nothing_else_can_run() -> None:
    options = {"schedule_policy": "adversarial", "adversarial_target": TARGET}
    _, metrics = run([PATIENT, BACK], 3, **options)
    forced = [event for event in metrics["scheduler_events"] if event["event"] == "force"]
    assert {event["reason"] for event in forced} == {"NO_ALTERNATIVE_READY_EVENT"}
    assert [event["iteration"] for event in forced] == [0, 1, 2]


@pytest.mark.parametrize(
    ("budget", "rounds", "reason"),
    [(5, 50, "DEFERRAL_LIMIT_REACHED"), (10_000, 400, "PRODUCER_BLOCKED_BY_REAL_DEPENDENCY")],
)
def test_the_reader_is_released_by_patience(budget: int, rounds: int, reason: str) -> None:
    made = artifact([PATIENT, BACK, *chatter(rounds)])
    options = {"schedule_policy": "adversarial", "adversarial_target": TARGET, "deferral_budget": budget}
    metrics = simulate(made, [{}], mode="throughput", **options).metrics
    forced = [event["reason"] for event in metrics["scheduler_events"] if event["event"] == "force"]
    assert forced[0] == reason


def test_a_target_of_one_iteration_leaves_the_others_alone() -> None:
    options = {"schedule_policy": "adversarial", "adversarial_target": TARGET + ":1:2"}
    _, metrics = run([PATIENT, BACK], 3, **options)
    assert [event["iteration"] for event in metrics["scheduler_events"] if event["event"] == "force"] == [1]


def test_stalls_are_told() -> None:
    _, metrics = run([PATIENT, BACK], 2, core_stall="1:3", target_stall="0:3:2")
    stalls = [event for event in metrics["scheduler_events"] if event["event"] == "stall"]
    assert stalls == [
        {"event": "stall", "core": 1, "turns": 3},
        {"event": "stall", "core": 0, "pc": 3, "iteration": 0, "turns": 2},
        {"event": "stall", "core": 0, "pc": 3, "iteration": 1, "turns": 2},
    ]


def test_the_generator_of_the_randomized_order() -> None:
    generator = _Random(1)
    assert [generator.below(2**64) for _ in range(3)] == [0x40822041, 0x100041060C011441, 0x9B1E842F6E862629]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"core_stall": "0"}, "--core-stall"),
        ({"core_stall": "0:0"}, "positive CYCLES"),
        ({"core_stall": "5:1"}, "names core 5"),
        ({"target_stall": "0:1"}, "--target-stall"),
        ({"target_stall": "0:99:1"}, "names pc 99 of core 0"),
        ({"schedule_policy": "adversarial"}, "needs --adversarial-target"),
        ({"adversarial_target": TARGET}, "for the adversarial order only"),
        ({"schedule_policy": "adversarial", "adversarial_target": "0:3:1:2:12:8"}, "BEGIN < END"),
        ({"schedule_policy": "adversarial", "adversarial_target": "0:3:0:2:8:12"}, "are one core"),
        ({"schedule_policy": "adversarial", "adversarial_target": "0:3:1:2:8:99"}, "outside the host memory"),
        ({"schedule_policy": "adversarial", "adversarial_target": "0:3:1:2:8:12:1"}, "--adversarial-target"),
        ({"schedule_policy": "fair"}, "greedy, randomized, adversarial"),
        ({"deferral_budget": 0}, "at least 1"),
        ({"mode": "fast"}, "latency, throughput"),
        ({"speed": 1}, "unknown option"),
    ],
)
def test_bad_settings(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run([PATIENT, BACK], 1, **options)
