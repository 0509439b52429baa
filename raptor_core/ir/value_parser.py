"""Reads attribute values and the fields of operations and attributes from tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError, nearest
from raptor_core.ir.attribute_text import ARRAY_DTYPES, MAXIMUM_DEPTH, MAXIMUM_DIGITS, Field, text_fields
from raptor_core.ir.field_types import expectation, field_annotations
from raptor_core.ir.kinds import Kinds
from raptor_core.ir.lexer import Source, Token, unquote

_T = TypeVar("_T")
Array = npt.NDArray[Any]

_WORD_VALUES: Mapping[str, Any] = {"none": None, "true": True, "false": False, "inf": math.inf, "nan": math.nan}
_MAXIMUM_EXTENT = 2**63 - 1


def known_names(names: Iterable[str], near: str) -> str:
    """The hint for an unknown name: the nearest name, and all."""
    listed = sorted(names)
    close = nearest(near, listed)
    return (f"did you mean '{close}'? " if close else "") + f"known: {', '.join(listed) or 'none'}"


@attrs.define
class ValueParser:
    """A cursor over the tokens of ``source`` that reads values.

    ``arrays`` holds the large arrays by key. ``operation_kind`` is the kind of the operation being read, or empty.
    """

    source: Source
    arrays: Mapping[str, Array]
    kinds: Kinds
    operation_kind: str = ""
    token: Token = attrs.field(init=False)
    _tokens: Iterator[Token] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._tokens = self.source.tokens()
        self.token = next(self._tokens)

    # ---- tokens --------------------------------------------------------------------------------------------------
    def take(self) -> Token:
        """The current token; the cursor moves on."""
        token = self.token
        if token.kind != "end":
            self.token = next(self._tokens)
        return token

    def at(self, text: str) -> bool:
        """Whether the current token is this mark or word."""
        return self.token.text == text and self.token.kind in ("mark", "word")

    def accept(self, text: str) -> bool:
        """Take the current token if it is this mark or word."""
        found = self.at(text)
        if found:
            self.take()
        return found

    def expect(self, text: str) -> Token:
        """Take this mark or word, or refuse."""
        if not self.at(text):
            raise self.expected(f"'{text}'")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Take a token of this kind, or refuse."""
        if self.token.kind != kind:
            raise self.expected(what)
        return self.take()

    def expected(self, what: str) -> RaptorError:
        """The error for something else at the cursor."""
        found = f"'{self.token.text[:40]}'" if self.token.kind != "end" else "the end of the text"
        return self.source.error(self.token.offset, f"expected {what}, found {found}")

    def items(self, close: str, read: Callable[[], _T]) -> list[_T]:
        """Items between commas up to and including the mark ``close``."""
        found: list[_T] = []
        while not self.accept(close):
            if found:
                self.expect(",")
            found.append(read())
        return found

    def string(self) -> str:
        """A quoted string."""
        token = self.expect_kind("string", "a string")
        return self._unquoted(token, token.text)

    def name(self, what: str) -> str:
        """A plain word or a quoted string."""
        return self.string() if self.token.kind == "string" else self.expect_kind("word", what).text

    def value_name(self) -> str:
        """``%name`` or ``_`` (the empty name)."""
        if self.accept("_"):
            return ""
        token = self.expect_kind("value", "a value name such as %x")
        text = token.text[1:]
        return self._unquoted(token, text) if text.startswith('"') else text

    def integer(self, what: str, maximum: int = _MAXIMUM_EXTENT) -> int:
        """An integer from 0 to ``maximum``."""
        token = self.expect_kind("number", what)
        value = self._number(token)
        if not isinstance(value, int) or not 0 <= value <= maximum:
            raise self.source.error(token.offset, f"expected {what}, found '{token.text[:40]}'")
        return value

    def _unquoted(self, token: Token, text: str) -> str:
        try:
            return unquote(text)
        except ValueError as error:
            raise self.source.error(token.offset, "a string with a bad escape or control character") from error

    # ---- values --------------------------------------------------------------------------------------------------
    def value(self, depth: int = 0) -> Any:
        """Any attribute value; sequences are tuples."""
        token = self.token
        if depth > MAXIMUM_DEPTH:
            raise self.source.error(token.offset, f"values are nested deeper than {MAXIMUM_DEPTH} levels")
        if token.kind == "number":
            return self._number(self.take())
        if token.kind == "string":
            return self.string()
        if token.kind == "attribute":
            return self._attribute(depth)
        if self.accept("["):
            return tuple(self.items("]", lambda: self.value(depth + 1)))
        if self.accept("{"):
            return self._mapping(depth)
        if self.at("array"):
            return self.array()
        if token.kind == "word" and token.text in _WORD_VALUES:
            return _WORD_VALUES[self.take().text]
        raise self.expected("a value")

    def _number(self, token: Token) -> int | float:
        text = token.text
        if any(mark in text for mark in ".eEin"):
            return float(text)
        if len(text) > MAXIMUM_DIGITS:
            raise self.source.error(token.offset, f"an integer of more than {MAXIMUM_DIGITS} digits")
        return int(text)

    def _mapping(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}

        def entry() -> None:
            offset = self.token.offset
            key = self.name("a key")
            if key in result:
                raise self.source.error(offset, f"the key '{key}' is given twice")
            self.expect(":")
            result[key] = self.value(depth + 1)

        self.items("}", entry)
        return result

    def _attribute(self, depth: int) -> Any:
        token = self.take()
        name = token.text[1:]
        cls = self.kinds.attribute(name, self.operation_kind)
        if cls is None:
            hint = known_names(self.kinds.attribute_names(), name)
            raise self.source.error(token.offset, f"unknown attribute '#{name}'", hint=hint)
        return self.construct(cls, f"#{name}", token.offset, {}, ("<", ">"), depth + 1)

    def construct(
        self, cls: type, what: str, offset: int, given: Mapping[str, Any], brackets: tuple[str, str], depth: int = 0
    ) -> Any:
        """An object of ``cls`` from the ``given`` arguments and the fields between ``brackets`` (if they follow)."""
        fields = {field.name: field for field in text_fields(cls)}
        values = dict(given)

        def one() -> None:
            self._field(cls, what, fields, values, depth)

        if self.accept(brackets[0]):
            self.items(brackets[1], one)
        missing = [name for name, field in fields.items() if field.is_required and name not in values]
        if missing:
            raise self.source.error(offset, f"{what} lacks the field '{missing[0]}'")
        try:
            return cls(**values)
        except (TypeError, ValueError, IndexError) as error:
            raise self.source.error(offset, f"{what} is not well formed", reason=str(error)) from error

    def _field(self, cls: type, what: str, fields: Mapping[str, Field], values: dict[str, Any], depth: int) -> None:
        token = self.expect_kind("word", "a field name")
        field = fields.get(token.text)
        if field is None:
            hint = known_names(fields, token.text)
            raise self.source.error(token.offset, f"{what} has no field '{token.text}'", hint=hint)
        if field.name in values:
            raise self.source.error(token.offset, f"{what} is given the field '{field.name}' twice")
        self.expect("=")
        offset = self.token.offset
        value = self.value(depth)
        wanted = expectation(value, field_annotations(cls).get(field.attribute, Any))
        if wanted is not None:
            raise self.source.error(offset, f"the field '{field.name}' of {what} must be {wanted}")
        values[field.name] = value

    # ---- arrays --------------------------------------------------------------------------------------------------
    def array(self) -> Array:
        """``array<f32[2,2], [...]>`` or ``array<f32[2,2], @key>``."""
        self.expect("array")
        self.expect("<")
        token = self.expect_kind("word", "an element type")
        dtype = ARRAY_DTYPES.get(token.text)
        if dtype is None:
            hint = known_names(ARRAY_DTYPES, token.text)
            raise self.source.error(token.offset, f"unknown element type '{token.text}'", hint=hint)
        self.expect("[")
        shape = tuple(self.items("]", lambda: self.integer("an extent")))
        self.expect(",")
        array = self._stored_array(dtype, shape) if self.token.kind == "key" else self._inline_array(dtype, shape)
        self.expect(">")
        return array

    def _inline_array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        offset = self.expect("[").offset
        elements = self.items("]", lambda: self._element(dtype))
        if len(elements) != math.prod(shape):
            raise self.source.error(offset, f"{len(elements)} elements for an array of {math.prod(shape)}")
        try:
            return np.array(elements, dtype=dtype).reshape(shape)
        except ValueError as error:
            raise self.source.error(offset, "an array that is too large", reason=str(error)) from error

    def _element(self, dtype: np.dtype[Any]) -> bool | int | float:
        offset = self.token.offset
        if self.token.kind == "number":
            element = self._number(self.take())
        elif self.token.kind == "word" and _WORD_VALUES.get(self.token.text) is not None:
            element = _WORD_VALUES[self.take().text]
        else:
            raise self.expected("an array element")
        if not _fits(element, dtype):
            raise self.source.error(offset, f"this is not an element of an array of {dtype.name}")
        return element

    def _stored_array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        token = self.take()
        array = self.arrays.get(token.text[1:])
        if array is None:
            hint = "the text and its side file (.npz) belong together; write both again"
            raise self.source.error(token.offset, f"the side file has no array '{token.text}'", hint=hint)
        if array.shape != shape or array.dtype.newbyteorder("<") != dtype:
            found = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
            raise self.source.error(token.offset, f"the array '{token.text}' of the side file is {found}")
        return array


def _fits(element: bool | int | float, dtype: np.dtype[Any]) -> bool:
    """Whether an array of ``dtype`` can hold the element without changing its kind or overflowing."""
    if isinstance(element, bool) or dtype.kind == "b":
        return isinstance(element, bool) and dtype.kind == "b"
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return isinstance(element, int) and bounds.min <= element <= bounds.max
    # The shortest text of the largest number may lie a little above it; it counts as what it rounds to.
    try:
        with np.errstate(over="ignore"):
            return not math.isfinite(element) or bool(np.isfinite(dtype.type(element)))
    except OverflowError:  # a whole number beyond any float
        return False
