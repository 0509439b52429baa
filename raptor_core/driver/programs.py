"""Program folders on disk: which target reads one, and what its inputs are."""

from __future__ import annotations

import json
from pathlib import Path

from raptor_core.diagnostics import PluginError, RaptorError, UsageError
from raptor_core.driver.choices import TARGETS
from raptor_core.plugins.manager import PluginManager
from raptor_core.targets.inspection import ProgramReader

_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 1 << 28


def program_reader(plugins: PluginManager, path: Path, target: str | None = None) -> ProgramReader:
    """The target that reads the program folder ``path``: the one named, the manifest's, or the only one there is.

    Raises RaptorError when there is no such folder or the target cannot read programs.
    """
    if not path.is_dir():
        raise RaptorError(
            "artifact-not-found",
            "there is no program folder",
            where=str(path),
            reason="it is not a folder" if path.exists() else "it does not exist",
            hint="give the folder that 'raptor compile' wrote",
        )
    name = target or _target_in_manifest(path)
    if name is None:
        names = plugins.names(TARGETS)
        if len(names) != 1:
            raise UsageError(
                "no-target-given",
                "the folder does not say which target its program is for",
                where=str(path),
                hint=f"give --target; known: {', '.join(names) or 'none is installed'}",
            )
        name = names[0]
    reader = plugins.get(TARGETS, name)
    if not isinstance(reader, ProgramReader):
        entry = plugins.entry(TARGETS, name)
        raise PluginError(
            "no-program-reader",
            f"the target '{name}' cannot read programs",
            where=f"{entry.value}, from {entry.origin}",
            reason="it has no methods signature, figures and disassemble (raptor_core.targets.inspection)",
        )
    return reader


def _target_in_manifest(path: Path) -> str | None:
    """The target that the folder's manifest names, None when it has none or says nothing."""
    file = path / _MANIFEST
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_MANIFEST:
            return None
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # the target says what is wrong with it
    target = content.get("target") if isinstance(content, dict) else None
    return target if isinstance(target, str) else None
