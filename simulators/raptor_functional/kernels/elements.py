"""Elements in memory: width 32 is float32, 16 and 8 are signed integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from raptor_functional.kernels.jit import bytes_at, kernel
from raptor_functional.kernels.state import GROW, HOST_ADDRESS, LOCAL_ADDRESS, LOCAL_LIMIT, OK, State


@kernel
def reserve(state: State, core: int, begin: int, size: int) -> int:
    """Makes sure that ``size`` bytes from local address ``begin`` of ``core`` may be touched.

    Gives OK, LOCAL_ADDRESS or GROW. Nothing is checked when ``size`` is 0.
    """
    if size == 0:
        return OK
    end = begin + size
    if begin < 0 or end > LOCAL_LIMIT:
        state.info[3] = begin
        state.info[4] = size
        return LOCAL_ADDRESS
    if end > state.capacity[core]:
        state.info[1] = core
        state.info[3] = end
        return GROW
    if end > state.peak[core]:
        state.peak[core] = end
    return OK


@kernel
def check_host(state: State, begin: int, size: int) -> int:
    """OK or HOST_ADDRESS for ``size`` bytes from host address ``begin``."""
    if size != 0 and (begin < 0 or begin + size > state.host.size):
        state.info[3] = begin
        state.info[4] = size
        return HOST_ADDRESS
    return OK


@kernel
def copy_bytes(source: int, destination: int, count: int) -> None:
    """Copies between memory addresses as if the source were read completely first."""
    src = bytes_at(source, count)
    dst = bytes_at(destination, count)
    if destination <= source or destination >= source + count:
        for k in range(count):
            dst[k] = src[k]
    else:
        for k in range(count - 1, -1, -1):
            dst[k] = src[k]


@kernel
def load_elements(address: int, width: int, values: Any) -> None:
    """Fills ``values`` (float32) with the elements of ``width`` bytes at memory address ``address``."""
    count = values.size
    if width == 4:
        raw = bytes_at(address, count * 4)
        target = values.view(np.uint8)
        for k in range(count * 4):
            target[k] = raw[k]
    elif width == 2:
        raw = bytes_at(address, count * 2)
        for k in range(count):
            bits = np.int32(raw[2 * k]) | (np.int32(raw[2 * k + 1]) << 8)
            values[k] = np.float32(np.int16(bits))
    else:
        raw = bytes_at(address, count)
        for k in range(count):
            values[k] = np.float32(np.int8(raw[k]))


@kernel
def store_elements(values: Any, address: int, width: int) -> None:
    """Writes ``values`` as elements of ``width`` bytes to memory address ``address``.

    Integers are rounded half to even and saturate; NaN becomes 0.
    """
    count = values.size
    if width == 4:
        raw = bytes_at(address, count * 4)
        source = values.view(np.uint8)
        for k in range(count * 4):
            raw[k] = source[k]
        return
    limit = np.float32(128.0) if width == 1 else np.float32(32768.0)
    raw = bytes_at(address, count * width)
    for k in range(count):
        value = np.rint(values[k])
        if value != value:
            value = np.float32(0.0)
        number = np.int32(min(max(value, -limit), limit - np.float32(1.0)))
        raw[k * width] = np.uint8(number & 255)
        if width == 2:
            raw[k * width + 1] = np.uint8((number >> 8) & 255)
