"""Communication as data: where values lie, and every movement between cores and host, as families of boxes.

Each core holds at most one storage per value: the bounding box of all it computes and needs of it, elements in the
value's layout. So local edges need no copies, and a halo received once serves every consumer on the core. Where some
users are better off with a storage of their own, they read a *mirror* of the value. All events of a module (clears,
loads, copies, lanes, transfers, stores) carry an ``order``, their rank in one total order: every core executes its own
events in that order, which is why blocking transfers cannot deadlock: of all unfinished events the first one has both
its cores standing at it.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.ir.operation import Operation, Types
from raptor_core.spatial.boxes import BoxArray

Indices = npt.NDArray[np.int64]


@attrs.frozen(kw_only=True)
class Mirror(Operation):
    """A second name for a value that lanes make (operand 0): its storages hold just what the name's users need."""

    kind: ClassVar[str] = "spatial.mirror"

    def verify(self, types: Types) -> None:
        if types[self.operands[0]] != types[self.results[0]]:
            raise self.fail("it has another type than the value")


@attrs.frozen(kw_only=True, eq=False)
class Storage(Operation):
    """The storages of one value (operand 0): on each of ``cores`` [n] (all different) the box ``boxes`` [n, 2, rank].

    Boxes may reach outside the tensor: that part is zero padding, written by a Clear.
    """

    kind: ClassVar[str] = "spatial.storage"

    cores: Indices
    boxes: BoxArray


@attrs.frozen(kw_only=True, eq=False)
class _BoxFamily(Operation):
    boxes: BoxArray
    order: Indices

    def verify(self, types: Types) -> None:
        if self.boxes.shape[0] != self.order.shape[0] or self.boxes.shape[2] != types[self.operands[0]].rank:
            raise self.fail("boxes and order do not agree")


@attrs.frozen(kw_only=True, eq=False)
class Clear(_BoxFamily):
    """Sets ``boxes`` of the value's storage on ``cores`` to zero."""

    kind: ClassVar[str] = "spatial.clear"

    cores: Indices


@attrs.frozen(kw_only=True, eq=False)
class Load(_BoxFamily):
    """Loads ``boxes`` of a network input or constant from host memory into its storage on ``cores``."""

    kind: ClassVar[str] = "spatial.load"

    cores: Indices


@attrs.frozen(kw_only=True, eq=False)
class Copy(_BoxFamily):
    """Copies ``boxes`` of the value (operand 0) on ``cores`` from its storage into that of its mirror (operand 1)."""

    kind: ClassVar[str] = "spatial.copy"

    cores: Indices


@attrs.frozen(kw_only=True, eq=False)
class Transfer(_BoxFamily):
    """Sends ``boxes`` of the value (operand 0) from its storage on ``sources`` to ``destinations``.

    There they go to the storage of the last operand: the value itself, or a mirror of it (operand 1).
    """

    kind: ClassVar[str] = "spatial.transfer"

    sources: Indices
    destinations: Indices


@attrs.frozen(kw_only=True, eq=False)
class Store(_BoxFamily):
    """Stores ``boxes`` of a network output from its storage on ``cores`` to host memory."""

    kind: ClassVar[str] = "spatial.store"

    cores: Indices
