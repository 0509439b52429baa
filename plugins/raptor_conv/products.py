"""The body of products over blocks of output positions: gather, multiply, add up, put in place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from raptor_conv.convolution import ConvCompute
from raptor_conv.copies import copy_view
from raptor_conv.patch import AxisBlock, Tiling
from raptor_core.spatial.kernel import Address, Affine, KernelBuilder, View, packed_strides


@attrs.frozen
class BlockWalk:
    """Blocks of output positions that cover a box, by axis; ``sizes`` are the block's extents (1 on other axes).

    The last block of an axis is moved back to end with the box, so that all are of one size.
    """

    extents: tuple[int, ...]
    sizes: tuple[int, ...]

    def walk(self, k: KernelBuilder, order: Sequence[int]) -> Iterator[list[Affine | int]]:
        """Loops over the blocks, outermost axis first; gives the position of each block's first output."""
        segments = [self._segments(axis) for axis in order]
        for choice in itertools.product(*segments):
            with k.loops([count for count, _ in choice]) as variables:
                position: list[Affine | int] = [0] * len(self.extents)
                for axis, (_, start), variable in zip(order, choice, variables, strict=True):
                    position[axis] = variable * self.sizes[axis] + start
                yield position

    def _segments(self, axis: int) -> list[tuple[int, int]]:
        """(number of blocks, first position) of the regular blocks and, if there is one, of the one moved back."""
        count, rest = divmod(self.extents[axis], self.sizes[axis])
        return [(count, 0)] + ([(1, self.extents[axis] - self.sizes[axis])] if rest else [])


@attrs.frozen
class PatchSource:
    """Where patches come from: the input's view, its steps per output position, and the first channel."""

    x: View
    position_steps: tuple[int, ...]
    first_channel: int
    channel_axis: int

    def base(self) -> int:
        """The address of the first element of the first patch."""
        return self.x.base + self.first_channel * self.x.strides[self.channel_axis]

    def origin(self, position: Sequence[Affine | int]) -> Affine:
        """How far the patch of a position lies from the first one."""
        origin = Affine()
        for p, steps, stride in zip(position, self.position_steps, self.x.strides, strict=True):
            origin = origin + p * (steps * stride)
        return origin


@attrs.define
class ScratchAreas:
    """Scratch areas shared by all products of a kernel, as large as the largest asks for."""

    patch: Address | None = None
    partial: Address | None = None
    block: Address | None = None

    @classmethod
    def make(cls, k: KernelBuilder, tilings: Sequence[Tiling], columns: Sequence[int], staged: bool) -> ScratchAreas:
        """The areas that products with the given tilings and numbers of columns need; a constant one is written."""
        areas = cls()
        gathered = max(tiling.gathered for tiling in tilings)
        if gathered:
            areas.patch = k.scratch(gathered)
            if any(tiling.bias_row for tiling in tilings):
                k.fill(areas.patch, 1.0, 1)
        if any(tiling.products > 1 for tiling in tilings):
            areas.partial = k.scratch(max(columns))
        if staged:
            areas.block = k.scratch(max(columns))
        return areas


@attrs.frozen
class Target:
    """Where the outputs of a bundle go: a view with gap-free channels, the first channel, and the block's shape."""

    view: View
    first_channel: int
    channel_axis: int
    block: tuple[int, ...]

    def column_order(self) -> tuple[int, ...]:
        """Axes of the columns of the matrices, outermost first: positions as in the result, then channels."""
        return (*(axis for axis in self.view.order if axis != self.channel_axis), self.channel_axis)

    @property
    def columns(self) -> int:
        """Number of outputs of a block."""
        return int(np.prod(self.block))

    @property
    def is_direct(self) -> bool:
        """Whether the outputs of a block are gap-free in the view."""
        packed = packed_strides(self.block, self.column_order())
        return all(extent == 1 or a == b for extent, a, b in zip(self.block, packed, self.view.strides, strict=True))

    def at(self, position: Sequence[Affine | int]) -> Address:
        """The address of a block's first output."""
        index = list(position)
        index[self.channel_axis] = self.first_channel
        return self.view.at(*index)

    def put(self, k: KernelBuilder, position: Sequence[Affine | int], block: Address) -> None:
        """Copy the outputs of a block from a scratch area to their places."""
        order = self.column_order()
        source = View(block.slot, self.block, 0, packed_strides(self.block, order), order)
        place = self.at(position)
        dst = View(place.slot, self.block, place.offset.constant, self.view.strides, order)
        copy_view(k, dst, source, dst_origin=Affine(0, place.offset.terms))


@attrs.frozen
class BundleProducts:
    """The products of one bundle for any block of positions; ``bias`` is added unless it stands in the weights."""

    tiling: Tiling
    source: PatchSource
    target: Target
    first_weight: int
    areas: ScratchAreas
    bias: Address | None = None

    def emit(self, k: KernelBuilder, position: Sequence[Affine | int]) -> None:
        """Everything for the block that starts at ``position``."""
        origin = self.source.origin(position)
        self._gather(k, origin)
        direct = self.target.is_direct
        dst = self.target.at(position) if direct else self.areas.block
        assert dst is not None
        columns = self.target.columns
        for number, tile in enumerate(self._tile_addresses(origin)):
            if number == 0:
                k.product(dst, tile, self.first_weight, columns)
                continue
            assert self.areas.partial is not None
            k.product(self.areas.partial, tile, self.first_weight + number, columns)
            k.binary("add", dst, dst, self.areas.partial, columns)
        if self.bias is not None:
            k.binary("add", dst, dst, self.bias, columns)
        if not direct:
            self.target.put(k, position, dst)

    def _gather(self, k: KernelBuilder, origin: Affine) -> None:
        tiling, patch = self.tiling, self.tiling.patch
        if tiling.gathered <= tiling.bias_row:
            return
        assert self.areas.patch is not None
        slot, first = self.areas.patch.slot, int(tiling.bias_row)
        src = patch.view(self.source.x, self.source.base())
        if tiling.rest == patch.run:
            copy_view(k, patch.packed(slot, first), src, src_origin=origin)
            return
        outer, extents = self._outer_axes()
        steps = packed_strides(extents, range(len(extents)))
        with k.loops(extents) as variables:
            index: list[Affine | int] = [0] * len(patch.shape)
            dst = Affine(first)
            for axis, variable, step in zip(outer, variables, steps, strict=True):
                index[axis] = variable
                dst = dst + variable * (step * tiling.rest)
            whole = patch.run - tiling.rest
            k.copy(Address(slot, dst), src.at(*index) + origin + whole, tiling.rest)

    def _outer_axes(self) -> tuple[tuple[int, ...], list[int]]:
        """The axes outside a run, outermost first, and their extents."""
        patch, run, inner = self.tiling.patch, 1, 0
        for axis in reversed(patch.order):
            if run == patch.run and patch.shape[axis] > 1:
                break
            run *= patch.shape[axis]
            inner += 1
        outer = patch.order[: len(patch.order) - inner]
        return outer, [patch.shape[axis] for axis in outer]

    def _tile_addresses(self, origin: Affine) -> Iterator[Address]:
        tiling, patch = self.tiling, self.tiling.patch
        src = patch.view(self.source.x, self.source.base())
        outer, extents = self._outer_axes()
        for start, _ in tiling.in_place:
            run, within = divmod(start, patch.run)
            index: list[Affine | int] = [0] * len(patch.shape)
            for axis, i in zip(outer, np.unravel_index(run, extents) if extents else (), strict=True):
                index[axis] = int(i)
            yield src.at(*index) + origin + within
        for start, _ in tiling.gathered_tiles:
            assert self.areas.patch is not None
            yield self.areas.patch + start


@attrs.frozen
class Part:
    """Products of one kind: ``columns`` outputs from ``first_output`` on (counted in ``target``, whose channels are
    gap-free) out of the patch that begins at channel ``first_input`` of x; ``bias``, if any, is added."""

    tiling: Tiling
    first_input: int
    target: View
    first_output: int
    columns: int
    bias: View | None


def emit_products(
    k: KernelBuilder,
    op: ConvCompute,
    extents: Sequence[int],
    blocks: Sequence[AxisBlock],
    x: View,
    parts: Sequence[Part],
) -> None:
    """All products of a box with the given extents; weights are numbered part by part."""
    sizes, steps = [1] * len(extents), [1] * len(extents)
    steps[op.channel_axis] = 0
    for axis, block, stride in zip(op.spatial_axes, blocks, op.strides, strict=True):
        sizes[axis], steps[axis] = block.positions, stride
    targets = []
    for part in parts:
        shape = list(sizes)
        shape[op.channel_axis] = part.columns
        targets.append(Target(part.target, part.first_output, op.channel_axis, tuple(shape)))
    staged = not all(place.is_direct for place in targets)
    areas = ScratchAreas.make(k, [part.tiling for part in parts], [place.columns for place in targets], staged)
    products, first_weight = [], 0
    for part, place in zip(parts, targets, strict=True):
        source = PatchSource(x, tuple(steps), part.first_input, op.channel_axis)
        addend = None
        if part.bias is not None:
            addend = _repeated(k, part.bias.at(part.first_output), part.columns, place.columns // part.columns)
        products.append(BundleProducts(part.tiling, source, place, first_weight, areas, addend))
        first_weight += part.tiling.products
    order = [axis for axis in parts[0].target.order if axis != op.channel_axis]
    for position in BlockWalk(tuple(extents), tuple(sizes)).walk(k, order):
        for bundle_products in products:
            bundle_products.emit(k, position)


def _repeated(k: KernelBuilder, bias: Address, count: int, times: int) -> Address:
    """``count`` elements of the bias, ``times`` times in a row."""
    if times == 1:
        return bias
    area = k.scratch(count * times)
    with k.loop(times) as turn:
        k.copy(area + turn * count, bias, count)
    return area
