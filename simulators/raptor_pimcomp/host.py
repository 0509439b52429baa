"""The host memory of an imported program: the network's input and output, biases and vectors of one number."""

from __future__ import annotations

import math

import attrs
import numpy as np
import numpy.typing as npt

from raptor_pim.artifacts.model import ELEMENT_BYTES, TensorInfo

Addresses = npt.NDArray[np.int64]


@attrs.frozen
class HostTensor:
    """A network input or output at byte address ``address``; its elements lie as ONNX has them."""

    info: TensorInfo
    address: int

    def runs(self, first: int, count: int) -> list[tuple[int, int, int]]:
        """Elements ``first`` .. of the tensor as PIMCOMP counts them, channels innermost.

        Gives runs that are contiguous in both orders: elements from the first one, byte address, elements.
        """
        place = self._places(np.arange(first, first + count, dtype=np.int64))
        breaks = np.flatnonzero(np.diff(place) != 1) + 1
        starts = [0, *breaks.tolist()]
        ends = [*breaks.tolist(), count]
        return [
            (start, self.address + int(place[start]) * ELEMENT_BYTES, end - start)
            for start, end in zip(starts, ends, strict=True)
        ]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.info.shape)

    def _places(self, index: Addresses) -> Addresses:
        shape = self.info.shape
        if len(shape) != 4:
            return index
        _, channels, height, width = shape
        return index % channels * (height * width) + index // channels


@attrs.define(eq=False)
class HostImage:
    """Host memory being laid out: bytes used so far, and constants by address."""

    size: int = 0
    _parts: list[tuple[int, npt.NDArray[np.float32]]] = attrs.field(factory=list)
    _fills: dict[float, tuple[int, int]] = attrs.field(factory=dict)

    def tensor(self, info: TensorInfo) -> HostTensor:
        """Room for a network input or output."""
        address = self.size
        self.size += info.byte_size
        return HostTensor(info, address)

    def constant(self, values: npt.NDArray[np.float32]) -> int:
        """The byte address of a constant, put behind what is there."""
        address = self.size
        self._parts.append((address, values))
        self.size += values.size * ELEMENT_BYTES
        return address

    def fill(self, value: float, count: int) -> int:
        """The byte address of at least ``count`` elements of one value."""
        address, present = self._fills.get(value, (0, 0))
        if present < count:
            address = self.constant(np.full(count, value, dtype=np.float32))
            self._fills[value] = (address, count)
        return address

    def bytes(self) -> npt.NDArray[np.uint8]:
        """The initial image."""
        image = np.zeros(self.size, dtype=np.uint8)
        for address, values in self._parts:
            data = np.ascontiguousarray(values, dtype="<f4").view(np.uint8)
            image[address : address + data.size] = data
        return image
