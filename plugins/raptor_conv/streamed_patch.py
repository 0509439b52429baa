"""Strategy ``streamed-patch``: products over patches, one output position after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from raptor_conv.strategies import append_cheapest, patch_forms, refuse_deep
from raptor_core.ir.module import Rewriter
from raptor_core.ir.operation import Types
from raptor_core.options import Option
from raptor_core.spatial.plans import ConvPlan
from raptor_core.targets.machine import Machine


@attrs.frozen
class StreamedPatchStrategy:
    """See the module's text. Works for every convolution and matrix product whose reduction fits a core."""

    name: ClassVar[str] = "streamed-patch"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "one output position at a time; any convolution or matrix product"
    options: ClassVar[tuple[Option, ...]] = ()

    def applies(self, plan: ConvPlan, types: Types, machine: Machine) -> str | None:
        """Refuses a reduction that needs more crossbars than a core has."""
        return refuse_deep(plan, types, machine)

    def realise(self, plan: ConvPlan, rewriter: Rewriter, machine: Machine, options: Mapping[str, Any]) -> None:
        """One :class:`StreamedPatch`."""
        append_cheapest(patch_forms(plan, rewriter.types, machine), plan, rewriter, machine)


STREAMED_PATCH = StreamedPatchStrategy()
