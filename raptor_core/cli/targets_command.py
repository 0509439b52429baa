"""``raptor targets``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raptor_core.cli.arguments import CommandParser, add_common
from raptor_core.cli.console import Console
from raptor_core.cli.subcommands import split_action
from raptor_core.diagnostics import ExitCode, PluginError
from raptor_core.plugins.manager import PluginManager

PROG = "raptor targets"
SUMMARY = "Show what can be compiled for."
ACTIONS = {"list": "list targets and hardware profiles"}
_GROUPS = {"raptor.hardware_profiles": "profile", "raptor.targets": "target"}


def run(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    """See raptor_core.cli.commands.CommandModule."""
    action, rest = split_action(PROG, SUMMARY, ACTIONS, words, console)
    if action is None:
        return int(ExitCode.OK)
    parser = CommandParser(f"{PROG} list", "List targets and hardware profiles: the names for --target.")
    add_common(parser)
    parser.parse(rest)
    rows = [_row(plugins, group, name) for group in _GROUPS for name in plugins.names(group)]
    if console.as_json:
        console.json(rows)
    else:
        columns = ("name", "kind", "target", "summary", "from")
        console.table(columns, [[row[column] for column in columns] for row in rows])
    return int(ExitCode.OK)


def _row(plugins: PluginManager, group: str, name: str) -> dict[str, Any]:
    """One line. A plugin that cannot be used stands there with the reason."""
    kind = _GROUPS[group]
    try:
        plugin = plugins.get(group, name)
    except PluginError as error:
        reason = f"cannot be used: {error.reason or error.message}"
        return {"name": name, "kind": kind, "target": "", "summary": reason, "from": ""}
    return {
        "name": name,
        "kind": kind,
        "target": plugin.target if kind == "profile" else name,
        "summary": plugin.summary,
        "from": plugins.entry(group, name).origin,
    }
