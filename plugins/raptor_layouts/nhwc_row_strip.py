"""Layout ``nhwc-row-strip``: image rows of channel vectors."""

from __future__ import annotations

from typing import ClassVar

import attrs

from raptor_core.ir.types import Layout, TensorType


@attrs.frozen
class NhwcRowStripLayout:
    """Axis 1, the channels of an image, innermost; the other axes in their order. For tensors of at least 3 axes."""

    name: ClassVar[str] = "nhwc-row-strip"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "channels innermost: every image row a strip of channel vectors"

    def layout(self, type_: TensorType) -> Layout | None:
        """(0, 2, ..., 1), or None below 3 axes."""
        if type_.rank < 3:
            return None
        return Layout(self.name, (0, *range(2, type_.rank), 1))


NHWC_ROW_STRIP = NhwcRowStripLayout()
