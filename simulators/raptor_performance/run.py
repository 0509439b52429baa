"""A simulation from request to result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from raptor_core.diagnostics import UsageError
from raptor_core.simulation.contract import SimulationRequest, SimulationResult
from raptor_performance.engine import Run, run_programs
from raptor_performance.failures import check_finished
from raptor_performance.metrics import run_metrics
from raptor_performance.program import Program, check_program, read_program
from raptor_performance.text_report import write_report
from raptor_performance.view import timing_view
from raptor_pim.artifacts.chip import ChipConfiguration, SimulationMode, load_chip
from raptor_pim.artifacts.mesh import read_mesh


@attrs.frozen(eq=False)
class Timed:
    """A program as it was timed, in ``view``, on its chip; ``seconds`` is how long the simulation took."""

    program: Program
    configuration: ChipConfiguration
    view: str
    run: Run
    seconds: float

    def metrics(self) -> dict[str, Any]:
        """See raptor_performance.metrics.run_metrics; with the view and the seconds."""
        figures = run_metrics(self.configuration, self.program, self.run)
        return {**figures, "view": self.view, "wall_seconds": self.seconds}


def simulate(request: SimulationRequest) -> SimulationResult:
    """See raptor_performance.plugin.PerformanceSimulator.simulate."""
    timed = time_program(Path(request.artifact), request.options)
    metrics = timed.metrics()
    if request.options.get("report"):
        write_report(Path(request.options["report"]), timed.program, timed.configuration, metrics)
    return SimulationResult(metrics=metrics)


def time_program(path: Path, options: Mapping[str, Any]) -> Timed:
    """Times the program at ``path`` under the simulator's options (raptor_performance.plugin.OPTIONS).

    Raises RaptorError for a bad program or configuration, a deadlock or a time-out.
    """
    program = read_program(path)
    configuration = chosen_chip(program, options)
    mesh = read_mesh(configuration)
    view = options.get("view") or ("timing" if program.own else "float32")
    if view == "timing":
        program = attrs.evolve(program, programs=tuple(timing_view(records) for records in program.programs))
    check_program(program, configuration)
    begin = time.perf_counter()
    run = run_programs(configuration, mesh, program.programs, program.groups)
    seconds = time.perf_counter() - begin
    if not run.looping:
        check_finished(run, program.programs, program.where)
    return Timed(program, configuration, view, run, seconds)


def chosen_chip(program: Program, options: Mapping[str, Any]) -> ChipConfiguration:
    """The chip to time the program on, in the mode asked for.

    Raises UsageError when no configuration is known, RaptorError for one that cannot be used.
    """
    given = options.get("config")
    path = Path(given) if given else program.chip_file
    if path is None:
        raise UsageError(
            "missing-option",
            "no chip to time the program on",
            where=program.where,
            reason="the program does not say which chip it is for",
            hint="give a chip configuration: --config CHIP.json",
        )
    configuration = load_chip(path)
    if options.get("mode"):
        configuration = configuration.with_mode(SimulationMode[options["mode"].upper()])
    if options.get("sim_time_ms") is not None:
        if not options["sim_time_ms"] > 0:
            raise UsageError(
                "bad-option-value",
                f"bad value {options['sim_time_ms']!r} for --sim-time-ms",
                reason="it must be positive",
            )
        simulation = attrs.evolve(configuration.sim_config, sim_time=options["sim_time_ms"])
        configuration = attrs.evolve(configuration, sim_config=simulation)
    return configuration
