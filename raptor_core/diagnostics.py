"""Errors that a person can act on.

Every refusal in Raptor is one :class:`RaptorError`: what happened, where, why, and what to do about it.
The command line prints :meth:`RaptorError.render` and exits with the error's exit code; nothing else.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable


class ExitCode(enum.IntEnum):
    """Exit codes of the ``raptor`` command."""

    OK = 0
    INPUT = 1
    """The model, profile or artifact given by the user is at fault or does not fit."""
    USAGE = 2
    """The command or an option is wrong."""
    INTERNAL = 3
    """A fault in Raptor or in a plugin."""


class RaptorError(Exception):
    """One refusal, addressed to the user.

    ``code`` is a stable, searchable name in kebab case. ``message`` says what happened, in one line. ``where`` names
    the node, operator, tensor, option or file; ``reason`` says why it is refused; ``hint`` says what to do.
    ``details`` are further lines, shown as a list (for example every unsupported node).
    """

    exit_code: ExitCode = ExitCode.INPUT

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        reason: str | None = None,
        hint: str | None = None,
        details: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.reason = reason
        self.hint = hint
        self.details = tuple(details)

    def render(self) -> str:
        """The full text shown to a person, without a trailing newline."""
        lines = [f"error[{self.code}]: {self.message}"]
        for label, text in (("where", self.where), ("reason", self.reason)):
            if text:
                lines.append(f"  {label:<8} {text}")
        lines.extend(f"  - {detail}" for detail in self.details)
        if self.hint:
            lines.append(f"  {'help':<8} {self.hint}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


class UsageError(RaptorError):
    """A wrong command, option or option value."""

    exit_code = ExitCode.USAGE


class InternalError(RaptorError):
    """An invariant of Raptor itself does not hold: a bug in Raptor."""

    exit_code = ExitCode.INTERNAL


class PluginError(RaptorError):
    """A plugin could not be loaded or broke its contract."""

    exit_code = ExitCode.INTERNAL


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None when none is near."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def unknown_name(kind: str, name: str, known: Iterable[str], *, code: str | None = None) -> UsageError:
    """The error for a name that nobody registered: with the nearest name and all known ones."""
    names = sorted(known)
    near = nearest(name, names)
    hint = f"did you mean '{near}'? " if near else ""
    hint += f"known: {', '.join(names)}" if names else f"no {kind} is installed"
    return UsageError(code or f"unknown-{kind.replace(' ', '-')}", f"unknown {kind} '{name}'", hint=hint)
