"""The dialect ``kernel_split``: the operations of this package, so that text IR with them can be read."""

from __future__ import annotations

from raptor_core.ir.operation import Dialect
from raptor_kernel_split.tap_products import TapProducts

DIALECT = Dialect("kernel_split", operations=(TapProducts,))
