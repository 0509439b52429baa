"""Running a program folder in a simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from raptor_core.diagnostics import PluginError, RaptorError
from raptor_core.driver.programs import program_reader
from raptor_core.driver.samples import Inputs, samples_of
from raptor_core.logging import get_logger
from raptor_core.options import resolve_options
from raptor_core.plugins.manager import PluginManager
from raptor_core.simulation.contract import Sample, SimulationRequest, SimulationResult, Simulator

SIMULATORS = "raptor.simulators"
DEFAULT_SIMULATOR = "functional"


def simulate(
    artifact: str | Path,
    inputs: Inputs | None = None,
    *,
    simulator: str = DEFAULT_SIMULATOR,
    options: Mapping[str, Any] | None = None,
    disable_plugins: Iterable[str] = (),
    plugins: PluginManager | None = None,
) -> SimulationResult:
    """Run the program folder ``artifact``.

    ``inputs`` is one sample (arrays by input name), a list of samples, arrays with one more axis in front that counts
    the samples, or a single array for a network with one input. ``options`` are the simulator's own, by name; what
    it does with several samples is its own to say (the functional simulator runs them one by one, each on a chip in
    its initial state, unless ``mode`` is ``throughput``).

    Raises RaptorError for a folder that is not a whole program, inputs that do not fit, or a program that fails.
    """
    plugins = plugins if plugins is not None else PluginManager.discover(disable_plugins)
    chosen: Simulator = plugins.get(SIMULATORS, simulator)
    given = {name: value for name, value in (options or {}).items() if value is not None}
    resolved = resolve_options(chosen.options, given, owner=f"simulator '{simulator}'")
    path = Path(artifact)
    samples: list[Sample] = []
    if inputs is not None:
        samples = samples_of(inputs, program_reader(plugins, path).signature(path).inputs)
    log = get_logger("simulate", artifact=str(path), simulator=simulator)
    log.info("simulation begins", samples=len(samples))
    try:
        result = chosen.simulate(SimulationRequest(path, samples, resolved))
    except (RaptorError, MemoryError):
        raise
    except Exception as error:
        entry = plugins.entry(SIMULATORS, simulator)
        raise PluginError(
            "simulator-failed",
            f"the simulator '{simulator}' failed",
            where=f"{entry.value}, from {entry.origin}",
            reason=f"{type(error).__name__}: {error}",
            hint="please report this, with the program folder and the inputs",
        ) from error
    log.info("simulation done", **{k: v for k, v in result.metrics.items() if isinstance(v, int | float | str)})
    return result
