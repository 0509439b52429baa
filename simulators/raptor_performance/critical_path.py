"""The chain of instructions that a run's latency consists of.

It is found backwards from the core that finishes last: an instruction comes after the one before it on its core, and a
send, receive or wait whose partner came later comes after what that partner did. Along it nothing waits for a core, so
shortening anything outside does not shorten the run.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_performance.flows import partners
from raptor_performance.run import Timed
from raptor_performance.traced import UNITS, Numbers, Traced

KINDS = ("crossbar", "vector", "local move", "host", "transfer", "token", "dispatch")
"""What time on the path goes to: units, messages between cores under way, and the front end with register loads."""

_KIND_OF_UNIT = np.array(
    [KINDS.index("transfer" if unit in ("send", "receive") else unit) for unit in UNITS], dtype=np.int64
)
_TRANSFER, _DISPATCH = KINDS.index("transfer"), KINDS.index("dispatch")


@attrs.frozen(eq=False)
class CriticalPath:
    """The instructions of the path in order of time, as rows of ``traced``.

    ``begin`` and ``end`` [n] in ns are the part of each that counts: a message counts from the moment when both sides
    are there. ``before`` [n] is the time of the front end before it, ``after`` that after the last one. All of it adds
    up to the run's latency. ``softmax`` is the instruction that every softmax took its time from.
    """

    traced: Traced
    rows: Numbers
    begin: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    before: npt.NDArray[np.float64]
    after: float
    softmax: str | None = None

    @property
    def kinds(self) -> dict[str, float]:
        """ns by kind."""
        kinds = self._by_kind(np.ones(self.rows.size, dtype=np.bool_))
        return {**kinds, "dispatch": kinds["dispatch"] + self.after}

    @property
    def latency(self) -> float:
        """ns of the whole run."""
        return sum(self.kinds.values())

    @property
    def hops(self) -> int:
        """How often the path goes from one core to another."""
        return int(np.count_nonzero(np.diff(self.traced.core[self.rows])))

    def layers(self) -> list[dict[str, Any]]:
        """One row per layer in order of its first instruction on the path; nothing without a source map.

        Times are in microseconds: when the path was in the layer, how long in all, and by kind.
        """
        source = self.traced.source[self.rows]
        found = []
        for number in dict.fromkeys(source.tolist()):
            own = source == number
            if number < 0:
                continue
            kinds = self._by_kind(own)
            found.append(
                {
                    "layer": self.traced.layers[number],
                    "from_us": round(float((self.begin - self.before)[own].min()) / 1000, 3),
                    "to_us": round(float(self.end[own].max()) / 1000, 3),
                    "path_us": round(sum(kinds.values()) / 1000, 3),
                    "cores": int(np.unique(self.traced.core[self.rows][own]).size),
                    "instructions": int(own.sum()),
                    "messages": int((self._kind[own] == _TRANSFER).sum()),
                    **{f"{kind.replace(' ', '_')}_us": round(value / 1000, 3) for kind, value in kinds.items()},
                }
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """Plain values, times in ms."""
        return {
            "latency_ms": self.latency / 1e6,
            "softmax_as": self.softmax,
            "instructions": int(self.rows.size),
            "messages": int((self._kind == _TRANSFER).sum()),
            "hops": self.hops,
            "cores": int(np.unique(self.traced.core[self.rows]).size),
            "kinds_ms": {kind: value / 1e6 for kind, value in self.kinds.items()},
            "layers": self.layers(),
        }

    @property
    def _kind(self) -> Numbers:
        return _KIND_OF_UNIT[self.traced.unit[self.rows]]

    def _by_kind(self, own: npt.NDArray[np.bool_]) -> dict[str, float]:
        spent = np.bincount(self._kind[own], weights=(self.end - self.begin)[own], minlength=len(KINDS))
        spent[_DISPATCH] += self.before[own].sum()
        return {kind: float(value) for kind, value in zip(KINDS, spent, strict=True)}


def critical_path(timed: Timed, traced: Traced) -> CriticalPath:
    """The path of a run in latency mode, of which all instructions were traced.

    Raises RaptorError on a chip whose cores have several instructions in flight: there an instruction may wait for any
    of those before it.
    """
    entries = timed.configuration.chip_config.core_config.rob_size
    if entries > 1:
        raise RaptorError(
            "no-critical-path",
            "the critical path is known only where a core does one instruction at a time",
            where=timed.program.where,
            reason=f"rob_size of the chip is {entries}",
            hint="time the program on the chip with rob_size 1 (--config)",
        )
    partner = partners(traced, timed.program)
    later = (partner >= 0) & (traced.start[partner] > traced.start)
    # Where the core's part of the path begins, for each row: at its first instruction, or its last that waited
    # for a partner.
    begins = np.diff(traced.core, prepend=-1) != 0
    starts = np.maximum.accumulate(np.where(begins | later, np.arange(traced.core.size), 0))
    pieces: list[Numbers] = []
    row = int(traced.end.argmax()) if traced.core.size else -1
    while row >= 0:
        start = int(starts[row])
        pieces.append(np.arange(start, row + 1))
        other = int(partner[start])
        row = other - 1 if later[start] and not begins[other] else -1
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *reversed(pieces)])
    begin = np.where(later[rows], traced.start[partner[rows]], traced.start[rows])
    end = traced.end[rows]
    ends = np.concatenate([[0.0], end])
    after = timed.metrics()["latency_ms"] * 1e6 - float(ends[-1])
    return CriticalPath(traced, rows, begin, end, begin - ends[:-1], after, timed.softmax)
