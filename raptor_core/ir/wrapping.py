"""Line breaking for the text form: bracketed groups stand on one line where they fit, else one item a line."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

LINE_WIDTH = 120
_INDENT = 2


@attrs.frozen
class Group:
    """Items between an opening and a closing text. ``width`` is the length of the whole on one line."""

    opening: str
    items: tuple[Piece, ...]
    closing: str
    width: int

    @classmethod
    def of(cls, opening: str, items: Sequence[Piece], closing: str) -> Group:
        """A group with its width."""
        inner = sum(len(item) if isinstance(item, str) else item.width for item in items)
        separators = 2 * max(0, len(items) - 1)
        return cls(opening, tuple(items), closing, len(opening) + inner + separators + len(closing))


Piece = str | Group
"""Text that stays on its line, or a group that may be broken."""


def prefixed(prefix: str, piece: Piece) -> Piece:
    """``piece`` with a text before it on the same line."""
    if isinstance(piece, str):
        return prefix + piece
    return Group(prefix + piece.opening, piece.items, piece.closing, len(prefix) + piece.width)


def on_one_line(piece: Piece) -> str:
    """``piece`` without line breaks."""
    if isinstance(piece, str):
        return piece
    return piece.opening + ", ".join(map(on_one_line, piece.items)) + piece.closing


@attrs.define
class _Writer:
    chunks: list[str] = attrs.field(factory=list)
    column: int = 0

    def put(self, text: str) -> None:
        self.chunks.append(text)
        self.column += len(text)

    def new_line(self, indent: int) -> None:
        self.chunks.append("\n" + " " * indent)
        self.column = indent

    def write(self, piece: Piece, indent: int) -> None:
        if isinstance(piece, str) or not piece.items or self.column + piece.width <= LINE_WIDTH:
            self.put(on_one_line(piece))
            return
        self.put(piece.opening)
        fill = all(isinstance(item, str) for item in piece.items)
        for k, item in enumerate(piece.items):
            if fill and k and self.column + len(item) + 2 <= LINE_WIDTH:  # type: ignore[arg-type]
                self.put(" ")
            else:
                self.new_line(indent + _INDENT)
            self.write(item, indent + _INDENT)
            if k + 1 < len(piece.items):
                self.put(",")
        self.new_line(indent)
        self.put(piece.closing)


def wrap(pieces: Sequence[Piece]) -> str:
    """The pieces one after another, broken where they do not fit LINE_WIDTH."""
    writer = _Writer()
    for piece in pieces:
        writer.write(piece, 0)
    return "".join(writer.chunks)
