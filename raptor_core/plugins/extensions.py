"""The contracts of plugins that add to Raptor itself: extra passes, extra commands, and hooks.

As everywhere, an entry point names an object (for hooks, a module or an object), not a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from raptor_core.passes.base import Pass

if TYPE_CHECKING:
    import argparse


@runtime_checkable
class ExtraPass(Pass, Protocol):
    """A pass that runs when it is asked for (``--pass NAME``). Group ``raptor.passes``.

    ``after`` is the name of the pass that it follows, or ``graph`` to be the first.
    """

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]
    after: ClassVar[str]


@runtime_checkable
class Command(Protocol):
    """A command of ``raptor``. Group ``raptor.commands``; the entry point's name is the command.

    It is imported when the command is given. ``raptor --help`` shows the summary only when the plugin's module
    states it as a literal string, since the module is not imported for that.
    """

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments to its parser (``--json``, ``-v`` and the like are there already)."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do the work and return the exit code (raptor_core.diagnostics.ExitCode).

        Results go to standard output, everything else to standard error; refusals are raised as RaptorError.
        """
        ...


@runtime_checkable
class Hooks(Protocol):
    """Hook implementations (raptor_core.plugins.hookspecs). Group ``raptor.hooks``."""

    api_version: ClassVar[int]
