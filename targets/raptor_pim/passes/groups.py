"""Which crossbar group of which core holds which matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_core.targets.machine import Machine
from raptor_pim import dialect as pim

Matrix = npt.NDArray[np.float32]


@attrs.define(eq=False)
class GroupTable:
    """Places matrices on cores as lanes ask for them; equal matrices are stored once.

    A core that holds a matrix already uses the same group again.
    """

    machine: Machine
    matrices: dict[str, Matrix] = attrs.field(factory=dict)
    _by_key: dict[Hashable, tuple[int, ...]] = attrs.field(factory=dict)
    _by_content: dict[bytes, int] = attrs.field(factory=dict)
    _groups: dict[int, dict[int, int]] = attrs.field(factory=dict)
    _used: dict[int, int] = attrs.field(factory=dict)
    _widths: list[int] = attrs.field(factory=list)

    def place(self, core: int, key: Hashable, make: Callable[[], tuple[Matrix, ...]], *, where: str) -> tuple[int, ...]:
        """The group numbers on ``core`` of the matrices known as ``key``, which ``make`` gives the first time.

        Raises RaptorError when the core's crossbars do not suffice; ``where`` names the operation.
        """
        numbers = self._by_key.get(key)
        if numbers is None:
            numbers = tuple(self._number(matrix) for matrix in make())
            self._by_key[key] = numbers
        on_core = self._groups.setdefault(core, {})
        placed = []
        for number in numbers:
            if number not in on_core:
                on_core[number] = len(on_core)
                self._used[core] = self._used.get(core, 0) + self._widths[number]
            placed.append(on_core[number])
        if self._used.get(core, 0) > self.machine.crossbars_per_core:
            raise RaptorError(
                "crossbars-exceeded",
                f"the weights placed on core {core} need {self._used[core]} crossbars",
                where=where,
                reason=f"a core has {self.machine.crossbars_per_core} crossbars",
                hint="the scheduler must keep each core's weights within its crossbars; try --scheduler peft",
            )
        return tuple(placed)

    def _number(self, matrix: Matrix) -> int:
        matrix = np.ascontiguousarray(matrix, dtype=np.float32)
        digest = hashlib.sha256(repr(matrix.shape).encode() + matrix.tobytes()).digest()
        number = self._by_content.get(digest)
        if number is None:
            number = len(self.matrices)
            self._by_content[digest] = number
            self.matrices[f"crossbar_{number}"] = matrix
            self._widths.append(self.machine.crossbars([(matrix.shape[0], matrix.shape[1])]))
        return number

    def finish(self) -> tuple[pim.Groups, dict[str, Matrix]]:
        """The table as an operation, and the distinct matrices by name."""
        rows = [
            (core, group, number)
            for core in sorted(self._groups)
            for number, group in sorted(self._groups[core].items(), key=lambda item: item[1])
        ]
        table = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
        operation = pim.Groups(
            name="groups",
            operands=tuple(self.matrices),
            cores=table[:, 0].copy(),
            numbers=table[:, 1].copy(),
            matrices=table[:, 2].copy(),
            crossbars=np.array(self._widths, dtype=np.int64)[table[:, 2]] if rows else np.zeros(0, dtype=np.int64),
        )
        return operation, self.matrices
