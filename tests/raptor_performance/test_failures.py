"""Programs that never end: who waits for whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from raptor_core.diagnostics import RaptorError
from raptor_performance.failures import check_finished
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.mesh import Mesh
from raptor_pim.isa.assembler import assemble
from timed_programs import END, WIDTHS, Instruction, timed, with_core


def send(core: int) -> Instruction:
    return {"op": "send", "rd": 0, "core": core, "size": 64}


def recv(core: int) -> Instruction:
    return {"op": "recv", "rd": 0, "core": core, "size": 64}


WAIT = {"op": "wait", "event_register": 3, "wait_value": 2}
SYNC = {"op": "sync", "core": 1, "event_register": 3}


@pytest.fixture(params=[1, 4], ids=["serial", "overlapped"])
def failure(request: pytest.FixtureRequest, arch_a: ChipConfiguration, arch_a_mesh: Mesh) -> Any:
    """The error of programs, on chips with one and with four instructions in flight."""

    def run(*programs: list[Instruction], timeout_ms: float = 60000) -> RaptorError:
        chip = with_core(arch_a, rob_size=request.param)
        chip = attrs.evolve(chip, sim_config=attrs.evolve(chip.sim_config, latency_timeout_ms=timeout_ms))
        records = [assemble(program) for program in programs]
        with pytest.raises(RaptorError) as caught:
            check_finished(timed(chip, arch_a_mesh, programs), records, "program")
        return caught.value

    return run


def test_a_ring_of_sends(failure: Any) -> None:
    error = failure([WIDTHS, send(1), END], [WIDTHS, send(2), END], [WIDTHS, send(0), END], [WIDTHS, END])
    assert error.code == "deadlock"
    assert "core 0 -> core 1 -> core 2 -> core 0" in error.reason
    assert "3 of 4 cores" in error.reason
    assert error.details[1].startswith("core 1 pc 1 of 3: send")
    assert error.details[1].endswith("waits for core 2 to receive")


def test_a_missing_partner_and_missing_tokens(failure: Any) -> None:
    error = failure([WIDTHS, recv(1), END], [WIDTHS, WAIT, END], [WIDTHS, SYNC, END])
    assert error.code == "deadlock"
    assert "waits for core 1 to send" in error.details[0]
    assert "waits for tokens in register 3" in error.details[1]


def test_time_out(failure: Any) -> None:
    error = failure([WIDTHS, *[END] * 1000], timeout_ms=0.001)
    assert error.code == "time-out"
    assert "0.001 ms" in error.reason
    assert error.details[0].endswith("out of time")


def test_a_last_instruction_that_never_retires(failure: Any) -> None:
    error = failure([WIDTHS, END, WIDTHS])
    assert error.code == "time-out"
    assert "never retires" in error.details[0]


def test_nop_stops_a_core(failure: Any) -> None:
    error = failure([WIDTHS, {"op": "nop"}, *[END] * 8])
    assert error.code == "time-out"


def test_many_cores_are_summed_up(failure: Any) -> None:
    error = failure(*[[WIDTHS, WAIT, END]] * 50)
    assert len(error.details) == 21
    assert error.details[-1] == "... and 30 more cores"


def test_a_deadlock_in_throughput_mode_is_reported_with_the_figures(tmp_path: Path, chip_folder: Path) -> None:
    from raptor_core.options import resolve_options
    from raptor_core.simulation.contract import SimulationRequest
    from raptor_performance.plugin import SIMULATOR

    program = {
        "config": {"core_cnt": 2, "array_group_map": {}},
        "core0": [WIDTHS, recv(1), *[END] * 4],
        "core1": [WIDTHS, END],
    }
    (tmp_path / "p.json").write_text(json.dumps(program))
    given = {"config": str(chip_folder / "latency_config.json"), "mode": "throughput", "sim_time_ms": 0.01}
    options = resolve_options(SIMULATOR.options, given, owner="performance")
    metrics = SIMULATOR.simulate(SimulationRequest(tmp_path / "p.json", options=options)).metrics
    assert metrics["output_count"] == 0
    assert metrics["average_latency_ms"] == 0
    assert metrics["blocked_cores"] == [0]
