"""Attribute classes: the structured values that operations carry, and their names in the text form.

A frozen attrs class decorated with ``@attribute("name")`` can stand in an operation's field and is printed as
``#name<field = value, ...>``. The decorator only marks the class; which classes a parser knows is said by the dialects
(:class:`raptor_core.ir.operation.Dialect`), so nothing here is global.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_C = TypeVar("_C", bound=type)

ATTRIBUTE_NAME = "__raptor_attribute__"


def attribute(name: str) -> Callable[[_C], _C]:
    """Mark an attrs class as an attribute printed as ``#name<...>``."""

    def mark(cls: _C) -> _C:
        setattr(cls, ATTRIBUTE_NAME, name)
        return cls

    return mark


def attribute_name(cls: type) -> str | None:
    """The text-form name of an attribute class, or None when ``cls`` is not one."""
    return cls.__dict__.get(ATTRIBUTE_NAME)
