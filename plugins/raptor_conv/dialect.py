"""The conv dialect: the operations of this package."""

from __future__ import annotations

from raptor_conv.depthwise_products import Depthwise
from raptor_conv.partial_products import PartialProducts, SumPartials
from raptor_conv.patch_products import StreamedPatch
from raptor_core.ir.operation import Dialect

DIALECT = Dialect("conv", operations=(Depthwise, PartialProducts, StreamedPatch, SumPartials))
