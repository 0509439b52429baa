"""A plain interpreter of kernels: one instruction at a time, on float32 arrays, straight from the method texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raptor_core.spatial.kernel import Instr, Kernel, Loop, Moves, Operand

Memory = tuple[np.ndarray, int]
"""A float32 array and the element in it at which a slot starts."""


def run_kernel(
    kernel: Kernel, slots: Sequence[Memory | None], weights: Sequence[np.ndarray] = (), rows: int = 128
) -> None:
    """Execute ``kernel`` in place. ``slots`` are operands and result; scratch is added here, full of NaN."""
    scratch = [(np.full(size + rows, np.nan, np.float32), 0) for size in kernel.scratch]
    _run(kernel.body, (), [*slots, *scratch], weights)


def _run(
    body: Sequence[Any], turns: tuple[int, ...], slots: list[Memory | None], weights: Sequence[np.ndarray]
) -> None:
    for item in body:
        if isinstance(item, Loop):
            for turn in range(item.extent):
                _run(item.body, (*turns, turn), slots, weights)
        elif isinstance(item, Moves):
            (to, to_base), (source, source_base) = slots[item.dst_slot], slots[item.src_slot]
            for dst, src, count, stride in zip(item.dst, item.src, item.count, item.stride, strict=True):
                for j in range(count):
                    to[to_base + dst + j] = source[source_base + src + j * stride]
        else:
            _instruction(item, turns, slots, weights)


def _address(operand: Operand, turns: tuple[int, ...], slots: list[Memory | None]) -> Memory:
    memory = slots[operand.slot]
    assert memory is not None, "a slot without storage is used"
    offset = operand.offset + sum(s * t for s, t in zip(operand.strides, turns, strict=False))
    at = memory[1] + offset
    assert at >= 0
    return memory[0], at


def _instruction(i: Instr, turns: tuple[int, ...], slots: list[Memory | None], weights: Sequence[np.ndarray]) -> None:
    to, at = _address(i.dst, turns, slots)
    reads = [_address(source, turns, slots) for source in i.sources]
    n = i.count

    def read(k: int, stride: int = 1) -> np.ndarray:
        memory, start = reads[k]
        index = start + np.arange(n) * stride
        assert index[-1] < memory.size
        return memory[index].copy()

    if i.op == "product":
        matrix = weights[int(i.immediate)]
        memory, start = reads[0]
        y = np.zeros(matrix.shape[1], np.float64)
        for row in range(matrix.shape[0]):
            if matrix[row].any():
                y += np.float64(memory[start + row]) * matrix[row]
        result = np.maximum(y, 0) if i.relu else y
        assert i.columns == matrix.shape[1]
    else:
        with np.errstate(all="ignore"):
            result = _vector(i, read)
    assert at + len(result) <= to.size
    to[at : at + len(result)] = result


_ELEMENTWISE = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softmax": lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
    "copy": lambda x: x,
    "dot": lambda x, y: np.array([np.dot(x, y)], np.float32),
}


def _vector(i: Instr, read: Any) -> np.ndarray:
    if i.op in _ELEMENTWISE:
        return _ELEMENTWISE[i.op](*(read(k) for k in range(len(i.sources))))
    if i.op == "fill":
        return np.full(i.count, i.immediate, np.float32)
    if i.op in ("gather", "mean"):
        elements = read(0, int(i.immediate))
        return elements if i.op == "gather" else np.array([elements.mean()], np.float32)
    if i.op in ("clamp_max", "clamp_min"):
        return (np.minimum if i.op == "clamp_max" else np.maximum)(read(0), np.float32(i.immediate))
    raise AssertionError(f"unknown instruction {i.op}")
