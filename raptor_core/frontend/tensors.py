"""Tensors of a model file as numpy arrays, wherever their data are kept."""

from __future__ import annotations

import math
from pathlib import Path

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from raptor_core.diagnostics import RaptorError
from raptor_core.frontend.external_data import ExternalRange, is_external, locate, tensors_of
from raptor_core.ir.module import Array

_PLAIN_KINDS = "fiub"


@attrs.frozen
class TensorReader:
    """Reads the tensors of one model. ``folder`` is the model's, ``where`` names it in messages."""

    where: str
    folder: Path | None = None

    def external_files(self, graph: onnx.GraphProto) -> tuple[Path, ...]:
        """The files that hold data of the graph's tensors, sorted. Raises RaptorError for any that is not allowed."""
        return tuple(sorted({self._locate(tensor).path for tensor in tensors_of(graph) if is_external(tensor)}))

    def array(self, tensor: TensorProto) -> Array:
        """The tensor as an array (bfloat16 and the like in their ml_dtypes types, strings as objects).

        Raises RaptorError when the data do not fit the tensor's type or cannot be read.
        """
        try:
            if is_external(tensor):
                return _external_array(tensor, self._locate(tensor).read())
            return numpy_helper.to_array(tensor)
        except RaptorError:
            raise
        except (OSError, EOFError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
            raise self._bad(tensor, f"{error}") from error

    def embed(self, graph: onnx.GraphProto) -> None:
        """Take the external data of the graph's tensors into the graph itself."""
        for tensor in tensors_of(graph):
            if is_external(tensor):
                tensor.raw_data = self.array(tensor).tobytes()
                tensor.data_location = TensorProto.DEFAULT
                del tensor.external_data[:]

    def _locate(self, tensor: TensorProto) -> ExternalRange:
        return locate(tensor, self._bytes(tensor), self.folder, self.where)

    def _bytes(self, tensor: TensorProto) -> int | None:
        """The size of the tensor's data; None for types whose elements share bytes."""
        if any(dim < 0 for dim in tensor.dims):
            raise self._bad(tensor, f"its shape {list(tensor.dims)} has a negative extent")
        try:
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
        except (KeyError, TypeError) as error:
            raise self._bad(tensor, f"its element type {tensor.data_type} is unknown") from error
        if tensor.data_type == TensorProto.STRING:
            raise self._bad(tensor, "strings cannot be external data")
        if dtype.kind not in _PLAIN_KINDS:
            return None
        return int(math.prod(tensor.dims)) * dtype.itemsize

    def _bad(self, tensor: TensorProto, reason: str) -> RaptorError:
        return RaptorError(
            "bad-tensor",
            f"the tensor '{tensor.name}' is damaged",
            where=self.where,
            reason=reason.splitlines()[0] if reason else None,
            hint="the model file is damaged; export it again",
        )


def _external_array(tensor: TensorProto, data: bytes) -> Array:
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if dtype.kind in _PLAIN_KINDS:
        array = np.frombuffer(data, dtype=dtype.newbyteorder("<"))
        return array.astype(dtype, copy=False).reshape(tuple(tensor.dims))
    inline = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=data)
    return numpy_helper.to_array(inline)
