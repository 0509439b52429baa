"""What single actions of a chip cost, as the reference performance simulator charges them.

Times are whole picoseconds: that simulator's clock resolves no less, and sums of them are exact. Its formulas are
kept as they are, rounding down where it does.
"""

from __future__ import annotations

import math

import attrs

from raptor_core.diagnostics import RaptorError
from raptor_pim.artifacts.chip import ChipConfiguration, CoreConfig, MatrixConfig, MemoryConfig

PRODUCT_INPUT_FACTOR = 8
"""A product reads this many times the bytes of its input."""

LONGEST_NS = 1e15
"""The longest time that is counted: in picoseconds, sums of a few still fit 64 bits."""

MOST_CYCLES = 2**31 - 1
"""The most cycles that one read of a crossbar takes."""


def picoseconds(ns: float) -> int:
    """The nearest whole picosecond, halves up. Raises RaptorError for a time beyond LONGEST_NS."""
    if not ns <= LONGEST_NS:
        raise _too_long("a period or time limit", f"it is {ns:g} ns, and times are counted up to {LONGEST_NS:g} ns")
    return math.floor(ns * 1000 + 0.5)


def _too_long(what: str, reason: str) -> RaptorError:
    return RaptorError(
        "time-too-long",
        f"{what} of the chip configuration is too long",
        reason=reason,
        hint="correct the value in the chip configuration",
    )


@attrs.frozen
class MemoryTiming:
    """A memory of ``width`` bytes per access; ``read_ns`` and ``write_ns`` are of one access."""

    width: int
    read_ns: float
    write_ns: float

    @classmethod
    def of(cls, config: MemoryConfig) -> MemoryTiming:
        """The timing of a configured memory."""
        return cls(
            config.data_width, config.read_latency_cycle * config.period, config.write_latency_cycle * config.period
        )

    def accesses(self, size: int) -> int:
        """Accesses for ``size`` bytes."""
        return -(-size // self.width)


@attrs.frozen
class ProductStages:
    """The crossbar unit's two stages: cycles of driving and reading one input slice, and of converting its columns."""

    front: int
    back: int

    def cycles(self, passes: int, pipelined: bool) -> int:
        """Cycles of a product of ``passes`` slices."""
        if pipelined:
            return self.front + self.back + (passes - 1) * max(self.front, self.back)
        return (self.front + self.back) * passes


def product_stages(matrix: MatrixConfig) -> ProductStages:
    """The stages of one pass. Raises RaptorError when a read takes more than MOST_CYCLES."""
    if not matrix.xbar_latency / matrix.period <= MOST_CYCLES:
        cycles = f"{matrix.xbar_latency / matrix.period:g} cycles, and at most {MOST_CYCLES} are counted"
        raise _too_long("xbar_latency", f"a read of a crossbar takes {cycles}")
    conversions = matrix.xbar_size[1] // matrix.adc_count
    after = matrix.shift_adder_latency_cycle + matrix.output_buffer_latency_cycle
    read = math.ceil(matrix.xbar_latency / matrix.period)
    return ProductStages(
        front=matrix.dac_latency_cycle + read + matrix.sample_hold_latency_cycle,
        back=matrix.adc_latency_cycle + after + (conversions - 1) * max(matrix.adc_latency_cycle, after),
    )


def product_passes(matrix: MatrixConfig, input_bits: int) -> int:
    """Input slices x row slices of a product of ``input_bits``-bit inputs."""
    return (input_bits // matrix.dac_resolution) * (matrix.xbar_size[0] // matrix.dac_count)


@attrs.frozen
class PassEnergy:
    """Energy, pJ, of one pass on one crossbar: reading the cells, the analog-digital converters, all other parts."""

    crossbar: float
    adc: float
    periphery: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.crossbar + self.adc + self.periphery


def pass_energy(matrix: MatrixConfig) -> PassEnergy:
    """The energy of one pass."""
    columns = matrix.xbar_size[1]
    conversions = columns // matrix.adc_count
    period = matrix.period
    converting = period * matrix.adc_dynamic_power * matrix.adc_latency_cycle * matrix.adc_count
    return PassEnergy(
        crossbar=matrix.xbar_read_power * matrix.xbar_latency,
        adc=conversions * converting,
        periphery=period * matrix.dac_dynamic_power * matrix.dac_latency_cycle * matrix.dac_count
        + period * matrix.sample_hold_dynamic_power * matrix.sample_hold_latency_cycle * columns
        + conversions * period * matrix.shift_adder_dynamic_power * matrix.shift_adder_latency_cycle
        + conversions * period * matrix.output_buffer_dynamic_power * matrix.output_buffer_latency_cycle,
    )


def product_outputs(matrix: MatrixConfig, weight_bits: int) -> int:
    """Outputs that one crossbar gives for weights of ``weight_bits`` bits."""
    return (matrix.cell_precision * matrix.xbar_size[1]) // weight_bits


def static_core_mw(core: CoreConfig) -> float:
    """Static power of one core, whether it works or not."""
    return (
        core.local_memory_config.static_power
        + core.inst_fetch_static_power
        + core.inst_decode_static_power
        + core.inst_decode_offset_static_power
        + core.reg_file_static_power
        + core.scalar_static_power
        + core.vector_alu_static_power
        + core.vector_reg_static_power
        + core.transfer_static_power
    )


def static_chip_mw(configuration: ChipConfiguration, cores: int) -> float:
    """Static power of a chip running a program that lists ``cores`` cores."""
    chip = configuration.chip_config
    return cores * static_core_mw(chip.core_config) + chip.global_memory_config.static_power


def vector_step_pj(core: CoreConfig) -> float:
    """Energy of one step of the vector unit."""
    return (
        core.vector_alu_dynamic_energy + 2 * core.vector_reg_read_dynamic_energy + core.vector_reg_write_dynamic_energy
    )
