"""A simulation from request to result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.simulation.contract import SimulationRequest, SimulationResult
from raptor_performance.chrome_trace import parse_window, write_trace
from raptor_performance.engine import Run, run_programs
from raptor_performance.failures import check_finished
from raptor_performance.metrics import run_metrics
from raptor_performance.program import Program, check_program, read_program
from raptor_performance.text_report import write_report
from raptor_performance.traced import Traced, layer_table, traced_instructions
from raptor_performance.view import softmax_as, timing_view
from raptor_pim.artifacts.chip import ChipConfiguration, SimulationMode, load_chip
from raptor_pim.artifacts.mesh import read_mesh
from raptor_pim.artifacts.source_map import read_source_map
from raptor_pim.artifacts.timing import LONGEST_NS, pass_energy, product_passes


@attrs.frozen(eq=False)
class Timed:
    """A program as it was timed, in ``view``, on its chip; ``seconds`` is how long the simulation took.

    ``softmax`` is the instruction that every softmax took its time from; None where there is no softmax.
    """

    program: Program
    configuration: ChipConfiguration
    view: str
    run: Run
    seconds: float
    softmax: str | None = None

    def metrics(self) -> dict[str, Any]:
        """See raptor_performance.metrics.run_metrics; with the view, what softmax was timed as, and the seconds."""
        figures = run_metrics(self.configuration, self.program, self.run)
        assumed = {} if self.softmax is None else {"softmax_as": self.softmax}
        return {**figures, "view": self.view, **assumed, "wall_seconds": self.seconds}


def simulate(request: SimulationRequest) -> SimulationResult:
    """See raptor_performance.plugin.PerformanceSimulator.simulate."""
    window = parse_window(request.options.get("trace_window") or "0:")
    _check_files(request.options)
    timed = time_program(Path(request.artifact), request.options)
    metrics = timed.metrics()
    figures, tables = _seen(timed, Path(request.artifact), request.options, window)
    metrics.update(figures)
    if request.options.get("report"):
        write_report(Path(request.options["report"]), timed.program, timed.configuration, metrics)
    return SimulationResult(metrics=metrics, tables=tables)


def _check_files(options: Mapping[str, Any]) -> None:
    """Raises UsageError, before anything is simulated, for files that cannot be written."""
    for name in ("trace", "plot"):
        if not options.get(name):
            continue
        path = Path(options[name])
        if not path.parent.is_dir() or path.is_dir():
            raise UsageError(
                "bad-option-value",
                f"bad value '{path}' for --{name}",
                reason="it is a folder" if path.is_dir() else f"there is no folder '{path.parent}'",
            )
    if options.get("plot"):
        from raptor_performance.plot import check_plot

        check_plot(Path(options["plot"]))


def _seen(
    timed: Timed, path: Path, options: Mapping[str, Any], window: tuple[float, float]
) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Writes trace and picture as asked for; gives figures about them, and the table of layers."""
    if not timed.run.trace.size:
        return {}, {}
    traced = trace_of(timed, path)
    figures: dict[str, Any] = {}
    tables: dict[str, list[dict[str, Any]]] = {}
    if options.get("layers"):
        if not traced.layers:
            raise RaptorError(
                "no-source-map",
                "the program does not say which layers its instructions are of",
                where=str(path),
                hint="compile the network with this Raptor",
            )
        matrix = timed.configuration.chip_config.core_config.matrix_config
        bits = 8 if timed.view == "timing" else 32
        tables["layers"] = layer_table(traced, product_passes(matrix, bits) * pass_energy(matrix).total)
    if options.get("trace"):
        cut = write_trace(Path(options["trace"]), traced, timed.program, window, options["trace_limit"])
        figures |= {"trace": options["trace"], "trace_cut_at_limit": cut}
    if options.get("plot"):
        from raptor_performance.plot import write_plot

        title = f"{path.name} on {len(timed.program.programs)} cores"
        write_plot(Path(options["plot"]), traced, len(timed.program.programs), timed.metrics(), title)
        figures["plot"] = options["plot"]
    return figures, tables


def trace_of(timed: Timed, path: Path) -> Traced:
    """What was traced of a run of the program at ``path``."""
    return traced_instructions(
        timed.run.trace,
        timed.program,
        read_source_map(path, [records.size for records in timed.program.programs]),
        read_mesh(timed.configuration),
        timed.configuration.chip_config.network_config.bus_width,
    )


def _trace_rows(program: Program, configuration: ChipConfiguration, options: Mapping[str, Any]) -> int:
    """How many instructions to trace: all of one run when somebody wants to see them."""
    if not any(options.get(name) for name in ("layers", "trace", "plot")):
        return 0
    if configuration.sim_config.sim_mode == SimulationMode.THROUGHPUT:
        raise UsageError(
            "latency-mode-only",
            "layers, traces and pictures show one run",
            reason="in throughput mode programs run again and again",
            hint="use --mode latency",
        )
    return program.instruction_count


def time_program(path: Path, options: Mapping[str, Any]) -> Timed:
    """Times the program at ``path`` under the simulator's options (raptor_performance.plugin.OPTIONS).

    All instructions of a latency run are traced (see trace_of) with any of the options layers, trace and plot.
    Raises RaptorError for a bad program or configuration, a deadlock or a time-out.
    """
    program = read_program(path)
    configuration = chosen_chip(program, options)
    mesh = read_mesh(configuration)
    view = options.get("view") or ("timing" if program.own else "float32")
    if view == "timing":
        program = attrs.evolve(program, programs=tuple(timing_view(records) for records in program.programs))
    stand_in = options.get("softmax_as")
    check_program(program, configuration, softmax_timed=stand_in is not None)
    programs = [softmax_as(records, stand_in) for records in program.programs]
    begin = time.perf_counter()
    rows = _trace_rows(program, configuration, options)
    run = run_programs(configuration, mesh, programs, program.groups, trace_rows=rows)
    seconds = time.perf_counter() - begin
    if not run.looping:
        check_finished(run, program.programs, program.where)
    assumed = any(a is not b for a, b in zip(programs, program.programs, strict=True))
    return Timed(program, configuration, view, run, seconds, stand_in if assumed else None)


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
        if not 0 < options["sim_time_ms"] <= LONGEST_NS / 1e6:
            raise UsageError(
                "bad-option-value",
                f"bad value {options['sim_time_ms']!r} for --sim-time-ms",
                reason=f"it must be positive, and at most {LONGEST_NS / 1e6:g}",
            )
        simulation = attrs.evolve(configuration.sim_config, sim_time=options["sim_time_ms"])
        configuration = attrs.evolve(configuration, sim_config=simulation)
    return configuration
