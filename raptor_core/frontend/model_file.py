"""Reading a model: from a path or a ModelProto, into one checked form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import onnx
from google.protobuf.message import DecodeError, EncodeError, Message

from raptor_core.diagnostics import RaptorError

MAXIMUM_BYTES = 2**31 - 1
"""The size limit of a protobuf file."""
_CHUNK = 1 << 20


@attrs.frozen
class ModelFile:
    """A model as it was given. ``content`` is its serialised form; ``path`` is None for a ModelProto.

    ``where`` names the model in messages.
    """

    model: onnx.ModelProto
    content: bytes = attrs.field(repr=False)
    path: Path | None
    where: str

    @property
    def folder(self) -> Path | None:
        """The folder that may hold external data."""
        return self.path.parent if self.path is not None else None

    @property
    def name(self) -> str:
        """The network's name: the file's without its ending, else the graph's."""
        return self.path.stem if self.path is not None else (self.model.graph.name or "model")

    def sha256(self, external_files: Iterable[Path] = ()) -> str:
        """The SHA-256 of the model file followed by the files of its external data, in order."""
        digest = hashlib.sha256(self.content)
        for path in external_files:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        return digest.hexdigest()


def read_model(source: Path | str | onnx.ModelProto) -> ModelFile:
    """The model at a path, or the given one (a copy).

    Raises RaptorError when there is no such file, or it is no whole ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        where = f"the given model '{source.graph.name}'"
        try:
            content = source.SerializeToString(deterministic=True)
        except (EncodeError, ValueError) as error:
            raise _too_large(where) from error
        model, path = onnx.ModelProto(), None
        model.CopyFrom(source)
    else:
        path = Path(source)
        where = str(path)
        content = _read(path)
        model = _parse(content, where)
    _check_is_model(model, where)
    return ModelFile(model, content, path, where)


def _read(path: Path) -> bytes:
    where, hint = str(path), "give the path of a model in ONNX form (.onnx)"
    try:
        if path.is_dir():
            raise RaptorError("not-a-model", "a folder is not a model", where=where, hint=hint)
        if not path.exists():
            raise RaptorError("model-not-found", "there is no such model file", where=where, hint=hint)
        if not path.is_file():
            raise RaptorError("not-a-model", "the model is not a regular file", where=where, hint=hint)
        if path.stat().st_size > MAXIMUM_BYTES:
            raise _too_large(where)
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RaptorError("model-unreadable", "the model file cannot be read", where=where, reason=reason) from error
    if not content:
        raise RaptorError("not-a-model", "the model file is empty", where=where, hint="export the model again")
    return content


def _parse(content: bytes, where: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise _not_onnx(where, "the file does not parse: it is cut short, damaged, or of another kind") from error
    return model


def _check_is_model(model: onnx.ModelProto, where: str) -> None:
    if not model.ir_version:
        raise _not_onnx(where, "it states no IR version: the file is of another kind")
    if not model.HasField("graph"):
        raise _not_onnx(where, "it has no graph: the file is cut short")
    if not model.opset_import and model.ir_version >= 3:
        raise _not_onnx(where, "it imports no operator set: the file is cut short")
    if not _is_text(model):
        raise _not_onnx(where, "names in it are not text: the file is damaged")
    if model.ir_version > onnx.IR_VERSION:
        raise RaptorError(
            "unsupported-version",
            f"the model has IR version {model.ir_version}, and the installed onnx {onnx.__version__} "
            f"reads versions up to {onnx.IR_VERSION}",
            where=where,
            hint="install a newer onnx, or export the model for an older one",
        )
    if not model.graph.output:
        raise RaptorError("no-outputs", "the network has no outputs", where=where, hint="export the model again")


def _is_text(message: Message) -> bool:
    """Whether every string field is text; protobuf hands out the bytes of those that are not."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        for item in value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else (value,):
            if isinstance(item, Message) and not _is_text(item):
                return False
            if isinstance(item, bytes):
                return False
    return True


def _not_onnx(where: str, reason: str) -> RaptorError:
    return RaptorError(
        "not-a-model",
        "this is not a whole ONNX model",
        where=where,
        reason=reason,
        hint="export or download the model again; check that it is in ONNX form",
    )


def _too_large(where: str) -> RaptorError:
    return RaptorError(
        "model-too-large",
        "a model of more than 2 GiB cannot be in one file",
        where=where,
        hint="save it with external data (weights in a file beside it), and give the path",
    )
