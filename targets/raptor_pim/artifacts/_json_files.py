"""Reading JSON files that a person may have written wrongly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from raptor_core.diagnostics import RaptorError

SIZE_LIMIT = 1 << 30
"""Bytes of the largest JSON file that is read."""


def bad_chip_file(where: str, reason: str, *, details: Iterable[str] = (), hint: str | None = None) -> RaptorError:
    """The error for a chip configuration or network file that cannot be used."""
    return RaptorError(
        "bad-chip-configuration",
        "the chip configuration cannot be used",
        where=where,
        reason=reason,
        details=details,
        hint=hint,
    )


def read_json(path: Path, what: str) -> Any:
    """The JSON value in the file at ``path``; ``what`` names the file in messages.

    Raises RaptorError when it cannot be read, is no JSON, gives a name twice in one object or holds NaN or Infinity.
    """
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise bad_chip_file(str(path), f"the {what} is larger than {SIZE_LIMIT} bytes")
        data = path.read_text(encoding="utf-8")
    except OSError as error:
        raise bad_chip_file(
            str(path), f"the {what} cannot be read: {error.strerror or error}", hint="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise bad_chip_file(str(path), f"the {what} is not UTF-8 text") from error
    try:
        return json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise bad_chip_file(f"{path}:{error.lineno}:{error.colno}", f"the {what} is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise bad_chip_file(str(path), f"the {what} is nested too deeply") from error
    except ValueError as error:
        raise bad_chip_file(str(path), f"the {what} is not usable: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name '{name}' stands twice in one object")
            seen.add(name)
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
