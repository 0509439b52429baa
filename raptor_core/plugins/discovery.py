"""Finding plugins: what installed distributions publish in the ``raptor.*`` entry-point groups.

Only metadata is read; no plugin is imported.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable

import attrs

BUILT_IN_DISTRIBUTION = "raptor-pim"
PREFIX = "raptor."


@attrs.frozen(order=True)
class Entry:
    """One entry point: ``value`` (``module:attribute``) published as ``name`` in ``group`` by a distribution."""

    group: str
    name: str
    distribution: str
    version: str
    value: str

    @property
    def built_in(self) -> bool:
        """Whether it came with Raptor."""
        return normalised(self.distribution) == BUILT_IN_DISTRIBUTION

    @property
    def origin(self) -> str:
        """For messages: ``acme-split 1.2``."""
        return f"{self.distribution} {self.version}"


@attrs.frozen
class BadDistribution:
    """A distribution whose list of entry points cannot be read."""

    distribution: str
    version: str
    reason: str


@attrs.frozen
class Discovery:
    """All entry points, sorted by group, name and distribution, and the distributions that could not be read."""

    entries: tuple[Entry, ...]
    bad: tuple[BadDistribution, ...] = ()


def discover_entries(distributions: Iterable[importlib.metadata.Distribution] | None = None) -> Discovery:
    """What the distributions (default: all on ``sys.path``) publish for Raptor.

    Of two installations of one distribution the first on the path counts, as it does for imports.
    """
    entries: list[Entry] = []
    bad: list[BadDistribution] = []
    seen: set[str] = set()
    for distribution in importlib.metadata.distributions() if distributions is None else distributions:
        text = _entry_points_text(distribution)
        if text is None or PREFIX not in text:
            continue
        name, version = _identity(distribution)
        if normalised(name) in seen:
            continue
        seen.add(normalised(name))
        try:
            points = list(distribution.entry_points)
        except Exception as error:
            bad.append(BadDistribution(name, version, f"its entry_points.txt cannot be read: {error}"))
            continue
        entries.extend(
            Entry(point.group, point.name, name, version, point.value)
            for point in points
            if point.group.startswith(PREFIX)
        )
    return Discovery(tuple(sorted(entries)), tuple(sorted(bad, key=lambda b: b.distribution)))


def normalised(name: str) -> str:
    """A distribution's name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _entry_points_text(distribution: importlib.metadata.Distribution) -> str | None:
    try:
        return distribution.read_text("entry_points.txt")
    except (OSError, UnicodeDecodeError):
        return None


def _identity(distribution: importlib.metadata.Distribution) -> tuple[str, str]:
    """Name and version, as far as the metadata gives them."""
    try:
        metadata = distribution.metadata
        name, version = metadata["Name"], metadata["Version"]
    except Exception:
        name, version = None, None
    if not name:
        folder = getattr(distribution, "_path", None)
        name = getattr(folder, "name", "unknown").split("-")[0]
    return str(name), str(version or "unknown")
