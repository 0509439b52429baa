"""What lists say about a plugin."""

from __future__ import annotations

import enum
from typing import Any

import attrs


class Status(enum.StrEnum):
    """How a plugin stands. ``UNCHECKED``: nothing is known against it, and it was not imported yet."""

    OK = "ok"
    UNCHECKED = "unchecked"
    DISABLED = "disabled"
    DUPLICATE = "duplicate"
    BROKEN = "broken"
    WRONG_VERSION = "wrong-version"

    @property
    def is_fault(self) -> bool:
        """Whether somebody has to do something about the plugin."""
        return self in (Status.DUPLICATE, Status.BROKEN, Status.WRONG_VERSION)


@attrs.frozen
class PluginRecord:
    """One line of a list: ``kind`` in the words for people, ``value`` the entry point's, ``reason`` for its status."""

    kind: str
    group: str
    name: str
    distribution: str
    version: str
    built_in: bool
    value: str
    status: Status
    summary: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**attrs.asdict(self), "status": str(self.status)}
