"""Whether a value read from text fits the annotation of its field."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


@functools.cache
def field_annotations(cls: type) -> Mapping[str, Any]:
    """The annotations of a class by attribute name; empty when they name something that cannot be looked up."""
    try:
        return typing.get_type_hints(cls)
    except (NameError, AttributeError, TypeError):
        return {}


def expectation(value: object, annotation: Any) -> str | None:
    """What ``annotation`` wants, in words, when ``value`` is something else; None when it fits.

    Knows plain classes, unions, ``tuple``, ``Sequence``, ``Mapping`` and numpy arrays; anything else fits.
    """
    origin = typing.get_origin(annotation)
    if annotation is Any or isinstance(annotation, typing.TypeVar):
        return None
    if origin in (typing.Union, types.UnionType):
        wanted = [expectation(value, choice) for choice in typing.get_args(annotation)]
        return None if None in wanted else " or ".join(text for text in wanted if text)
    if annotation is None or annotation is type(None):
        return None if value is None else "none"
    if origin is np.ndarray:
        return _array(value, annotation)
    if origin in (tuple, list, Sequence):
        return _sequence(value, annotation)
    if origin is not None:
        cls = origin
        return None if not isinstance(cls, type) or isinstance(value, cls) else _class_words(cls)
    return _plain(value, annotation)


def _plain(value: object, cls: Any) -> str | None:
    if not isinstance(cls, type):
        return None
    if cls in (int, float) and isinstance(value, bool):
        return _class_words(cls)
    if cls is float and isinstance(value, int):
        return None
    if cls is list:
        cls = tuple
    return None if isinstance(value, cls) else _class_words(cls)


def _sequence(value: object, annotation: Any) -> str | None:
    if not isinstance(value, tuple):
        return "a sequence"
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is not tuple or (len(arguments) == 2 and arguments[1] is Ellipsis):
        arguments = arguments[:1] * len(value)
    if len(arguments) != len(value):
        return f"a sequence of {len(arguments)}"
    wanted = next((text for item, a in zip(value, arguments, strict=True) if (text := expectation(item, a))), None)
    return f"a sequence whose items are each {wanted}" if wanted else None


def _array(value: object, annotation: Any) -> str | None:
    if not isinstance(value, np.ndarray):
        return "an array"
    arguments = typing.get_args(typing.get_args(annotation)[-1])
    scalar = arguments[0] if arguments else None
    if isinstance(scalar, type) and issubclass(scalar, np.generic) and not np.issubdtype(value.dtype, scalar):
        return f"an array of {scalar.__name__}"
    return None


def _class_words(cls: type) -> str:
    words = {int: "an integer", float: "a number", bool: "true or false", str: "a string", tuple: "a sequence"}
    if cls in words:
        return words[cls]
    if issubclass(cls, Mapping):
        return "a mapping"
    return f"a value of class {cls.__name__}"
