"""Functions of single elements: what Pointwise operations and epilogues are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs

from raptor_core.ir.attributes import attribute
from raptor_core.spatial.compute import PointwiseFunction
from raptor_core.spatial.kernel import Address, Affine, KernelBuilder

_INT32 = 2**31
_CHUNK = 1024
"""The longest vector of equal numbers: longer runs are worked off in pieces of this many elements."""


def _equal_numbers(k: KernelBuilder, number: float, count: int) -> Address:
    """A vector of ``number`` that serves every piece of a run of ``count`` elements."""
    return k.equal_numbers(number, min(count, _CHUNK))


def _pieces(k: KernelBuilder, count: int, emit: Callable[[Affine, int], None]) -> None:
    """Call ``emit`` with the first element and the number of elements of every piece of a run."""
    length = min(count, _CHUNK)
    whole, rest = divmod(count, length)
    with k.loop(whole) as turn:
        emit(turn * length, length)
    if rest:
        emit(Affine(whole * length), rest)


def _with_number(
    k: KernelBuilder, op: str, dst: Address, src: Address, number: float, count: int, *, first: bool = False
) -> None:
    """dst = src op number, or number op src when the number comes ``first``."""
    vector = _equal_numbers(k, number, count)

    def emit(start: Affine, length: int) -> None:
        a, b = (vector, src + start) if first else (src + start, vector)
        k.binary(op, dst + start, a, b, length)

    _pieces(k, count, emit)


@attribute("operators.relu")
@attrs.frozen(kw_only=True)
class Relu(PointwiseFunction):
    """max(0, x)."""

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        k.unary("relu", dst, src, count)


@attribute("operators.sigmoid")
@attrs.frozen(kw_only=True)
class Sigmoid(PointwiseFunction):
    """1 / (1 + exp(-x))."""

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        k.unary("sigmoid", dst, src, count)


@attribute("operators.tanh")
@attrs.frozen(kw_only=True)
class Tanh(PointwiseFunction):
    """The hyperbolic tangent."""

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        k.unary("tanh", dst, src, count)


@attribute("operators.leaky_relu")
@attrs.frozen(kw_only=True)
class LeakyRelu(PointwiseFunction):
    """x where x >= 0, else ``alpha`` times x."""

    alpha: float

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        if self.alpha == 0:
            k.unary("relu", dst, src, count)
            return
        slopes = _equal_numbers(k, self.alpha, count)
        scaled = k.scratch(min(count, _CHUNK))

        def emit(start: Affine, length: int) -> None:
            if 0 < self.alpha <= 1:
                k.binary("mul", scaled, src + start, slopes, length)
                k.binary("max", dst + start, src + start, scaled, length)
                return
            k.clamp_max(scaled, src + start, 0, length)
            k.binary("mul", scaled, scaled, slopes, length)
            k.unary("relu", dst + start, src + start, length)
            k.binary("add", dst + start, dst + start, scaled, length)

        _pieces(k, count, emit)


@attribute("operators.clip")
@attrs.frozen(kw_only=True)
class Clip(PointwiseFunction):
    """min(max(x, ``lower``), ``upper``); a bound of None does not bind. Bounds are float32 values, not NaN."""

    lower: float | None = None
    upper: float | None = None

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        value = src
        if self.lower is not None:
            _at_least(k, dst, value, self.lower, count)
            value = dst
        if self.upper is not None:
            _at_most(k, dst, value, self.upper, count)
            value = dst
        if value != dst:
            k.copy(dst, value, count)


def _is_int32(bound: float) -> bool:
    return math.isfinite(bound) and bound == math.floor(bound) and -_INT32 <= bound < _INT32


def _at_least(k: KernelBuilder, dst: Address, src: Address, bound: float, count: int) -> None:
    if bound == 0:
        k.unary("relu", dst, src, count)
        return
    if _is_int32(bound):
        k.clamp_min(dst, src, int(bound), count)
        return
    _with_number(k, "max", dst, src, bound, count)


def _at_most(k: KernelBuilder, dst: Address, src: Address, bound: float, count: int) -> None:
    """min(x, bound); without a whole bound it is -max(-x, -bound), which is exact."""
    if _is_int32(bound):
        k.clamp_max(dst, src, int(bound), count)
        return
    minus, bounds = _equal_numbers(k, -1.0, count), _equal_numbers(k, -bound, count)

    def emit(start: Affine, length: int) -> None:
        k.binary("mul", dst + start, src + start, minus, length)
        k.binary("max", dst + start, dst + start, bounds, length)
        k.binary("mul", dst + start, dst + start, minus, length)

    _pieces(k, count, emit)


@attribute("operators.add_scalar")
@attrs.frozen(kw_only=True)
class AddScalar(PointwiseFunction):
    """x + ``addend``."""

    addend: float

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        _with_number(k, "add", dst, src, self.addend, count)


@attribute("operators.subtract_from")
@attrs.frozen(kw_only=True)
class SubtractFrom(PointwiseFunction):
    """``minuend`` - x."""

    minuend: float

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        _with_number(k, "sub", dst, src, self.minuend, count, first=True)


@attribute("operators.multiply_scalar")
@attrs.frozen(kw_only=True)
class MultiplyScalar(PointwiseFunction):
    """x times ``factor``."""

    factor: float

    def emit(self, k: KernelBuilder, dst: Address, src: Address, count: int) -> None:
        _with_number(k, "mul", dst, src, self.factor, count)


FUNCTIONS = (Relu, Sigmoid, Tanh, LeakyRelu, Clip, AddScalar, SubtractFrom, MultiplyScalar)
"""All functions of this package, for the dialect."""
