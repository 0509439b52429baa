"""Which classes the names in a text stand for: operations and attributes of the installed dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from raptor_core.diagnostics import PluginError, UsageError
from raptor_core.ir.attributes import attribute_name
from raptor_core.ir.operation import Dialect, Operation

Dialects = Mapping[str, Dialect] | Callable[[str], Dialect]
"""Dialects by name. A function raises KeyError or UsageError for a name it does not know."""


@attrs.define
class Kinds:
    """Looks names up in dialects, which are asked for only when a name needs them.

    An operation kind names its dialect (``spatial.conv``). An attribute name may do so as well
    (``operators.clip``), which is the rule outside the core; a bare one (``box``) is looked for in the dialect of the
    operation it stands in, in those used so far, and then in all others that can be loaded.
    """

    dialects: Dialects
    _loaded: dict[str, Dialect] = attrs.field(factory=dict, init=False)
    _attributes: dict[str, dict[str, type]] = attrs.field(factory=dict, init=False)

    def dialect(self, name: str) -> Dialect | None:
        """The dialect of this name, or None."""
        if name not in self._loaded:
            try:
                found = self.dialects[name] if isinstance(self.dialects, Mapping) else self.dialects(name)
            except (KeyError, UsageError):
                return None
            self._loaded[name] = found
        return self._loaded[name]

    def dialect_names(self) -> list[str]:
        """The names of all dialects, as far as they can be listed."""
        return sorted({*self._loaded, *(self.dialects if isinstance(self.dialects, Mapping) else ())})

    def operation(self, kind: str) -> type[Operation] | None:
        """The class of an operation kind, or None."""
        dialect = self.dialect(kind.partition(".")[0])
        operations = dialect.operations if dialect is not None else ()
        return next((cls for cls in operations if cls.kind == kind), None)

    def operation_kinds(self, dialect_name: str) -> list[str]:
        """All operation kinds of a dialect."""
        dialect = self.dialect(dialect_name)
        return [cls.kind for cls in dialect.operations] if dialect is not None else []

    def attribute(self, name: str, operation_kind: str) -> type | None:
        """The class of an attribute that stands in an operation of the given kind (may be empty), or None."""
        for dialect_name in self._search_order(name, operation_kind):
            try:
                found = self._attributes_of(dialect_name).get(name)
            except PluginError:
                if name.startswith(f"{dialect_name}."):
                    raise
                continue
            if found is not None:
                return found
        return None

    def attribute_names(self) -> Iterable[str]:
        """All attribute names of the dialects used so far."""
        return sorted({name for dialect in tuple(self._loaded) for name in self._attributes_of(dialect)})

    def _search_order(self, name: str, operation_kind: str) -> Iterator[str]:
        if "." in name:
            yield name.partition(".")[0]
        if operation_kind:
            yield operation_kind.partition(".")[0]
        yield from tuple(self._loaded)
        yield from self.dialect_names()

    def _attributes_of(self, dialect_name: str) -> dict[str, type]:
        if dialect_name not in self._attributes:
            dialect = self.dialect(dialect_name)
            if dialect is None:
                return {}
            named = ((attribute_name(cls), cls) for cls in dialect.attributes)
            self._attributes[dialect_name] = {name: cls for name, cls in named if name is not None}
        return self._attributes[dialect_name]
