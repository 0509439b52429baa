"""Pass ``verify``: everything that code generation relies on is proved before any instruction is made."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.targets.machine import Machine
from raptor_pim import dialect as pim
from raptor_pim.passes.data_flow import check_data_flow
from raptor_pim.passes.plan_memory import ELEMENT_BYTES, LOCAL_MEMORY_LIMIT

Indices = npt.NDArray[np.int64]


@attrs.frozen
class VerifyPass:
    """Checks lifetimes against addresses, accesses against buffers, groups against crossbars, host ranges, order.

    Last, that every event finds what it reads: see raptor_pim.passes.data_flow.
    """

    name: ClassVar[str] = "verify"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises InternalError for the first broken invariant."""
        (buffers,) = module.find(pim.Buffers)
        (groups,) = module.find(pim.Groups)
        (host,) = module.find(pim.HostMemory)
        check_live_ranges(buffers)
        check_groups(groups, context.machine)
        for event in module.operations:
            if isinstance(event, pim.Launch):
                _check_launch(event, buffers)
            elif isinstance(event, pim.Clear | pim.Load | pim.Store):
                _check_access(
                    event.name, buffers, event.buffers, event.offsets, event.elements, event.order, event.cores
                )
                if isinstance(event, pim.Load | pim.Store) and (
                    (event.host < 0).any() or (event.host + event.elements * ELEMENT_BYTES > host.total).any()
                ):
                    raise _broken(event.name, "a host address lies outside the host memory map")
            elif isinstance(event, pim.Transfer):
                _check_transfer(event, buffers)
        _check_order(module)
        check_data_flow(module)
        return PassResult(attrs.evolve(module, stage=self.name))


VERIFY = VerifyPass()


def _broken(where: str, reason: str) -> InternalError:
    return InternalError(
        "invalid-pim",
        "the program of the pim dialect is not valid",
        where=where,
        reason=reason,
        hint="this is a bug in a pass before; please report it with the --dump-ir folder",
    )


def check_live_ranges(table: pim.Buffers) -> None:
    """No two buffers of a core that live at the same time overlap, and all lie within the address space."""
    sizes = table.elements * ELEMENT_BYTES
    ends = table.addresses + sizes
    if table.addresses.size != table.cores.size:
        raise _broken("buffers", "addresses are not planned")
    if table.addresses.size == 0:
        return
    if (table.addresses < 0).any() or (table.addresses % ELEMENT_BYTES).any() or ends.max() > LOCAL_MEMORY_LIMIT:
        raise _broken("buffers", "an address is negative, not aligned, or beyond the signed 32-bit limit")
    for core in np.unique(table.cores).tolist():
        members = np.flatnonzero((table.cores == core) & (sizes > 0))
        low, high = table.addresses[members], ends[members]
        first, last = table.first[members], table.last[members]
        meet = (low[:, None] < high) & (low < high[:, None]) & (first[:, None] <= last) & (first <= last[:, None])
        np.fill_diagonal(meet, False)
        if meet.any():
            a, b = (int(k) for k in np.argwhere(meet)[0])
            names = [table.owners[table.owner[members[k]]] for k in (a, b)]
            raise _broken(f"core {core}", f"buffers of '{names[0]}' and '{names[1]}' overlap while both are live")


def check_groups(groups: pim.Groups, machine: Machine) -> None:
    """Group numbers count from 0 on every core, and the crossbars of a core suffice."""
    for core in np.unique(groups.cores).tolist():
        members = groups.cores == core
        if core >= machine.core_count or sorted(groups.numbers[members].tolist()) != list(range(int(members.sum()))):
            raise _broken(f"core {core}", "group numbers do not count from 0, or the core does not exist")
        if groups.crossbars[members].sum() > machine.crossbars_per_core:
            raise _broken(f"core {core}", "the groups need more crossbars than the core has")


def _check_access(
    where: str,
    table: pim.Buffers,
    buffers: Indices,
    offsets: Indices,
    elements: Indices,
    order: Indices,
    cores: Indices,
) -> None:
    """Every access stays inside its buffer, on the right core, within the buffer's lifetime."""
    if (buffers < 0).any() or (offsets < 0).any() or (offsets + elements > table.elements[buffers]).any():
        raise _broken(where, "an access leaves its buffer")
    if (table.cores[buffers] != cores).any():
        raise _broken(where, "an access uses a buffer of another core")
    if (order < table.first[buffers]).any() or (order > table.last[buffers]).any():
        raise _broken(where, "an access lies outside its buffer's lifetime")


def _check_launch(event: pim.Launch, table: pim.Buffers) -> None:
    used = event.buffers >= 0
    cores = np.repeat(event.cores[:, None], event.buffers.shape[1], axis=1)[used]
    order = np.repeat(event.order[:, None], event.buffers.shape[1], axis=1)[used]
    nothing = np.zeros(cores.size, dtype=np.int64)
    _check_access(event.name, table, event.buffers[used], event.offsets[used], nothing, order, cores)
    if event.buffers.shape[1] != event.kernel.operands + 1 + len(event.kernel.scratch):
        raise _broken(event.name, "the launch does not give every slot of its kernel")


def _check_transfer(event: pim.Transfer, table: pim.Buffers) -> None:
    if (event.sources == event.destinations).any():
        raise _broken(event.name, "a core sends to itself")
    _check_access(
        event.name, table, event.source_buffers, event.source_offsets, event.elements, event.order, event.sources
    )
    _check_access(
        event.name,
        table,
        event.destination_buffers,
        event.destination_offsets,
        event.elements,
        event.order,
        event.destinations,
    )


def _check_order(module: Module) -> None:
    """Events of different families never share their place in the total order: the proof against deadlock."""
    ranks = [np.unique(op.order) for op in module.find(pim.Launch, pim.Clear, pim.Load, pim.Store, pim.Transfer)]  # type: ignore[attr-defined]
    if ranks:
        joined = np.concatenate(ranks)
        if np.unique(joined).size != joined.size:
            raise _broken("order", "two event families share a place in the total order")
