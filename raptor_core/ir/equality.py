"""Equality of modules and attribute values as the text form sees it.

Sequences are equal whatever their class, numpy scalars equal the Python numbers they hold, arrays compare by element
type, shape and elements. Numbers of different kinds differ (1, 1.0 and true), so do 0.0 and -0.0; nan equals nan of
the same sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.module import Module


def values_equal(a: Any, b: Any) -> bool:
    """Whether two attribute values are the same."""
    a, b = _plain(a), _plain(b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and _arrays_equal(a, b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(values_equal, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(values_equal(a[key], b[key]) for key in a)
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        same = a == b or (math.isnan(a) and math.isnan(b))
        return same and math.copysign(1.0, a) == math.copysign(1.0, b)
    if attrs.has(type(a)):
        return all(values_equal(getattr(a, f.name), getattr(b, f.name)) for f in attrs.fields(type(a)))
    return bool(a == b)


def modules_equal(a: Module, b: Module) -> bool:
    """Whether two modules are the same: names, types, constants, operations and properties."""
    return values_equal(a, b)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _arrays_equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    if a.shape != b.shape or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return False
    if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return False
    if a.dtype.kind != "f":
        return True
    return bool((np.signbit(a) == np.signbit(b)).all())
