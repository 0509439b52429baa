"""Operations: one attrs class per kind, with operands, results and attributes as data.

A value is known by its name, which is unique in the module and survives lowering; its type stands in the module. An
operation kind is a frozen attrs class that inherits :class:`Operation`, sets ``kind`` and adds its attributes as
fields of plain types (see :mod:`raptor_core.ir.attributes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from raptor_core.diagnostics import InternalError
from raptor_core.ir.types import TensorType

Types = Mapping[str, TensorType]
"""The types of a module's values, by value name."""


@attrs.frozen(kw_only=True)
class Operation:
    """One operation. ``name`` is the source node's name, for messages, reports and traces.

    ``operands`` and ``results`` are value names; an absent optional operand is the empty string.
    """

    kind: ClassVar[str] = ""

    name: str
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()

    def verify(self, types: Types) -> None:
        """Check everything that later stages rely on.

        Raises InternalError (through :meth:`fail`) when the operation is not well formed. Called between passes.
        """

    def fail(self, reason: str) -> InternalError:
        """The error for a broken invariant of this operation."""
        return InternalError(
            "invalid-ir",
            f"operation {self.kind} '{self.name}' is not valid",
            where=f"operands {list(self.operands)}, results {list(self.results)}",
            reason=reason,
            hint="this is a bug in the pass before; please report it with the --dump-ir folder",
        )


@attrs.frozen
class Dialect:
    """The operation kinds and attribute classes of one package, so that text IR can be read back.

    Registered in the entry-point group ``raptor.dialects`` under ``name``, which is the part of an operation kind
    before the dot (``spatial`` in ``spatial.conv``).
    """

    name: str
    operations: tuple[type[Operation], ...] = ()
    attributes: tuple[type, ...] = ()
