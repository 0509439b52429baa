"""Element types: their names in ONNX, numpy and the IR, and the type of a value as ONNX states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from raptor_core.ir.module import Array
from raptor_core.ir.types import TensorType

ELEMENTS: Mapping[int, str] = {
    TensorProto.FLOAT: "f32",
    TensorProto.DOUBLE: "f64",
    TensorProto.FLOAT16: "f16",
    TensorProto.INT64: "i64",
    TensorProto.INT32: "i32",
    TensorProto.INT16: "i16",
    TensorProto.INT8: "i8",
    TensorProto.UINT8: "u8",
    TensorProto.BOOL: "bool",
}
"""The element types of the IR, by their number in ONNX."""


def element_words(data_type: int) -> str:
    """The name of an ONNX element type for messages: ``float64``, ``bfloat16``, ``string``."""
    if data_type in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return "float32" if data_type == TensorProto.FLOAT else "float64"
    if data_type not in TensorProto.DataType.values():
        return f"unknown element type {data_type}"
    return str(TensorProto.DataType.Name(data_type)).lower()


def array_data_type(array: Array) -> int:
    """The number of an array's element type in ONNX. Raises KeyError or ValueError for one that ONNX does not have."""
    if array.dtype.kind in "OUS":
        return TensorProto.STRING
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype)))


def tensor_type(data_type: int, shape: Sequence[int]) -> onnx.TypeProto:
    """The ONNX type of a static tensor."""
    return helper.make_tensor_type_proto(data_type, list(shape))


def array_type(array: Array) -> onnx.TypeProto:
    """The ONNX type of a constant."""
    return tensor_type(array_data_type(array), array.shape)


def static_shape(type_: onnx.TypeProto) -> tuple[int, ...] | None:
    """The shape of a tensor type whose extents are all known, else None."""
    if type_.WhichOneof("value") != "tensor_type" or not type_.tensor_type.HasField("shape"):
        return None
    dims = type_.tensor_type.shape.dim
    if any(dim.WhichOneof("value") != "dim_value" or dim.dim_value < 0 for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def type_words(type_: onnx.TypeProto | None) -> str:
    """A type for messages: ``float64[1,N,3]``, ``a sequence``."""
    kind = type_.WhichOneof("value") if type_ is not None else None
    if type_ is None or kind is None:
        return "unknown type"
    if kind != "tensor_type":
        words = kind.removesuffix("_type").replace("_", " ")
        return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
    element = element_words(type_.tensor_type.elem_type)
    if not type_.tensor_type.HasField("shape"):
        return f"{element} of unknown shape"
    dims = (
        dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?")
        for dim in type_.tensor_type.shape.dim
    )
    return f"{element}[{','.join(dims)}]"


def ir_type(type_: onnx.TypeProto) -> TensorType | None:
    """The IR's type of a static tensor, or None when it has no such element type or is not static."""
    shape = static_shape(type_)
    element = ELEMENTS.get(type_.tensor_type.elem_type)
    return None if shape is None or element is None else TensorType(shape, element)
