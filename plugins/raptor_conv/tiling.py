"""Which groups share a product, and how the reduction of each such bundle is spread over crossbars."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_conv.patch import AxisBlock, Patch, Tiling, make_patch
from raptor_core.ir.types import TensorType

Matrix = npt.NDArray[np.float32]


@attrs.frozen
class Bundle:
    """Neighbouring groups computed by the same products, and the output channels ``lo`` .. ``hi`` - 1 among them."""

    first_group: int
    groups: int
    lo: int
    hi: int

    @property
    def columns(self) -> int:
        """Number of output channels."""
        return self.hi - self.lo


def bundles(lo: int, hi: int, outputs_per_group: int, size: int) -> list[Bundle]:
    """The bundles of at most ``size`` groups that cover output channels lo .. hi-1."""
    first, last = lo // outputs_per_group, -(-hi // outputs_per_group)
    found = []
    for group in range(first, last, size):
        end = min(group + size, last)
        begin_channel, end_channel = max(lo, group * outputs_per_group), min(hi, end * outputs_per_group)
        found.append(Bundle(group, end - group, begin_channel, end_channel))
    return found


@functools.lru_cache(maxsize=4096)
def tile_reduction(
    x: TensorType,
    channel_axis: int,
    channels: int,
    blocks: tuple[AxisBlock, ...],
    rows: int,
    *,
    whole: bool,
    gather: bool,
    bias_row: bool,
) -> Tiling:
    """The tiling of the patch of ``channels`` channels and ``blocks``; see make_patch and Tiling."""
    patch = make_patch(x, channel_axis, channels, blocks, whole=whole, reorder=False)
    if gather and patch.run < rows:
        patch = make_patch(x, channel_axis, channels, blocks, whole=whole, reorder=True)
    return Tiling(patch, rows, gather, bias_row)


def tile_matrices(tiling: Tiling, full: Matrix, column_order: Sequence[int], bias: Matrix | None) -> list[Matrix]:
    """The matrix of every tile.

    ``full`` has the axes of the patch, then those of the block of outputs (by axis of the result); columns follow
    ``column_order``. ``bias`` has one number per channel; it becomes the row of the constant one.
    """
    rank = len(tiling.patch.shape)
    columns = full.transpose(*tiling.patch.order, *(rank + axis for axis in column_order))
    matrix = np.ascontiguousarray(columns).reshape(tiling.patch.elements, -1)
    if bias is not None:
        repeated = np.tile(bias, matrix.shape[1] // bias.size)
        matrix = np.concatenate([matrix, repeated[None]])
    return [np.ascontiguousarray(matrix[rows]) for rows in tiling.row_elements()]


def full_weights(
    w: Matrix, patch: Patch, channel_axis: int, blocks: Sequence[AxisBlock], bundle: Bundle, groups: int
) -> Matrix:
    """The weights of a bundle from every element of the patch to every output of the block; see tile_matrices."""
    outputs_per_group, inputs = w.shape[0] // groups, w.shape[1]
    rank = len(patch.shape)
    result_shape = [1] * rank
    result_shape[channel_axis] = bundle.columns
    for k, block in enumerate(blocks):
        result_shape[channel_axis + 1 + k] = block.positions
    full = np.zeros((*patch.shape, *result_shape), dtype=np.float32)
    for n in range(bundle.groups):
        group = bundle.first_group + n
        lo, hi = max(bundle.lo, group * outputs_per_group), min(bundle.hi, (group + 1) * outputs_per_group)
        for position in np.ndindex(*(block.positions for block in blocks)):
            for tap in np.ndindex(*w.shape[2:]):
                elements = [block.offset(p, t) for block, p, t in zip(blocks, position, tap, strict=True)]
                batch, after = [0] * channel_axis, [0] * (rank - channel_axis - 1 - len(blocks))
                source: tuple[int | slice, ...] = (*batch, slice(n * inputs, (n + 1) * inputs), *elements, *after)
                target: tuple[int | slice, ...] = (*batch, slice(lo - bundle.lo, hi - bundle.lo), *position, *after)
                full[source + target] = w[(slice(lo, hi), slice(None), *tap)].T
    return full
