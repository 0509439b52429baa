"""The configuration file of the working folder: ``raptor.toml``, or ``[tool.raptor]`` in ``pyproject.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from raptor_core.diagnostics import UsageError, nearest
from raptor_core.plugins.disabling import DisableRule
from raptor_core.plugins.manager import PluginManager

KEYS = ("disable-plugins",)
_LARGEST_FILE = 1 << 20


def read_configuration(folder: Path) -> tuple[DisableRule, ...]:
    """The plugins that the configuration file in ``folder`` disables; none when there is no file.

    ``raptor.toml`` goes before ``pyproject.toml``. Raises UsageError for a file that cannot be read or has unknown
    keys.
    """
    own = folder / "raptor.toml"
    if own.is_file():
        return _rules(_read(own), own)
    project = folder / "pyproject.toml"
    if project.is_file():
        tool = _read(project).get("tool", {})
        settings = tool.get("raptor") if isinstance(tool, dict) else None
        if settings is not None:
            return _rules(settings, project)
    return ()


def enabled_plugins(disabled: Iterable[str] = ()) -> PluginManager:
    """The installed plugins, without those that ``disabled`` and the working folder's configuration file name.

    That is what a command line works with, given the values of its ``--disable-plugin``. Raises UsageError for a rule
    that matches no plugin and for a file that cannot be used.
    """
    rules = [DisableRule(word) for word in disabled]
    return PluginManager.discover((*rules, *read_configuration(Path.cwd())))


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise _bad(path, f"it is larger than {_LARGEST_FILE} bytes")
        return tomllib.loads(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _bad(path, str(error)) from error


def _rules(settings: object, path: Path) -> tuple[DisableRule, ...]:
    if not isinstance(settings, Mapping):
        raise _bad(path, "[tool.raptor] is not a table")
    for key in settings:
        if key not in KEYS:
            near = nearest(key, KEYS)
            raise _bad(path, f"unknown key '{key}'" + (f"; did you mean '{near}'?" if near else ""))
    disabled = settings.get("disable-plugins", [])
    if not isinstance(disabled, list) or not all(isinstance(word, str) for word in disabled):
        raise _bad(path, "disable-plugins is not a list of texts")
    return tuple(DisableRule(word, f"disable-plugins in {path.name}") for word in disabled)


def _bad(path: Path, reason: str) -> UsageError:
    return UsageError(
        "bad-configuration",
        "the configuration file cannot be used",
        where=str(path),
        reason=reason,
        hint=f"known keys: {', '.join(KEYS)}",
    )
