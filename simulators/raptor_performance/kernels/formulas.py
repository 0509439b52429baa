"""Durations and amounts of single actions, compiled."""

from __future__ import annotations

from typing import Any

from numba import njit

from raptor_performance.kernels.constants import OUTPUT_WIDTH, TWO_OPERANDS

REQUEST_HOLD = 1000
"""ps for which a request to send keeps its sender's switch after it arrived."""
_PER_NS = 1000.0


@njit(cache=True, inline="always")
def accesses(size: int, width: int) -> Any:
    """Accesses (or flits) for ``size`` bytes."""
    return (size + width - 1) // width


@njit(cache=True, inline="always")
def memory_ps(count: int, cycles: int, period: float) -> Any:
    """Time of ``count`` accesses, to the nearest ps."""
    return int(count * cycles * period * _PER_NS + 0.5)


@njit(cache=True, inline="always")
def own_edge(time: int, period: int) -> Any:
    """The edge at which an execution counts that ended at ``time`` by its own timer."""
    return (time + period - 1) // period


@njit(cache=True, inline="always")
def woken_edge(time: int, period: int) -> Any:
    """The edge at which an execution counts that another party ended at ``time``: always a later one."""
    return time // period + 1


@njit(cache=True, inline="always")
def passes(bits: int, t: Any) -> Any:
    """Input slices x row slices of a product, rounded as the reference does."""
    return (bits // t.dac_resolution) * t.row_passes


@njit(cache=True, inline="always")
def compute_ps(count: int, t: Any) -> Any:
    """Crossbar time of a product of ``count`` passes."""
    cycles = t.front + t.back + (count - 1) * max(t.front, t.back) if t.pipelined else (t.front + t.back) * count
    return int(cycles * t.matrix_period * _PER_NS + 0.5)


@njit(cache=True, inline="always")
def read_vectors(op: int) -> Any:
    """How many vectors a vector instruction reads."""
    return 1 + ((TWO_OPERANDS >> op) & 1)


@njit(cache=True, inline="always")
def written_bytes(op: int, count: int, input_bytes: int, output_bytes: int) -> Any:
    """Bytes that a vector instruction writes."""
    return count * (output_bytes if (OUTPUT_WIDTH >> op) & 1 else input_bytes)


@njit(cache=True, inline="always")
def product_bytes(weight_bits: int, crossbars: int, output_bytes: int, t: Any) -> Any:
    """Bytes that a product writes."""
    return (t.cell_bits * t.columns) // weight_bits * output_bytes * crossbars
