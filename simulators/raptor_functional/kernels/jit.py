"""The one place that meets the compiler of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from raptor_pim.isa import opcodes

_Function = TypeVar("_Function", bound=Callable[..., Any])


int64: Any = np.int64
"""In kernels: widens to 64 bits (``int`` would keep 32)."""

float64: Any = np.float64
"""In kernels: widens to double precision (``float`` would keep single)."""


def _fingerprint() -> tuple[tuple[str, int, int], ...]:
    """Name, size and age of all kernel sources: kernels are compiled into each other."""
    files = [*Path(__file__).parent.glob("*.py"), Path(opcodes.__file__)]
    states = [(file.name, file.stat()) for file in sorted(files)]
    return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)


_FINGERPRINT = _fingerprint()


def kernel(function: _Function, *, entry: bool = False) -> _Function:
    """Compiles ``function`` on first use and keeps the machine code on disk.

    Only an ``entry`` can be called from Python; for all others the wrappers that this takes, which unpack the whole
    state, are not compiled. Float arithmetic is strict: NaN and infinity behave as IEEE 754 says, and sums keep their
    order. Stored machine code is used only while no kernel source has changed; by itself numba would look at the
    function's own file only.
    """
    wrappers = {"no_cpython_wrapper": not entry, "no_cfunc_wrapper": True}
    dispatcher = cast(Any, numba.njit)(cache=True, error_model="numpy", fastmath=False, **wrappers)(function)
    stored: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(stored, "_source_stamp"):
        stored._source_stamp = (stored._source_stamp, _FINGERPRINT)
    return cast(_Function, dispatcher)


def entry_kernel(function: _Function) -> _Function:
    """A :func:`kernel` that Python calls."""
    return kernel(function, entry=True)


def _pointer_code(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate


_pointer: Any = intrinsic(_pointer_code)
_numba: Any = numba


@kernel
def bytes_at(address: int, count: int) -> Any:
    """``count`` bytes of memory from ``address``. The caller has made sure that they are there."""
    return _numba.carray(_pointer(address), (count,), np.uint8)


@kernel
def floats_at(address: int, count: int) -> Any:
    """``count`` float32 elements from ``address``, which is a multiple of 4."""
    return _numba.carray(_pointer(address), (count,), np.float32)


@kernel
def words_at(address: int, count: int) -> Any:
    """``count`` int32 words from ``address``, which is a multiple of 4."""
    return _numba.carray(_pointer(address), (count,), np.int32)
