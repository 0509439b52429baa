"""A module: one network at one stage of compilation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Operation
from raptor_core.ir.types import TensorType

Array = npt.NDArray[Any]
_Op = TypeVar("_Op", bound=Operation)


@attrs.frozen(kw_only=True, eq=False)
class Module:
    """An ordered list of operations on named values.

    ``stage`` is the name of the pass that produced it. ``inputs`` and ``outputs`` are value names in the order of the
    source graph. ``constants`` holds the values known at compile time. ``types`` has an entry for every value:
    inputs, constants and results. ``properties`` carries facts of the whole module as plain attribute values (for
    example what a target's passes recorded); keys are ``dialect.name``.

    Modules are not changed: a pass returns another one (:func:`attrs.evolve`).
    """

    name: str
    stage: str = "graph"
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    types: Mapping[str, TensorType] = attrs.field(factory=dict)
    constants: Mapping[str, Array] = attrs.field(factory=dict)
    operations: tuple[Operation, ...] = ()
    properties: Mapping[str, Any] = attrs.field(factory=dict)

    def producer_of(self) -> dict[str, Operation]:
        """The operation that defines each result value."""
        return {result: op for op in self.operations for result in op.results}

    def users_of(self) -> dict[str, list[Operation]]:
        """The operations that read each value, in order; an operation stands once per operand position."""
        users: dict[str, list[Operation]] = {}
        for op in self.operations:
            for operand in op.operands:
                if operand:
                    users.setdefault(operand, []).append(op)
        return users

    def find(self, *classes: type[_Op]) -> Iterator[_Op]:
        """The operations of the given classes, in order."""
        return (op for op in self.operations if isinstance(op, classes))


@attrs.define
class Rewriter:
    """Collects the operations of the next module while a pass walks the old one.

    New value names are made from a hint and kept unique; unused constants are dropped by :meth:`finish`.
    """

    module: Module
    operations: list[Operation] = attrs.field(factory=list)
    types: dict[str, TensorType] = attrs.field(init=False)
    constants: dict[str, Array] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.types = dict(self.module.types)
        self.constants = dict(self.module.constants)

    def new_value(self, hint: str, type_: TensorType) -> str:
        """A value name not yet in use, made from ``hint``, with its type recorded."""
        name, k = hint, 1
        while name in self.types:
            name, k = f"{hint}.{k}", k + 1
        self.types[name] = type_
        return name

    def new_constant(self, hint: str, data: Array) -> str:
        """A constant value holding ``data`` in float32, numbers beyond its range as infinities."""
        with np.errstate(over="ignore"):
            data = np.ascontiguousarray(data, dtype=np.float32)
        name = self.new_value(hint, TensorType(tuple(data.shape)))
        self.constants[name] = data
        return name

    def append(self, op: Operation) -> Operation:
        """Add ``op`` at the end and return it."""
        self.operations.append(op)
        return op

    def extend(self, ops: Iterable[Operation]) -> None:
        """Add several operations at the end."""
        self.operations.extend(ops)

    def finish(self, *, stage: str | None = None, **changes: Any) -> Module:
        """The next module: types and constants of values that are still in use, and the collected operations."""
        outputs = changes.get("outputs", self.module.outputs)
        inputs = changes.get("inputs", self.module.inputs)
        used = {*inputs, *outputs}
        for op in self.operations:
            used.update(op.operands)
            used.update(op.results)
        return attrs.evolve(
            self.module,
            stage=stage or self.module.stage,
            operations=tuple(self.operations),
            types={name: type_ for name, type_ in self.types.items() if name in used},
            constants={name: data for name, data in self.constants.items() if name in used},
            **changes,
        )
