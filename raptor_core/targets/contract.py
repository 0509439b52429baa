"""Targets and hardware profiles: what makes a program out of a network for one family of machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import attrs

from raptor_core.ir.module import Module
from raptor_core.options import Option
from raptor_core.passes.base import Pass
from raptor_core.targets.machine import Machine


@attrs.frozen
class HardwareProfile:
    """A chip as data, registered in the entry-point group ``raptor.hardware_profiles``.

    ``target`` names the target that understands it; ``configuration`` is the path of its chip configuration (JSON),
    whose own relative paths (the mesh file) start from its folder.
    """

    name: str
    target: str
    summary: str
    configuration: Path
    api_version: int = 1


@attrs.frozen
class TargetConfiguration:
    """A target made ready: the machine the passes ask, and the plain JSON facts for the manifest.

    ``data`` is the target's own configured state, opaque to the core.
    """

    machine: Machine
    facts: Mapping[str, Any]
    data: Any = None


@runtime_checkable
class Target(Protocol):
    """A target plugin, registered in the entry-point group ``raptor.targets`` as an object (not a class)."""

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]

    def configure(
        self, options: Mapping[str, Any], profile: HardwareProfile | None, profile_file: Path | None
    ) -> TargetConfiguration:
        """The machine for resolved ``options`` (None: not given) and at most one of the two profile forms.

        Raises UsageError for missing, bad or conflicting values, RaptorError for a bad profile file.
        """
        ...

    def pipeline(self, configuration: TargetConfiguration) -> Sequence[Pass]:
        """All passes from the frontend's graph to the module that :meth:`emit` writes."""
        ...

    def emit(
        self,
        module: Module,
        configuration: TargetConfiguration,
        path: Path,
        *,
        manifest: Mapping[str, Any],
        reports: Mapping[str, str],
        options: Mapping[str, Any],
        overwrite: bool,
    ) -> Mapping[str, Any]:
        """Write the program folder at ``path``, whole or not at all, and return figures about it.

        ``reports`` are texts by file name, to stand in the folder's ``reports``.
        """
        ...
