"""What all lowerings of this package share: the checks of a node's tensors, and reading its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Array, Module, Rewriter

Values = Mapping[str, Array]
"""Constants by value name."""


class Lowering:
    """Base of the lowerings: an OperatorLowering whose :meth:`check` starts with what holds for every operator.

    ``data_inputs`` says how many leading inputs are float32 tensors (None: all); the others are parameters, such as
    axes, that must be constant. ``results`` is how many results the operator may have that are used.
    """

    name: ClassVar[str]
    api_version: ClassVar[int] = 1
    summary: ClassVar[str]
    data_inputs: ClassVar[int | None] = 1
    results: ClassVar[int | None] = 1

    def check(self, node: OnnxNode, module: Module) -> str | None:
        """See OperatorLowering."""
        return self._refuse_tensors(node, module) or self.refuse(node, module)

    def refuse(self, node: OnnxNode, module: Module) -> str | None:
        """What :meth:`check` answers for a node whose tensors are in order."""
        return None

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        """See OperatorLowering."""
        raise TypeError(f"{type(self).__name__} does not implement lower")

    def _refuse_tensors(self, node: OnnxNode, module: Module) -> str | None:
        inputs = len(node.operands) if self.data_inputs is None else self.data_inputs
        for position, value in enumerate(node.operands):
            if not value:
                continue
            if position >= inputs:
                if value not in module.constants:
                    return f"input {position} ('{value}') is computed at run time, and must be constant"
            elif (reason := _refuse_tensor(value, module)) is not None:
                return reason
        return self._refuse_results(node, module)

    def _refuse_results(self, node: OnnxNode, module: Module) -> str | None:
        supported = len(node.results) if self.results is None else self.results
        for value in filter(None, node.results[:supported]):
            if (reason := _refuse_tensor(value, module)) is not None:
                return reason
        for position, value in enumerate(node.results[supported:], supported):
            if value and (value in module.outputs or any(value in op.operands for op in module.operations)):
                return f"result {position} ('{value}') is used, and only the first {supported} can be computed"
        return None


def _refuse_tensor(value: str, module: Module) -> str | None:
    type_ = module.types[value]
    constant = module.constants.get(value)
    if constant is not None and constant.size and constant.dtype.kind == "f":
        return None
    if type_.element != "f32":
        return f"tensor '{value}' has element type {type_.element}, and only f32 is computed"
    if not type_.elements:
        return f"tensor '{value}' is empty ({type_})"
    return None


def constant(values: Values, node: OnnxNode, position: int) -> Array | None:
    """The constant at an input position; None when the input is absent or computed at run time."""
    value = node.operands[position] if position < len(node.operands) else ""
    return values.get(value) if value else None


def has_input(node: OnnxNode, position: int) -> bool:
    """Whether an optional input is given."""
    return position < len(node.operands) and bool(node.operands[position])


def integers(node: OnnxNode, attribute: str, values: Values, position: int) -> tuple[int, ...] | None:
    """A list of integers that is an attribute in older operator versions and an input in newer ones, if given."""
    given = node.attributes.get(attribute)
    array = constant(values, node, position) if given is None else np.asarray(given)
    return None if array is None else tuple(int(item) for item in np.atleast_1d(array).ravel())


def data_operand(rewriter: Rewriter, value: str) -> str:
    """``value``, or for a constant of another float type the same constant in float32."""
    array = rewriter.constants.get(value)
    if array is None or array.dtype == np.float32:
        return value
    return rewriter.new_constant(f"{value}.f32", array)


def float32(array: Array) -> npt.NDArray[np.float32]:
    """A constant in float32, numbers beyond its range as infinities."""
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype=np.float32)


def normalised_axis(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis


def attribute(node: OnnxNode, name: str, default: Any) -> Any:
    """An attribute's value, or ``default`` when it is not given."""
    return node.attributes.get(name, default)
