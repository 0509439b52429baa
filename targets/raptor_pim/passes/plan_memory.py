"""Pass ``plan-memory``: addresses in core-local memory for all buffers, reused when lifetimes do not meet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.module import Module
from raptor_core.passes.base import PassContext, PassResult
from raptor_pim.dialect import Buffers
from raptor_pim.passes._intervals import place_by_lifetime

Indices = npt.NDArray[np.int64]

ELEMENT_BYTES = 4
LOCAL_MEMORY_LIMIT = 2**31
"""Local addresses are signed 32-bit numbers."""


@attrs.frozen
class PlanMemoryPass:
    """See the module's text. Report ``memory_report.txt``: peak bytes per core, cores with equal rows folded.

    ``memory.json`` holds the same as data: ``peak_bytes``, the greatest, and ``cores``, that of each core in use.
    """

    name: ClassVar[str] = "plan-memory"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises RaptorError when a core's buffers do not fit the address space, naming the largest ones."""
        (table,) = module.find(Buffers)
        addresses = np.zeros(table.cores.size, dtype=np.int64)
        sizes = table.elements * ELEMENT_BYTES
        by_core = np.argsort(table.cores, kind="stable")
        starts = np.flatnonzero(np.diff(table.cores[by_core], prepend=-1))
        for members in np.split(by_core, starts[1:]):
            addresses[members] = place_by_lifetime(table.first[members], table.last[members], sizes[members])
        planned = attrs.evolve(table, addresses=addresses)
        peaks = peak_bytes(planned)
        over = [core for core, peak in peaks.items() if peak > LOCAL_MEMORY_LIMIT]
        if over:
            raise _overflow(planned, over[0], peaks[over[0]])
        operations = tuple(planned if op is table else op for op in module.operations)
        notes = {"peak_bytes": max(peaks.values(), default=0), "buffer_bytes": int(sizes.sum())}
        reports = {"memory_report.txt": memory_report(planned), "memory.json": memory_figures(peaks)}
        return PassResult(attrs.evolve(module, stage=self.name, operations=operations), notes, reports)


PLAN_MEMORY = PlanMemoryPass()


def peak_bytes(table: Buffers) -> dict[int, int]:
    """The end of the highest buffer of every core that has one, in bytes."""
    ends = table.addresses + table.elements * ELEMENT_BYTES
    peaks: dict[int, int] = {}
    for core in np.unique(table.cores).tolist():
        peaks[core] = int(ends[table.cores == core].max())
    return peaks


def _overflow(table: Buffers, core: int, peak: int) -> RaptorError:
    members = np.flatnonzero(table.cores == core)
    largest = members[np.argsort(-table.elements[members], kind="stable")][:5]
    return RaptorError(
        "local-memory-exceeded",
        f"core {core} needs {peak} bytes of local memory",
        where=f"core {core}",
        reason=f"local addresses are signed 32-bit numbers: at most {LOCAL_MEMORY_LIMIT} bytes",
        details=[
            f"{table.owners[table.owner[b]]}: {table.elements[b] * ELEMENT_BYTES} bytes" for b in largest.tolist()
        ],
        hint="use a smaller batch or a target with more cores",
    )


def memory_figures(peaks: Mapping[int, int]) -> str:
    """The text of ``memory.json``."""
    cores = {str(core): peak for core, peak in sorted(peaks.items())}
    return json.dumps({"peak_bytes": max(peaks.values(), default=0), "cores": cores}, indent=2) + "\n"


def memory_report(table: Buffers) -> str:
    """The text of ``memory_report.txt``."""
    rows: dict[tuple[int, int, int], list[int]] = {}
    peaks = peak_bytes(table)
    sizes = table.elements * ELEMENT_BYTES
    for core, peak in peaks.items():
        members = table.cores == core
        rows.setdefault((peak, int(sizes[members].sum()), int(members.sum())), []).append(core)
    lines = ["Local memory per core (bytes)", f"{'peak':>12} {'sum of buffers':>16} {'buffers':>8}  cores"]
    for (peak, total, count), cores in sorted(rows.items(), reverse=True):
        lines.append(f"{peak:>12} {total:>16} {count:>8}  {_ranges(cores)}")
    lines.append(f"cores in use: {len(peaks)}; greatest peak: {max(peaks.values(), default=0)} bytes")
    lines.append("")
    lines.append("Largest buffers")
    largest = np.argsort(-sizes, kind="stable")[:10]
    lines.extend(f"{sizes[b]:>12}  core {table.cores[b]}: {table.owners[table.owner[b]]}" for b in largest.tolist())
    return "\n".join(lines) + "\n"


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers as text, consecutive ones joined: ``0-3, 7``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
