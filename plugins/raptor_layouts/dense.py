"""Layout ``dense``: row-major order."""

from __future__ import annotations

from typing import ClassVar

import attrs

from raptor_core.ir.types import Layout, TensorType


@attrs.frozen
class DenseLayout:
    """The order of every tensor outside the chip, for tensors of any rank."""

    name: ClassVar[str] = "dense"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "row-major order, the order of tensors outside the chip"

    def layout(self, type_: TensorType) -> Layout | None:
        """Row-major order."""
        return Layout.dense(type_.rank)


DENSE = DenseLayout()
