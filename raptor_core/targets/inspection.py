"""What a target may offer besides compiling: reading its own program folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import attrs


@attrs.frozen
class TensorSignature:
    """An input or output of a program: name, shape, and element type as numpy calls it.

    ``shape_known`` is false when the program only says how many elements there are; ``shape`` is then one extent.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    shape_known: bool = True


@attrs.frozen
class Signature:
    """Inputs and outputs of a program, in order."""

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...] = ()


@runtime_checkable
class ProgramReader(Protocol):
    """Optional methods of a target plugin, for ``raptor inspect`` and for naming the inputs of a program.

    The folder is not trusted: all raise RaptorError for one that is not a whole program.
    """

    def signature(self, path: Path) -> Signature:
        """Inputs and outputs; cheap, nothing else of the folder is looked at."""
        ...

    def figures(self, path: Path) -> Mapping[str, Any]:
        """Figures of the program, as plain JSON values by name (snake case, unit in the name)."""
        ...

    def disassemble(self, path: Path, core: int, start: int, count: int) -> Sequence[tuple[int, str]]:
        """Program counter and text of at most ``count`` instructions of ``core`` from ``start`` on.

        Raises UsageError for a core or start that the program does not have.
        """
        ...
