"""Copies between views in the longest runs that both sides allow, inside loops that may already be open."""

from __future__ import annotations

import attrs

from raptor_core.spatial.kernel import Affine, KernelBuilder, View


@attrs.frozen
class Run:
    """How far a gap-free destination goes while a source steps evenly.

    ``axes`` innermost axes of the destination's order, ``count`` elements, ``stride`` of the source in elements.
    """

    axes: int
    count: int
    stride: int


def strided_run(dst: View, src: View) -> Run:
    """The longest run over innermost axes of ``dst.order``; ``src`` has the same shape and any order."""
    axes, count = 0, 1
    stride: int | None = None
    for axis in reversed(dst.order):
        extent = dst.shape[axis]
        if extent != 1:
            step = src.strides[axis]
            if dst.strides[axis] != count or (stride is not None and step != stride * count):
                break
            stride = step if stride is None else stride
            count *= extent
        axes += 1
    return Run(axes, count, 1 if stride is None else stride)


def run_count(dst: View, src: View) -> int:
    """The number of instructions of :func:`copy_view`."""
    total = 1
    for extent in dst.shape:
        total *= extent
    return total // strided_run(dst, src).count


def copy_view(
    k: KernelBuilder, dst: View, src: View, *, dst_origin: Affine | int = 0, src_origin: Affine | int = 0
) -> None:
    """dst = src, element by element; both moved by the given number of elements."""
    run = strided_run(dst, src)
    outer = dst.order[: len(dst.order) - run.axes]
    with k.loops([dst.shape[axis] for axis in outer]) as variables:
        index: list[Affine | int] = [0] * len(dst.shape)
        for axis, variable in zip(outer, variables, strict=True):
            index[axis] = variable
        k.gather(dst.at(*index) + dst_origin, src.at(*index) + src_origin, run.stride, run.count)
