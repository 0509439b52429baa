"""Compute operations: what every operator says about itself, in boxes.

A compute operation has one result. For any box of the result it says which box of each operand it needs
(:meth:`ComputeOp.region`), which weights stand in crossbars (:meth:`ComputeOp.weights`), and how the box is computed
(:meth:`ComputeOp.build`). It never mentions cores, messages or addresses; layouts, parallelism, transfers and reports
follow from these answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.attributes import attribute
from raptor_core.ir.operation import Operation, Types
from raptor_core.ir.types import Layout
from raptor_core.spatial.boxes import Box, BoxArray
from raptor_core.spatial.kernel import Address, Kernel, KernelBuilder, View

Matrix = npt.NDArray[np.float32]
Constants = Mapping[str, npt.NDArray[Any]]
LayoutChoice = tuple[tuple[Layout, ...], Layout]
"""One layout for every operand, and the result's."""


@attribute("placement")
@attrs.frozen(eq=False)
class Placement:
    """Where and when the lanes of a compute run.

    ``boxes`` [n, 2, rank] are disjoint and cover the result; ``cores`` [n] is the core of each. ``order`` [n] says in
    which step a lane runs: steps are counted over the whole module, a lane's step is greater than those of the lanes
    it needs, and lanes of one step are on different cores (they run side by side).
    """

    boxes: BoxArray
    cores: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]


@attrs.frozen(kw_only=True)
class PointwiseFunction:
    """A function of single elements, as an attribute of :class:`Pointwise` and of epilogues.

    Subclasses are frozen attrs classes marked with :func:`raptor_core.ir.attributes.attribute`.
    """

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        """Write dst[i] = f(src[i]) for i < count; ``dst`` may equal ``src``."""
        raise TypeError(f"{type(self).__name__} does not implement emit")


@attrs.frozen(kw_only=True)
class PlanOp(Operation):
    """An operation that a strategy still has to turn into compute operations."""

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        """The layouts this operation can work with.

        ``candidates`` lists, for each operand and then for the result, the layouts on offer. The default is dense
        everywhere. Choices may only use layouts on offer.
        """
        return [(tuple(Layout.dense(types[o].rank) for o in self.operands), Layout.dense(types[self.results[0]].rank))]


@attrs.frozen(kw_only=True)
class ComputeOp(PlanOp):
    """An operation that can compute any box of its result.

    ``epilogue`` are element-wise functions applied to the result in place; ``placement`` is set by the scheduler.
    """

    epilogue: tuple[PointwiseFunction, ...] = ()
    placement: Placement | None = None

    # ---- geometry ------------------------------------------------------------------------------------------------
    def region(self, operand: int, out: Box, types: Types) -> Box:
        """The box of operand number ``operand`` that the result box ``out`` needs.

        It may reach outside the operand: elements there are given as zero. An empty box says nothing is needed.
        The answer must be the same whatever the layouts, and monotone: a larger ``out`` needs no less.
        """
        raise TypeError(f"{type(self).__name__} does not implement region")

    def carried(self, operand: int, box: Box, types: Types) -> Box | None:
        """The box of the result that holds exactly what ``box`` of an operand holds, moved; empty if none of it.

        For operations that only move elements: a lane next to the fragment that it carries over needs nothing else.
        None (the default) says that the operation does not work that way.
        """
        return None

    def cut_granularity(self, types: Types) -> tuple[int, ...]:
        """Per axis of the result: boxes should start and end at multiples of this (the extent: never cut)."""
        return (1,) * types[self.results[0]].rank

    # ---- weights -------------------------------------------------------------------------------------------------
    def weight_shapes(self, out: Box, types: Types, rows: int) -> tuple[tuple[int, int], ...]:
        """(rows, columns) of each matrix that the box needs resident, given crossbars of ``rows`` rows.

        Each has at most ``rows`` rows; columns are any positive number (a group of several crossbars).
        """
        return ()

    def weights(self, out: Box, types: Types, constants: Constants, rows: int) -> tuple[Matrix, ...]:
        """The matrices themselves, float32, of the shapes that :meth:`weight_shapes` gives."""
        return ()

    def weights_key(self, out: Box, types: Types) -> Hashable:
        """Boxes with equal keys need the same matrices."""
        return ()

    # ---- body ----------------------------------------------------------------------------------------------------
    def kernel_key(self, out: Box, types: Types) -> Hashable:
        """What else, besides the shapes and strides of its views, the body of box ``out`` depends on.

        Boxes with equal keys and equal views share one kernel. The default, (), is right when the body does not
        depend on where the box lies.
        """
        return ()

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        """Write the body of box ``out``: from ``operands`` (views of the region boxes; None where the region is
        empty) to ``result``. ``rows`` is the crossbar height."""
        raise TypeError(f"{type(self).__name__} does not implement build")


def lane_kernel(
    op: ComputeOp, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
) -> Kernel:
    """The kernel of one lane: the operation's body, then its epilogue in place on the result."""
    k = KernelBuilder(len(op.operands))
    op.build(k, out, result, operands, types, rows)
    for function in op.epilogue:
        with k.runs(result) as ((address,), count):
            function.emit(k, address, address, count)
    return k.build()


def all_same_layout(op: PlanOp, types: Types, candidates: Sequence[Sequence[Layout]]) -> list[LayoutChoice]:
    """Choices for element-wise operations whose operands all have the result's rank: one layout for all."""
    result = candidates[-1]
    return [
        ((layout,) * len(op.operands), layout)
        for layout in result
        if all(layout in offered for offered in candidates[:-1])
    ]


def any_layout(op: PlanOp, types: Types, candidates: Sequence[Sequence[Layout]]) -> list[LayoutChoice]:
    """Choices for data movements of one operand: every pair."""
    return [((source,), target) for source in candidates[0] for target in candidates[-1]]


@attrs.frozen(kw_only=True)
class Pointwise(ComputeOp):
    """result = function(operand), element by element, in any layout."""

    kind = "spatial.pointwise"

    function: PointwiseFunction

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return out

    def carried(self, operand: int, box: Box, types: Types) -> Box | None:
        return box

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        return all_same_layout(self, types, candidates)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        source = operands[0]
        assert source is not None
        with k.runs(result, source) as ((dst, src), count):
            self.function.emit(k, dst, src, count)


@attrs.frozen(kw_only=True)
class ConvertLayout(ComputeOp):
    """The same tensor with its elements in another order; the types of operand and result say which."""

    kind = "spatial.convert_layout"

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return out

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        return any_layout(self, types, candidates)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        source = operands[0]
        assert source is not None
        k.moves(result.slot, source.slot, result.addresses(), source.addresses())
