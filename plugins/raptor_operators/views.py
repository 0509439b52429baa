"""Copying, filling and combining boxes through views, in the longest runs that both sides allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from raptor_core.spatial.kernel import Address, Affine, KernelBuilder, View

_LANES = 16
"""Elements that count as one step when two ways to write the same body are compared."""


@attrs.frozen
class Located:
    """A view moved by an affine number of elements, for use inside loops that are already open."""

    view: View
    origin: Affine = attrs.field(factory=Affine)

    def at(self, *index: Affine | int) -> Address:
        """The address of the element at a relative index."""
        return self.view.at(*index) + self.origin


@attrs.frozen
class Run:
    """How far a contiguous destination goes while a source steps evenly.

    ``axes`` innermost axes of the destination's order, ``count`` elements, ``stride`` of the source in elements.
    """

    axes: int
    count: int
    stride: int


def instruction_cost(count: int) -> int:
    """The rough cost of one vector instruction on ``count`` elements, for comparing bodies."""
    return 1 + 8 * -(-count // _LANES)


def sub_view(view: View, lo: Sequence[int], extents: Sequence[int]) -> View:
    """The box of ``extents`` at relative index ``lo`` of a view."""
    base = view.base + sum(low * stride for low, stride in zip(lo, view.strides, strict=True))
    return attrs.evolve(view, base=base, shape=tuple(extents))


def along_axis(view: View, axis: int, start: int, extent: int, step: int = 1) -> View:
    """Every ``step``-th of the indices from ``start`` on along ``axis``: ``extent`` of them."""
    shape, strides = list(view.shape), list(view.strides)
    shape[axis] = extent
    strides[axis] *= step
    return View(view.slot, tuple(shape), view.base + start * view.strides[axis], tuple(strides), view.order)


def strided_run(dst: View, src: View, limit: int | None = None) -> Run:
    """The longest run over innermost axes of ``dst`` that is gap-free there and evenly spaced in ``src``.

    Only ``dst.order`` counts; ``src`` has the same shape and any strides. At most ``limit`` axes are joined.
    """
    axes, count = 0, 1
    stride: int | None = None
    for axis in reversed(dst.order[-limit:] if limit else dst.order if limit is None else ()):
        extent = dst.shape[axis]
        if extent != 1:
            step = src.strides[axis]
            if dst.strides[axis] != count or step < 0 or (stride is not None and step != stride * count):
                break
            stride = step if stride is None else stride
            count *= extent
        axes += 1
    return Run(axes, count, 1 if stride is None else stride)


def copy_view(k: KernelBuilder, dst: Located, src: Located) -> None:
    """dst = src, element by element of two boxes of one shape; strides of the source may be zero or negative."""
    run = strided_run(dst.view, src.view)
    outer = dst.view.order[: len(dst.view.order) - run.axes]
    with k.loops([dst.view.shape[axis] for axis in outer]) as variables:
        index = loop_index(len(dst.view.shape), outer, variables)
        k.gather(dst.at(*index), src.at(*index), run.stride, run.count)


def copy_cost(dst: View, src: View) -> int:
    """The cost of :func:`copy_view`."""
    run = strided_run(dst, src)
    return math.prod(dst.shape) // run.count * instruction_cost(run.count)


def fill_view(k: KernelBuilder, view: View, value: float) -> None:
    """Every element of a box becomes ``value``."""
    with k.runs(view) as ((address,), count):
        k.fill(address, value, count)


def fill_cost(view: View) -> int:
    """The cost of :func:`fill_view`."""
    count = view.run_axes()[1]
    return math.prod(view.shape) // count * instruction_cost(count)


def combine(k: KernelBuilder, op: str, dst: Located, a: Located, b: Located) -> None:
    """dst = a op b for three boxes of one shape; evenly spaced sources are gathered into runs first."""
    axes = min(strided_run(dst.view, source.view).axes for source in (a, b))
    runs = [strided_run(dst.view, source.view, axes) for source in (a, b)]
    count = runs[0].count
    gathered = [k.scratch(count) if run.stride != 1 and count > 1 else None for run in runs]
    outer = dst.view.order[: len(dst.view.order) - axes]
    with k.loops([dst.view.shape[axis] for axis in outer]) as variables:
        index = loop_index(len(dst.view.shape), outer, variables)
        addresses = [a.at(*index), b.at(*index)]
        for position, (scratch, run) in enumerate(zip(gathered, runs, strict=True)):
            if scratch is not None:
                k.gather(scratch, addresses[position], run.stride, count)
                addresses[position] = scratch
        k.binary(op, dst.at(*index), addresses[0], addresses[1], count)


def scale(k: KernelBuilder, view: View, factor: float) -> None:
    """Every element of a box times ``factor``, in place."""
    factors = k.scratch(view.run_axes()[1])
    k.fill(factors, factor, view.run_axes()[1])
    with k.runs(view) as ((address,), count):
        k.binary("mul", address, address, factors, count)


def loop_index(rank: int, axes: Sequence[int], variables: Sequence[Affine]) -> list[Affine | int]:
    """The relative index with loop variables on ``axes`` and 0 on the others."""
    index: list[Affine | int] = [0] * rank
    for axis, variable in zip(axes, variables, strict=True):
        index[axis] = variable
    return index
