"""A compiled program in memory: what an artifact folder holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_pim.isa.records import Records

ELEMENT_BYTES = 4
CONFIG_FILE = "config.json"
MANIFEST_FILE = "manifest.json"
MEMORY_FILE = "memory.bin"
WEIGHTS_FOLDER = "weights"


def binary_program_file(core: int) -> str:
    """The name of a core's program in binary form."""
    return f"core_{core}.pim"


def json_program_file(core: int) -> str:
    """The name of a core's program in JSON form."""
    return f"core_{core}.json"


def weights_file(matrix: int) -> str:
    """The name, within the weights folder, of a distinct matrix."""
    return f"crossbar_{matrix}.bin"


def core_key(core: int) -> str:
    """The name of a core in the maps of the configuration file."""
    return f"core{core}"


@attrs.frozen
class TensorInfo:
    """A network input or output: name, static shape and element type (always ``float32``)."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def byte_size(self) -> int:
        """Bytes of the tensor in host memory."""
        return math.prod(self.shape) * ELEMENT_BYTES


@attrs.frozen
class ArtifactConfig:
    """What ``config.json`` says.

    ``core_cnt`` cores; ``xbar_size`` rows and columns of one crossbar (None: not stated); ``array_group_map`` for
    every core the number of crossbars of each group; ``weights`` for every core the number of each group's matrix in
    ``Artifact.matrices``, or empty as a whole when the program comes without weights. Host regions are byte
    addresses and sizes, in graph order; ``outputs_sizes`` is None when the sizes are not known. ``inputs`` and
    ``outputs`` describe the tensors of the regions one by one, or are empty when unnamed. ``xbar_array_count`` is
    the number of crossbars of a core; ``pipeline_stages`` the number of stages of a pipelined program.
    """

    core_cnt: int
    xbar_size: tuple[int, int] | None = None
    array_group_map: tuple[tuple[int, ...], ...] = ()
    weights: tuple[tuple[int, ...], ...] = ()
    inputs_addresses: tuple[int, ...] = ()
    inputs_sizes: tuple[int, ...] = ()
    outputs_addresses: tuple[int, ...] = ()
    outputs_sizes: tuple[int, ...] | None = ()
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    xbar_array_count: int | None = None
    pipeline_stages: int | None = None
    element_bytes: int = ELEMENT_BYTES

    @property
    def group_counts(self) -> tuple[int, ...]:
        """The number of crossbar groups of every core."""
        return tuple(len(groups) for groups in self.array_group_map)


@attrs.frozen(eq=False)
class Artifact:
    """A program for a chip, complete.

    ``programs`` the records of every core (raptor_pim.isa.RECORD), core 0 first, empty for an idle core;
    ``matrices`` the distinct weight matrices, float32 [rows, columns] with rows the crossbar height; ``memory`` the
    initial image of the host memory, uint8; ``manifest`` the content of ``manifest.json``, None when there is none.
    """

    config: ArtifactConfig
    programs: tuple[Records, ...]
    matrices: tuple[npt.NDArray[np.float32], ...] = ()
    memory: npt.NDArray[np.uint8] = attrs.field(factory=lambda: np.zeros(0, dtype=np.uint8))
    manifest: Mapping[str, Any] | None = None

    @property
    def instruction_count(self) -> int:
        """Instructions of all cores."""
        return sum(records.size for records in self.programs)
