"""The vector instructions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from raptor_functional.kernels.elements import load_elements, reserve, store_elements
from raptor_functional.kernels.jit import bytes_at, float64, floats_at, int64, kernel, words_at
from raptor_functional.kernels.state import (
    CHUNK_ELEMENTS,
    LOCAL_ADDRESS,
    LOCAL_LIMIT,
    NEGATIVE_STRIDE,
    NOT_AN_INTEGER,
    OK,
    State,
)
from raptor_functional.kernels.state import SHIFT_COUNT as BAD_SHIFT
from raptor_pim.isa.opcodes import Opcode

_VVADD, _VVSUB, _VVMUL, _VVDMUL, _VVMAX = (
    int(o) for o in (Opcode.VVADD, Opcode.VVSUB, Opcode.VVMUL, Opcode.VVDMUL, Opcode.VVMAX)
)
_VVSLL, _VVSRA, _VAVG, _VRELU, _VTANH = (
    int(o) for o in (Opcode.VVSLL, Opcode.VVSRA, Opcode.VAVG, Opcode.VRELU, Opcode.VTANH)
)
_VSIGM, _VSOFTMAX, _VMV, _VRSU, _VRSL = (
    int(o) for o in (Opcode.VSIGM, Opcode.VSOFTMAX, Opcode.VMV, Opcode.VRSU, Opcode.VRSL)
)

_NO_NUMBER = 2**63 - 1
_INT32_END = 2147483648.0


@kernel
def _truncated(value: float) -> int:
    """A float cut towards zero, or the largest int64 when it is no 32-bit integer."""
    wide = float64(value)
    if wide != wide or wide >= _INT32_END or wide <= -_INT32_END - 1.0:
        return _NO_NUMBER
    whole: int = int64(wide)
    return whole


@kernel
def _shift(state: State, op: int, y: Any, a: Any, b: Any) -> int:
    for k in range(y.size):
        value = _truncated(a[k])
        count = _truncated(b[k])
        if value == _NO_NUMBER:
            state.info[3] = k
            return NOT_AN_INTEGER
        if count < 0 or count > 31:
            state.info[3] = k
            state.info[4] = count
            return BAD_SHIFT
        if op == _VVSLL:
            y[k] = np.float32(np.int32(np.uint32(np.uint64(value) << np.uint64(count))))
        else:
            y[k] = np.float32(value >> count)
    return OK


@kernel
def _softmax(y: Any, a: Any) -> None:
    if a.size == 0:
        return
    top = a[0]
    for k in range(a.size):
        if a[k] > top or a[k] != a[k]:
            top = a[k]
    total = 0.0
    for k in range(a.size):
        total += math.exp(float64(a[k]) - float64(top))
    for k in range(a.size):
        y[k] = np.float32(math.exp(float64(a[k]) - float64(top)) / total)


@kernel
def _elementwise(state: State, op: int, y: Any, a: Any, b: Any, bound: float) -> int:  # noqa: C901 - one case per opcode
    """y[k] = op(a[k], b[k]) for all k of y, which is no part of a or b. Gives OK or an error."""
    zero = np.float32(0.0)
    if op == _VVADD:
        for k in range(y.size):
            y[k] = a[k] + b[k]
    elif op == _VVSUB:
        for k in range(y.size):
            y[k] = a[k] - b[k]
    elif op == _VVMUL:
        for k in range(y.size):
            y[k] = a[k] * b[k]
    elif op == _VVMAX:
        for k in range(y.size):
            y[k] = a[k] if (a[k] >= b[k] or a[k] != a[k]) else b[k]
    elif op == _VRELU:
        for k in range(y.size):
            y[k] = zero if a[k] <= zero else a[k]
    elif op == _VRSU:
        top = np.float32(bound)
        for k in range(y.size):
            y[k] = top if a[k] > top else a[k]
    elif op == _VRSL:
        bottom = np.float32(bound)
        for k in range(y.size):
            y[k] = bottom if a[k] < bottom else a[k]
    elif op == _VTANH:
        for k in range(y.size):
            y[k] = np.float32(math.tanh(float64(a[k])))
    elif op == _VSIGM:
        for k in range(y.size):
            y[k] = np.float32(1.0 / (1.0 + math.exp(-float64(a[k]))))
    elif op == _VSOFTMAX:
        _softmax(y, a)
    else:
        return _shift(state, op, y, a, b)
    return OK


@kernel
def _overlaps(destination: int, source: int, count: int) -> bool:
    """Whether two vectors of 4-byte elements share bytes without being the same vector."""
    return destination != source and destination < source + 4 * count and source < destination + 4 * count


@kernel
def elementwise(state: State, core: int, op: int, d: int, a: int, b: int, binary: bool, count: int, bound: int) -> int:
    """An element-wise instruction or softmax, on local addresses ``d``, ``a`` and (when ``binary``) ``b``."""
    width_in = state.widths[core, 0]
    width_out = state.widths[core, 1]
    if op in (_VVADD, _VVSUB, _VVMAX, _VRELU):
        width_out = width_in
    code = reserve(state, core, a, count * width_in)
    if code == OK and binary:
        code = reserve(state, core, b, count * width_in)
    if code == OK:
        code = reserve(state, core, d, count * width_out)
    if code != OK:
        return code
    base = state.local[core]
    plain = width_in == 4 and width_out == 4 and (a | d) & 3 == 0 and not _overlaps(d, a, count) and op != _VSOFTMAX
    if binary:
        plain = plain and b & 3 == 0 and not _overlaps(d, b, count)
    else:
        b = a
    if not plain:
        left = np.empty(count, np.float32)
        load_elements(base + a, width_in, left)
        right = left
        if binary:
            right = np.empty(count, np.float32)
            load_elements(base + b, width_in, right)
        result = np.empty(count, np.float32)
        code = _elementwise(state, op, result, left, right, bound)
        if code == OK:
            store_elements(result, base + d, width_out)
        return code
    if op in (_VVSLL, _VVSRA):
        result = np.empty(count, np.float32)
        code = _elementwise(state, op, result, floats_at(base + a, count), floats_at(base + b, count), bound)
        if code == OK:
            store_elements(result, base + d, 4)
        return code
    return _in_chunks(state, op, base + d, base + a, base + b, count, bound)


@kernel
def _in_chunks(state: State, op: int, d: int, a: int, b: int, count: int, bound: int) -> int:
    """Through a small buffer, so that the loops see no overlap (the operands may be one vector)."""
    done = 0
    while done < count:
        size = min(count - done, CHUNK_ELEMENTS)
        buffer = state.chunk[:size]
        at = 4 * done
        _elementwise(state, op, buffer, floats_at(a + at, size), floats_at(b + at, size), bound)
        target = floats_at(d + at, size)
        for k in range(size):
            target[k] = buffer[k]
        done += size
    return OK


@kernel
def dot(state: State, core: int, d: int, a: int, b: int, count: int) -> int:
    """The dot product, summed in double precision and rounded once."""
    width_in = state.widths[core, 0]
    width_out = state.widths[core, 1]
    code = reserve(state, core, a, count * width_in)
    if code == OK:
        code = reserve(state, core, b, count * width_in)
    if code == OK:
        code = reserve(state, core, d, width_out)
    if code != OK:
        return code
    base = state.local[core]
    if width_in == 4 and (a | b) & 3 == 0:
        left = floats_at(base + a, count)
        right = floats_at(base + b, count)
    else:
        left = np.empty(count, np.float32)
        right = np.empty(count, np.float32)
        load_elements(base + a, width_in, left)
        load_elements(base + b, width_in, right)
    total = 0.0
    for k in range(count):
        total += float64(left[k]) * float64(right[k])
    result = np.empty(1, np.float32)
    result[0] = np.float32(total)
    store_elements(result, base + d, width_out)
    return OK


@kernel
def _spread(state: State, core: int, a: int, stride: int, count: int, width: int) -> int:
    """Makes sure of the bytes of ``count`` elements from ``a``, ``stride`` elements apart."""
    if count == 0:
        return OK
    reach = stride * (count - 1)
    if reach > LOCAL_LIMIT or reach < -LOCAL_LIMIT:
        state.info[3] = a
        state.info[4] = abs(reach)
        return LOCAL_ADDRESS
    low = a + min(reach, 0) * width
    return reserve(state, core, low, (abs(reach) + 1) * width)


@kernel
def mean(state: State, core: int, d: int, a: int, stride: int, count: int) -> int:
    """The mean of elements ``stride`` apart, summed in double precision and rounded once."""
    width_in = state.widths[core, 0]
    width_out = state.widths[core, 1]
    code = _spread(state, core, a, stride, count, width_in)
    if code == OK:
        code = reserve(state, core, d, width_out)
    if code != OK:
        return code
    base = state.local[core]
    value = np.empty(1, np.float32)
    total = 0.0
    for k in range(count):
        load_elements(base + a + k * stride * width_in, width_in, value)
        total += float64(value[0])
    value[0] = np.float32(total / count)
    store_elements(value, base + d, width_out)
    return OK


@kernel
def gather(state: State, core: int, d: int, a: int, stride: int, count: int) -> int:
    """Copies elements ``stride`` apart to a contiguous vector, bit by bit."""
    width = state.widths[core, 0]
    if stride < 0:
        state.info[3] = stride
        return NEGATIVE_STRIDE
    code = _spread(state, core, a, stride, count, width)
    if code == OK:
        code = reserve(state, core, d, count * width)
    if code != OK or count == 0:
        return code
    base = state.local[core]
    reach = (stride * (count - 1) + 1) * width
    apart = d + count * width <= a or a + reach <= d
    if width == 4 and (a | d) & 3 == 0 and apart:
        source = words_at(base + a, reach // 4)
        target = words_at(base + d, count)
        for k in range(count):
            target[k] = source[k * stride]
        return OK
    raw = bytes_at(base + a, reach)
    copy = np.empty(count * width, np.uint8)
    for k in range(count):
        for part in range(width):
            copy[k * width + part] = raw[k * stride * width + part]
    destination = bytes_at(base + d, count * width)
    for k in range(count * width):
        destination[k] = copy[k]
    return OK


@kernel
def vector(state: State, core: int, op: int, d: int, a: int, b: int, r2: int, count: int) -> int:
    """Any vector instruction: local addresses ``d``, ``a``, ``b``; ``r2`` the bare value of register rs2."""
    if op == _VVDMUL:
        return dot(state, core, d, a, b, count)
    if op == _VAVG:
        return mean(state, core, d, a, r2, count)
    if op == _VMV:
        return gather(state, core, d, a, r2, count)
    binary = op <= _VVSRA
    return elementwise(state, core, op, d, a, b, binary, count, r2)
