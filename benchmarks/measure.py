"""Runs one command as a whole process and reads the operating system's account of it."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence

import attrs


@attrs.frozen
class Run:
    """One finished process: wall and processor seconds, peak resident memory in MiB, and what it printed."""

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    output: str


def run(command: Sequence[str]) -> Run:
    """Run ``command`` to its end. Raises SystemExit with its messages when it fails."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        begin = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        messages.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}\n{messages.read().decode()}")
        text = output.read().decode()
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def median(runs: Sequence[Run], figure: str) -> float:
    """The median of one figure."""
    return statistics.median(getattr(one, figure) for one in runs)
