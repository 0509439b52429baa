"""What the passes of the core may know of a machine: how much there is of it, and what things cost.

Costs are estimates in nanoseconds for choosing between alternatives; a simulator gives the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from raptor_core.spatial.kernel import Kernel


class Machine(Protocol):
    """A configured machine, made by a target."""

    @property
    def core_count(self) -> int:
        """Number of cores."""
        ...

    @property
    def crossbars_per_core(self) -> int:
        """Number of crossbars of one core."""
        ...

    @property
    def crossbar_rows(self) -> int:
        """Height of a crossbar: the longest reduction of one product."""
        ...

    @property
    def crossbar_columns(self) -> int:
        """Width of one crossbar. A group of several holds a wider matrix."""
        ...

    def crossbars(self, shapes: Sequence[tuple[int, int]]) -> int:
        """Crossbars that matrices of the given (rows, columns) occupy, each a group of its own."""
        ...

    def kernel_ns(self, kernel: Kernel) -> float:
        """Time of one lane's kernel on one core, nothing else running."""
        ...

    def kernel_energy_ns(self, kernel: Kernel) -> float:
        """Dynamic energy of one lane's kernel, as the time in which the whole idle chip uses as much.

        So energy and time can be weighed against each other without knowing watts.
        """
        ...

    def transfer_ns(self, elements: float, runs: float = 1) -> float:
        """Time of sending ``elements`` elements in ``runs`` messages between two cores at mean distance."""
        ...

    def distance_ns(self) -> npt.NDArray[np.float64]:
        """[core, core]: additional time of one message between two cores over the mean, for placement."""
        ...

    def host_ns(self, elements: float, runs: float = 1) -> float:
        """Time that loading or storing ``elements`` elements in ``runs`` messages holds the host memory."""
        ...
