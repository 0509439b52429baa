"""A program timed on its chip: what reports are made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from raptor_performance.engine import Run, run_programs
from raptor_performance.failures import check_finished
from raptor_performance.metrics import run_metrics
from raptor_performance.program import Program, check_program, read_program
from raptor_performance.view import timing_view
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.mesh import Mesh, read_mesh


@attrs.frozen(eq=False)
class Timed:
    """A program as it was timed (in ``view``), the chip, its network, and the run."""

    program: Program
    configuration: ChipConfiguration
    mesh: Mesh
    view: str
    run: Run

    def metrics(self) -> dict[str, Any]:
        """See raptor_performance.metrics.run_metrics; with the view."""
        return {**run_metrics(self.configuration, self.program, self.run), "view": self.view}


def time_program(path: Path, options: Mapping[str, Any]) -> Timed:
    """Times the program at ``path`` under the simulator's ``options`` (raptor_performance.plugin.OPTIONS).

    Raises RaptorError for a bad program or configuration, a deadlock or a time-out.
    """
    from raptor_performance.run import chosen_chip

    program = read_program(path)
    configuration = chosen_chip(program, options)
    mesh = read_mesh(configuration)
    view = options.get("view") or ("timing" if program.own else "float32")
    if view == "timing":
        program = attrs.evolve(program, programs=tuple(timing_view(records) for records in program.programs))
    check_program(program, configuration)
    run = run_programs(configuration, mesh, program.programs, program.groups)
    if not run.looping:
        check_finished(run, program.programs, program.where)
    return Timed(program, configuration, mesh, view, run)
