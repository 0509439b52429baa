"""The pim dialect: what each core does, on buffers of its local memory, still compact.

Programs are families held as arrays, one entry per lane or per message: a buffer is a number into the one
:class:`Buffers` table, an offset counts elements from the buffer's start, ``order`` is the event's rank in the total
order made by the ``communicate`` pass. Entries of one family with equal order follow each other in array order.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Dialect, Operation, Types
from raptor_core.spatial.kernel import Kernel

Indices = npt.NDArray[np.int64]


@attrs.frozen(kw_only=True, eq=False)
class Buffers(Operation):
    """All buffers: ``cores`` [n], ``elements`` [n], the orders of their ``first`` and ``last`` event, and owners.

    ``owner`` [n] indexes ``owners``: the value that a buffer holds, or the operation whose scratch it is.
    ``addresses`` [n] are byte addresses in the core's local memory, once planned (empty before).
    """

    kind: ClassVar[str] = "pim.buffers"

    cores: Indices
    elements: Indices
    first: Indices
    last: Indices
    owner: Indices
    owners: tuple[str, ...]
    addresses: Indices = attrs.field(factory=lambda: np.zeros(0, dtype=np.int64))

    def verify(self, types: Types) -> None:
        size = self.cores.size
        if any(a.size != size for a in (self.elements, self.first, self.last, self.owner)):
            raise self.fail("the columns of the buffer table differ in length")
        if self.addresses.size not in (0, size):
            raise self.fail(f"{self.addresses.size} addresses for {size} buffers")


@attrs.frozen(kw_only=True, eq=False)
class Groups(Operation):
    """Crossbar groups: ``cores`` [g], ``numbers`` [g] within the core, ``matrices`` [g] index ``operands``.

    Operands are the distinct weight matrices (constants), each at most one crossbar high. ``crossbars`` [g] is the
    width of the group in crossbars.
    """

    kind: ClassVar[str] = "pim.groups"

    cores: Indices
    numbers: Indices
    matrices: Indices
    crossbars: Indices


@attrs.frozen(kw_only=True, eq=False)
class Launch(Operation):
    """One kernel on many cores: lane l runs on ``cores`` [l] with slot s at ``buffers`` [l, s] + ``offsets`` [l, s].

    A buffer of -1 is a slot that the kernel does not use. ``groups`` [l, w] is the core's crossbar group that holds
    the kernel's weight number w.
    """

    kind: ClassVar[str] = "pim.launch"

    kernel: Kernel
    cores: Indices
    order: Indices
    buffers: Indices
    offsets: Indices
    groups: Indices


@attrs.frozen(kw_only=True, eq=False)
class Clear(Operation):
    """Sets ``elements`` elements at ``buffers`` + ``offsets`` to zero."""

    kind: ClassVar[str] = "pim.clear"

    cores: Indices
    order: Indices
    buffers: Indices
    offsets: Indices
    elements: Indices


@attrs.frozen(kw_only=True, eq=False)
class HostMove(Operation):
    """Common columns of :class:`Load` and :class:`Store`: ``host`` are byte addresses in host memory."""

    cores: Indices
    order: Indices
    buffers: Indices
    offsets: Indices
    host: Indices
    elements: Indices


@attrs.frozen(kw_only=True, eq=False)
class Load(HostMove):
    """Copies elements from host memory into buffers."""

    kind: ClassVar[str] = "pim.load"


@attrs.frozen(kw_only=True, eq=False)
class Store(HostMove):
    """Copies elements from buffers into host memory."""

    kind: ClassVar[str] = "pim.store"


@attrs.frozen(kw_only=True, eq=False)
class Transfer(Operation):
    """Messages of ``elements`` elements from ``sources`` to ``destinations`` (cores), blocking on both."""

    kind: ClassVar[str] = "pim.transfer"

    sources: Indices
    destinations: Indices
    order: Indices
    source_buffers: Indices
    source_offsets: Indices
    destination_buffers: Indices
    destination_offsets: Indices
    elements: Indices


@attrs.frozen(kw_only=True)
class HostMemory(Operation):
    """The host memory map: byte ``addresses`` and ``sizes`` of ``values``; ``total`` bytes in all.

    Network inputs come first, then outputs, then constants that cores load. Inputs and constants are the operands,
    outputs the results: the stores of all cores together make them.
    """

    kind: ClassVar[str] = "pim.host_memory"

    values: tuple[str, ...]
    addresses: tuple[int, ...]
    sizes: tuple[int, ...]
    total: int


DIALECT = Dialect("pim", operations=(Buffers, Groups, Launch, Clear, Load, Store, Transfer, HostMemory))
