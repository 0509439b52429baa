"""Command lines: a parser whose refusals are UsageErrors, and flags made from declared options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import attrs

from raptor_core.diagnostics import UsageError, nearest
from raptor_core.options import Option

COMPILE, SIMULATE = "compile_option_", "simulate_option_"
"""Where the values typed for options of a compilation and of a simulator are kept in a Namespace."""


class WordsAction(argparse.Action):
    """Stores one text of several words, which may begin like an option: ``--options "--no-mirrors --seed 3"``.

    For ``add_argument(..., action=WordsAction)`` on a CommandParser, which passes the word after the flag on as it is.
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, flag: str | None = None
    ) -> None:
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError instead of leaving the program, and knows no abbreviations."""

    def __init__(self, prog: str, summary: str = "", *, add_help: bool = True) -> None:
        super().__init__(prog=prog, description=summary or None, allow_abbrev=False, add_help=False)
        self.find_owner: Callable[[str], tuple[str, str] | None] = lambda flag: None
        """For a flag that the command does not have now: whose it is, and how to have it; None when nobody knows."""
        if add_help:
            self.add_argument("-h", "--help", action="help", help="show this help and exit")

    def error(self, message: str) -> NoReturn:
        """Raises UsageError with argparse's reason."""
        reason = message[0].lower() + message[1:]
        missing = re.fullmatch(r"the following arguments are required: (.*)", reason)
        if missing:
            raise UsageError("missing-argument", f"{self.prog} needs {missing[1]}", hint=self._help_hint())
        raise UsageError("bad-arguments", f"wrong arguments for {self.prog}", reason=reason, hint=self._help_hint())

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The parsed words. Raises UsageError, for an unknown option with the nearest known one."""
        arguments, extra = self.parse_known_args(self._with_texts(words))
        if extra:
            raise self._unknown(extra[0])
        return arguments

    def _with_texts(self, words: Sequence[str]) -> list[str]:
        """The words, each flag of a WordsAction joined with the one after it."""
        joined: list[str] = []
        rest = iter(words)
        for word in rest:
            text = next(rest, None) if isinstance(self._option_string_actions.get(word), WordsAction) else None
            joined.append(word if text is None else f"{word}={text}")
        return joined

    def flags(self) -> list[str]:
        """All flags of the command."""
        return sorted(self._option_string_actions)

    def _unknown(self, word: str) -> UsageError:
        if not word.startswith("-") or word == "-":
            return UsageError("unexpected-argument", f"{self.prog} has no place for '{word}'", hint=self._help_hint())
        flag = word.partition("=")[0]
        owner = self.find_owner(flag)
        if owner is not None:
            message = f"{self.prog} has no option '{flag}' as it is called"
            return UsageError("unknown-option", message, reason=f"it belongs to {owner[0]}", hint=owner[1])
        near = nearest(flag, self.flags())
        hint = (f"did you mean '{near}'? " if near else "") + self._help_hint()
        return UsageError("unknown-option", f"{self.prog} has no option '{flag}'", hint=hint)

    def _help_hint(self) -> str:
        return f"'{self.prog} --help' shows all options"


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options of every command."""
    group = parser.add_argument_group("common options")
    group.add_argument("--json", action="store_true", help="results as JSON, for machines")
    group.add_argument(
        "--disable-plugin",
        action="append",
        default=[],
        metavar="PLUGIN",
        help="do without a plugin: NAME, KIND/NAME, DISTRIBUTION or DISTRIBUTION:NAME (repeatable)",
    )
    group.add_argument("-v", "--verbose", action="count", default=0, help="log to standard error (-vv: everything)")
    group.add_argument("--log-json", action="store_true", help="log lines as JSON objects (with -v)")
    group.add_argument("--debug", action="store_true", help="show tracebacks of errors")


@attrs.frozen
class OptionFlags:
    """Declared options as flags of a parser, values left as they were typed.

    An option that is on by default becomes ``--no-NAME``. ``place`` is COMPILE or SIMULATE. When the parser has a flag
    already, that of a simulator becomes ``--simulator-NAME``, and that of a compilation is the same option.
    """

    options: tuple[Option, ...]
    place: str

    def has(self, flag: str) -> bool:
        """Whether one of the options is this flag."""
        return any(flag == _flag(option) for option in self.options)

    def add_to(self, parser: argparse.ArgumentParser, title: str) -> None:
        """Add the flags under a title."""
        group = parser.add_argument_group(title)
        for option in self.options:
            flag = _flag(option)
            if flag in parser._option_string_actions and self.place == SIMULATE:
                flag = f"--simulator-{flag[2:]}"
            if flag in parser._option_string_actions:
                continue
            destination = self.place + option.name
            if option.type is bool:
                group.add_argument(
                    flag, dest=destination, action="store_const", const=not option.default, help=_help(option)
                )
            else:
                group.add_argument(flag, dest=destination, metavar=_metavar(option), help=_help(option))


def given_options(arguments: argparse.Namespace, place: str) -> dict[str, Any]:
    """The values typed for the declared options kept in a place, by name."""
    return {
        name.removeprefix(place): value
        for name, value in vars(arguments).items()
        if name.startswith(place) and value is not None
    }


def number(option: Option, given: str | None) -> Any:
    """The value of a command's own numeric option, or its default. Raises UsageError for a bad one."""
    return option.default if given is None else option.parse(given)


def peek(words: Sequence[str], flags: Iterable[str], *, repeatable: Iterable[str] = ()) -> argparse.Namespace:
    """What the words give for a few flags, everything else disregarded."""
    parser = CommandParser("raptor", add_help=False)
    for flag in flags:
        parser.add_argument(flag)
    for flag in repeatable:
        parser.add_argument(flag, action="append", default=[])
    return parser.parse_known_args(words)[0]


def _flag(option: Option) -> str:
    return "--no-" + option.flag[2:] if option.type is bool and option.default is True else option.flag


def _metavar(option: Option) -> str:
    return {int: "N", float: "X"}.get(option.type, "TEXT")


def _help(option: Option) -> str:
    text = f"without {option.help}" if _flag(option).startswith("--no-") else option.help
    if option.choices:
        text += f"; one of {', '.join(option.choices)}"
    if option.default is not None and option.type is not bool:
        text += f" (default: {option.default})"
    return text.replace("%", "%%")
