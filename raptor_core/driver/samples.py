"""Samples out of arrays: one per sample, or with one more axis in front that counts the samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError, UsageError, nearest
from raptor_core.simulation.contract import Sample
from raptor_core.targets.inspection import TensorSignature

Array = npt.NDArray[Any]
Inputs = Mapping[str, Any] | Sequence[Mapping[str, Any]] | Array | Callable[[Sequence[TensorSignature]], list[Sample]]
"""One sample, a batch in arrays, several samples, one array for a network with one input, or a function that gives the
samples for a network with the inputs it is told."""


def samples_of(inputs: Inputs, tensors: Sequence[TensorSignature]) -> list[Sample]:
    """The samples that ``inputs`` hold for a network with the inputs ``tensors``.

    An array of an input's shape is one sample. If all arrays of a mapping have one more axis in front, of the same
    length, they are a batch. Raises UsageError for unknown and missing inputs, RaptorError for shapes that do not fit.
    """
    if callable(inputs):
        return inputs(tensors)
    if isinstance(inputs, Mapping):
        return _samples_of_mapping(inputs, tensors)
    if isinstance(inputs, np.ndarray):
        if len(tensors) != 1:
            names = ", ".join(tensor.name for tensor in tensors) or "none"
            raise UsageError(
                "array-without-name",
                "one array without a name is for networks with one input",
                reason=f"this one has {len(tensors)} inputs: {names}",
                hint="give arrays by name (.npz)",
            )
        return _samples_of_mapping({tensors[0].name: inputs}, tensors)
    return [sample for mapping in inputs for sample in _samples_of_mapping(mapping, tensors)]


def stacked(samples: Sequence[Sample]) -> dict[str, Array]:
    """Arrays by name: of one sample as they are, of several with an axis in front that counts them."""
    if not samples:
        return {}
    if len(samples) == 1:
        return {name: np.asarray(array) for name, array in samples[0].items()}
    return {name: np.stack([np.asarray(sample[name]) for sample in samples]) for name in samples[0]}


def random_sample(tensors: Sequence[TensorSignature], seed: int) -> Sample:
    """One sample of normally distributed numbers, the same for the same seed."""
    generator = np.random.default_rng(seed)
    return {tensor.name: generator.standard_normal(tensor.shape, dtype=np.float32) for tensor in tensors}


def _samples_of_mapping(arrays: Mapping[str, Any], tensors: Sequence[TensorSignature]) -> list[Sample]:
    _check_names(arrays, tensors)
    given = {tensor.name: _native(np.asarray(arrays[tensor.name])) for tensor in tensors}
    if all(_is_one(given[tensor.name], tensor) for tensor in tensors):
        return [given]
    for tensor in tensors:
        _check_shape(given[tensor.name], tensor)
    single = [tensor.name for tensor in tensors if _is_one(given[tensor.name], tensor)]
    if single:
        raise RaptorError(
            "bad-input",
            "some arrays hold one sample and others a batch",
            reason=f"one sample: {', '.join(single)}; "
            f"a batch: {', '.join(tensor.name for tensor in tensors if tensor.name not in single)}",
        )
    counts = {given[tensor.name].shape[0] for tensor in tensors}
    if len(counts) != 1 or 0 in counts:
        raise RaptorError(
            "bad-input",
            "the arrays do not hold the same number of samples" if len(counts) != 1 else "the arrays hold no sample",
            reason=", ".join(f"'{tensor.name}' has {given[tensor.name].shape[0]}" for tensor in tensors),
        )
    return [{name: array[k] for name, array in given.items()} for k in range(counts.pop())]


def _native(array: Array) -> Array:
    """The array in the machine's order of bytes."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _is_one(array: Array, tensor: TensorSignature) -> bool:
    """Whether the array holds one sample of the input."""
    return array.shape == tensor.shape or (not tensor.shape_known and array.size == math.prod(tensor.shape))


def _check_shape(array: Array, tensor: TensorSignature) -> None:
    """Raise RaptorError for an array that is neither a sample nor a batch of the input."""
    if _is_one(array, tensor) or (array.ndim == len(tensor.shape) + 1 and array.shape[1:] == tensor.shape):
        return
    raise RaptorError(
        "bad-input",
        f"the array for input '{tensor.name}' does not fit",
        where=tensor.name,
        reason=f"it has shape {list(array.shape)}; one sample has {list(tensor.shape)}",
        hint=f"give that shape, or {['samples', *tensor.shape]} for a batch".replace("'", ""),
    )


def _check_names(arrays: Mapping[str, Any], tensors: Sequence[TensorSignature]) -> None:
    names = [tensor.name for tensor in tensors]
    known = f"the network has: {', '.join(names) or 'no inputs'}"
    for name in arrays:
        if name not in names:
            near = nearest(name, names)
            hint = (f"did you mean '{near}'? " if near else "") + known
            raise UsageError("unknown-input", f"the network has no input '{name}'", hint=hint)
    missing = [name for name in names if name not in arrays]
    if missing:
        raise UsageError("missing-input", f"no array was given for input '{missing[0]}'", hint=known)
