"""Kernels as instruction rows: loops unrolled, fills of any value, and accesses proved to stay inside."""

from __future__ import annotations

import numpy as np
import pytest

from raptor_core.diagnostics import InternalError
from raptor_core.spatial.kernel import KernelBuilder, View
from raptor_pim.codegen.extents import check_extents
from raptor_pim.codegen.template import expand_kernel
from raptor_pim.isa import Opcode


def test_loops_are_unrolled_in_order() -> None:
    k = KernelBuilder(1)
    x, y = View.packed(0, (2, 3, 4), (0, 1, 2)), View.packed(1, (2, 3, 4), (0, 1, 2))
    with k.loop(2) as i:
        k.fill(y.at(i, 0, 0), 0.0, 1)
        with k.loop(3) as j:
            k.unary("relu", y.at(i, j, 0), x.at(i, j, 0), 4)
    rows = expand_kernel(k.build())
    assert rows.op.tolist() == [Opcode.LLDI, *[Opcode.VRELU] * 3] * 2
    assert rows.offset[:, 0].tolist() == [0, 0, 16, 32, 48, 48, 64, 80]
    assert rows.offset[[1, 2, 3, 5, 6, 7], 1].tolist() == [0, 16, 32, 48, 64, 80]
    assert rows.generic[:, 2].tolist() == [4, 4, 4, 4] * 2


@pytest.mark.parametrize("value", [0.0, 1.0, -np.inf, 3.14159, -0.0, float(np.float32(1e-40))])
def test_fill_writes_any_value(value: float) -> None:
    k = KernelBuilder(0)
    k.fill(View.packed(0, (5,), (0,)).at(0), value, 5)
    rows = expand_kernel(k.build())
    memory = np.full(20, 0xEE, np.uint8)
    for op, offset, immediate, generic in zip(rows.op, rows.offset, rows.immediate, rows.generic, strict=True):
        if op == Opcode.LLDI:
            memory[offset[0] : offset[0] + generic[2]] = immediate
        else:
            assert op == Opcode.VMV
            assert offset[2] == 0
            elements = memory.view(np.float32)
            elements[offset[0] // 4 : offset[0] // 4 + generic[2]] = elements[offset[1] // 4]
    assert memory.tobytes() == np.full(5, value, np.float32).tobytes()


def overrun(write: str) -> KernelBuilder:
    k = KernelBuilder(1)
    x, y = View.packed(0, (4,), (0,)).at(0), View.packed(1, (4,), (0,)).at(0)
    if write == "destination":
        k.copy(y + 1, x, 4)
    elif write == "source":
        k.gather(y, x, 2, 4)
    else:
        k.product(y, x, 0, 4)
    return k


@pytest.mark.parametrize(("kind", "operand"), [("destination", "rd"), ("source", "rs1"), ("product", "rs1")])
def test_a_kernel_that_leaves_its_buffers_is_an_error(kind: str, operand: str) -> None:
    rows = expand_kernel(overrun(kind).build())
    with pytest.raises(InternalError, match=f"operand {operand}"):
        check_extents("op", rows, np.array([4, 4]), np.array([[5, 4]]))
    check_extents("op", rows, np.array([7, 5]), np.array([[5, 4]]))
