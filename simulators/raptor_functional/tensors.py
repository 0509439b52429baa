"""Samples into host bytes, and host bytes into outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError, UsageError, nearest
from raptor_core.simulation.contract import Sample
from raptor_pim.artifacts import ArtifactConfig, TensorInfo

Bytes = npt.NDArray[np.uint8]
_ELEMENT = 4


def input_tensors(config: ArtifactConfig) -> tuple[TensorInfo, ...]:
    """The inputs by name; unnamed ones are ``input_0``, ``input_1``, ... of one dimension."""
    return config.inputs or _unnamed("input", config.inputs_sizes)


def output_tensors(config: ArtifactConfig) -> tuple[TensorInfo, ...]:
    """The outputs by name; unnamed ones are ``output_0``, ... of one dimension; none when sizes are not known."""
    return config.outputs or _unnamed("output", config.outputs_sizes or ())


def _unnamed(kind: str, sizes: Sequence[int]) -> tuple[TensorInfo, ...]:
    for number, size in enumerate(sizes):
        if size % _ELEMENT:
            raise RaptorError(
                "not-numeric",
                f"{kind} {number} is no whole number of elements",
                where="config.json",
                reason=f"its region has {size} bytes; an element has {_ELEMENT}",
            )
    return tuple(TensorInfo(f"{kind}_{number}", (size // _ELEMENT,)) for number, size in enumerate(sizes))


def pack_samples(config: ArtifactConfig, samples: Sequence[Sample]) -> Bytes:
    """All samples as bytes [B, bytes of all inputs], inputs in graph order.

    Raises RaptorError for a missing or unknown input, a wrong shape, or values that float32 cannot hold exactly.
    """
    tensors = input_tensors(config)
    packed = np.zeros((len(samples), sum(tensor.byte_size for tensor in tensors)), dtype=np.uint8)
    for number, sample in enumerate(samples):
        _refuse_unknown(number, sample, tensors)
        at = 0
        for tensor in tensors:
            data = _converted(number, sample, tensor, free_shape=not config.inputs)
            packed[number, at : at + tensor.byte_size] = data.reshape(-1).view(np.uint8)
            at += tensor.byte_size
    return packed


def unpack_outputs(config: ArtifactConfig, regions: Sequence[Bytes]) -> dict[str, npt.NDArray[Any]]:
    """The outputs of one iteration, float32 in their shapes, from the bytes of their regions."""
    tensors = output_tensors(config)
    return {
        tensor.name: region.view(np.float32).reshape(tensor.shape)
        for tensor, region in zip(tensors, regions, strict=True)
    }


def _refuse_unknown(number: int, sample: Mapping[str, Any], tensors: Sequence[TensorInfo]) -> None:
    names = [tensor.name for tensor in tensors]
    for name in sample:
        if name not in names:
            near = nearest(name, names)
            raise UsageError(
                "unknown-input",
                f"sample {number} has an input '{name}' that the network has not",
                hint=f"did you mean '{near}'?" if near else f"the network has: {', '.join(names) or 'none'}",
            )


def _converted(number: int, sample: Mapping[str, Any], tensor: TensorInfo, free_shape: bool) -> npt.NDArray[np.float32]:
    if tensor.name not in sample:
        raise _wrong(number, tensor, "it is missing", f"give an array of shape {list(tensor.shape)}")
    given = np.asarray(sample[tensor.name])
    fits = given.size == math.prod(tensor.shape) if free_shape else given.shape == tensor.shape
    if not fits:
        expected = f"{tensor.shape[0]} elements" if free_shape else f"shape {list(tensor.shape)}"
        raise _wrong(number, tensor, f"it has shape {list(given.shape)}", f"it must have {expected}")
    if given.dtype == np.float32:
        return np.ascontiguousarray(given, dtype="<f4")
    if given.dtype.kind not in "iub":
        raise _wrong(
            number, tensor, f"it is of type {given.dtype}", "give float32, or whole numbers that float32 can hold"
        )
    result = np.ascontiguousarray(given, dtype="<f4")
    if not np.array_equal(result.astype(np.float64), given.astype(np.float64)) or _beyond(given):
        raise _wrong(number, tensor, "float32 cannot hold all its numbers exactly", "convert it to float32 yourself")
    return result


def _beyond(given: npt.NDArray[Any]) -> bool:
    """Whether whole numbers are so large that the comparison in double precision may err."""
    return given.size > 0 and given.dtype.kind in "iu" and bool((abs(given.astype(np.float64)) > 2.0**53).any())


def _wrong(number: int, tensor: TensorInfo, reason: str, hint: str) -> RaptorError:
    return RaptorError(
        "bad-input",
        f"input '{tensor.name}' of sample {number} does not fit",
        where=tensor.name,
        reason=reason,
        hint=hint,
    )
