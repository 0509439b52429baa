"""Writing an artifact folder: whole or not at all, and the same bytes for the same content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from raptor_core.diagnostics import InternalError, RaptorError
from raptor_pim.artifacts.config_file import encode_config
from raptor_pim.artifacts.model import (
    CONFIG_FILE,
    MANIFEST_FILE,
    MEMORY_FILE,
    WEIGHTS_FOLDER,
    Artifact,
    binary_program_file,
    json_program_file,
    weights_file,
)
from raptor_pim.artifacts.replace import publish, temporary_sibling
from raptor_pim.isa.assembler import to_json
from raptor_pim.isa.records import encode_program

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_MANIFEST_OWN = ("files", "schema")
_SCHEMA = 1


def write_artifact(
    path: Path,
    artifact: Artifact,
    *,
    manifest_fields: Mapping[str, Any],
    emit_json: bool = False,
    overwrite: bool = False,
    extra_files: Mapping[str, bytes] | None = None,
) -> Path:
    """Writes ``artifact`` as the folder ``path`` and gives its absolute path.

    The folder appears complete or not at all: it is written beside ``path`` under a hidden name and then renamed;
    whatever stops the writing removes it. Leftovers of killed processes are removed as well. ``manifest_fields``
    (JSON values) become the manifest, beside the size and SHA-256 of every other file. ``emit_json`` adds the
    programs in JSON form; ``extra_files`` adds files by relative name. A folder that is there and not empty is
    replaced only with ``overwrite``, and only when it holds an artifact.

    Raises RaptorError when ``path`` cannot be written or is taken, InternalError for content that contradicts itself.
    """
    _check(artifact, manifest_fields)
    target = Path(path).absolute()
    try:
        _refuse_taken(target, overwrite)
        with temporary_sibling(target) as folder:
            entries = {}
            for name, data in _files(artifact, emit_json, extra_files or {}):
                destination = folder / name
                destination.parent.mkdir(parents=True, exist_ok=True)
                destination.write_bytes(data)
                entries[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            manifest = {**manifest_fields, "schema": _SCHEMA, "files": entries}
            (folder / MANIFEST_FILE).write_bytes(_json_bytes(manifest))
            publish(folder, target)
    except OSError as cause:
        raise RaptorError(
            "cannot-write-artifact",
            "the artifact folder cannot be written",
            where=str(target),
            reason=cause.strerror or str(cause),
            hint="choose another folder, or make room and try again",
        ) from cause
    return target


def _files(artifact: Artifact, emit_json: bool, extra_files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Every file but the manifest: relative name and content."""
    taken = {MANIFEST_FILE}

    def entry(name: str, data: bytes) -> tuple[str, bytes]:
        if name in taken:
            raise InternalError("artifact-file-twice", f"file '{name}' would be written twice")
        taken.add(name)
        return name, data

    for core, records in enumerate(artifact.programs):
        yield entry(binary_program_file(core), encode_program(records))
        if emit_json:
            yield entry(json_program_file(core), _program_json(to_json(records)))
    yield entry(MEMORY_FILE, artifact.memory.tobytes())
    for number, matrix in enumerate(artifact.matrices):
        yield entry(f"{WEIGHTS_FOLDER}/{weights_file(number)}", np.ascontiguousarray(matrix, dtype="<f4").tobytes())
    yield entry(CONFIG_FILE, _json_bytes(encode_config(artifact.config)))
    for name in sorted(extra_files):
        if not _PLAIN_NAME.fullmatch(name):
            raise InternalError("bad-extra-file", f"'{name}' is not a plain relative file name")
        yield entry(name, extra_files[name])


def _json_bytes(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _program_json(instructions: list[dict[str, Any]]) -> bytes:
    """One instruction a line."""
    encoder = json.JSONEncoder(separators=(",", ":"))
    lines = ",\n".join(encoder.encode(instruction) for instruction in instructions)
    return f"[\n{lines}\n]\n".encode() if instructions else b"[]\n"


def _check(artifact: Artifact, manifest_fields: Mapping[str, Any]) -> None:
    config = artifact.config
    rows = config.xbar_size[0] if config.xbar_size else None
    expectations = (
        (len(artifact.programs) == config.core_cnt, "one program per core"),
        (len(config.array_group_map) == config.core_cnt, "crossbar groups of every core"),
        (len(config.weights) in (0, config.core_cnt), "weights of every core, or of none"),
        (bool(config.weights) or not artifact.matrices, "weights that say where the matrices go"),
        (all(0 <= n < len(artifact.matrices) for core in config.weights for n in core), "known matrices"),
        (all(m.ndim == 2 and m.dtype == np.float32 for m in artifact.matrices), "float32 matrices"),
        (all(m.shape[0] == rows for m in artifact.matrices), "matrices of the height of a crossbar"),
        (artifact.memory.dtype == np.uint8 and artifact.memory.ndim == 1, "host memory as bytes"),
        (not set(manifest_fields) & set(_MANIFEST_OWN), f"no manifest field of {', '.join(_MANIFEST_OWN)}"),
    )
    for holds, expected in expectations:
        if not holds:
            raise InternalError(
                "inconsistent-artifact", "the artifact contradicts itself", reason=f"needed: {expected}"
            )


def _refuse_taken(target: Path, overwrite: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not target.is_dir():
            target.lstat()
            raise RaptorError(
                "output-not-a-folder",
                "the output path is taken by a file",
                where=str(target),
                hint="choose another name",
            )
        if not any(target.iterdir()):
            return
        if not (target / CONFIG_FILE).is_file():
            raise RaptorError(
                "output-not-an-artifact",
                "the output folder holds something else",
                where=str(target),
                reason=f"it is not empty and has no {CONFIG_FILE}, so it is not an artifact and is left alone",
                hint="choose another folder",
            )
        if not overwrite:
            raise RaptorError(
                "output-exists",
                "the output folder holds an artifact already",
                where=str(target),
                hint="ask for it to be overwritten, or choose another folder",
            )
