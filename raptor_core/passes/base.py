"""What a pass is: a named function from module to module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import attrs

from raptor_core.ir.module import Module

if TYPE_CHECKING:
    from raptor_core.plugins.manager import PluginManager
    from raptor_core.targets.machine import Machine


@attrs.frozen
class PassContext:
    """What a pass may ask besides the module: the machine, the plugins, and the compilation's options.

    ``options`` holds resolved values by option name (``conv_strategy``, ``scheduler``, ``layout_planning``, ...).
    """

    machine: Machine
    plugins: PluginManager
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class PassResult:
    """The module after a pass, figures for its line in the report, and report texts by file name."""

    module: Module
    notes: Mapping[str, Any] = attrs.field(factory=dict)
    reports: Mapping[str, str] = attrs.field(factory=dict)


@runtime_checkable
class Pass(Protocol):
    """A pass. ``name`` is its name in kebab case, on the command line and in dumps; it is also the stage it makes."""

    name: ClassVar[str]

    def run(self, module: Module, context: PassContext) -> PassResult:
        """The module after this pass; ``module`` itself is not changed. Raises RaptorError to refuse it."""
        ...
