"""Proof that a kernel's instructions stay inside the slots they are given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError
from raptor_pim.codegen.template import ELEMENT_BYTES, Template
from raptor_pim.isa.opcodes import Opcode

Indices = npt.NDArray[np.int64]

_BYTE_COUNTED = [int(Opcode.LMV), int(Opcode.LLDI)]
_ONE_RESULT = [int(Opcode.VVDMUL), int(Opcode.VAVG)]
_STRIDED = [int(Opcode.VMV), int(Opcode.VAVG)]


def check_extents(name: str, template: Template, room: Indices, weights: Indices) -> None:
    """Raises InternalError when an instruction reads or writes outside its slots.

    ``room`` [slots] is the least number of elements from a slot's start to the end of its buffer over all lanes;
    ``weights`` [n, 2] are the shapes of the kernel's matrices (a product reads as many elements as it has rows).
    """
    op, length = template.op, template.generic[:, 2]
    size = np.where(np.isin(op, _BYTE_COUNTED), length, length * ELEMENT_BYTES)
    written, read = size.copy(), size.copy()
    written[np.isin(op, _ONE_RESULT)] = ELEMENT_BYTES
    strided = np.isin(op, _STRIDED)
    read[strided] = ((length - 1) * template.offset[:, 2] + 1)[strided] * ELEMENT_BYTES
    product = template.weight >= 0
    if product.any():
        shapes = weights[template.weight[product]]
        read[product] = shapes[:, 0] * ELEMENT_BYTES
        written[product] = shapes[:, 1] * ELEMENT_BYTES
    for k, sizes in enumerate((written, read, read)):
        slot, offset = template.slot[:, k], template.offset[:, k]
        used = slot >= 0
        limit = np.where(used, room[slot], 0) * ELEMENT_BYTES
        bad = used & ((offset < 0) | (offset + sizes > limit))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InternalError(
                "kernel-out-of-bounds",
                f"the kernel of '{name}' leaves its buffers",
                where=f"instruction {row} ({Opcode(int(op[row])).name.lower()}), operand {('rd', 'rs1', 'rs2')[k]}",
                reason=f"bytes {int(offset[row])} to {int(offset[row] + sizes[row])} of {int(limit[row])}",
                hint="this is a bug in the operator's or strategy's build method",
            )
