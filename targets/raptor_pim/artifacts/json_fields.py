"""Reading JSON that nobody vouches for: every value is asked for by type and range."""

from __future__ import annotations

import json
from typing import Any

import attrs

from raptor_core.diagnostics import RaptorError

INT32_MAXIMUM = 2**31 - 1
UINT32_MAXIMUM = 2**32 - 1
_SHOWN = 60


def parse_json(data: bytes, *, where: str) -> Any:
    """The value of a JSON document. Raises RaptorError, naming the file ``where``, when it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as cause:
        reason = "it is nested too deeply" if isinstance(cause, RecursionError) else str(cause)[:200]
        raise bad_file(where, "not a JSON document", reason) from cause


def bad_file(where: str, message: str, reason: str, *, hint: str | None = None) -> RaptorError:
    """The refusal of one file of an artifact folder."""
    return RaptorError(
        "bad-artifact",
        message,
        where=where,
        reason=reason,
        hint=hint or "compile again, or correct the file by hand if you wrote it by hand",
    )


def shown(value: object) -> str:
    """A value as it may stand in a message: never long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


@attrs.frozen
class Fields:
    """The members of a JSON object, asked for by name; ``where`` names the file in messages."""

    values: dict[str, Any]
    where: str

    @classmethod
    def of(cls, value: object, where: str, what: str) -> Fields:
        """``value`` as an object; refused, as ``what``, when it is something else."""
        if not isinstance(value, dict):
            raise bad_file(where, f"{what} is not an object", f"it is {shown(value)}")
        return cls(value, where)

    def wrong(self, name: str, expected: str) -> RaptorError:
        """The refusal of field ``name``."""
        if name not in self.values:
            return bad_file(self.where, f"field '{name}' is missing", f"it must be {expected}")
        return bad_file(self.where, f"field '{name}' is wrong", f"it is {shown(self.values[name])}; must be {expected}")

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number in ``low..high``."""
        value = self.values.get(name)
        if not is_whole(value, low, high):
            raise self.wrong(name, f"a whole number in {low}..{high}")
        return int(value)  # type: ignore[arg-type]

    def optional_whole(self, name: str, low: int, high: int) -> int | None:
        """A whole number in ``low..high``, or None when the field is absent."""
        return self.whole(name, low, high) if self.has(name) else None

    def whole_list(self, name: str, low: int, high: int) -> tuple[int, ...]:
        """A list of whole numbers in ``low..high``."""
        value = self.values.get(name)
        if not isinstance(value, list) or not all(is_whole(item, low, high) for item in value):
            raise self.wrong(name, f"a list of whole numbers in {low}..{high}")
        return tuple(value)

    def list(self, name: str) -> list[Any]:
        """A list of anything."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        return value

    def text(self, name: str) -> str:
        """A string."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value


def is_whole(value: object, low: int, high: int) -> bool:
    """Whether ``value`` is a JSON whole number in ``low..high``."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
