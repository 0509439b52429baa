"""What a kernel needs of its slots, and what it writes, element by element."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from raptor_pim.codegen.template import ELEMENT_BYTES, Template
from raptor_pim.isa.opcodes import Opcode

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def _one_of(*codes: Opcode) -> Flags:
    """Whether each opcode number is one of ``codes``."""
    table = np.zeros(256, dtype=np.bool_)
    table[[int(code) for code in codes]] = True
    table.setflags(write=False)
    return table


_BYTE_COUNTED = _one_of(Opcode.LMV, Opcode.LLDI)
_ONE_RESULT = _one_of(Opcode.VVDMUL, Opcode.VAVG)
_STRIDED = _one_of(Opcode.VMV, Opcode.VAVG)


@attrs.frozen(eq=False)
class Footprint:
    """By slot, runs [n, 2] of elements from the first to the last (exclusive), counted from the slot's start.

    ``needed`` are those that the kernel reads before it has written them itself: they must be there when it begins.
    """

    needed: tuple[Indices, ...]
    written: tuple[Indices, ...]


def kernel_footprint(template: Template, slots: int, weights: Indices) -> Footprint:
    """The footprint of a kernel with that many ``slots``; ``weights`` [n, 2] are the shapes of its matrices.

    A product reads as many elements as its matrix has rows.
    """
    from raptor_pim.codegen._footprint import touch

    first = template.offset // ELEMENT_BYTES
    length = template.generic[:, 2]
    bytes_counted = _BYTE_COUNTED[template.op]
    writes = np.where(bytes_counted, -(-(template.offset[:, 0] + length) // ELEMENT_BYTES) - first[:, 0], length)
    reads = np.where(bytes_counted, -(-length // ELEMENT_BYTES), length)
    writes[_ONE_RESULT[template.op]] = 1
    stride = np.where(_STRIDED[template.op], template.offset[:, 2], 1)
    product = template.weight >= 0
    reads[product], writes[product] = weights[template.weight[product]].T
    low, high = np.zeros(slots, dtype=np.int64), np.zeros(slots, dtype=np.int64)
    for k, reach in enumerate((writes, *[(reads - 1) * stride + 1] * 2)):
        used = template.slot[:, k] >= 0
        np.minimum.at(low, template.slot[used, k], first[used, k])
        np.maximum.at(high, template.slot[used, k], (first[:, k] + reach)[used])
    # The marks of all slots lie one after another, one that is never set between two of them.
    base = np.cumsum(high - low + 1) - high
    needed, written = (np.zeros(int((high - low + 1).sum()) + 1, dtype=np.bool_) for _ in range(2))
    touch(template.slot, first, reads, stride, writes, base, needed, written)
    return Footprint(_runs(needed, base, base + low), _runs(written, base, base + low))


def _runs(marks: Flags, base: Indices, begins: Indices) -> tuple[Indices, ...]:
    """For each slot the runs of its marks, which start at ``begins``; that of element 0 is at ``base``."""
    edges = np.flatnonzero(marks[1:] != marks[:-1]).reshape(-1, 2) + 1
    own = np.split(edges, np.searchsorted(edges[:, 0], begins[1:]))
    return tuple(edges - at for edges, at in zip(own, base.tolist(), strict=True))
