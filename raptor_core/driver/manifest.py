"""What a program folder says of its making. Equal inputs, options and versions give equal fields."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import raptor_core
from raptor_core.diagnostics import RaptorError
from raptor_core.driver.choices import TargetChoice
from raptor_core.driver.compile_options import CompileOptions
from raptor_core.ir.module import Module
from raptor_core.plugins.contracts import API_VERSION
from raptor_core.plugins.kinds import kind_of
from raptor_core.plugins.manager import PluginManager


def manifest_fields(
    module: Module,
    choice: TargetChoice,
    *,
    profile_file: Path | None,
    machine: Mapping[str, Any],
    options: CompileOptions,
    passes: tuple[str, ...],
    plugins: PluginManager,
    search: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The fields, as plain JSON values.

    ``search`` tells of the search for options, if there was one; the values found stand among the options.

    ``plugins`` lists all that took part, by kind and name: also strategies that were weighed and not chosen, since the
    choice depends on them.
    """
    return {
        "raptor_version": str(raptor_core.__version__),
        "plugin_api_version": API_VERSION,
        "target": choice.target.name,
        "profile": choice.profile.name if choice.profile is not None else None,
        "profile_file": _file_facts(profile_file) if profile_file is not None else None,
        "machine": dict(machine),
        "options": dict(options.recorded),
        "search": dict(search) if search is not None else None,
        "passes": list(passes),
        "plugins": [
            {
                "kind": kind.name,
                "name": entry.name,
                "distribution": entry.distribution,
                "version": entry.version,
            }
            for entry in plugins.used()
            if (kind := kind_of(entry.group)) is not None
        ],
        "model": {
            "network": module.name,
            "file": module.properties.get("onnx.file"),
            "sha256": module.properties.get("onnx.sha256"),
            "opset": module.properties.get("onnx.opset"),
        },
    }


def _file_facts(path: Path) -> dict[str, str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RaptorError(
            "unreadable-profile",
            "the profile file cannot be read",
            where=str(path),
            reason=error.strerror or str(error),
        ) from error
    return {"name": path.name, "sha256": hashlib.sha256(content).hexdigest()}
