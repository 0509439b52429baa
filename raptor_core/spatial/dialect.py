"""The spatial dialect: the operations and attributes of the core that plugins speak."""

from __future__ import annotations

from raptor_core.ir.operation import Dialect
from raptor_core.ir.types import Layout, TensorType
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.communication import Clear, Copy, Load, Mirror, Storage, Store, Transfer
from raptor_core.spatial.compute import ConvertLayout, Placement, Pointwise
from raptor_core.spatial.kernel import Instr, Kernel, Loop, Moves, Operand, View
from raptor_core.spatial.plans import ConvPlan

DIALECT = Dialect(
    "spatial",
    operations=(ConvPlan, Pointwise, ConvertLayout, Mirror, Storage, Clear, Load, Copy, Transfer, Store),
    attributes=(Box, Layout, TensorType, Placement, View, Instr, Kernel, Loop, Moves, Operand),
)
