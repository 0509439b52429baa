"""The checked program of PIMCOMP-NN (``VerificationInfo.json``, plain or gzip), read and checked as to its form."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from raptor_core.diagnostics import RaptorError

_GZIP_MAGIC = b"\x1f\x8b"
_SIZE_LIMIT = 1 << 31
_CORE_LIMIT = 1 << 16


@attrs.frozen
class ArrayGroup:
    """An array group: rows ``height`` and columns ``columns`` (end excluded) of a layer's weight matrix."""

    node: str
    height: tuple[int, int]
    columns: tuple[int, int]


@attrs.frozen
class Node:
    """A layer of the network: its name is that of its output tensor in the model. Node 0 is the network's input.

    ``folded`` names what was merged into it and has no instructions: ``batch normalisation``, ``clipping``.
    """

    name: str
    operation: str
    shape: tuple[int, ...]
    providers: tuple[int, ...]
    folded: tuple[str, ...]


@attrs.frozen(eq=False)
class Stream:
    """A checked program.

    ``cores`` holds the instruction objects of every core, in order; ``flattened`` is the fully connected layer that a
    flattened map feeds, with that map's shape [1, channels, height, width], or None.
    """

    array_groups: tuple[ArrayGroup, ...]
    nodes: tuple[Node, ...]
    cores: tuple[tuple[Mapping[str, Any], ...], ...]
    flattened: tuple[str, tuple[int, ...]] | None
    where: str


def read_stream(path: Path) -> Stream:
    """The program in the file at ``path``. Raises RaptorError, naming the place, for anything else."""
    document = _Place(_document(path), str(path))
    groups = tuple(_array_group(entry) for entry in document.items("AG_info"))
    nodes = tuple(_node(entry) for entry in document.items("node_list"))
    lists = document.member("instruction").items("core_list", nulls=True)
    if len(lists) > _CORE_LIMIT:
        raise document.wrong("instruction.core_list", f"at most {_CORE_LIMIT} cores")
    cores = tuple(_instructions(entry) for entry in lists)
    return Stream(groups, nodes, cores, _flattened(document), str(path))


def _document(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == _GZIP_MAGIC
        with gzip.open(path) if compressed else path.open("rb") as plain:
            data = plain.read(_SIZE_LIMIT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise bad_stream(str(path), f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > _SIZE_LIMIT:
        raise bad_stream(str(path), f"it is larger than {_SIZE_LIMIT} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_stream(str(path), f"it is not JSON: {str(error)[:200]}") from error


def bad_stream(where: str, reason: str) -> RaptorError:
    """The refusal of a file, or of a place in it."""
    return RaptorError(
        "bad-pimcomp-program",
        "the PIMCOMP program cannot be used",
        where=where,
        reason=reason,
        hint="give the VerificationInfo.json that PIMCOMP-NN wrote in element mode",
    )


@attrs.frozen
class _Place:
    """A JSON value with the place it stands at."""

    value: Any
    where: str

    def wrong(self, name: str, expected: str) -> RaptorError:
        return bad_stream(f"{self.where}: {name}", f"it must be {expected}")

    def member(self, name: str) -> _Place:
        if not isinstance(self.value, dict) or name not in self.value:
            raise bad_stream(self.where, f"'{name}' is missing")
        return _Place(self.value[name], f"{self.where}: {name}")

    def items(self, name: str, *, nulls: bool = False) -> list[_Place]:
        place = self.member(name)
        if not isinstance(place.value, list):
            raise bad_stream(place.where, "it must be a list")
        return [
            _Place([] if nulls and value is None else value, f"{place.where}[{k}]")
            for k, value in enumerate(place.value)
        ]

    def whole(self, name: str) -> int:
        value = self.member(name).value
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
            raise self.wrong(name, "a whole number")
        return value

    def text(self, name: str) -> str:
        value = self.member(name).value
        if not isinstance(value, str):
            raise self.wrong(name, "a text")
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        value = self.member(name).value
        if not isinstance(value, list) or not all(isinstance(n, int) and 0 < n < 1 << 31 for n in value):
            raise self.wrong(name, "a list of positive whole numbers")
        return tuple(value)


def _array_group(entry: _Place) -> ArrayGroup:
    crossbars = entry.items("crossbar")
    if not crossbars:
        raise entry.wrong("crossbar", "a list of at least one crossbar")
    columns = (min(c.whole("width_start") for c in crossbars), max(c.whole("width_end") for c in crossbars) + 1)
    height = (entry.whole("height_start"), entry.whole("height_end") + 1)
    return ArrayGroup(entry.text("node_name"), height, columns)


def _node(entry: _Place) -> Node:
    providers = tuple(place.value for place in entry.items("provider_index"))
    if not all(isinstance(number, int) for number in providers):
        raise entry.wrong("provider_index", "a list of whole numbers")
    merged = (("with_bn", "batch normalisation"), ("with_clip", "clipping"))
    inner = entry.value.get("param")
    parameters = {**entry.value, **inner} if isinstance(inner, dict) else entry.value
    folded = tuple(words for key, words in merged if parameters.get(key))
    return Node(entry.text("name"), entry.text("operation"), entry.shape("output_dim"), providers, folded)


def _instructions(entry: _Place) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(entry.value, list):
        raise bad_stream(entry.where, "it must be a list of instructions, or null")
    for k, instruction in enumerate(entry.value):
        if not isinstance(instruction, dict):
            raise bad_stream(f"{entry.where}[{k}]", "it must be an object")
    return tuple(entry.value)


def _flattened(document: _Place) -> tuple[str, tuple[int, ...]] | None:
    info = document.member("reshape_info")
    if not info.value:
        return None
    shape = info.shape("input_dim")
    return (info.text("name"), shape) if len(shape) == 4 else None
