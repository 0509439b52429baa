"""Figures of two programs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np

from raptor_performance.run import Timed
from raptor_pim.artifacts.json_fields import Fields, parse_json
from raptor_pim.isa.opcodes import Opcode

MEMORY_FILE = "reports/memory.json"
_LARGEST = 1 << 60


@attrs.frozen
class ComparedFigure:
    """One figure of both programs; None where a program does not have it."""

    name: str
    first: float | None
    second: float | None

    @property
    def ratio(self) -> float | None:
        """The second over the first; None when that says nothing."""
        if self.first is None or self.second is None:
            return None
        if self.first == 0:
            return 1.0 if self.second == 0 else None
        return self.second / self.first


def compare(first: dict[str, float | None], second: dict[str, float | None]) -> tuple[ComparedFigure, ...]:
    """The figures of both in order: those of the first, then those that only the second has."""
    names = [*first, *(name for name in second if name not in first)]
    return tuple(ComparedFigure(name, first.get(name), second.get(name)) for name in names)


def program_figures(timed: Timed, folder: Path) -> dict[str, float | None]:
    """What a program takes and uses; bytes are those of the view it was timed in."""
    metrics = timed.metrics()
    programs = timed.program.programs
    counts = np.zeros(256, dtype=np.int64)
    sizes = np.zeros(256, dtype=np.int64)
    for records in programs:
        counts += np.bincount(records["op"], minlength=256)
        for op in (Opcode.SEND, Opcode.LD, Opcode.ST):
            sizes[op] += int(records["generic3"][records["op"] == op].sum(dtype=np.int64))
    cores = metrics["cores"]

    def mean(key: str) -> float:
        return sum(float(core.get(key, 0.0)) for core in cores) / max(len(cores), 1)

    return {
        **_results(metrics),
        "energy_dynamic_pj": sum(metrics["energy"]["dynamic_pj"].values()),
        "energy_static_pj": sum(metrics["energy"]["static_pj"].values()),
        "instructions": metrics["instructions"],
        "longest_program": max((int(records.size) for records in programs), default=0),
        "register_loads": int(counts[Opcode.SLDI]),
        "products": sum(core["products"] for core in cores),
        "local_moves": int(counts[Opcode.LMV] + counts[Opcode.LLDI]),
        "transfers": int(counts[Opcode.SEND]),
        "transfer_bytes": int(sizes[Opcode.SEND]),
        "host_loads": int(counts[Opcode.LD]),
        "host_load_bytes": int(sizes[Opcode.LD]),
        "host_stores": int(counts[Opcode.ST]),
        "host_store_bytes": int(sizes[Opcode.ST]),
        "cores_in_use": len(cores),
        "crossbars_in_use": sum(map(sum, timed.program.groups)),
        "peak_local_memory_bytes": _peak_memory(folder),
        "mean_core_product_ns": mean("product_ns"),
        "mean_core_vector_ns": mean("vector_ns"),
        "mean_core_transfer_ns": mean("peer_transfer_ns"),
        "mean_core_wait_ns": mean("peer_wait_ns") + mean("token_wait_ns"),
        "mean_core_idle_ns": mean("idle_ns"),
    }


def _results(metrics: dict[str, Any]) -> dict[str, float | None]:
    names = ("latency_ms", "throughput_per_s", "energy_pj", "energy_pj_per_iteration", "average_power_mw")
    return {name: metrics[name] for name in names if name in metrics}


def _peak_memory(folder: Path) -> float | None:
    """Bytes of local memory of the core that needs most, as the compiler noted it; None when the folder does not say.

    Raises RaptorError for a note that is malformed.
    """
    file = folder / MEMORY_FILE
    if not file.is_file():
        return None
    fields = Fields.of(parse_json(file.read_bytes(), where=MEMORY_FILE), MEMORY_FILE, "the memory report")
    return float(fields.whole("peak_bytes", 0, _LARGEST))
