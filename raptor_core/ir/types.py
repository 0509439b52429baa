"""Types of values: tensors with a static shape, an element type and, after layout planning, an element order."""

from __future__ import annotations

import math

import attrs

from raptor_core.ir.attributes import attribute

ELEMENT_BYTES = {"f32": 4, "f64": 8, "f16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1}
"""Size in bytes of every element type, by its name in the text form."""


@attribute("layout")
@attrs.frozen
class Layout:
    """The order in which the elements of a box lie in memory.

    ``name`` is the layout alternative that chose it. ``order`` lists the logical axes from outermost to innermost: a
    dense NCHW tensor is (0, 1, 2, 3), channel vectors at every pixel are (0, 2, 3, 1).
    """

    name: str
    order: tuple[int, ...]

    def __attrs_post_init__(self) -> None:
        if sorted(self.order) != list(range(len(self.order))):
            raise ValueError(f"layout order {self.order} is not a permutation of the axes")

    @classmethod
    def dense(cls, rank: int) -> Layout:
        """Row-major order of ``rank`` axes: the order of every tensor outside the chip."""
        return cls("dense", tuple(range(rank)))

    @property
    def is_dense(self) -> bool:
        """Whether the elements are in row-major order, whatever the layout is called."""
        return self.order == tuple(range(len(self.order)))


@attribute("tensor")
@attrs.frozen
class TensorType:
    """A static tensor: ``shape``, ``element`` type name (see ELEMENT_BYTES), and ``layout`` once planned."""

    shape: tuple[int, ...]
    element: str = "f32"
    layout: Layout | None = None

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def order(self) -> tuple[int, ...]:
        """Axes from outermost to innermost; row-major when no layout is planned yet."""
        return self.layout.order if self.layout is not None else tuple(range(self.rank))

    def __str__(self) -> str:
        """For messages: ``f32[1,64,56,56]``."""
        return f"{self.element}[{','.join(map(str, self.shape))}]"
