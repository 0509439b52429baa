"""Strategy ``packed-im2col``: neighbouring output positions share a product.

The input elements behind a block of positions are the rows of the crossbars, the kernel stands there once for every
position, moved along the rows. Few rows are then left empty, and elements that several positions read are read once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from raptor_conv.forms import FormEstimator
from raptor_conv.strategies import append_cheapest, patch_forms, refuse_deep
from raptor_core.ir.module import Rewriter
from raptor_core.ir.operation import Types
from raptor_core.options import Option
from raptor_core.spatial.plans import ConvPlan
from raptor_core.spatial.pricing import crossbar_share
from raptor_core.targets.machine import Machine

_PRICED = 2


@attrs.frozen
class PackedIm2colStrategy:
    """See the module's text. Applies where there is more than one output position along a windowed axis."""

    name: ClassVar[str] = "packed-im2col"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "several neighbouring output positions in one product"
    options: ClassVar[tuple[Option, ...]] = ()

    def applies(self, plan: ConvPlan, types: Types, machine: Machine) -> str | None:
        """Refuses what has no neighbouring positions, and blocks that no core could hold."""
        deep = refuse_deep(plan, types, machine)
        if deep is not None:
            return deep
        if not plan.window_kernel:
            return "a matrix product has no neighbouring positions"
        estimator = FormEstimator(plan, types, machine, 1)
        blocks = estimator.packed()
        if not blocks:
            return "there is only one output position"
        if not any(map(estimator.fits, blocks)):
            return f"not even two positions fit the {machine.crossbars_per_core} crossbars of a core"
        return None

    def realise(self, plan: ConvPlan, rewriter: Rewriter, machine: Machine, options: Mapping[str, Any]) -> None:
        """One :class:`raptor_conv.patch_products.StreamedPatch` with the block that costs least."""
        types = rewriter.types
        estimator = FormEstimator(plan, types, machine, crossbar_share(plan, rewriter.module, machine))
        forms = estimator.best(estimator.packed(), _PRICED)
        found = [op for form in forms for op in patch_forms(plan, types, machine, form.block)]
        append_cheapest(found, plan, rewriter, machine)


PACKED_IM2COL = PackedIm2colStrategy()
