"""Executes kernels of lanes with numpy, instruction by instruction, as their definitions read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from raptor_core.spatial.kernel import Instr, Kernel, Loop, Moves, Operand

Slots = list[npt.NDArray[np.float32]]


def run_kernel(kernel: Kernel, operands: Sequence[npt.NDArray[np.float32] | None], result: npt.NDArray[np.float32]):
    """Execute ``kernel`` on flat storages; scratch areas start as NaN."""
    missing = np.full(0, np.nan, np.float32)
    slots: Slots = [missing if operand is None else operand for operand in operands]
    slots.append(result)
    slots.extend(np.full(size, np.nan, np.float32) for size in kernel.scratch)
    with np.errstate(all="ignore"):
        _run(kernel.body, slots, ())


def _run(body: Sequence[object], slots: Slots, turns: tuple[int, ...]) -> None:
    for item in body:
        if isinstance(item, Loop):
            for turn in range(item.extent):
                _run(item.body, slots, (*turns, turn))
        elif isinstance(item, Moves):
            _move(item, slots)
        else:
            assert isinstance(item, Instr)
            _execute(item, slots, turns)


def _area(slots: Slots, operand: Operand, turns: tuple[int, ...], count: int, stride: int = 1):
    assert len(operand.strides) == len(turns)
    start = operand.offset + sum(turn * step for turn, step in zip(turns, operand.strides, strict=True))
    storage = slots[operand.slot]
    assert start >= 0
    assert start + (count - 1) * stride < storage.size, "outside the slot"
    assert stride >= 0
    return storage[start + stride * np.arange(count)], slice(start, start + count)


def _move(moves: Moves, slots: Slots) -> None:
    for dst, src, count, stride in zip(moves.dst, moves.src, moves.count, moves.stride, strict=True):
        assert stride >= 0
        assert 0 <= dst <= slots[moves.dst_slot].size - count
        indices = src + stride * np.arange(count)
        assert indices[-1] < slots[moves.src_slot].size
        slots[moves.dst_slot][dst : dst + count] = slots[moves.src_slot][indices]


def _execute(instr: Instr, slots: Slots, turns: tuple[int, ...]) -> None:
    single = instr.op in ("dot", "mean")
    _, place = _area(slots, instr.dst, turns, 1 if single else instr.count)
    stride = int(instr.immediate) if instr.op in ("gather", "mean") else 1
    sources = [_area(slots, source, turns, instr.count, stride)[0] for source in instr.sources]
    slots[instr.dst.slot][place] = _MEANINGS[instr.op](instr, *sources)


def _clamp(function: Any) -> Any:
    def clamped(instr: Instr, a: Any) -> Any:
        assert isinstance(instr.immediate, int)
        assert -(2**31) <= instr.immediate < 2**31
        return function(a, np.float32(instr.immediate))

    return clamped


def _softmax(instr: Instr, a: Any) -> Any:
    exponentials = np.exp(a - a.max())
    return exponentials / exponentials.sum()


_MEANINGS: dict[str, Callable[..., Any]] = {
    "copy": lambda instr, a: a,
    "gather": lambda instr, a: a,
    "fill": lambda instr: np.float32(instr.immediate),
    "add": lambda instr, a, b: a + b,
    "sub": lambda instr, a, b: a - b,
    "mul": lambda instr, a, b: a * b,
    "max": lambda instr, a, b: np.maximum(a, b),
    "relu": lambda instr, a: np.maximum(a, np.float32(0)),
    "tanh": lambda instr, a: np.tanh(a),
    "sigmoid": lambda instr, a: (1 / (1 + np.exp(-a.astype(np.float64)))).astype(np.float32),
    "softmax": _softmax,
    "mean": lambda instr, a: a.mean(dtype=np.float32),
    "clamp_max": _clamp(np.minimum),
    "clamp_min": _clamp(np.maximum),
}
"""What each instruction writes, from the elements that its sources give."""
