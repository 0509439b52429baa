"""The host memory map: where network inputs, outputs and loaded constants lie."""

from __future__ import annotations

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.module import Module
from raptor_core.spatial.communication import Load
from raptor_pim import dialect as pim

ELEMENT_BYTES = 4
_LIMIT = 2**32


def host_memory_map(module: Module) -> pim.HostMemory:
    """Inputs, then outputs, then the constants that some core loads, each in order, without gaps.

    Raises RaptorError when they do not fit the 32-bit address space.
    """
    loaded = {op.operands[0] for op in module.find(Load)}
    values = [*module.inputs, *module.outputs, *(name for name in module.constants if name in loaded)]
    values = list(dict.fromkeys(values))
    addresses, sizes, total = [], [], 0
    for value in values:
        size = module.types[value].elements * ELEMENT_BYTES
        addresses.append(total)
        sizes.append(size)
        total += size
    if total > _LIMIT:
        raise RaptorError(
            "host-memory-exceeded",
            f"inputs, outputs and constants take {total} bytes of host memory",
            where=f"module '{module.name}'",
            reason=f"host addresses are 32 bits wide: at most {_LIMIT} bytes",
            hint="use a smaller batch or split the network",
        )
    return pim.HostMemory(
        name="host",
        operands=tuple(value for value in values if value not in module.outputs),
        results=module.outputs,
        values=tuple(values),
        addresses=tuple(addresses),
        sizes=tuple(sizes),
        total=total,
    )
