"""Tensor data kept in files beside the model: found inside the model's folder, or refused.

A model file is untrusted input, so a location may not be absolute, climb out with ``..`` or follow a symbolic link out
of the folder, and offset and length must lie inside the file. Sizes are checked before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

import attrs
import onnx
from onnx import TensorProto

from raptor_core.diagnostics import RaptorError


@attrs.frozen
class ExternalRange:
    """Bytes ``[offset, offset + length)`` of the file ``path``, which exists and is that long."""

    path: Path
    offset: int
    length: int

    def read(self) -> bytes:
        """The bytes. Raises OSError when the file cannot be read, EOFError when it has become shorter."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read(self.length)
        if len(data) != self.length:
            raise EOFError(f"the file ends at {self.offset + len(data)}")
        return data


def is_external(tensor: TensorProto) -> bool:
    """Whether the tensor's data are in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def tensors_of(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """All dense tensors of a graph: initializers and those in attributes, subgraphs included."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for subgraph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from tensors_of(subgraph)


def locate(tensor: TensorProto, needed: int | None, folder: Path | None, where: str) -> ExternalRange:
    """The place of an external tensor's data. ``needed`` is their size in bytes, or None when it follows the file.

    ``folder`` is the model's, None for a model without one. Raises RaptorError for everything that is not a range of
    ``needed`` bytes inside a regular file inside the folder.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise _refusal(
            tensor,
            where,
            f"the data are in the file '{location}', and a model that is not read from a file has no folder",
            hint="give the path of the model instead, or load the data into the model first",
        )
    path = _path_inside(tensor, location, folder, where)
    try:
        size = path.stat().st_size if path.is_file() else None
    except OSError as error:
        raise _refusal(tensor, where, f"the file '{location}' cannot be read: {error.strerror}") from error
    if size is None:
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise _refusal(
            tensor, where, f"the file '{location}' {kind}", hint="keep the data files of a model in the model's folder"
        )
    offset = _number(tensor, where, "offset", entries.get("offset", "0"))
    rest = max(0, size - offset)
    length = (
        _number(tensor, where, "length", entries["length"])
        if "length" in entries
        else rest
        if needed is None
        else needed
    )
    if needed is not None and length != needed:
        raise _refusal(tensor, where, f"its type needs {needed} bytes, and the model says {length}")
    if length > rest:
        reason = f"bytes {offset} to {offset + length} are wanted of the file '{location}', which has {size}"
        raise _refusal(tensor, where, reason, hint="the data file is cut short or belongs to another model")
    return ExternalRange(path, offset, length)


def _path_inside(tensor: TensorProto, location: str, folder: Path, where: str) -> Path:
    """The real path of ``location``, which must be in the folder."""
    styles = (PurePosixPath(location), PureWindowsPath(location))
    outside = any(style.is_absolute() or style.anchor or ".." in style.parts for style in styles)
    if not location or "\0" in location:
        raise _refusal(tensor, where, "the model names no file for its data")
    if not outside:
        try:
            path = (folder / location).resolve()
            if path.is_relative_to(folder.resolve()):
                return path
        except (OSError, RuntimeError) as error:
            raise _refusal(tensor, where, f"the file '{location}' cannot be found: {error}") from error
    raise _refusal(
        tensor,
        where,
        f"the file '{location}' is outside the model's folder",
        hint="a model may only read files of its own folder: copy the data file there and name it relatively",
    )


def _number(tensor: TensorProto, where: str, key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _refusal(tensor, where, f"its {key} '{text[:40]}' is not a number of bytes")
    return int(text)


def _refusal(tensor: TensorProto, where: str, reason: str, *, hint: str | None = None) -> RaptorError:
    name = tensor.name or "of a Constant node"
    return RaptorError(
        "external-data", f"the external data of tensor '{name}' cannot be used", where=where, reason=reason, hint=hint
    )
