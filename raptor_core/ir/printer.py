"""Modules as text; :mod:`raptor_core.ir.parser` reads it back.

::

    raptor-ir 1                                     format version
    module "name" stage "lower"
    input %x : f32[1,3,8,8]                         one line for every network input and output
    output %y
    property test.steps = [1, 2]                    Module.properties
    constant %w : f32[2] = array<f32[2], [0.5, 1.0]>
    constant %v : f32[9,9] = array<f32[9,9], @key>  more than 64 elements: an entry of the side file

    %y = spatial.conv(%x, %w, _) {strides = [1, 1]} : f32[1,4,8,8] layout rows(0,2,3,1) loc("node name")

Names that are not plain are quoted (``%"a b"``); ``_`` is an absent operand, ``?`` a missing type, ``//`` begins a
comment, line breaks are blanks. Fields at their default are left out. Values are ``none``, ``true``, ``false``,
integers, floats (always with a point or exponent, or ``inf``, ``nan``), strings, sequences ``[...]``, mappings
``{key: value}``, arrays, and attributes ``#name<field = value>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from raptor_core.ir.attribute_text import ValueText, word
from raptor_core.ir.lexer import PLAIN_VALUE, quote
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Operation, Types
from raptor_core.ir.types import TensorType
from raptor_core.ir.wrapping import Group, Piece, prefixed, wrap

FORMAT_VERSION = 1
"""The version in the first line of the text form."""


def print_module(module: Module) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    """The text of a module, and the arrays too large for it by the keys that stand for them.

    Raises InternalError when an operation carries a value that has no text form.
    """
    values = ValueText()
    lines = [f"raptor-ir {FORMAT_VERSION}", f"module {quote(module.name)} stage {quote(module.stage)}"]
    lines.extend(f"input {value_text(name)} : {type_text(module.types.get(name))}" for name in module.inputs)
    lines.extend(f"output {value_text(name)}" for name in module.outputs)
    for key, value in module.properties.items():
        lines.append(wrap([prefixed(f"property {word(key)} = ", values.value(value))]))
    for name, data in module.constants.items():
        head = f"constant {value_text(name)} : {type_text(module.types.get(name))} = "
        lines.append(wrap([prefixed(head, values.array(np.asarray(data)))]))
    lines.extend(f"value {value_text(name)} : {type_text(module.types[name])}" for name in _undefined(module))
    if module.operations:
        lines.append("")
    lines.extend(operation_text(op, module.types, values) for op in module.operations)
    return "\n".join(lines) + "\n", values.arrays


def operation_text(op: Operation, types: Types, values: ValueText | None = None) -> str:
    """The text of one operation, on several lines when it is long."""
    values = values if values is not None else ValueText()
    pieces: list[Piece] = []
    if op.results:
        pieces.append(", ".join(map(value_text, op.results)) + " = ")
    pieces.append(Group.of(f"{op.kind}(", [value_text(operand) for operand in op.operands], ")"))
    fields = values.fields(op)
    if fields:
        pieces.append(Group.of(" {", fields, "}"))
    if op.results:
        pieces.append(" : " + ", ".join(type_text(types.get(result)) for result in op.results))
    pieces.append(f" loc({quote(op.name)})")
    return wrap(pieces)


def value_text(name: str) -> str:
    """``%name``, quoted when it is not plain; ``_`` for the absent value."""
    if not name:
        return "_"
    return f"%{name}" if PLAIN_VALUE.fullmatch(name) else f"%{quote(name)}"


def type_text(type_: TensorType | None) -> str:
    """``f32[1,3,8,8] layout name(0,2,3,1)``, without the layout where none is planned; ``?`` for no type."""
    if type_ is None:
        return "?"
    text = f"{type_.element}[{_joined(type_.shape)}]"
    if type_.layout is None:
        return text
    return f"{text} layout {word(type_.layout.name)}({_joined(type_.layout.order)})"


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(str(int(number)) for number in numbers)


def _undefined(module: Module) -> list[str]:
    """Values that have a type but no definition (only in modules that are not valid)."""
    defined = {*module.inputs, *module.constants}
    for op in module.operations:
        defined.update(op.results)
    return [name for name in module.types if name not in defined]
