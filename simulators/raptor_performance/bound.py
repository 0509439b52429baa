"""The least time that a network's products, one position at a time, take on a chip with all cores at work.

Counted are crossbar products and the additions of their partial sums, and nothing else: a product takes one position's
reduction, cut into pieces of a crossbar's rows; where a reduction is shorter than half the rows, several positions
share a product (block-diagonal weights). A group of crossbars side by side takes all columns. Where the vector unit's
dot products would be faster (a reduction of a few elements to one column), they count instead.

Neighbouring positions of a convolution read mostly the same elements. A program whose products compute several of
them from one window, at the price of more crossbars, needs fewer products than are counted here.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from raptor_performance.engine import kernel_timing
from raptor_performance.kernels import constants as k
from raptor_pim.artifacts.chip import ChipConfiguration


@attrs.frozen
class Layer:
    """``groups`` matrices of ``rows`` x ``columns``, each multiplied at ``positions`` positions."""

    layer: str
    positions: int
    groups: int
    rows: int
    columns: int

    @property
    def multiplications(self) -> int:
        """Multiplications of single elements."""
        return self.positions * self.groups * self.rows * self.columns


@attrs.frozen
class LayerBound:
    """The least work of one layer: products and ns of one core. ``products`` is 0 where the vector unit is faster."""

    layer: str
    products: int
    product_ns: float
    accumulation_ns: float
    vector_ns: float = 0.0

    @property
    def total_ns(self) -> float:
        """All of it."""
        return self.product_ns + self.accumulation_ns + self.vector_ns


@attrs.frozen
class UnitTimes:
    """Durations, ns, of single instructions on a chip for given widths, without waiting and without the front end."""

    configuration: ChipConfiguration
    input_bits: int
    output_bits: int
    weight_bits: int

    def product(self, crossbars: int) -> float:
        """One product on a group of ``crossbars``."""
        t = self._timing
        count = (self.input_bits // t.dac_resolution) * t.row_passes
        cycles = t.front + t.back + (count - 1) * max(t.front, t.back) if t.pipelined else (t.front + t.back) * count
        compute = cycles * t.matrix_period if count else 0.0
        written = t.cell_bits * t.columns // self.weight_bits * _bytes(self.output_bits) * crossbars
        return self._read(t.rows * _bytes(self.input_bits) * 8) + compute + self._write(written)

    def addition(self, elements: int) -> float:
        """One vector addition."""
        size = elements * _bytes(self.input_bits)
        return 2 * self._read(size) + self._steps(elements) + self._write(size)

    def dot_product(self, elements: int) -> float:
        """The part of a dot product that grows with its length."""
        return 2 * self._read(elements * _bytes(self.input_bits)) + self._steps(elements)

    def host(self, read_bytes: int, written_bytes: int) -> float:
        """Host memory busy with reading and writing that much."""
        t = self._timing
        reads, writes = -(-read_bytes // t.host_width), -(-written_bytes // t.host_width)
        return (reads * t.host_read + writes * t.host_write) * t.host_period

    @property
    def _timing(self) -> k.Timing:
        return kernel_timing(self.configuration, 0)

    def _read(self, size: int) -> float:
        t = self._timing
        return -(-size // t.local_width) * t.local_read * t.local_period

    def _write(self, size: int) -> float:
        t = self._timing
        return -(-size // t.local_width) * t.local_write * t.local_period

    def _steps(self, elements: int) -> float:
        t = self._timing
        return -(-elements // t.vector_width) * t.vector_step / 1000


def layer_bound(layer: Layer, times: UnitTimes) -> LayerBound:
    """The least work of one layer."""
    rows, columns = times.configuration.crossbar_shape
    blocks = layer.positions * layer.groups
    if blocks == 0 or layer.rows == 0 or layer.columns == 0:
        return LayerBound(layer.layer, 0, 0.0, 0.0)
    tiles = -(-layer.rows // rows)
    if tiles > 1 or 2 * layer.rows > rows:
        width = -(-layer.columns // columns)
        products = blocks * tiles
        product_ns = products * times.product(width)
        sums_ns = blocks * (tiles - 1) * times.addition(layer.columns)
    else:
        products, product_ns = _packed(layer, blocks, times)
        sums_ns = 0.0
    vector_ns = blocks * layer.columns * times.dot_product(layer.rows)
    if vector_ns < product_ns + sums_ns:
        return LayerBound(layer.layer, 0, 0.0, 0.0, vector_ns)
    return LayerBound(layer.layer, products, product_ns, sums_ns)


def _packed(layer: Layer, blocks: int, times: UnitTimes) -> tuple[int, float]:
    """Products and their ns when ``blocks`` short reductions share products, as many as is best."""
    rows, columns = times.configuration.crossbar_shape
    fitting = times.configuration.crossbars_per_core * columns // layer.columns
    best = (blocks, blocks * times.product(-(-layer.columns // columns)))
    for shared in range(2, min(rows // layer.rows, fitting, blocks) + 1):
        products = -(-blocks // shared)
        total = products * times.product(-(-shared * layer.columns // columns))
        if total < best[1]:
            best = (products, total)
    return best


def network_bound(layers: Sequence[Layer], times: UnitTimes) -> tuple[LayerBound, ...]:
    """The least work of every layer."""
    return tuple(layer_bound(layer, times) for layer in layers)


def _bytes(bits: int) -> int:
    return -(-bits // 8)
