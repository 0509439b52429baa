"""The contracts of the plugin kinds that transform networks: lowerings, strategies, layouts, schedulers.

Every plugin is an object (not a class) named by an entry point, with ``name``, ``api_version`` and ``summary``.
Targets, profiles and simulators have contracts of their own (raptor_core.targets, raptor_core.simulation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout, TensorType
from raptor_core.options import Option
from raptor_core.spatial.compute import ComputeOp
from raptor_core.spatial.plans import ConvPlan
from raptor_core.targets.machine import Machine

API_VERSION = 1
"""The plugin API version of this Raptor. A plugin written for another version is refused by name."""


@runtime_checkable
class OperatorLowering(Protocol):
    """Turns ONNX nodes into plan operations. Group ``raptor.operator_lowerings``.

    The entry point's name is the ONNX operator it claims: ``Conv`` for the default domain, ``com.acme::Swish`` for
    others. One object may serve several entry points.
    """

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]

    def check(self, node: OnnxNode, module: Module) -> str | None:
        """Why this node cannot be lowered, in one sentence, or None when it can.

        All nodes of a network are asked before any is lowered, so that one run reports every reason.
        """
        ...

    def lower(self, node: OnnxNode, rewriter: Rewriter) -> None:
        """Append the node's plan operations to ``rewriter``; the last one defines the node's result value."""
        ...


@runtime_checkable
class ConvStrategy(Protocol):
    """A way to form the products of a convolution. Group ``raptor.conv_strategies``."""

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]

    def applies(self, plan: ConvPlan, types: Types, machine: Machine) -> str | None:
        """Why the strategy cannot realise ``plan``, in one sentence, or None when it can."""
        ...

    def realise(self, plan: ConvPlan, rewriter: Rewriter, machine: Machine, options: Mapping[str, Any]) -> None:
        """Append compute operations to ``rewriter``, the last of which defines ``plan.results[0]``.

        ``options`` are the strategy's own, resolved. Called only when :meth:`applies` gives None. The cost by which
        ``auto`` chooses is that of the operations appended (raptor_core.spatial.cost), so there is no estimate to
        keep true.
        """
        ...


@runtime_checkable
class LayoutAlternative(Protocol):
    """An element order on offer for values. Group ``raptor.layouts``."""

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]

    def layout(self, type_: TensorType) -> Layout | None:
        """The layout for a value of this type, or None when it has none to offer. ``Layout.name`` is the plugin's."""
        ...


@runtime_checkable
class Scheduler(Protocol):
    """Places computes. Group ``raptor.schedulers``."""

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]

    def schedule(self, module: Module, machine: Machine, options: Mapping[str, Any]) -> Module:
        """The module with a Placement on every ComputeOp.

        The scheduler chooses the cut of every result into boxes, each box's core, and the order; weights of all
        boxes on a core must fit its crossbars. Raises RaptorError when they cannot.
        """
        ...


__all__ = ["API_VERSION", "ComputeOp", "ConvStrategy", "LayoutAlternative", "OperatorLowering", "Scheduler"]
