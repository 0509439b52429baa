"""What people see: tables and JSON on standard output, messages and progress on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs


@attrs.define
class Console:
    """The two streams of one command. rich is imported only to write a table on a terminal."""

    as_json: bool = False
    _progress_shown: bool = attrs.field(default=False, init=False)

    def result(self, text: str) -> None:
        """A line of the result."""
        print(text)

    def json(self, value: Any) -> None:
        """The whole result as JSON."""
        print(json.dumps(_plain(value), indent=2, allow_nan=False))

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table: plain aligned columns, or a drawn one on a terminal."""
        texts = [[_cell(value) for value in row] for row in rows]
        if _is_terminal(sys.stdout):
            _rich_table(headers, texts)
        else:
            print(plain_table(headers, texts))

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names and values, one pair a line."""
        width = max((len(name) for name in facts), default=0)
        for name, value in facts.items():
            print(f"{name:<{width}}  {_cell(value)}")

    def message(self, text: str) -> None:
        """Something for people to know, not part of the result."""
        self.end_progress()
        print(text, file=sys.stderr)

    def progress(self, step: str) -> None:
        """What is being done now: one line of a terminal, overwritten; nothing elsewhere."""
        if _is_terminal(sys.stderr):
            width = max(_columns(sys.stderr) - 4, 10)
            sys.stderr.write(f"\r\x1b[K{step[:width]} ...")
            sys.stderr.flush()
            self._progress_shown = True

    def end_progress(self) -> None:
        """Take the progress line away."""
        if self._progress_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._progress_shown = False


def plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned with spaces, headers in capitals."""
    lines = [[header.upper() for header in headers], *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headers))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def use_color(stream: Any) -> bool:
    """Whether to write colours: on a terminal, unless NO_COLOR is set or the terminal is dumb."""
    return _is_terminal(stream) and not os.environ.get("NO_COLOR")


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console as RichConsole
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for header in headers:
        table.add_column(header)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    RichConsole().print(table)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):
        return False


def _columns(stream: Any) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 80


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return " x ".join(map(_cell, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(entry)}" for key, entry in value.items())
    return "" if value is None else str(value)


def _plain(value: Any) -> Any:
    """JSON values; numbers that JSON does not know become texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _plain(value.item()) if hasattr(value, "item") else str(value)
