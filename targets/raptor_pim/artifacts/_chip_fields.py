"""Fields of the chip configuration: what a JSON value must be, its default, and both ways of conversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from raptor_core.diagnostics import nearest

INTEGER_LIMIT = 2**31 - 1
Check = Callable[[Any], Any]
"""Gives the value as its field holds it, or raises ValueError with the reason."""


@attrs.frozen(kw_only=True)
class Section:
    """A JSON object with declared fields. ``given`` are the names that the file had (not compared)."""

    given: frozenset[str] = attrs.field(default=frozenset(), eq=False, repr=False)
    ignored: ClassVar[frozenset[str]] = frozenset()
    """Names that may be there and say nothing."""


def _field(check: Check, default: Any, required: bool = False) -> Any:
    metadata = {"check": check, "required": required}
    return attrs.field(metadata=metadata) if required else attrs.field(default=default, metadata=metadata)


def count(default: int | None = None, *, minimum: int | None = 1, required: bool = False) -> Any:
    """A whole number, at least ``minimum``."""
    return _field(lambda given: _whole(given, minimum), default, required)


def amount(default: float | None = None, *, positive: bool = False, required: bool = False) -> Any:
    """A finite number that is not negative, or positive."""

    def check(given: Any) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ValueError(f"it must be a number, not {_shown(given)}")
        try:
            value = float(given)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise ValueError("it must be a finite number")
        if value < 0 or (positive and value == 0):
            raise ValueError(f"it must be {'positive' if positive else 'at least 0'}, not {given}")
        return value

    return _field(check, default, required)


def flag(default: bool) -> Any:
    """true or false."""

    def check(given: Any) -> bool:
        if not isinstance(given, bool):
            raise ValueError(f"it must be true or false, not {_shown(given)}")
        return given

    return _field(check, default)


def text(default: str | None = None, *, required: bool = False) -> Any:
    """A text; not empty when it is required."""

    def check(given: Any) -> str:
        if not isinstance(given, str) or (required and not given):
            raise ValueError(f"it must be a text, not {_shown(given)}")
        if "\0" in given:
            raise ValueError("it holds a zero character")
        return given

    return _field(check, default, required)


def pair(default: tuple[int, int], *, minimum: int = 1) -> Any:
    """Two whole numbers, each at least ``minimum``."""

    def check(given: Any) -> tuple[int, int]:
        if not isinstance(given, list | tuple) or len(given) != 2:
            raise ValueError(f"it must be a list of two whole numbers, not {_shown(given)}")
        return _whole(given[0], minimum), _whole(given[1], minimum)

    return _field(check, default)


def choice(default: int, allowed: tuple[int, ...]) -> Any:
    """One of a few whole numbers."""

    def check(given: Any) -> int:
        value = _whole(given, None)
        if value not in allowed:
            raise ValueError(f"it must be one of {', '.join(map(str, allowed))}, not {given}")
        return value

    return _field(check, default)


def section(kind: type[Section], *, required: bool = False) -> dict[str, Any]:
    """The metadata of a field that holds a nested object."""
    return {"section": kind, "required": required}


def read_section(kind: type[Section], value: Any, path: str, problems: list[tuple[str, str]]) -> dict[str, Any]:
    """Constructor arguments for ``kind`` from a JSON value; problems are added as (path, reason)."""
    if not isinstance(value, dict):
        problems.append((path, f"it must be an object, not {_shown(value)}"))
        return {}
    fields = {field.name: field for field in attrs.fields(kind) if field.metadata}
    for name in value:
        if name not in fields and name not in kind.ignored:
            near = nearest(name, fields)
            problems.append((f"{path}.{name}", "unknown field" + (f"; did you mean '{near}'?" if near else "")))
    arguments: dict[str, Any] = {"given": frozenset(name for name in value if name in fields)}
    for name, field in fields.items():
        if name not in value:
            if field.metadata["required"]:
                problems.append((f"{path}.{name}", "the field is missing"))
        elif "section" in field.metadata:
            before = len(problems)
            inner = read_section(field.metadata["section"], value[name], f"{path}.{name}", problems)
            if len(problems) == before:
                arguments[name] = field.metadata["section"](**inner)
        else:
            try:
                arguments[name] = field.metadata["check"](value[name])
            except ValueError as error:
                problems.append((f"{path}.{name}", str(error)))
    return arguments


def write_section(value: Section) -> dict[str, Any]:
    """The JSON object of a section: fields that were given or differ from their default."""
    result: dict[str, Any] = {}
    for field in attrs.fields(type(value)):
        if not field.metadata:
            continue
        held = getattr(value, field.name)
        wanted = field.metadata["required"] or field.name in value.given
        if "section" in field.metadata:
            inner = write_section(held)
            if wanted or inner:
                result[field.name] = inner
        elif wanted or held != field.default:
            result[field.name] = _plain(held)
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _whole(given: Any, minimum: int | None) -> int:
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError(f"it must be a whole number, not {_shown(given)}")
    if abs(given) > INTEGER_LIMIT:
        raise ValueError(f"{_shown(given)} is too large")
    if minimum is not None and given < minimum:
        raise ValueError(f"it must be at least {minimum}, not {given}")
    return given


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
