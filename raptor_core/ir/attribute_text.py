"""Attribute values as text: numbers, strings, sequences, mappings, arrays and attribute classes."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError
from raptor_core.ir.attributes import attribute_name
from raptor_core.ir.equality import values_equal
from raptor_core.ir.lexer import PLAIN_WORD, quote
from raptor_core.ir.operation import Operation
from raptor_core.ir.wrapping import Group, Piece, prefixed

Array = npt.NDArray[Any]

INLINE_ELEMENTS = 64
"""Arrays of at most this many elements stand in the text, larger ones in the side file."""
MAXIMUM_DEPTH = 64
"""How deep values may be nested."""
MAXIMUM_DIGITS = 1000
"""The longest integer, in characters."""

ARRAY_DTYPES: Mapping[str, np.dtype[Any]] = {
    "f16": np.dtype("<f2"),
    "f32": np.dtype("<f4"),
    "f64": np.dtype("<f8"),
    "i8": np.dtype("i1"),
    "i16": np.dtype("<i2"),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
    "u8": np.dtype("u1"),
    "u16": np.dtype("<u2"),
    "u32": np.dtype("<u4"),
    "u64": np.dtype("<u8"),
    "bool": np.dtype("?"),
}
"""The element types of arrays, by their names in the text form."""
_FACTORY = cast("type[Any]", attrs.Factory)
_DTYPE_NAMES = {dtype: name for name, dtype in ARRAY_DTYPES.items()}


@attrs.frozen
class Field:
    """A field of an operation or attribute class: its name in the text form and in Python, and its default."""

    name: str
    attribute: str
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether the text form must give the field."""
        return self.default is attrs.NOTHING


@functools.cache
def text_fields(cls: type) -> tuple[Field, ...]:
    """The fields of a class that the text form gives by name; of operations, without name, operands and results."""
    fixed = {field.name for field in attrs.fields(Operation)} if issubclass(cls, Operation) else set()
    return tuple(
        Field(field.alias, field.name, _default(field))
        for field in attrs.fields(cls)
        if field.init and field.name not in fixed
    )


def _default(field: attrs.Attribute[Any]) -> Any:
    default = field.default
    if isinstance(default, _FACTORY):
        return attrs.NOTHING if default.takes_self else default.factory()
    return default


@attrs.define
class ValueText:
    """Turns attribute values into text; large arrays are collected in ``arrays`` under a key made of their content."""

    arrays: dict[str, Array] = attrs.field(factory=dict)

    def fields(self, owner: Any, depth: int = 0) -> list[Piece]:
        """``name = value`` for every field of an operation or attribute that is not at its default."""
        pieces = []
        cls: type = type(owner)
        for field in text_fields(cls):
            value = getattr(owner, field.attribute)
            if field.is_required or not values_equal(value, field.default):
                pieces.append(prefixed(f"{field.name} = ", self.value(value, depth)))
        return pieces

    def value(self, value: Any, depth: int = 0) -> Piece:
        """Any attribute value. Raises InternalError for one that has no text form."""
        if depth > MAXIMUM_DEPTH:
            raise InternalError("no-text-form", f"a value is nested deeper than {MAXIMUM_DEPTH} levels")
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float):
            return scalar_text(value)
        if isinstance(value, str):
            return quote(value)
        if isinstance(value, list | tuple):
            return Group.of("[", [self.value(item, depth + 1) for item in value], "]")
        if isinstance(value, Mapping):
            return Group.of("{", [self._entry(key, item, depth + 1) for key, item in value.items()], "}")
        if isinstance(value, np.ndarray):
            return self.array(value)
        name = attribute_name(type(value))
        if name is None:
            cls = type(value)
            raise InternalError(
                "no-text-form",
                f"a value of class {cls.__module__}.{cls.__qualname__} has no text form",
                hint="use plain values, numpy arrays, or attrs classes marked with raptor_core.ir.attributes.attribute",
            )
        fields = self.fields(value, depth + 1)
        return Group.of(f"#{name}<", fields, ">") if fields else f"#{name}"

    def array(self, array: Array) -> Piece:
        """``array<f32[2,2], [...]>``, or with the key of its entry in the side file."""
        dtype = array.dtype.newbyteorder("<")
        name = _DTYPE_NAMES.get(dtype)
        if name is None:
            raise InternalError("no-text-form", f"an array of element type {array.dtype} has no text form")
        shape = f"{name}[{','.join(map(str, array.shape))}]"
        if array.size <= INLINE_ELEMENTS:
            items = [_element_text(item) for item in array.ravel()]
            return Group.of(f"array<{shape}, [", items, "]>")
        data = np.asarray(array, dtype=dtype, order="C")
        digest = hashlib.blake2b(shape.encode(), digest_size=8)
        digest.update(data.data)
        key = digest.hexdigest()
        self.arrays[key] = data
        return f"array<{shape}, @{key}>"

    def _entry(self, key: Any, value: Any, depth: int) -> Piece:
        if not isinstance(key, str):
            raise InternalError("no-text-form", f"a mapping with the key {key!r} has no text form: keys are strings")
        return prefixed(f"{word(key)}: ", self.value(value, depth))


def word(text: str) -> str:
    """A name, quoted when it is not a plain word."""
    return text if PLAIN_WORD.fullmatch(text) else quote(text)


def scalar_text(value: bool | int | float | None) -> str:
    """none, true, false, an integer, or a float that reads back exactly."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "-nan" if math.isnan(value) and math.copysign(1.0, value) < 0 else float.__repr__(value)
    if abs(value) >= 10 ** (MAXIMUM_DIGITS - 1):
        raise InternalError("no-text-form", f"an integer of more than {MAXIMUM_DIGITS} digits has no text form")
    return int.__repr__(value)


def _element_text(element: np.generic) -> str:
    """An array element; float16 and float32 in the shortest form that reads back exactly."""
    value = element.item()
    if isinstance(value, float) and math.isfinite(value):
        short = float(str(element))
        if type(element)(short) == element:
            return scalar_text(short)
    return scalar_text(value)
