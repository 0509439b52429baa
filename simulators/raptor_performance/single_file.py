"""Programs of all cores in one JSON file, plain or compressed with gzip, read core by core.

The file is an object: ``config`` with ``core_cnt`` and ``array_group_map``, and ``core0``, ``core1``, ... with lists
of instruction objects. A core may be absent.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from raptor_core.diagnostics import RaptorError
from raptor_pim.artifacts.config_file import decode_config
from raptor_pim.isa.assembler import assemble
from raptor_pim.isa.opcodes import Opcode
from raptor_pim.isa.records import RECORD, Records
from raptor_pim.isa.validate import validate_programs

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20
_CORE = re.compile(r"core(0|[1-9][0-9]{0,8})")
_SPACE = re.compile(r"[ \t\r\n]*")

Contents = tuple[tuple[Records, ...], tuple[tuple[int, ...], ...], tuple[bool, ...]]


def read_single_file(path: Path) -> Contents:
    """Programs, groups and presence of cores 0 to the last that the file lists.

    Raises RaptorError, naming the file, for a file that is missing or no program, or a program that breaks the rules
    of the instruction set.
    """
    programs: dict[int, Records] = {}
    config: Any = None
    for name, value in _members(path):
        match = _CORE.fullmatch(name)
        if name == "config":
            config = value
        elif match is None:
            raise _bad(path, f"$.{name}", "a program file holds 'config' and 'coreN' only")
        elif not isinstance(value, list):
            raise _bad(path, f"$.{name}", "a program is a list of instructions")
        elif int(match[1]) in programs:
            raise _bad(path, f"$.{name}", "the core stands twice in the file")
        else:
            programs[int(match[1])] = _records(value, f"{path}: $.{name}")
    if not isinstance(config, dict):
        raise _bad(path, "$.config", "it must be an object with core_cnt and array_group_map")
    chip, _ = decode_config(json.dumps(config).encode(), where=f"{path}: $.config")
    beyond = [core for core in programs if core >= chip.core_cnt]
    if beyond or not programs:
        reason = f"core_cnt is {chip.core_cnt}" if beyond else "it lists no core"
        raise _bad(path, f"$.core{beyond[0]}" if beyond else "$", reason)
    count = max(programs) + 1
    records = tuple(programs.get(core, np.zeros(0, dtype=RECORD)) for core in range(count))
    groups = tuple((*chip.array_group_map, *((),) * count)[:count])
    validate_programs(records, group_counts=tuple(map(len, groups)), where=str(path))
    return records, groups, tuple(core in programs for core in range(count))


def _records(instructions: list[Any], where: str) -> Records:
    """The records, with rs1 of sends kept: the model looks at it for address conflicts."""
    records = assemble(instructions, where=where, truncate_fractions=True)
    for i in np.flatnonzero(records["op"] == Opcode.SEND).tolist():
        source = instructions[i].get("rs1")
        if isinstance(source, int) and 0 <= source < 32:
            records["rs1"][i] = source
    return records


def _members(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of the file's object, one after another, so that no more than one is in memory."""
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            if not compressed:
                yield from _Reader(raw, path).members()
                return
            with gzip.open(raw) as plain:
                yield from _Reader(plain, path).members()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _bad(path, "", f"it cannot be read: {reason}") from error
    except RecursionError as error:
        raise _bad(path, "", "it is nested too deeply") from error


class _Reader:
    """A JSON object, decoded value by value from a stream."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._decoder = json.JSONDecoder()
        self._text = codecs.getincrementaldecoder("utf-8")()
        self._buffer = ""
        self._at = 0
        self._ended = False

    def members(self) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        if self._next() == "}":
            self._at += 1
        else:
            while True:
                name = self._value()
                if not isinstance(name, str):
                    raise self._wrong("a name was expected")
                self._expect(":")
                yield name, self._value()
                if self._next() != ",":
                    break
                self._at += 1
            self._expect("}")
        if self._next():
            raise self._wrong("something follows the object")

    def _more(self) -> bool:
        """Reads as much again as is there; False at the end of the file."""
        if self._ended:
            return False
        data = self._stream.read(max(_CHUNK, len(self._buffer) - self._at))
        self._ended = not data
        try:
            text = self._text.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            raise self._wrong("it is not UTF-8 text") from error
        self._buffer = self._buffer[self._at :] + text
        self._at = 0
        return True

    def _next(self) -> str:
        """The next character that is no space, not taken; empty at the end."""
        while True:
            space = _SPACE.match(self._buffer, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _expect(self, character: str) -> None:
        if self._next() != character:
            raise self._wrong(f"'{character}' was expected")
        self._at += 1

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self._wrong(error.msg) from error
                continue
            # What ends where the buffer ends may go on in the file.
            if end < len(self._buffer) or not self._more():
                self._at = end
                return value

    def _wrong(self, reason: str) -> RaptorError:
        return _bad(self._path, "", f"it is not JSON: {reason}")


def _bad(path: Path, place: str, reason: str) -> RaptorError:
    return RaptorError(
        "bad-program-file",
        "the program cannot be used",
        where=f"{path}: {place}" if place else str(path),
        reason=reason,
        hint="give a folder of programs, or one JSON file with 'config' and the cores' instructions",
    )
