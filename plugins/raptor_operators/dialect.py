"""The operators dialect: the operations and attributes of this package."""

from __future__ import annotations

from raptor_core.ir.operation import Dialect
from raptor_operators.binary import Binary
from raptor_operators.functions import FUNCTIONS
from raptor_operators.global_average_pool import GlobalAveragePool
from raptor_operators.pieces import Piece
from raptor_operators.pooling import AveragePool, MaxPool
from raptor_operators.rearrange import Rearrange
from raptor_operators.reshape import Reshape
from raptor_operators.softmax import Softmax

DIALECT = Dialect(
    "operators",
    operations=(AveragePool, Binary, GlobalAveragePool, MaxPool, Rearrange, Reshape, Softmax),
    attributes=(Piece, *FUNCTIONS),
)
