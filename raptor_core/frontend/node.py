"""The operation of the graph stage: one ONNX node, checked and with its attributes as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from raptor_core.ir.operation import Dialect, Operation


@attrs.frozen(kw_only=True, eq=False)
class OnnxNode(Operation):
    """An ONNX node. ``version`` is the opset version of its domain in the model; ``index`` its place in the file.

    ``attributes`` holds ints, floats, strings, tuples of those, and numpy arrays for tensors. Operand positions are
    those of the ONNX specification; an absent optional input is the empty string.
    """

    kind: ClassVar[str] = "onnx.node"

    op_type: str
    domain: str = ""
    version: int = 1
    attributes: Mapping[str, Any] = attrs.field(factory=dict)
    index: int = 0

    @property
    def operator(self) -> str:
        """The operator's registered name: ``Conv``, or ``domain::Op`` outside the default domain."""
        return f"{self.domain}::{self.op_type}" if self.domain else self.op_type

    @property
    def label(self) -> str:
        """For messages: ``Conv node 'layer1/conv'``."""
        return f"{self.operator} node '{self.name}'"


DIALECT = Dialect("onnx", operations=(OnnxNode,))
