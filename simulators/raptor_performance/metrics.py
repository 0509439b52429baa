"""Figures of a run as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raptor_performance.energy import Energy, run_energy
from raptor_performance.engine import Run
from raptor_performance.failures import blocked_cores
from raptor_performance.kernels import constants as k
from raptor_performance.program import Program
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.isa.opcodes import OPCODES

_TIMES = {
    "product_ns": k.TIME_PRODUCT,
    "vector_ns": k.TIME_VECTOR,
    "local_move_ns": k.TIME_MOVE,
    "host_ns": k.TIME_HOST,
    "peer_transfer_ns": k.TIME_PEER,
    "peer_wait_ns": k.TIME_PEER_WAIT,
    "token_wait_ns": k.TIME_TOKEN,
    "sync_ns": k.TIME_SYNC,
}


def run_metrics(configuration: ChipConfiguration, program: Program, run: Run) -> dict[str, Any]:
    """The figures of the reference simulator, and where time and energy went.

    In latency mode ``latency_ms`` is the time of the last core; in throughput mode rounds are counted as the reference
    does: the least of any core that has instructions. ``cores`` holds one entry for every core with instructions:
    time of each unit and reason to wait, and what is left over, ``dispatch_ns`` (front end) and ``idle_ns`` (nothing
    left to do). With several instructions in flight these overlap and there is no ``dispatch_ns``.
    """
    time_ns = (run.end if run.looping else int(run.core[:, k.FINISH].max(initial=0))) / 1000
    energy = run_energy(configuration, run, program.programs, sum(program.listed), time_ns)
    metrics: dict[str, Any] = {"mode": "throughput" if run.looping else "latency"}
    power = energy.total / time_ns if time_ns else 0.0
    if run.looping:
        metrics |= _throughput(run, program, energy, time_ns)
    else:
        metrics |= {"latency_ms": time_ns / 1e6, "energy_pj": energy.total}
    metrics |= {
        "average_power_mw": power,
        "simulated_ms": time_ns / 1e6,
        "instructions": program.instruction_count,
        "instruction_histogram": _histogram(program),
        "energy": {
            "total_pj": energy.total,
            "static_pj": dict(energy.static),
            "dynamic_pj": dict(energy.dynamic),
        },
        "cores": [
            _core(core, run, time_ns, configuration) for core, records in enumerate(program.programs) if records.size
        ],
    }
    return metrics


def _throughput(run: Run, program: Program, energy: Energy, time_ns: float) -> dict[str, Any]:
    rounds = [int(row[k.ROUNDS]) for row, records in zip(run.core, program.programs, strict=True) if records.size]
    count = min(rounds, default=0)
    return {
        "output_count": count,
        "throughput_per_s": count / (time_ns / 1e9),
        "average_latency_ms": time_ns / 1e6 / count if count else 0.0,
        "energy_pj_per_iteration": energy.total / count if count else 0.0,
        "energy_pj": energy.total,
        "blocked_cores": blocked_cores(run),
    }


def _histogram(program: Program) -> dict[str, int]:
    """Instructions by name, the most frequent first."""
    counts = np.zeros(256, dtype=np.int64)
    for records in program.programs:
        counts += np.bincount(records["op"], minlength=256)
    named = [(int(counts[info.opcode]), info.mnemonic) for info in OPCODES if counts[info.opcode]]
    return {name: count for count, name in sorted(named, key=lambda item: (-item[0], item[1]))}


def _core(core: int, run: Run, time_ns: float, configuration: ChipConfiguration) -> Mapping[str, Any]:
    row = run.core[core]
    times = {name: int(row[column]) / 1000 for name, column in _TIMES.items()}
    result: dict[str, Any] = {"core": core, **times, "products": int(row[k.PRODUCTS])}
    busy_ns = time_ns
    if run.looping:
        result["rounds"] = int(row[k.ROUNDS])
    else:
        busy_ns = int(row[k.FINISH]) / 1000
        result["finish_ns"] = busy_ns
        result["idle_ns"] = time_ns - busy_ns
    if configuration.chip_config.core_config.rob_size == 1:
        result["dispatch_ns"] = max(busy_ns - sum(times.values()), 0.0)
    return result
