"""Kernels: the straight-line body of one lane, as loops over vector instructions on affine addresses.

An operator writes its body once against a :class:`KernelBuilder`; code generation repeats it over lanes. Addresses
count *elements* from the start of a slot. Slots are the operands (0, 1, ...), then the result, then scratch areas.
Loops here are a compact notation only: the machine has none, every turn becomes instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.attributes import attribute

BINARY = ("add", "sub", "mul", "max")
"""Element-wise instructions: dst[i] = a[i] op b[i]."""
UNARY = ("relu", "tanh", "sigmoid", "softmax")
"""dst[i] = f(a[i]); softmax is over the ``count`` elements."""
INSTRUCTIONS = ("copy", "gather", "fill", *BINARY, "dot", "mean", *UNARY, "clamp_max", "clamp_min", "product")
"""Every instruction; see the methods of :class:`KernelBuilder` for their meaning."""


@attrs.frozen
class Affine:
    """constant + sum of coefficient x loop variable; ``terms`` maps a variable's number to its coefficient."""

    constant: int = 0
    terms: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms) if other else self
        if not other.terms:
            return Affine(self.constant + other.constant, self.terms)
        if not self.terms:
            return Affine(self.constant + other.constant, other.terms)
        merged = dict(self.terms)
        for variable, coefficient in other.terms:
            merged[variable] = merged.get(variable, 0) + coefficient
        return Affine(self.constant + other.constant, tuple(sorted(merged.items())))

    __radd__ = __add__

    def __mul__(self, factor: int) -> Affine:
        return Affine(self.constant * factor, tuple((v, c * factor) for v, c in self.terms))

    __rmul__ = __mul__


@attrs.frozen
class Address:
    """An element of a slot, while a kernel is being built."""

    slot: int
    offset: Affine = Affine()

    def __add__(self, elements: Affine | int) -> Address:
        return Address(self.slot, self.offset + elements)


@attribute("view")
@attrs.frozen
class View:
    """A box of a value as it lies in a slot.

    ``shape`` are the box's extents; the element at relative index i is at ``base + sum(i[a] * strides[a])``.
    ``order`` lists the axes from outermost to innermost.
    """

    slot: int
    shape: tuple[int, ...]
    base: int
    strides: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def packed(cls, slot: int, shape: Sequence[int], order: Sequence[int]) -> View:
        """The view of a box that fills its storage exactly, elements in ``order``."""
        return cls(slot, tuple(shape), 0, packed_strides(shape, order), tuple(order))

    def at(self, *index: Affine | int) -> Address:
        """The address of the element at a relative index; indices may use loop variables."""
        if len(index) != len(self.strides):
            raise ValueError(f"index of {len(index)} axes into a view of {len(self.strides)}")
        constant, moving = self.base, Affine()
        for i, stride in zip(index, self.strides, strict=True):
            if isinstance(i, Affine):
                moving = moving + i * stride
            else:
                constant += i * stride
        return Address(self.slot, moving + constant)

    def run_axes(self) -> tuple[int, int]:
        """How many innermost axes of ``order`` lie gap-free, and the number of elements of such a run."""
        count, axes = 1, 0
        for axis in reversed(self.order):
            if self.shape[axis] != 1 and self.strides[axis] != count:
                break
            count *= self.shape[axis]
            axes += 1
        return axes, count

    def addresses(self) -> npt.NDArray[np.int64]:
        """The address of every element of the box, as an array of the box's shape."""
        total = np.full(self.shape, self.base, dtype=np.int64)
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            steps = np.arange(extent, dtype=np.int64) * stride
            total += steps.reshape([-1 if a == axis else 1 for a in range(len(self.shape))])
        return total


def packed_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a gap-free box of ``shape`` with axes in ``order`` (outermost first), by logical axis."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


@attribute("at")
@attrs.frozen
class Operand:
    """A finished address: ``slot``, element ``offset``, and for each enclosing loop (outermost first) a stride."""

    slot: int
    offset: int
    strides: tuple[int, ...] = ()


@attribute("instr")
@attrs.frozen
class Instr:
    """One instruction. ``sources`` are its read operands; ``count`` its length in elements (0 for product).

    ``immediate``: the element stride of gather and mean, the bound of a clamp, the value of a fill, the weight's
    index of a product (whose ``relu`` applies max(0, y) to the outputs and whose ``columns`` is the matrix's width).
    """

    op: str
    dst: Operand
    sources: tuple[Operand, ...] = ()
    count: int = 0
    immediate: float | int = 0
    relu: bool = False
    columns: int = 0


@attribute("loop")
@attrs.frozen
class Loop:
    """``body`` repeated ``extent`` times."""

    extent: int
    body: tuple[Any, ...]


@attribute("moves")
@attrs.frozen(eq=False)
class Moves:
    """Many gathers between two slots as arrays: dst[k] + j = src[k] + j * stride[k] for j < count[k]."""

    dst_slot: int
    src_slot: int
    dst: npt.NDArray[np.int64]
    src: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    stride: npt.NDArray[np.int64]


@attribute("kernel")
@attrs.frozen
class Kernel:
    """The body of one lane. ``operands`` is the number of operand slots; the result is slot ``operands``.

    ``scratch`` holds the sizes, in elements, of slots ``operands + 1`` and up. ``body`` holds Instr, Loop and Moves.
    """

    operands: int
    scratch: tuple[int, ...]
    body: tuple[Any, ...]


@attrs.define
class KernelBuilder:
    """Writes a kernel. Instruction methods append to the innermost open loop."""

    operands: int
    _scratch: list[int] = attrs.field(factory=list, init=False)
    _open: list[list[Any]] = attrs.field(factory=lambda: [[]], init=False)
    _extents: list[int] = attrs.field(factory=list, init=False)
    _equal: dict[int, tuple[Address, int]] = attrs.field(factory=dict, init=False)

    def scratch(self, elements: int) -> Address:
        """A scratch area of ``elements`` elements, undefined at the start of every lane."""
        self._scratch.append(elements)
        return Address(self.operands + len(self._scratch))

    def equal_numbers(self, number: float, count: int) -> Address:
        """A scratch vector of ``count`` elements that all are ``number``, for reading only.

        It is filled once, at the start of the lane, wherever it is asked for; requests for one number share it.
        """
        key = struct.unpack("<I", struct.pack("<f", number))[0]
        known = self._equal.get(key)
        address = known[0] if known else self.scratch(count)
        longest = max(known[1], count) if known else count
        self._scratch[address.slot - self.operands - 1] = longest
        self._equal[key] = (address, longest)
        return address

    @contextmanager
    def loop(self, extent: int) -> Iterator[Affine]:
        """A loop of ``extent`` turns; gives its variable, 0 .. extent-1, for use in addresses."""
        if extent == 1:
            yield Affine()
            return
        depth = len(self._extents)
        self._extents.append(extent)
        self._open.append([])
        yield Affine(0, ((depth, 1),))
        body = tuple(self._open.pop())
        self._extents.pop()
        if body and extent > 0:
            self._open[-1].append(Loop(extent, body))

    @contextmanager
    def loops(self, extents: Sequence[int]) -> Iterator[tuple[Affine, ...]]:
        """Nested loops, outermost first."""
        if not extents:
            yield ()
            return
        with self.loop(extents[0]) as first, self.loops(extents[1:]) as rest:
            yield (first, *rest)

    @contextmanager
    def runs(self, *views: View) -> Iterator[tuple[tuple[Address, ...], int]]:
        """Loop over the longest runs that lie gap-free in all ``views`` (equal shapes and orders).

        Gives the address of the run's first element in each view, and the number of elements of a run.
        """
        first = views[0]
        if any(view.shape != first.shape or view.order != first.order for view in views):
            raise ValueError("runs needs views of equal shape and order")
        inner = min(view.run_axes()[0] for view in views)
        outer = first.order[: len(first.order) - inner]
        count = 1
        for axis in first.order[len(first.order) - inner :]:
            count *= first.shape[axis]
        with self.loops([first.shape[axis] for axis in outer]) as variables:
            index: list[Affine | int] = [0] * len(first.shape)
            for axis, variable in zip(outer, variables, strict=True):
                index[axis] = variable
            yield tuple(view.at(*index) for view in views), count

    # ---- instructions ------------------------------------------------------------------------------------------
    def copy(self, dst: Address, src: Address, count: int) -> None:
        """dst[i] = src[i]; the two must not overlap."""
        self._append("copy", dst, (src,), count)

    def gather(self, dst: Address, src: Address, stride: int, count: int) -> None:
        """dst[i] = src[i * stride]; stride 0 repeats one element."""
        if stride == 1 or count == 1:
            self.copy(dst, src, count)
        else:
            self._append("gather", dst, (src,), count, immediate=stride)

    def fill(self, dst: Address, value: float, count: int) -> None:
        """dst[i] = value (any float32)."""
        self._append("fill", dst, (), count, immediate=float(value))

    def binary(self, op: str, dst: Address, a: Address, b: Address, count: int) -> None:
        """dst[i] = a[i] op b[i] for an op of BINARY; dst may be a or b."""
        if op not in BINARY:
            raise ValueError(f"{op!r} is not one of {BINARY}")
        self._append(op, dst, (a, b), count)

    def unary(self, op: str, dst: Address, a: Address, count: int) -> None:
        """dst[i] = op(a[i]) for an op of UNARY; dst may be a."""
        if op not in UNARY:
            raise ValueError(f"{op!r} is not one of {UNARY}")
        self._append(op, dst, (a,), count)

    def dot(self, dst: Address, a: Address, b: Address, count: int) -> None:
        """dst[0] = sum of a[i] * b[i]."""
        self._append("dot", dst, (a, b), count)

    def mean(self, dst: Address, src: Address, stride: int, count: int) -> None:
        """dst[0] = mean of src[i * stride]."""
        self._append("mean", dst, (src,), count, immediate=stride)

    def clamp_max(self, dst: Address, a: Address, bound: int, count: int) -> None:
        """dst[i] = min(a[i], bound), bound a whole number in int32."""
        self._append("clamp_max", dst, (a,), count, immediate=int(bound))

    def clamp_min(self, dst: Address, a: Address, bound: int, count: int) -> None:
        """dst[i] = max(a[i], bound), bound a whole number in int32."""
        self._append("clamp_min", dst, (a,), count, immediate=int(bound))

    def product(self, dst: Address, src: Address, weight: int, columns: int, *, relu: bool = False) -> None:
        """dst[j] = sum of src[i] * W[i][j] over the crossbar's rows, W the operation's weight number ``weight``.

        A whole crossbar height of elements may be read at ``src``: rows beyond the matrix count as zero and do not
        need defined input. ``columns`` elements are written.
        """
        instr = Instr("product", self._finish(dst), (self._finish(src),), 0, weight, relu, columns)
        self._open[-1].append(instr)

    def moves(self, dst_slot: int, src_slot: int, dst: Any, src: Any) -> None:
        """Element moves given as address arrays: slot dst_slot at dst[k] = slot src_slot at src[k].

        They are joined into the fewest strided runs with a contiguous destination.
        """
        moves = join_moves(dst_slot, src_slot, np.asarray(dst, np.int64).ravel(), np.asarray(src, np.int64).ravel())
        if moves.count.size:
            self._open[-1].append(moves)

    def build(self) -> Kernel:
        """The finished kernel."""
        fills = [
            Instr("fill", Operand(address.slot, 0), (), count, struct.unpack("<f", struct.pack("<I", bits))[0])
            for bits, (address, count) in self._equal.items()
        ]
        return Kernel(self.operands, tuple(self._scratch), (*fills, *self._open[0]))

    def _append(self, op: str, dst: Address, sources: tuple[Address, ...], count: int, immediate: float = 0) -> None:
        if count <= 0:
            raise ValueError(f"{op} of {count} elements")
        self._open[-1].append(Instr(op, self._finish(dst), tuple(map(self._finish, sources)), int(count), immediate))

    def _finish(self, address: Address) -> Operand:
        strides = [0] * len(self._extents)
        for variable, coefficient in address.offset.terms:
            strides[variable] = coefficient
        return Operand(address.slot, address.offset.constant, tuple(strides))


def join_moves(dst_slot: int, src_slot: int, dst: npt.NDArray[np.int64], src: npt.NDArray[np.int64]) -> Moves:
    """Element moves joined into strided runs whose destination is contiguous, in order of destination.

    A run goes on while the destination steps by one and the source by the run's (non-negative) stride.
    """
    from raptor_core.spatial._runs import run_starts

    by_dst = np.argsort(dst, kind="stable")
    dst, src = dst[by_dst], src[by_dst]
    first = run_starts(dst, src)
    count = np.diff(np.append(first, dst.size))
    stride = np.ones(first.size, dtype=np.int64)
    longer = count > 1
    stride[longer] = src[first[longer] + 1] - src[first[longer]]
    return Moves(dst_slot, src_slot, dst[first], src[first], count, stride)
