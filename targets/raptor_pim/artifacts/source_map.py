"""What instructions are for: ranges of each core's program, named by layer and kind of event.

In an artifact folder it is ``source_map.json``: ``schema`` 1, ``sources`` a list of [layer, kind], and ``cores`` a list
with, for every core, the flat list pc, source, pc, source, ... of ranges that each go on to the next one's pc.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError

Indices = npt.NDArray[np.int64]

SOURCE_MAP_FILE = "source_map.json"
_SCHEMA = 1


@attrs.frozen
class Source:
    """A layer (the name of a node or network input) and the kind of event: launch, transfer, load, store, clear."""

    layer: str
    kind: str


@attrs.frozen(eq=False)
class SourceMap:
    """``ranges`` holds for every core rows [n, 2] of first pc (ascending, from 0) and number in ``sources``."""

    sources: tuple[Source, ...]
    ranges: tuple[Indices, ...]

    def of(self, core: int, pcs: Indices) -> Indices:
        """The number of the source of each instruction of a core."""
        rows = self.ranges[core]
        return np.asarray(rows[np.searchsorted(rows[:, 0], pcs, side="right") - 1, 1], dtype=np.int64)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        content = {
            "schema": _SCHEMA,
            "sources": [[source.layer, source.kind] for source in self.sources],
            "cores": [rows.ravel().tolist() for rows in self.ranges],
        }
        return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def read_source_map(folder: Path, instructions: list[int]) -> SourceMap | None:
    """The map of an artifact folder whose cores have so many ``instructions``; None when it has no map.

    Raises RaptorError for a map that is damaged or of another program.
    """
    path = folder / SOURCE_MAP_FILE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        return _checked(content, instructions)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RaptorError(
            "bad-source-map",
            "the source map does not belong to this program",
            where=str(path),
            reason=f"{type(error).__name__}: {error}",
            hint="compile the network again, or remove the file: it only names layers",
        ) from error


def _checked(content: Any, instructions: list[int]) -> SourceMap:
    if type(content["schema"]) is not int or content["schema"] != _SCHEMA:
        raise ValueError(f"schema {content['schema']!r} is not {_SCHEMA}")
    if not all(isinstance(text, str) for source in content["sources"] for text in source):
        raise ValueError("a source is not two texts")
    sources = tuple(Source(layer, kind) for layer, kind in content["sources"])
    if len(content["cores"]) != len(instructions):
        raise ValueError(f"{len(content['cores'])} cores, the program has {len(instructions)}")
    ranges = []
    for core, (flat, count) in enumerate(zip(content["cores"], instructions, strict=True)):
        if not isinstance(flat, list) or not all(type(value) is int for value in flat):
            raise ValueError(f"the ranges of core {core} are not whole numbers")
        rows = np.array(flat, dtype=np.int64).reshape(-1, 2)
        pcs, numbers = rows[:, 0], rows[:, 1]
        whole = rows.size == 0 if count == 0 else rows.size > 0 and pcs[0] == 0 and pcs[-1] < count
        if not whole or (np.diff(pcs) <= 0).any() or (numbers < 0).any() or (numbers >= len(sources)).any():
            raise ValueError(f"the ranges of core {core} do not cover its {count} instructions")
        ranges.append(rows)
    return SourceMap(sources, tuple(ranges))
