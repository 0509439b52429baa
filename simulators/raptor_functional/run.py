"""One simulation from beginning to end."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.options import resolve_options
from raptor_core.simulation.contract import Sample, SimulationRequest, SimulationResult
from raptor_functional.machine import Bytes, Machine, Ranges, build_machine
from raptor_functional.scheduling import Event, run_plain, run_scheduled
from raptor_functional.settings import OPTIONS, RunSettings, parse_settings
from raptor_functional.tensors import input_tensors, output_tensors, pack_samples, unpack_outputs
from raptor_pim.artifacts import Artifact, ArtifactConfig, read_artifact


def simulate(request: SimulationRequest) -> SimulationResult:
    """Runs the artifact of ``request`` on its samples; see the plugin for outputs, metrics and errors."""
    settings = parse_settings(resolve_options(OPTIONS, request.options, owner="functional"))
    artifact = read_artifact(request.artifact)
    return simulate_artifact(artifact, request.samples, settings)


def simulate_artifact(artifact: Artifact, samples: Any, settings: RunSettings) -> SimulationResult:
    """Runs an artifact that is in memory already (and valid). ``samples`` as in a SimulationRequest.

    Several samples in latency mode are as many runs, each on a machine in its initial state.
    """
    if not settings.throughput and len(samples) > 1:
        if settings.provenance_trace is not None:
            raise UsageError(
                "too-many-samples",
                f"{len(samples)} samples were given, and a provenance trace in latency mode follows one",
                hint="trace them as a batch with --mode throughput, or one at a time",
            )
        return _together([simulate_artifact(artifact, [sample], settings) for sample in samples])
    config = artifact.config
    regions = _regions(config, settings)
    _refuse_outside(settings, artifact.memory.size)
    iterations = _iterations(config, samples)
    packed = pack_samples(config, samples) if samples else np.zeros((iterations, 0), dtype=np.uint8)
    begin = time.perf_counter()
    try:
        return _execute(artifact, packed, iterations, regions, settings, begin)
    except MemoryError as cause:
        raise RaptorError(
            "out-of-memory",
            "the simulation does not fit into the memory of this computer",
            reason=str(cause) or None,
            hint="run fewer samples at a time",
        ) from cause


def _together(runs: list[SimulationResult]) -> SimulationResult:
    """The outputs of all runs in order; their work added up, their peaks' maximum."""
    metrics = dict(runs[0].metrics)
    for key in ("executed_instructions", "samples", "wall_seconds"):
        metrics[key] = sum(run.metrics[key] for run in runs)
    metrics["peak_local_memory_bytes"] = max(run.metrics["peak_local_memory_bytes"] for run in runs)
    return SimulationResult(tuple(output for run in runs for output in run.outputs), metrics)


def _execute(
    artifact: Artifact,
    packed: Bytes,
    iterations: int,
    regions: Ranges,
    settings: RunSettings,
    begin: float,
) -> SimulationResult:
    machine = build_machine(
        artifact,
        packed,
        iterations=iterations,
        ranges=(*regions, *settings.dump_ranges),
        global_barrier=settings.global_barrier,
    )
    events: list[Event] = []
    _run(machine, settings, events)
    wall_seconds = time.perf_counter() - begin
    outputs = tuple(_outputs(machine, iteration, len(regions)) for iteration in range(iterations))
    return SimulationResult(outputs, _metrics(machine, iterations, wall_seconds, events))


def _run(machine: Machine, settings: RunSettings, events: list[Event]) -> None:
    if settings.provenance_trace is not None:
        from raptor_functional.provenance.run import run_traced

        run_traced(machine, settings, events.append)
    elif settings.plain:
        run_plain(machine)
    else:
        run_scheduled(machine, settings, events.append)


def _regions(config: ArtifactConfig, settings: RunSettings) -> tuple[tuple[int, int], ...]:
    """The host regions of the outputs; none when their sizes are not known but other ranges are asked for."""
    if config.outputs_sizes is None:
        if not settings.dump_ranges:
            raise UsageError(
                "unknown-output-sizes",
                "the artifact does not say how large its outputs are",
                where="config.json",
                reason=f"it has outputs_addresses {list(config.outputs_addresses)} and no outputs_sizes",
                hint="ask for bytes of the host memory with --dump-ranges ADDRESS,SIZE,...",
            )
        return ()
    return tuple(zip(config.outputs_addresses, config.outputs_sizes, strict=True))


def _refuse_outside(settings: RunSettings, host_bytes: int) -> None:
    for address, size in settings.dump_ranges:
        if address + size > host_bytes:
            raise UsageError(
                "bad-option-value",
                f"--dump-ranges {address},{size} lies outside the host memory",
                reason=f"it has {host_bytes} bytes",
            )


def _iterations(config: ArtifactConfig, samples: Any) -> int:
    count = len(samples)
    if count == 0 and config.inputs_sizes:
        names = ", ".join(tensor.name for tensor in input_tensors(config))
        raise UsageError("no-samples", "no sample was given", hint=f"give the inputs of the network: {names}")
    return max(count, 1)


def _outputs(machine: Machine, iteration: int, region_count: int) -> Sample:
    recorded = machine.recorded(iteration)
    config = machine.artifact.config
    outputs: dict[str, Any] = {}
    if output_tensors(config):
        outputs.update(unpack_outputs(config, recorded[:region_count]))
    outputs.update({f"range_{number}": data for number, data in enumerate(recorded[region_count:])})
    return outputs


def _metrics(machine: Machine, iterations: int, wall_seconds: float, events: list[Event]) -> dict[str, Any]:
    state = machine.state
    metrics: dict[str, Any] = {
        "instructions": machine.artifact.instruction_count,
        "executed_instructions": int(state.executed.sum()),
        "cores": machine.core_count,
        "active_cores": sum(records.size > 0 for records in machine.artifact.programs),
        "samples": iterations,
        "wall_seconds": wall_seconds,
        "peak_local_memory_bytes": int(state.peak.max(initial=0)),
        "host_memory_bytes": int(state.host.size),
    }
    if events:
        metrics["scheduler_deferrals"] = sum(event["event"] == "deferral" for event in events)
        metrics["scheduler_events"] = [event for event in events if event["event"] not in ("deferral", "preference")]
    return metrics
