"""Options that a plugin declares, and the checking of values given for them.

A target, simulator, strategy or scheduler states its options once, as :class:`Option` objects. The command line makes
flags of them (``--core-count`` for ``core_count``), the Python API takes them by name, and both go through
:func:`resolve_options`, so a bad number is the same error everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from raptor_core.diagnostics import UsageError, unknown_name


@attrs.frozen
class Option:
    """One named option. ``name`` is in snake case; the flag is the same words with dashes.

    ``type`` is ``int``, ``float``, ``str`` or ``bool``. ``minimum`` and ``maximum`` (inclusive) bound numbers. A
    ``bool`` option is a flag without a value. ``trials`` are values that a search for the best ones should try besides
    the default.
    """

    name: str
    type: type[int] | type[float] | type[str] | type[bool]
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    trials: tuple[Any, ...] = ()

    @property
    def flag(self) -> str:
        """The command line form, for example ``--core-count``."""
        return "--" + self.name.replace("_", "-")

    def parse(self, given: object) -> Any:
        """``given`` as this option's type.

        Raises UsageError when it is not of the type, outside the bounds, or not one of the choices.
        """
        value = self._convert(given)
        if self.choices and value not in self.choices:
            raise self._bad(given, f"one of {', '.join(self.choices)}")
        if self.type in (int, float):
            if self.minimum is not None and value < self.minimum:
                raise self._bad(given, f"at least {self.minimum:g}")
            if self.maximum is not None and value > self.maximum:
                raise self._bad(given, f"at most {self.maximum:g}")
        return value

    def _convert(self, given: object) -> Any:
        if self.type is bool:
            if isinstance(given, bool):
                return given
            raise self._bad(given, "true or false")
        if self.type is str:
            return str(given)
        if isinstance(given, bool):
            raise self._bad(given, "a number")
        if self.type is int:
            try:
                value = int(given) if not isinstance(given, float) else None  # type: ignore[call-overload]
            except (TypeError, ValueError):
                value = None
            if value is None:
                raise self._bad(given, "a whole number")
            return value
        try:
            number = float(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise self._bad(given, "a finite number")
        return number

    def _bad(self, given: object, expected: str) -> UsageError:
        return UsageError(
            "bad-option-value", f"bad value {given!r} for {self.flag}", reason=f"it must be {expected}", hint=self.help
        )


def resolve_options(options: Sequence[Option], given: Mapping[str, object], *, owner: str) -> dict[str, Any]:
    """Every declared option with its given or default value. ``owner`` names the plugin in messages.

    Values of None count as not given. Raises UsageError for a name not declared or a bad value.
    """
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            raise unknown_name(f"option of {owner}", name, known, code="unknown-option")
    values: dict[str, Any] = {}
    for name, option in known.items():
        value = given.get(name)
        values[name] = option.default if value is None else option.parse(value)
    return values
