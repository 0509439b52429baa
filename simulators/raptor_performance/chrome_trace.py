"""A run as a Chrome trace (also read by Perfetto): a process per core, a thread per unit, messages as flows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from raptor_core.diagnostics import UsageError
from raptor_performance.flows import message_flows
from raptor_performance.program import Program
from raptor_performance.traced import UNITS, Numbers, Traced

_RECEIVE = UNITS.index("receive")
_STEP_US = 0.001
"""The least time that viewers tell apart."""


def parse_window(text: str) -> tuple[float, float]:
    """``BEGIN:END`` in microseconds, either end may be missing, as ns. Raises UsageError."""
    begin, colon, end = text.partition(":")
    try:
        window = float(begin or 0) * 1000, float(end or "inf") * 1000
    except ValueError:
        window = (1.0, 0.0)
    if not colon or not 0 <= window[0] < window[1]:
        raise UsageError(
            "bad-option-value",
            f"bad value {text!r} for --trace-window",
            reason="it must be BEGIN:END in microseconds, as in 0:250, the end after the beginning",
        )
    return window


def write_trace(path: Path, traced: Traced, program: Program, window: tuple[float, float], limit: int) -> bool:
    """Write the instructions inside ``window`` (ns), at most ``limit`` of them, earliest first.

    Gives whether the limit cut some off. The file appears whole or not at all.
    """
    inside = np.flatnonzero((traced.end > window[0]) & (traced.start < window[1]))
    inside = inside[np.argsort(traced.start[inside], kind="stable")]
    chosen = np.sort(inside[:limit])
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("w") as file:
            file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
            for number, event in enumerate(_events(traced, program, chosen)):
                file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":")))
            file.write("\n]}\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return bool(inside.size > limit)


def _events(traced: Traced, program: Program, chosen: Numbers) -> Iterator[dict[str, Any]]:
    cores, units = traced.core[chosen], traced.unit[chosen]
    for core in np.unique(cores).tolist():
        yield {"ph": "M", "name": "process_name", "pid": core, "args": {"name": f"core {core}"}}
        yield {"ph": "M", "name": "process_sort_index", "pid": core, "args": {"sort_index": core}}
        for unit in np.unique(units[cores == core]).tolist():
            yield {"ph": "M", "name": "thread_name", "pid": core, "tid": unit, "args": {"name": UNITS[unit]}}
    flows = _whole(message_flows(traced, program), chosen)
    columns = (traced.core, traced.pc, traced.unit, traced.source, traced.start / 1000, traced.duration / 1000)
    for index, *row in zip(chosen.tolist(), *(column[chosen].tolist() for column in columns), strict=True):
        core, pc, unit, source, begin, duration = row
        name = traced.layers[source] if source >= 0 else UNITS[unit]
        at = {"pid": core, "tid": unit, "ts": round(begin, 6)}
        yield {"ph": "X", "name": name, "cat": UNITS[unit], **at, "dur": round(duration, 6), "args": {"pc": pc}}
        flow = int(flows[index])
        if flow >= 0:
            arrow = {"id": flow, "name": "message", "cat": "message", **at}
            if unit == _RECEIVE:
                # Inside its slice, just before the end: at the end, or without "bp", it would point at the next slice.
                inside = round(begin + duration - min(_STEP_US, duration / 2), 6)
                yield {**arrow, "ph": "f", "bp": "e", "ts": inside}
            else:
                yield {**arrow, "ph": "s"}


def _whole(flows: Numbers, chosen: Numbers) -> Numbers:
    """The flows with those taken away of which ``chosen`` holds only one end."""
    numbers, counts = np.unique(flows[chosen], return_counts=True)
    return np.where(np.isin(flows, numbers[counts == 2]), flows, -1)
