"""Modules in files: NAME.rir with the text, and NAME.rir.npz with the arrays too large for it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError, RaptorError
from raptor_core.ir.kinds import Dialects
from raptor_core.ir.module import Module
from raptor_core.ir.parser import parse_module
from raptor_core.ir.printer import print_module
from raptor_core.ir.verifier import verify_module

Array = npt.NDArray[Any]

_EPOCH = (1980, 1, 1, 0, 0, 0)


def side_file(path: Path) -> Path:
    """The file of large arrays beside a text file."""
    return path.with_name(path.name + ".npz")


def write_module(module: Module, path: Path) -> None:
    """Write ``module`` to ``path`` and, when it has large arrays, to the side file beside it.

    Each file appears whole or not at all; equal modules give equal bytes. Raises RaptorError when a file cannot be
    written.
    """
    text, arrays = print_module(module)
    beside = side_file(path)
    try:
        if arrays:
            _replace(beside, lambda file: _write_arrays(file, arrays))
        _replace(path, lambda file: file.write(text.encode()))
        if not arrays:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise RaptorError(
            "unwritable-ir", "cannot write the module", where=str(path), reason=error.strerror or str(error)
        ) from error


def read_module(path: Path, dialects: Dialects, *, verify: bool = True) -> Module:
    """The module written at ``path``; see :func:`raptor_core.ir.parser.parse_module`.

    Raises RaptorError when the files cannot be read, and, with ``verify``, when the module is not valid.
    """
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    beside = side_file(path)
    arrays = _read_arrays(beside) if beside.exists() else {}
    module = parse_module(text, arrays, dialects, file=str(path))
    if verify:
        try:
            verify_module(module)
        except InternalError as error:
            reason = f"{error.message}: {error.reason}"
            raise RaptorError("invalid-ir", "the module is not valid", where=str(path), reason=reason) from error
    return module


def _replace(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            write(file)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_arrays(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for key in sorted(arrays):
            entry = zipfile.ZipInfo(f"{key}.npy", _EPOCH)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, arrays[key], allow_pickle=False)


def _read_arrays(path: Path) -> dict[str, Array]:
    """All arrays of a side file. Memory is bounded by the file's size: entries are not compressed."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not stored or sum(entry.file_size for entry in entries) > path.stat().st_size:
                raise ValueError("its entries are compressed or larger than the file")
            return {entry.filename.removesuffix(".npy"): _read_array(archive, entry) for entry in entries}
    except Exception as error:  # the file is not trusted, and zipfile and numpy raise many kinds for broken ones
        raise _unreadable(path, error) from error


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    with archive.open(entry) as member:
        version = np.lib.format.read_magic(member)
        if version != (1, 0):
            raise ValueError(f"entry {entry.filename} is in array format {version}")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
        data = member.read()
    if dtype.hasobject or fortran:
        raise ValueError(f"entry {entry.filename} does not hold plain numbers in row-major order")
    return np.frombuffer(data, dtype=dtype).reshape(shape).copy()


def _unreadable(path: Path, error: Exception) -> RaptorError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return RaptorError("unreadable-ir", "cannot read the module", where=str(path), reason=reason)
