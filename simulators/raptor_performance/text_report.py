"""The figures of a run as a text, with the fields of the reference simulator's report where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raptor_core.diagnostics import RaptorError
from raptor_performance.program import Program
from raptor_pim.artifacts.chip import ChipConfiguration

_RESULTS = {
    "latency": (
        ("latency", "latency_ms", "ms"),
        ("average power", "average_power_mw", "mW"),
        ("energy", "energy_pj", "pJ"),
    ),
    "throughput": (
        ("output count", "output_count", "samples"),
        ("throughput", "throughput_per_s", "samples/s"),
        ("average latency", "average_latency_ms", "ms"),
        ("average power", "average_power_mw", "mW"),
        ("average energy", "energy_pj_per_iteration", "pJ/it"),
    ),
}


def report_text(program: Program, configuration: ChipConfiguration, metrics: Mapping[str, Any]) -> str:
    """The report: what was run, the results, and energy by what took it."""
    mode = metrics["mode"]
    basic: list[tuple[str, object, str]] = [
        ("program", program.where, ""),
        ("core count", len(program.programs), ""),
        ("simulation mode", mode, ""),
    ]
    if mode == "throughput":
        basic.append(("simulation time", configuration.sim_config.sim_time, "ms"))
    energy = metrics["energy"]
    units = [
        (f"{unit} ({kind})", value, "pJ")
        for kind in ("static", "dynamic")
        for unit, value in energy[f"{kind}_pj"].items()
        if value
    ]
    results = [(label, metrics[key], unit) for label, key, unit in _RESULTS[mode]]
    sections = (("Basic Information", basic), ("Chip Simulation Result", results), ("Energy", units))
    return "\n".join("\n".join((f"{title}:", *map(_line, rows))) for title, rows in sections) + "\n"


def write_report(path: Path, program: Program, configuration: ChipConfiguration, metrics: Mapping[str, Any]) -> None:
    """Write the report to ``path``, replacing what is there. Raises RaptorError when that cannot be done."""
    try:
        path.write_text(report_text(program, configuration, metrics), encoding="utf-8")
    except OSError as error:
        raise RaptorError(
            "cannot-write",
            "the report cannot be written",
            where=str(path),
            reason=error.strerror or str(error),
            hint="choose another file",
        ) from error


def _line(row: tuple[str, object, str]) -> str:
    label, value, unit = row
    shown = f"{value:.10g}" if isinstance(value, float) else str(value)
    return f"  - {label + ':':<32}{shown} {unit}".rstrip()
