"""Arrays in files: inputs from ``.npz`` and ``.npy``, outputs to ``.npz`` (equal arrays give equal bytes)."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.driver.samples import samples_of
from raptor_core.simulation.contract import Sample
from raptor_core.targets.inspection import TensorSignature

Array = npt.NDArray[Any]
_NPY = b"\x93NUMPY"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def read_samples(files: Sequence[str], tensors: Sequence[TensorSignature]) -> list[Sample]:
    """The samples in the files, in order; each file holds one or a batch.

    Raises RaptorError for a file that cannot be read or does not fit the network's inputs, naming it.
    """
    samples: list[Sample] = []
    for name in files:
        content = _read(Path(name))
        try:
            samples.extend(samples_of(content, tensors))
        except RaptorError as error:
            error.where = f"{name}: {error.where}" if error.where else name
            raise
    return samples


def check_output(name: str | None, force: bool) -> None:
    """Raise RaptorError when outputs cannot go to this file."""
    if name is None:
        return
    path = Path(name)
    if path.suffix != ".npz":
        raise UsageError("bad-option-value", f"bad value {name!r} for -o", reason="outputs go into an .npz file")
    if path.is_dir() or (path.exists() and not force):
        raise RaptorError(
            "output-exists", "the output is there already", where=name, hint="choose another name, or give --force"
        )
    if not path.absolute().parent.is_dir():
        raise RaptorError("no-such-folder", "there is no folder for the output", where=str(path.parent))


def write_arrays(name: str, arrays: Mapping[str, Array]) -> None:
    """Write an ``.npz`` file, whole or not at all. Raises RaptorError when that cannot be done."""
    path = Path(name)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for key, array in arrays.items():
                with archive.open(zipfile.ZipInfo(f"{key}.npy", _EPOCH), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        temporary.replace(path)
    except OSError as error:
        raise RaptorError(
            "cannot-write-output", "the outputs cannot be written", where=name, reason=error.strerror or str(error)
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Array] | Array:
    """The arrays of a file by name (``.npz``), or its one array (``.npy``)."""
    if path.suffix not in (".npz", ".npy"):
        raise UsageError(
            "bad-option-value",
            f"bad value {str(path)!r} for --input",
            reason="inputs are .npz files (arrays by input name) or .npy files (one array)",
        )
    if not path.is_file():
        reason = "it is a folder" if path.is_dir() else "it does not exist"
        raise RaptorError("input-not-found", "there is no such input file", where=str(path), reason=reason)
    try:
        _check_kind(path)
        if path.suffix == ".npy":
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except MemoryError:
        raise
    except Exception as error:  # the file is not trusted; numpy and zipfile raise many kinds for broken ones
        raise RaptorError(
            "unreadable-input",
            "the input file cannot be read",
            where=str(path),
            reason=_reason(error),
            hint="write it with numpy.savez or numpy.save",
        ) from error


def _check_kind(path: Path) -> None:
    """Raise ValueError for a file that is not what its name says."""
    if path.suffix == ".npz" and not zipfile.is_zipfile(path):
        raise ValueError("it is not an .npz archive (a zip file of arrays)")
    if path.suffix == ".npy":
        with path.open("rb") as file:
            if file.read(len(_NPY)) != _NPY:
                raise ValueError("it does not begin like an .npy file")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    has_objects = "allow_pickle" in text or "Python objects" in text
    return "it holds Python objects, and only arrays of numbers are read" if has_objects else text
