"""The host memory's past: for every byte its tag and who wrote it last."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_functional.provenance.tags import Tags


@attrs.frozen
class Writer:
    """One store: its version, the cycle, and the instruction; core and pc are None for the store of a sample."""

    version: int
    cycle: int
    core: int | None
    pc: int | None
    iteration: int


@attrs.frozen(eq=False)
class HostHistory:
    """Tags and last writers of all host bytes. Version 0 is the initial content; every store takes the next one."""

    tags: Tags
    versions: npt.NDArray[np.int64]
    stores: list[Writer]

    @classmethod
    def of_size(cls, size: int) -> HostHistory:
        """A memory that nothing has been stored to."""
        return cls(Tags.none(size), np.zeros(size, dtype=np.int64), [])

    def store(self, begin: int, tags: Tags, writer: Writer) -> int:
        """Notes a store and gives its version."""
        version = len(self.stores) + 1
        self.stores.append(attrs.evolve(writer, version=version))
        self.tags.put(begin, tags)
        self.versions[begin : begin + tags.size] = version
        return version

    def writers(self, begin: int, size: int) -> list[dict[str, Any]]:
        """Who wrote these bytes last, as JSON objects by version; ``{"version": 0}`` for initial content."""
        found = np.unique(self.versions[begin : begin + size]).tolist()
        return [attrs.asdict(self.stores[version - 1]) if version else {"version": 0} for version in found]
