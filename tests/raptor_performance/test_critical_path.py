"""The critical path: worked examples by hand, and what must hold of every run's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raptor_core.cli.main import main
from raptor_core.diagnostics import RaptorError
from raptor_performance.critical_path import CriticalPath, critical_path
from raptor_performance.run import time_program, trace_of
from raptor_performance.traced import UNITS
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.export_chip import write_chip
from timed_programs import END, WIDTHS, with_core

WORK = {"op": "vrelu", "rd": 0, "rs1": 0, "len": 4096}
SHORT = {**WORK, "len": 8}


def send(core: int) -> dict[str, Any]:
    return {"op": "send", "rd": 0, "core": core, "size": 8}


def receive(core: int) -> dict[str, Any]:
    return {"op": "recv", "rd": 0, "core": core, "size": 8}


def path_of(folder: Path, config: Path, programs: list[list[dict[str, Any]]]) -> tuple[CriticalPath, float]:
    names = [f"core{core}" for core in range(len(programs))]
    content: dict[str, Any] = {"config": {"core_cnt": len(programs), "array_group_map": {name: [] for name in names}}}
    content |= {name: [WIDTHS, *own] if own else [] for name, own in zip(names, programs, strict=True)}
    file = folder / "program.json"
    file.write_text(json.dumps(content))
    timed = time_program(file, {"config": str(config), "layers": True})
    return critical_path(timed, trace_of(timed, file)), timed.metrics()["latency_ms"] * 1e6


def steps(path: CriticalPath) -> list[tuple[int, str]]:
    """Core and unit of every instruction on the path."""
    traced = path.traced
    return [(int(traced.core[row]), UNITS[int(traced.unit[row])]) for row in path.rows]


@pytest.fixture
def config(chip_folder: Path) -> Path:
    return chip_folder / "latency_config.json"


def test_it_goes_over_to_the_late_sender(tmp_path: Path, config: Path) -> None:
    path, latency = path_of(tmp_path, config, [[WORK, send(1), END], [SHORT, receive(0), SHORT]])
    assert steps(path) == [(0, "vector"), (1, "receive"), (1, "vector")]
    assert path.hops == 1
    assert path.latency == pytest.approx(latency)


def test_it_goes_over_to_the_late_receiver(tmp_path: Path, config: Path) -> None:
    path, latency = path_of(tmp_path, config, [[SHORT, send(1), WORK], [WORK, receive(0), END]])
    assert steps(path) == [(1, "vector"), (0, "send"), (0, "vector")]
    assert path.latency == pytest.approx(latency)


def test_it_stays_where_nobody_was_late(tmp_path: Path, config: Path) -> None:
    path, latency = path_of(tmp_path, config, [[SHORT, send(1), END], [WORK, receive(0), SHORT]])
    assert steps(path) == [(1, "vector"), (1, "receive"), (1, "vector")]
    assert path.hops == 0
    assert path.latency == pytest.approx(latency)


def test_it_follows_the_token_that_was_last(tmp_path: Path, config: Path) -> None:
    sync = {"op": "sync", "core": 2, "event_register": 3}
    wait = {"op": "wait", "event_register": 3, "wait_value": 2}
    programs = [[SHORT, sync, END], [WORK, sync, END], [wait, SHORT]]
    path, latency = path_of(tmp_path, config, programs)
    assert steps(path) == [(1, "vector"), (2, "token"), (2, "vector")]
    assert path.latency == pytest.approx(latency)
    # The first wait takes one token of the early core, the second the one of the late core.
    programs[2] = [{**wait, "wait_value": 1}, SHORT, {**wait, "wait_value": 1}, END]
    path, latency = path_of(tmp_path, config, programs)
    assert steps(path) == [(1, "vector"), (2, "token"), (2, "vector")]
    assert path.latency == pytest.approx(latency)


def test_a_program_without_instructions(tmp_path: Path, config: Path) -> None:
    path, latency = path_of(tmp_path, config, [[], []])
    assert path.rows.size == 0
    assert path.latency == pytest.approx(latency)
    assert path.as_json()["layers"] == []


def test_several_instructions_in_flight_are_refused(tmp_path: Path, arch_a: ChipConfiguration) -> None:
    write_chip(with_core(arch_a, rob_size=4), tmp_path / "chip")
    with pytest.raises(RaptorError, match="one instruction at a time"):
        path_of(tmp_path, tmp_path / "chip" / "latency_config.json", [[SHORT, END]])


def test_the_path_of_a_network_tiles_its_latency(digits_program: Path) -> None:
    timed = time_program(digits_program, {"layers": True})
    path = critical_path(timed, trace_of(timed, digits_program))
    assert path.latency == pytest.approx(timed.metrics()["latency_ms"] * 1e6)
    assert (path.before >= 0).all()
    assert (path.end >= path.begin).all()
    assert sum(row["path_us"] for row in path.layers()) == pytest.approx((path.latency - path.after) / 1000, abs=0.1)
    assert path.hops > 0


def test_the_command(digits_program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "critical-path", str(digits_program), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert sum(figures["kinds_ms"].values()) == pytest.approx(figures["latency_ms"])
    assert {row["layer"] for row in figures["layers"]} >= {"conv1", "fc"}
    assert main(["report", "critical-path", str(digits_program)]) == 0
    text = capsys.readouterr().out
    assert "TIME ON THE CRITICAL PATH" in text
    assert "conv1" in text
