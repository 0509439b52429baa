"""A chip about to run: the artifact's content as the arrays of the kernels."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_functional.kernels import state as codes
from raptor_functional.kernels.state import State
from raptor_functional.program_checks import check_programs
from raptor_pim.artifacts import Artifact
from raptor_pim.isa import RECORD

_FIRST_CAPACITY = 1 << 16

Ranges = Sequence[tuple[int, int]]
Bytes = npt.NDArray[np.uint8]


@attrs.frozen(eq=False)
class Machine:
    """A chip with a program, and the memory it owns.

    ``state`` is what the kernels see. ``local`` are the local memories of the cores, to which ``state`` points:
    enlarge them by :meth:`grow` only. ``ranges`` are the recorded host ranges (address, size).
    """

    artifact: Artifact
    state: State
    local: list[Bytes]
    ranges: tuple[tuple[int, int], ...]

    @property
    def core_count(self) -> int:
        """Cores of the chip, idle ones included."""
        return len(self.local)

    def grow(self) -> None:
        """Serves the GROW answer of a kernel: enlarges the local memory it names.

        Raises RaptorError when the computer has not that much memory.
        """
        core, needed = int(self.state.info[codes.INFO_CORE]), int(self.state.info[codes.INFO_FIRST])
        old = self.local[core]
        capacity = min(codes.LOCAL_LIMIT, max(2 * old.size, -(-needed // _FIRST_CAPACITY) * _FIRST_CAPACITY))
        try:
            new = np.zeros(capacity, dtype=np.uint8)
        except MemoryError as cause:
            raise RaptorError(
                "local-memory-too-large",
                f"the local memory of core {core} does not fit into this computer",
                reason=f"the program uses {needed} bytes of it",
                hint="the local memories of all cores together must fit; use a computer with more memory",
            ) from cause
        new[: old.size] = old
        self.local[core] = new
        self.state.local[core] = new.ctypes.data
        self.state.capacity[core] = capacity

    def recorded(self, iteration: int) -> list[Bytes]:
        """The bytes of every recorded range after ``iteration``."""
        row = self.state.recorded[iteration]
        offsets = self.state.range_offset.tolist()
        return [row[at : at + size].copy() for at, (_, size) in zip(offsets, self.ranges, strict=True)]


def build_machine(
    artifact: Artifact, samples: Bytes, *, iterations: int, ranges: Ranges = (), global_barrier: bool = False
) -> Machine:
    """The chip at the moment before its first instruction.

    ``samples`` [B, bytes of all inputs] are the inputs of every iteration, sample 0 already to be stored;
    ``iterations`` is B, or 1 when the program has no inputs; ``ranges`` the host ranges to record. Raises RaptorError
    for what the numerical machine cannot execute.
    """
    check_programs(artifact)
    cores = artifact.config.core_cnt
    code, first = _code(artifact)
    host = artifact.memory.copy()
    input_address = np.array(artifact.config.inputs_addresses, dtype=np.int64)
    input_size = np.array(artifact.config.inputs_sizes, dtype=np.int64)
    at = 0
    for address, size in zip(input_address.tolist(), input_size.tolist(), strict=True):
        host[address : address + size] = samples[0, at : at + size]
        at += size
    local = [np.zeros(_FIRST_CAPACITY if records.size else 0, dtype=np.uint8) for records in artifact.programs]
    sizes = np.array([size for _, size in ranges], dtype=np.int64)
    begins = np.array([address for address, _ in ranges], dtype=np.int64)
    image = [host[address : address + size] for address, size in ranges]
    row = np.concatenate(image) if image else np.zeros(0, dtype=np.uint8)
    idle = np.array([records.size == 0 for records in artifact.programs])
    clock = np.zeros(4, dtype=np.int64)
    clock[codes.STORED_SAMPLES], clock[codes.UNFINISHED] = 1, cores - int(idle.sum())
    state = State(
        code=code,
        first=first,
        pc=np.zeros(cores, dtype=np.int64),
        iteration=np.zeros(cores, dtype=np.int64),
        executed=np.zeros(cores, dtype=np.int64),
        doing=np.where(idle, codes.FINISHED, codes.READY).astype(np.int8),
        skip_mark=np.zeros(cores, dtype=np.bool_),
        registers=np.zeros((cores, 32), dtype=np.int32),
        events=np.zeros((cores, 32), dtype=np.int64),
        widths=np.full((cores, 2), 4, dtype=np.int32),
        local=np.array([memory.ctypes.data for memory in local], dtype=np.int64),
        capacity=np.array([memory.size for memory in local], dtype=np.int64),
        peak=np.zeros(cores, dtype=np.int64),
        host=host,
        **_matrices(artifact),
        chunk=np.zeros(codes.CHUNK_ELEMENTS, dtype=np.float32),
        batch=np.array([iterations, int(global_barrier)], dtype=np.int64),
        samples=np.ascontiguousarray(samples),
        input_address=input_address,
        input_size=input_size,
        range_begin=begins,
        range_end=begins + sizes,
        range_offset=np.cumsum(sizes) - sizes,
        recorded=np.repeat(row[None], iterations, axis=0),
        info=np.zeros(5, dtype=np.int64),
        clock=clock,
    )
    return Machine(artifact, state, local, tuple((int(a), int(s)) for a, s in ranges))


def _code(artifact: Artifact) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """All programs in one array [instructions, 5] of 32-bit words, and where each core's begins."""
    words = [
        np.ascontiguousarray(records).view(np.int32).reshape(-1, RECORD.itemsize // 4) for records in artifact.programs
    ]
    first = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum([part.shape[0] for part in words], out=first[1:])
    return np.concatenate(words), first


def _matrices(artifact: Artifact) -> dict[str, npt.NDArray[np.generic]]:
    """The weights as one array, and what the product needs to find its way."""
    groups = artifact.config.weights or ((),) * artifact.config.core_cnt
    group_first = np.zeros(len(groups) + 1, dtype=np.int64)
    np.cumsum([len(numbers) for numbers in groups], out=group_first[1:])
    matrices = artifact.matrices
    sizes = np.array([matrix.size for matrix in matrices], dtype=np.int64)
    rows = [np.flatnonzero((matrix != 0).any(axis=1)) for matrix in matrices]
    rows_first = np.zeros(len(matrices) + 1, dtype=np.int64)
    np.cumsum([part.size for part in rows], out=rows_first[1:])
    columns = np.array([matrix.shape[1] for matrix in matrices], dtype=np.int64)
    return {
        "group_first": group_first,
        "group_matrix": np.array([number for numbers in groups for number in numbers], dtype=np.int64),
        "weights": np.concatenate([np.zeros(0, dtype=np.float32), *(matrix.ravel() for matrix in matrices)]),
        "matrix_first": np.cumsum(sizes) - sizes,
        "columns": columns,
        "rows_first": rows_first,
        "rows": np.concatenate([np.zeros(0, dtype=np.int64), *rows]),
        "sums": np.zeros(int(columns.max(initial=0)), dtype=np.float32),
    }
