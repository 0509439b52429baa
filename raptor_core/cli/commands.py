"""The commands: built-in ones by module, and those of plugins by name, none imported before it is given."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol

import attrs

from raptor_core.cli.console import Console
from raptor_core.plugins.manager import PluginManager

GROUP = "raptor.commands"


class CommandModule(Protocol):
    """A module of a built-in command."""

    def run(self, words: Sequence[str], plugins: PluginManager, console: Console) -> int:
        """Parse the words after the command's name, do the work, and give the exit code."""
        ...


@attrs.frozen
class BuiltIn:
    """A built-in command."""

    name: str
    summary: str
    module: str

    def load(self) -> CommandModule:
        """Its module."""
        return importlib.import_module(self.module)


BUILT_INS: tuple[BuiltIn, ...] = (
    BuiltIn("compile", "compile a model into a program folder", "raptor_core.cli.compile_command"),
    BuiltIn("simulate", "run a program folder in a simulator", "raptor_core.cli.simulate_command"),
    BuiltIn("run", "compile, simulate, and compare with onnxruntime", "raptor_core.cli.run_command"),
    BuiltIn("inspect", "look into a program folder", "raptor_core.cli.inspect_command"),
    BuiltIn("targets", "list targets and hardware profiles", "raptor_core.cli.targets_command"),
    BuiltIn("plugins", "list, describe and check plugins", "raptor_core.cli.plugins_command"),
)


def find_built_in(name: str) -> BuiltIn | None:
    """The built-in command of that name, or None."""
    return next((command for command in BUILT_INS if command.name == name), None)


def extra_summaries(plugins: PluginManager) -> dict[str, str]:
    """The commands of plugins with their summaries, as far as their sources say them; nothing is imported."""
    if not plugins.names(GROUP):
        return {}
    return {
        record.name: record.reason if record.status.is_fault else record.summary or f"from {record.distribution}"
        for record in plugins.describe()
        if record.group == GROUP and find_built_in(record.name) is None and plugins.has(GROUP, record.name)
    }
