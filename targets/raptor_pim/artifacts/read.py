"""Reading an artifact folder that nobody vouches for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_pim.artifacts.config_file import decode_config
from raptor_pim.artifacts.json_fields import Fields, bad_file, is_whole, parse_json, shown
from raptor_pim.artifacts.model import (
    CONFIG_FILE,
    ELEMENT_BYTES,
    MANIFEST_FILE,
    MEMORY_FILE,
    WEIGHTS_FOLDER,
    Artifact,
    ArtifactConfig,
    binary_program_file,
    json_program_file,
)
from raptor_pim.isa.assembler import assemble
from raptor_pim.isa.records import Records, decode_program
from raptor_pim.isa.validate import validate_programs

_LISTED_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_HASH = re.compile(r"[0-9a-f]{64}")
_LARGEST_FILE = 1 << 62


def read_artifact(path: Path, *, check_hashes: bool = True, programs_only: bool = False) -> Artifact:
    """The artifact in folder ``path``, checked.

    Written by hand or by another tool, a folder may lack the manifest, weights, tensor names, output sizes and the
    crossbar size and count; a core's program may be ``core_N.pim`` or ``core_N.json`` (the first wins). With
    ``check_hashes`` and a manifest, every file of the manifest must be there with the size and SHA-256 it states,
    and no other file is read. ``programs_only`` reads neither host memory nor weights (both may be missing) and
    takes fractions in JSON programs, for uses that look at no numbers.

    Raises RaptorError, one for the first fault found, naming the file.
    """
    folder = _Folder(Path(path))
    manifest = folder.read_manifest(check_hashes)
    config, names = decode_config(folder.read(CONFIG_FILE))
    programs = _read_programs(folder, config.core_cnt, programs_only)
    config = _complete(config)
    validate_programs(programs, group_counts=config.group_counts, where=str(folder.path))
    if programs_only:
        config = attrs.evolve(config, weights=())
        folder.finish()
        return Artifact(config, programs, manifest=manifest)
    matrices = tuple(_read_matrix(folder, name, config) for name in names)
    _check_columns(config, matrices, names)
    memory = np.frombuffer(folder.read(MEMORY_FILE), dtype=np.uint8)
    _check_regions(config, memory.size)
    folder.finish()
    return Artifact(config, programs, matrices, memory, manifest)


class _Folder:
    """The files of one artifact folder, by relative name; compares what it reads with the manifest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listed: Mapping[str, Any] | None = None
        self._unread: set[str] = set()
        if not path.is_dir():
            raise RaptorError(
                "artifact-not-found",
                "there is no artifact folder",
                where=str(path),
                reason="it is not a folder" if path.exists() else "it does not exist",
                hint="give the folder that a compilation wrote",
            )
        self._root = path.resolve()

    def read_manifest(self, check_hashes: bool) -> Mapping[str, Any] | None:
        """The manifest, None when there is none."""
        if not self.has(MANIFEST_FILE):
            return None
        fields = Fields.of(parse_json(self.read(MANIFEST_FILE), where=MANIFEST_FILE), MANIFEST_FILE, "the manifest")
        files = Fields.of(fields.values.get("files"), MANIFEST_FILE, "field 'files'").values
        for name, value in files.items():
            if not _LISTED_NAME.fullmatch(name):
                raise bad_file(MANIFEST_FILE, "the manifest lists a bad file name", f"the name is {shown(name)}")
            entry = Fields.of(value, MANIFEST_FILE, f"the entry of '{name}'")
            if not is_whole(entry.values.get("bytes"), 0, _LARGEST_FILE):
                raise entry.wrong("bytes", f"the size of '{name}'")
            if not _HASH.fullmatch(entry.text("sha256")):
                raise entry.wrong("sha256", "64 hexadecimal digits in lower case")
        if check_hashes:
            self._listed = files
            self._unread = set(files)
        return fields.values

    def has(self, name: str) -> bool:
        """Whether something of that name is there."""
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        """The content of a regular file of the folder, compared with the manifest."""
        listed = self._listed.get(name) if self._listed is not None else None
        if self._listed is not None and listed is None:
            raise bad_file(name, "the manifest does not list a file that is needed", f"'{name}' is not in it")
        data = self._bytes(name, None if listed is None else int(listed["bytes"]))
        if listed is not None:
            self._unread.discard(name)
            if hashlib.sha256(data).hexdigest() != listed["sha256"]:
                raise self._altered(name, "its SHA-256 is not the one in the manifest")
        return data

    def finish(self) -> None:
        """Compares the listed files that nothing asked for."""
        for name in sorted(self._unread):
            self.read(name)

    def _bytes(self, name: str, expected: int | None) -> bytes:
        file = self.path / name
        if not file.exists():
            raise bad_file(name, "a file of the artifact is missing", f"there is no '{name}' in {self.path}")
        resolved = file.resolve()
        if not resolved.is_relative_to(self._root):
            raise bad_file(name, "a file of the artifact leads out of its folder", "links out of it are not followed")
        if not resolved.is_file():
            raise bad_file(name, "a file of the artifact is not a file", "it is a folder or a device")
        try:
            size = resolved.stat().st_size
            if expected is not None and size != expected:
                raise self._altered(name, f"it has {size} bytes, and {expected} in the manifest")
            return resolved.read_bytes()
        except OSError as cause:
            raise bad_file(name, "a file of the artifact cannot be read", cause.strerror or str(cause)) from cause

    def _altered(self, name: str, reason: str) -> RaptorError:
        hint = f"compile again; to run a folder changed by hand, remove its {MANIFEST_FILE}"
        return bad_file(name, "a file of the artifact was changed", reason, hint=hint)


def _read_programs(folder: _Folder, core_count: int, truncate_fractions: bool) -> tuple[Records, ...]:
    programs = []
    for core in range(core_count):
        binary, text = binary_program_file(core), json_program_file(core)
        if folder.has(binary) or not folder.has(text):
            programs.append(decode_program(folder.read(binary), where=binary))
            continue
        content = parse_json(folder.read(text), where=text)
        if not isinstance(content, list):
            raise bad_file(text, "a program is a list of instructions", f"it is {shown(content)}")
        programs.append(assemble(content, where=text, truncate_fractions=truncate_fractions))
    return tuple(programs)


def _complete(config: ArtifactConfig) -> ArtifactConfig:
    """The configuration with an entry for every core, also those at the end that have no groups."""
    rest = ((),) * (config.core_cnt - len(config.array_group_map))
    weights = config.weights + rest if config.weights else ()
    return attrs.evolve(config, array_group_map=config.array_group_map + rest, weights=weights)


def _read_matrix(folder: _Folder, name: str, config: ArtifactConfig) -> npt.NDArray[np.float32]:
    where = f"{WEIGHTS_FOLDER}/{name}"
    assert config.xbar_size is not None, "a configuration with weights has a crossbar size"
    rows = config.xbar_size[0]
    data = folder.read(where)
    if not data or len(data) % (rows * ELEMENT_BYTES):
        raise bad_file(
            where,
            "a weights file has the wrong size",
            f"{len(data)} bytes are no whole number of columns of {rows} elements of {ELEMENT_BYTES} bytes",
        )
    return np.frombuffer(data, dtype="<f4").reshape(rows, -1)


def _check_columns(
    config: ArtifactConfig, matrices: tuple[npt.NDArray[np.float32], ...], names: tuple[str, ...]
) -> None:
    for core, numbers in enumerate(config.weights):
        for group, number in enumerate(numbers):
            assert config.xbar_size is not None, "a configuration with weights has a crossbar size"
            columns = matrices[number].shape[1]
            room = config.array_group_map[core][group] * config.xbar_size[1]
            if columns > room:
                raise bad_file(
                    f"{WEIGHTS_FOLDER}/{names[number]}",
                    "a matrix is wider than its crossbar group",
                    f"it has {columns} columns; group {group} of core {core} has room for {room}",
                )


def _check_regions(config: ArtifactConfig, memory_bytes: int) -> None:
    regions = [
        ("inputs", config.inputs_addresses, config.inputs_sizes),
        ("outputs", config.outputs_addresses, config.outputs_sizes or (0,) * len(config.outputs_addresses)),
    ]
    for kind, addresses, sizes in regions:
        for number, (address, size) in enumerate(zip(addresses, sizes, strict=True)):
            if address + size > memory_bytes:
                raise bad_file(
                    CONFIG_FILE,
                    f"entry {number} of the {kind} lies outside the host memory",
                    f"it takes bytes {address} to {address + size}; {MEMORY_FILE} has {memory_bytes}",
                )
