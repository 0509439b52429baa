"""The machine that the passes ask: a chip configuration with estimates of what work costs.

The figures are those of the performance simulator for one instruction at a time (``rob_size`` 1, which every built-in
profile has), in the 8-bit view: one byte per element. An instruction's time runs from one start to the next: its
execution in whole cycles, two cycles to retire and dispatch (three for a product, which first waits a cycle at its
crossbars), one more where the network ends it, and one for every register that has to be loaded before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.spatial.kernel import Instr, Kernel, Loop, Moves, Operand
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.mesh import Mesh, read_mesh
from raptor_pim.artifacts.timing import (
    PRODUCT_INPUT_FACTOR,
    MemoryTiming,
    pass_energy,
    product_outputs,
    product_passes,
    product_stages,
    static_chip_mw,
)
from raptor_pim.isa.opcodes import REGISTER_COUNT

ELEMENT_BYTES = 1
"""Bytes of an element in the 8-bit view."""
_ELEMENT_BITS = 8
_PRODUCT_WEIGHT_BITS = 8
RETIRE_CYCLES = 2
"""Cycles from the end of an instruction to the start of the next."""
_PRODUCT_CYCLES = 3
_MOVE_LOADS = 2

_TWO_SOURCES = frozenset({"add", "sub", "mul", "max", "dot"})
_NUMBER = -1
_NUMBER_IN_REGISTER = frozenset({"gather", "mean", "clamp_max", "clamp_min"})
_VECTOR = _TWO_SOURCES | {"gather", "mean", "relu", "tanh", "sigmoid", "softmax", "clamp_max", "clamp_min"}


@attrs.frozen(slots=False)
class PimMachine:
    """A configured chip, a :class:`raptor_core.targets.machine.Machine`.

    Two machines are equal when their configurations are. ``name`` is the profile's, or the file's, or ``pim``.
    """

    configuration: ChipConfiguration
    name: str = "pim"
    _costs: dict[Any, float] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    # ---- resources -----------------------------------------------------------------------------------------------
    @property
    def core_count(self) -> int:
        """Number of cores."""
        return self.configuration.core_count

    @property
    def crossbars_per_core(self) -> int:
        """Number of crossbars of one core."""
        return self.configuration.crossbars_per_core

    @property
    def crossbar_rows(self) -> int:
        """Height of a crossbar."""
        return self.configuration.crossbar_shape[0]

    @property
    def crossbar_columns(self) -> int:
        """Width of one crossbar."""
        return self.configuration.crossbar_shape[1]

    def crossbars(self, shapes: Sequence[tuple[int, int]]) -> int:
        """Crossbars of matrices of at most a crossbar's height, each a group of its own."""
        width = self.configuration.crossbar_shape[1]
        return sum([-(-columns // width) for _, columns in shapes])

    @cached_property
    def mesh(self) -> Mesh:
        """The network on chip. Raises RaptorError when its file cannot be used."""
        return read_mesh(self.configuration)

    # ---- instructions --------------------------------------------------------------------------------------------
    def kernel_ns(self, kernel: Kernel) -> float:
        """Time of one lane's kernel on one core, nothing else running: all instructions and their register loads."""
        return self._body_ns(kernel.body)

    def kernel_energy_ns(self, kernel: Kernel) -> float:
        """Energy of the kernel's products (all that a profile charges a core for), over the chip's static power."""
        return self._products(kernel.body) * self._activation_pj / self._static_mw

    def _products(self, body: tuple[Any, ...]) -> int:
        """Crossbar activations: the widths, in crossbars, of all products."""
        total = 0
        for item in body:
            if type(item) is Loop:
                total += item.extent * self._products(item.body)
            elif type(item) is Instr and item.op == "product":
                total += -(-item.columns // self.crossbar_columns)
        return total

    def clear_ns(self, elements: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Times of setting areas of so many elements to zero, the load of the address included."""
        accesses = -(-elements * ELEMENT_BYTES // self._local.width)
        cycles = np.ceil(accesses * self._local.write_ns / self._period) + (RETIRE_CYCLES + 1)
        return np.asarray(cycles * self._period, dtype=np.float64)

    def instruction_ns(self, op: str, count: int = 0, columns: int = 0) -> float:
        """Time of one kernel instruction, register loads excluded.

        ``count`` is its length in elements, ``columns`` the width of a product's matrix. A fill is taken to be of
        zeros, a softmax (which the performance simulator refuses) as long as a sigmoid.
        """
        key = (op, columns if op == "product" else count)
        cost = self._costs.get(key)
        if cost is None:
            cost = self._costs[key] = self._instruction_ns(op, count, columns)
        return cost

    def _body_ns(self, body: tuple[Any, ...]) -> float:
        time, loads = self._work(body, 0)
        return time + sum(loads.values()) * self._period

    def _work(self, body: tuple[Any, ...], depth: int) -> tuple[float, dict[Operand, int]]:
        """Time of a body's instructions, and how often each of its operands has to be loaded into a register.

        An operand that stays the same from one turn of a loop to the next keeps its register, unless the loop has more
        operands than there are registers.
        """
        total = 0.0
        loads: dict[Operand, int] = {}
        for item in body:
            if type(item) is Instr:
                total += self.instruction_ns(item.op, item.count, item.columns)
                for operand in (item.dst, *item.sources):
                    loads.setdefault(operand, 1)
                if item.op in _NUMBER_IN_REGISTER:
                    loads.setdefault(Operand(_NUMBER, int(item.immediate)), 1)
            elif type(item) is Loop:
                time, inner = self._work(item.body, depth + 1)
                total += item.extent * time
                crowded = len(inner) > REGISTER_COUNT
                for operand, count in inner.items():
                    if crowded or any(operand.strides[depth : depth + 1]):
                        loads[operand] = loads.get(operand, 0) + count * item.extent
                    else:
                        loads[operand] = max(loads.get(operand, 0), count)
            else:
                total += self._moves_ns(item)
        return total, loads

    def _moves_ns(self, moves: Moves) -> float:
        count = moves.count
        if count.size == 0:
            return 0.0
        plain = (moves.stride == 1) | (count == 1)
        memory = self._local
        accesses = -(-count * ELEMENT_BYTES // memory.width)
        time = accesses * (memory.read_ns + memory.write_ns)
        time += np.where(plain, 0, -(-count // self._vector_width) * self._vector_step_ns)
        cycles = np.ceil(time / self._period) + (RETIRE_CYCLES + _MOVE_LOADS)
        return float(cycles.sum()) * self._period

    def _instruction_ns(self, op: str, count: int, columns: int) -> float:
        memory = self._local
        accesses = memory.accesses(count * ELEMENT_BYTES)
        if op == "product":
            return self._product_ns(columns)
        if op == "copy":
            return self._whole(accesses * (memory.read_ns + memory.write_ns), RETIRE_CYCLES)
        if op == "fill":
            return self._whole(accesses * memory.write_ns, RETIRE_CYCLES)
        if op in _VECTOR:
            reads = 2 if op in _TWO_SOURCES else 1
            steps = -(-count // self._vector_width)
            time = accesses * (reads * memory.read_ns + memory.write_ns) + steps * self._vector_step_ns
            return self._whole(time, RETIRE_CYCLES)
        raise ValueError(f"unknown kernel instruction {op!r}")

    def _product_ns(self, columns: int) -> float:
        matrix = self.configuration.chip_config.core_config.matrix_config
        memory = self._local
        read = memory.accesses(matrix.xbar_size[0] * ELEMENT_BYTES * PRODUCT_INPUT_FACTOR)
        groups = -(-columns // matrix.xbar_size[1])
        write = memory.accesses(product_outputs(matrix, _PRODUCT_WEIGHT_BITS) * ELEMENT_BYTES * groups)
        cycles = product_stages(matrix).cycles(product_passes(matrix, _ELEMENT_BITS), matrix.pipeline_mode)
        compute = cycles * matrix.period
        return self._whole(read * memory.read_ns + compute + write * memory.write_ns, _PRODUCT_CYCLES)

    def _whole(self, time: float, cycles: int) -> float:
        """``time`` in whole clock cycles, and ``cycles`` more."""
        return (math.ceil(time / self._period) + cycles) * self._period

    # ---- traffic -------------------------------------------------------------------------------------------------
    def transfer_ns(self, elements: float, runs: float = 1) -> float:
        """Time of sending ``elements`` elements in ``runs`` messages between two cores at mean distance.

        Messages one after another between cores that are both ready: grant, read at the sender, flits, write at the
        receiver, next. The request travels while the message before is under way.
        """
        if runs <= 0 or elements <= 0:
            return 0.0
        size = elements / runs * ELEMENT_BYTES
        memory = self._local
        accesses = math.ceil(size / memory.width)
        flits = math.ceil(size / self.configuration.chip_config.network_config.bus_width)
        each = accesses * (memory.read_ns + memory.write_ns) + (flits + 1) * self._mean_latency_ns
        return runs * (each + RETIRE_CYCLES * self._period)

    def distance_ns(self) -> npt.NDArray[np.float64]:
        """[core, core]: additional time of one message of one flit between two cores over the mean.

        Its grant and its flit both cross the distance, in opposite directions.
        """
        latency = self.mesh.latency[:-1, :-1].astype(np.float64)
        return latency + latency.T - 2 * self._mean_latency_ns

    def host_ns(self, elements: float, runs: float = 1) -> float:
        """Time that loading or storing ``elements`` elements in ``runs`` messages holds the host memory.

        The mean of both: the host memory serves all cores one after another.
        """
        if runs <= 0 or elements <= 0:
            return 0.0
        memory = MemoryTiming.of(self.configuration.chip_config.global_memory_config)
        return runs * math.ceil(elements / runs * ELEMENT_BYTES / memory.width) * (memory.read_ns + memory.write_ns) / 2

    @cached_property
    def _activation_pj(self) -> float:
        """Energy of one crossbar in one product."""
        matrix = self.configuration.chip_config.core_config.matrix_config
        return product_passes(matrix, _ELEMENT_BITS) * pass_energy(matrix).total

    @cached_property
    def _static_mw(self) -> float:
        return max(static_chip_mw(self.configuration, self.core_count), 1e-9)

    # ---- constants -----------------------------------------------------------------------------------------------
    @cached_property
    def _local(self) -> MemoryTiming:
        return MemoryTiming.of(self.configuration.chip_config.core_config.local_memory_config)

    @cached_property
    def _period(self) -> float:
        return self.configuration.chip_config.core_config.period

    @cached_property
    def _vector_width(self) -> int:
        return self.configuration.chip_config.core_config.vector_width

    @cached_property
    def _vector_step_ns(self) -> float:
        return float(self.configuration.chip_config.core_config.vector_latency_cycle)

    @cached_property
    def _mean_latency_ns(self) -> float:
        """Mean time of a flit over all pairs of different cores."""
        cores = self.core_count
        latency = self.mesh.latency[:cores, :cores]
        return float(latency.sum() - np.trace(latency)) / max(cores * (cores - 1), 1)
