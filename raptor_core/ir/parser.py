"""Modules from text: the inverse of :mod:`raptor_core.ir.printer`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy.typing as npt

from raptor_core.ir.kinds import Dialects, Kinds
from raptor_core.ir.lexer import Source
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Operation
from raptor_core.ir.printer import FORMAT_VERSION, type_text
from raptor_core.ir.types import ELEMENT_BYTES, Layout, TensorType
from raptor_core.ir.value_parser import ValueParser, known_names


def parse_module(
    text: str, arrays: Mapping[str, npt.NDArray[Any]], dialects: Dialects, *, file: str = "<text>"
) -> Module:
    """The module that a text describes; ``arrays`` are those of :func:`raptor_core.ir.printer.print_module`.

    ``dialects`` gives the dialects by name; ``file`` is the name used in messages. The text is not trusted: anything
    that cannot be read is a RaptorError that names line and column. What is read need not be a valid module: that is
    for :func:`raptor_core.ir.verifier.verify_module` to say.
    """
    return _ModuleParser(ValueParser(Source(text, file), arrays, Kinds(dialects))).module()


@attrs.define
class _ModuleParser:
    values: ValueParser
    types: dict[str, TensorType] = attrs.field(factory=dict)
    inputs: list[str] = attrs.field(factory=list)
    outputs: list[str] = attrs.field(factory=list)
    constants: dict[str, npt.NDArray[Any]] = attrs.field(factory=dict)
    properties: dict[str, Any] = attrs.field(factory=dict)
    operations: list[Operation] = attrs.field(factory=list)

    def module(self) -> Module:
        values = self.values
        self._version()
        values.expect("module")
        name = values.string()
        values.expect("stage")
        stage = values.string()
        statements = {
            "input": self._input,
            "output": self._output,
            "property": self._property,
            "constant": self._constant,
            "value": self._value,
        }
        while values.token.kind != "end":
            statement = statements.get(values.token.text) if values.token.kind == "word" else None
            if statement is None:
                self._operation()
            else:
                values.take()
                statement()
        return Module(
            name=name,
            stage=stage,
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            types=self.types,
            constants=self.constants,
            operations=tuple(self.operations),
            properties=self.properties,
        )

    def _version(self) -> None:
        values = self.values
        if not values.at("raptor-ir"):
            raise values.expected("'raptor-ir' and the format version")
        values.take()
        token = values.token
        version = values.integer("a format version")
        if version != FORMAT_VERSION:
            raise values.source.error(
                token.offset, f"format version {version} is not known", reason=f"this Raptor reads {FORMAT_VERSION}"
            )

    # ---- statements ----------------------------------------------------------------------------------------------
    def _input(self) -> None:
        self.inputs.append(self._typed_value())

    def _output(self) -> None:
        self.outputs.append(self.values.value_name())

    def _value(self) -> None:
        self._typed_value()

    def _property(self) -> None:
        values = self.values
        offset = values.token.offset
        key = values.name("the name of a property")
        if key in self.properties:
            raise values.source.error(offset, f"the property '{key}' is given twice")
        values.expect("=")
        self.properties[key] = values.value()

    def _constant(self) -> None:
        values = self.values
        offset = values.token.offset
        name = self._typed_value()
        if name in self.constants:
            raise values.source.error(offset, f"the constant '%{name}' is given twice")
        values.expect("=")
        self.constants[name] = values.array()

    def _operation(self) -> None:
        values = self.values
        results: list[tuple[str, int]] = []
        if values.token.kind == "value" or values.at("_"):
            results = self._results()
        token = values.expect_kind("word", "an operation")
        cls = self._operation_class(token.text, token.offset)
        values.operation_kind = token.text
        values.expect("(")
        operands = tuple(values.items(")", values.value_name))
        # Fields come before the name in the text; the name is put in when it is known.
        given = {"name": "", "operands": operands, "results": tuple(name for name, _ in results)}
        op = values.construct(cls, f"operation {token.text}", token.offset, given, ("{", "}"))
        values.operation_kind = ""
        if results:
            values.expect(":")
            for k, (name, offset) in enumerate(results):
                if k:
                    values.expect(",")
                self._set_type(name, offset)
        values.expect("loc")
        values.expect("(")
        op = attrs.evolve(op, name=values.string())
        values.expect(")")
        self.operations.append(op)

    def _results(self) -> list[tuple[str, int]]:
        values = self.values

        def result() -> tuple[str, int]:
            offset = values.token.offset
            return values.value_name(), offset

        return values.items("=", result)

    def _operation_class(self, kind: str, offset: int) -> type[Operation]:
        kinds, error = self.values.kinds, self.values.source.error
        cls = kinds.operation(kind)
        if cls is not None:
            return cls
        dialect = kind.partition(".")[0]
        if kinds.dialect(dialect) is None:
            hint = known_names(kinds.dialect_names(), dialect)
            raise error(offset, f"unknown dialect '{dialect}' of operation '{kind}'", hint=hint)
        hint = known_names(kinds.operation_kinds(dialect), kind)
        raise error(offset, f"unknown operation '{kind}'", hint=hint)

    # ---- types ---------------------------------------------------------------------------------------------------
    def _typed_value(self) -> str:
        offset = self.values.token.offset
        name = self.values.value_name()
        self.values.expect(":")
        self._set_type(name, offset)
        return name

    def _set_type(self, name: str, offset: int) -> None:
        type_ = self._type()
        if type_ is None:
            return
        known = self.types.setdefault(name, type_)
        if known != type_:
            both = f"{type_text(known)} and {type_text(type_)}"
            raise self.values.source.error(offset, f"the value '%{name}' has two types: {both}")

    def _type(self) -> TensorType | None:
        values = self.values
        if values.accept("?"):
            return None
        token = values.expect_kind("word", "a type such as f32[1,3,8,8]")
        if token.text not in ELEMENT_BYTES:
            hint = known_names(ELEMENT_BYTES, token.text)
            raise values.source.error(token.offset, f"unknown element type '{token.text}'", hint=hint)
        values.expect("[")
        shape = tuple(values.items("]", lambda: values.integer("an extent")))
        return TensorType(shape, token.text, self._layout() if values.accept("layout") else None)

    def _layout(self) -> Layout:
        values = self.values
        name = values.name("the name of a layout")
        offset = values.expect("(").offset
        order = tuple(values.items(")", lambda: values.integer("an axis")))
        try:
            return Layout(name, order)
        except ValueError as error:
            raise values.source.error(offset, "this is not an order of axes", reason=str(error)) from error
