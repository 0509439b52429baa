"""Checks everything that the next pass relies on; run between passes and on modules read from files."""

from __future__ import annotations

import attrs

from raptor_core.diagnostics import InternalError, RaptorError
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Operation
from raptor_core.ir.types import ELEMENT_BYTES, TensorType
from raptor_core.spatial.verifier import verify_spatial

_ELEMENTS = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
}


def verify_module(module: Module) -> None:
    """Raise InternalError unless ``module`` is valid.

    Every value is defined exactly once, before its uses, and has a type; nothing else has one. Types are well formed,
    constants agree with theirs, outputs are defined. Every operation passes its own check. Operations belong to the
    module's stage and placements are sound (:func:`raptor_core.spatial.verifier.verify_spatial`).
    """
    _Verifier(module).run()
    verify_spatial(module)


@attrs.define
class _Verifier:
    module: Module
    defined: set[str] = attrs.field(factory=set)

    def run(self) -> None:
        module = self.module
        for name in module.inputs:
            self._define(name, "the network's inputs")
        for name in module.constants:
            self._define(name, "the constants")
        for name in self.defined:
            self._check_type(name, None)
        for name in module.constants:
            self._check_constant(name)
        for op in module.operations:
            self._check_operation(op)
        for name in module.outputs:
            if name not in self.defined:
                raise self._fail(f"the network output '{name}' is not defined")
        unknown = sorted(module.types.keys() - self.defined)
        if unknown:
            raise self._fail(f"there is a type for '{unknown[0]}', which is not defined")

    def _check_operation(self, op: Operation) -> None:
        for operand in op.operands:
            if operand and operand not in self.defined:
                where = "only later" if any(operand in o.results for o in self.module.operations) else "nowhere"
                raise op.fail(f"its operand '{operand}' is defined {where}")
        for result in op.results:
            if result:
                self._define(result, f"operation {op.kind} '{op.name}'", op)
                self._check_type(result, op)
        try:
            op.verify(self.module.types)
        except (RaptorError, MemoryError):
            raise
        except Exception as error:
            raise op.fail(f"its check stopped with {type(error).__name__}: {error}") from error

    def _define(self, name: str, by: str, op: Operation | None = None) -> None:
        if name in self.defined:
            reason = f"the value '{name}' is defined twice, the second time by {by}"
            raise op.fail(reason) if op is not None else self._fail(reason)
        self.defined.add(name)

    def _check_type(self, name: str, op: Operation | None) -> None:
        type_ = self.module.types.get(name)
        reason = "has no type" if type_ is None else _type_fault(type_)
        if reason is not None:
            reason = f"the value '{name}' {reason}"
            raise op.fail(reason) if op is not None else self._fail(reason)

    def _check_constant(self, name: str) -> None:
        type_, data = self.module.types[name], self.module.constants[name]
        if tuple(data.shape) != type_.shape or data.dtype.name != _ELEMENTS[type_.element]:
            found = f"{data.dtype.name}[{','.join(map(str, data.shape))}]"
            raise self._fail(f"the constant '{name}' is of type {type_} but its data are {found}")

    def _fail(self, reason: str) -> InternalError:
        return InternalError(
            "invalid-ir",
            f"module '{self.module.name}' is not valid",
            where=f"stage {self.module.stage}",
            reason=reason,
            hint="this is a bug in the pass before; please report it with the --dump-ir folder",
        )


def _type_fault(type_: TensorType) -> str | None:
    if type_.element not in ELEMENT_BYTES:
        return f"has the unknown element type '{type_.element}'"
    if any(extent < 0 for extent in type_.shape):
        return f"has a negative extent: {type_}"
    if type_.layout is not None and len(type_.layout.order) != type_.rank:
        return f"of type {type_} has the layout '{type_.layout.name}' of {len(type_.layout.order)} axes"
    return None
