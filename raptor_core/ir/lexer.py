"""Tokens of the text form, and errors that point at their place in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import attrs

from raptor_core.diagnostics import RaptorError

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TOKEN = re.compile(
    rf"""(?P<space>(?:\s+|//[^\n]*)+)
    |(?P<string>{_STRING})
    |(?P<value>%(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]|/(?!/))*|{_STRING}))
    |(?P<attribute>\#[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*)
    |(?P<key>@[A-Za-z0-9_]+)
    |(?P<number>-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf\b)|-nan\b)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*)
    |(?P<mark>[()\[\]{{}}<>,:=?])
    """,
    re.VERBOSE | re.ASCII,
)
PLAIN_VALUE = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]|/(?!/))*", re.ASCII)
"""Value names that stand in the text without quotes."""
PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*", re.ASCII)
"""Other names that stand in the text without quotes."""

_EXCERPT = 100


@attrs.frozen
class Token:
    """A piece of text. ``kind`` is string, value, attribute, key, number, word, mark or end."""

    kind: str
    text: str
    offset: int


@attrs.frozen
class Source:
    """A text and the name of the file it came from."""

    text: str
    file: str = "<text>"

    def tokens(self) -> Iterator[Token]:
        """All tokens without blanks and comments (``//`` to the end of the line), then one of kind ``end``."""
        offset = 0
        while offset < len(self.text):
            match = _TOKEN.match(self.text, offset)
            if match is None:
                what = "a string without its end" if self.text[offset] in '"%' else "a character that fits nowhere"
                raise self.error(offset, f"{what}: {self.text[offset]!r}")
            kind = match.lastgroup
            assert kind is not None
            if kind != "space":
                yield Token(kind, match.group(), offset)
            offset = match.end()
        yield Token("end", "", offset)

    def error(self, offset: int, message: str, *, reason: str | None = None, hint: str | None = None) -> RaptorError:
        """The error at a place of the text: file, line and column, the line itself and a caret under the place."""
        begin = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        line = self.text[begin : end if end >= 0 else len(self.text)]
        column = offset - begin
        first = max(0, column - _EXCERPT // 2)
        shown = "".join(c if c.isprintable() else " " for c in line[first : first + _EXCERPT])
        return RaptorError(
            "invalid-ir-text",
            message,
            where=f"{self.file}:{self.text.count(chr(10), 0, offset) + 1}:{column + 1}",
            reason=reason,
            details=(shown, " " * (column - first) + "^"),
            hint=hint,
        )


def quote(text: str) -> str:
    """``text`` as a string token: characters that do not print are escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def unquote(token: str) -> str:
    """The text of a string token. Raises ValueError for a bad escape."""
    text = json.loads(token)
    assert isinstance(text, str)
    return text
