"""A small dialect and helpers for tests that read and write text IR."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import DIALECT as ONNX
from raptor_core.ir.attributes import attribute
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Dialect, Operation, Types
from raptor_core.ir.parser import parse_module
from raptor_core.ir.printer import print_module
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, PointwiseFunction
from raptor_core.spatial.dialect import DIALECT as SPATIAL
from raptor_core.spatial.kernel import Address, KernelBuilder, View


@attribute("test.point")
@attrs.frozen
class Point:
    """An attribute with a default and a nested value."""

    x: int
    y: float = 0.5
    inner: Any = None


@attribute("test.apply")
@attrs.frozen
class Apply(PointwiseFunction):
    """A pointwise function by instruction name."""

    op: str = "relu"

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        k.unary(self.op, dst, src, count)


@attrs.frozen(kw_only=True, eq=False)
class Anything(Operation):
    """Carries any value."""

    kind = "test.any"

    value: Any = None
    counts: tuple[int, ...] = ()
    ratio: float = 1.0
    label: str = ""
    table: Mapping[str, Any] = attrs.field(factory=dict)
    steps: npt.NDArray[np.int64] | None = None
    _private: bool = False


@attrs.frozen(kw_only=True)
class Sum(ComputeOp):
    """The sum of two values: a compute without weights."""

    kind = "test.sum"

    def verify(self, types: Types) -> None:
        if types[self.operands[0]].shape != types[self.operands[1]].shape:
            raise self.fail("the operands differ in shape")

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return out

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        a, b = operands
        assert a is not None
        assert b is not None
        with k.runs(result, a, b) as ((dst, left, right), count):
            k.binary("add", dst, left, right, count)


TEST = Dialect("test", operations=(Anything, Sum), attributes=(Point, Apply))
DIALECTS = {dialect.name: dialect for dialect in (TEST, SPATIAL, ONNX)}


def module_from(text: str, arrays: Mapping[str, npt.NDArray[Any]] | None = None) -> Module:
    """The module of an indented text without its version line."""
    return parse_module("raptor-ir 1\n" + textwrap.dedent(text), arrays or {}, DIALECTS, file="test.rir")


def text_of(module: Module) -> str:
    """The text of a module without its version line."""
    return print_module(module)[0].removeprefix("raptor-ir 1\n")


def operations_of(module: Module) -> list[str]:
    """The lines of a module's operations."""
    return text_of(module).partition("\n\n")[2].splitlines()
