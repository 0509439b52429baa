"""The reference of ``docs/cli.md``, made from the parsers of the commands.

``python tests/support/cli_reference.py`` writes it into the page; a test says when that is due.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import attrs

from raptor_core.cli.arguments import CommandParser
from raptor_core.cli.commands import BUILT_INS, GROUP, BuiltIn
from raptor_core.cli.console import Console
from raptor_core.cli.main import _run_extra
from raptor_core.plugins.discovery import Discovery, discover_entries
from raptor_core.plugins.manager import PluginManager

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BEGIN, END = "<!-- reference: begin -->", "<!-- reference: end -->"
_COMMON = "common options"
_TARGET = ("--target", "pim-arch-a")


class _CapturedError(Exception):
    """Carries a parser out of a command."""

    def __init__(self, parser: CommandParser) -> None:
        super().__init__(parser.prog)
        self.parser = parser


def own_plugins() -> PluginManager:
    """The plugins of this distribution alone."""
    return PluginManager(Discovery(tuple(entry for entry in discover_entries().entries if entry.built_in)))


def parsers(plugins: PluginManager) -> Iterator[CommandParser]:
    """The parser of every command, those of ``compile`` and ``run`` with the options of target and plugins."""
    for command in BUILT_INS:
        actions = getattr(command.load(), "ACTIONS", None)
        for action in [[name] for name in actions] if actions else [[]]:
            yield _parser_of(command, action, plugins)
    for name in plugins.names(GROUP):
        yield _parser_of(name, [], plugins)


def _parser_of(command: BuiltIn | str, words: Sequence[str], plugins: PluginManager) -> CommandParser:
    def capture(parser: CommandParser, given: Sequence[str]) -> argparse.Namespace:
        if parser.prog == "raptor":  # a first look at some words, by peek
            return argparse.ArgumentParser.parse_known_args(parser, given)[0]
        raise _CapturedError(parser)

    try:
        with mock.patch.object(CommandParser, "parse", capture):
            if isinstance(command, str):
                _run_extra(command, words, plugins)
            else:
                words = [*words, *_TARGET] if command.name in ("compile", "run") else words
                command.load().run(words, plugins, Console())
    except _CapturedError as captured:
        return captured.parser
    raise AssertionError(f"{command} parses nothing")


@attrs.frozen
class Row:
    """One line of a table."""

    option: str
    meaning: str

    def __str__(self) -> str:
        return f"| `{self.option}` | {self.meaning.replace('|', chr(92) + '|')} |"


def reference() -> str:
    """The whole reference, as Markdown."""
    parts: list[str] = []
    known: dict[str, set[Row]] = {}
    common: list[Row] = []
    for parser in parsers(own_plugins()):
        parts += [f"### `{parser.prog}`", "", parser.description or "", ""]
        skipped = known.get("raptor compile", set()) if parser.prog == "raptor run" else set()
        if skipped:
            parts += ["Besides all options of `raptor compile` but `--stop-after` and `--print-pipeline`:", ""]
        known[parser.prog] = set()
        for group in parser._action_groups:
            rows = [_row(action, parser) for action in group._group_actions if action.dest != "help"]
            if group.title == _COMMON:
                common = rows
                continue
            known[parser.prog].update(rows)
            rows = [row for row in rows if row not in skipped]
            if rows:
                parts += _table(rows, _title(group.title or ""))
    parts += ["### Common options", "", "Every command takes these, and `-h`.", "", *_table(common, "option")]
    return "\n".join(parts).rstrip() + "\n"


def _table(rows: Sequence[Row], title: str) -> list[str]:
    return [f"| {title} | meaning |", "|---|---|", *map(str, rows), ""]


def _title(title: str) -> str:
    return {"positional arguments": "argument", "options": "option", "compilation options": "compilation option"}.get(
        title, title.replace("options of", "option of")
    )


def _row(action: argparse.Action, parser: argparse.ArgumentParser) -> Row:
    value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    words = ", ".join(action.option_strings) or str(value)
    if action.option_strings and action.nargs != 0:
        words += f" {value}"
    return Row(words, ((action.help or "") % {"default": action.default, "prog": parser.prog}).strip())


def with_reference(page: str) -> str:
    """The page with the reference between its markers."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{reference()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text()))
