"""What single actions of a chip cost, as the reference performance simulator charges them.

Times are whole picoseconds: that simulator's clock resolves no less, and sums of them are exact. Its formulas are
kept as they are, rounding down where it does.
"""

from __future__ import annotations

import math

import attrs

from raptor_pim.artifacts.chip import ChipConfiguration, CoreConfig, MatrixConfig, MemoryConfig

PRODUCT_INPUT_FACTOR = 8
"""A product reads this many times the bytes of its input."""


def picoseconds(ns: float) -> int:
    """The nearest whole picosecond, halves up."""
    return math.floor(ns * 1000 + 0.5)


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
class ProductTiming:
    """Crossbar products of one input width: compute time, energy of one crossbar, energy of its converters alone."""

    compute_ns: float
    energy_pj: float
    converter_pj: float


def product_timing(matrix: MatrixConfig, input_bits: int) -> ProductTiming:
    """One product of ``input_bits``-bit inputs, memory accesses excluded."""
    rows, columns = matrix.xbar_size
    passes = (input_bits // matrix.dac_resolution) * (rows // matrix.dac_count)
    conversions = columns // matrix.adc_count
    front = matrix.dac_latency_cycle + math.ceil(matrix.xbar_latency / matrix.period) + matrix.sample_hold_latency_cycle
    after = matrix.shift_adder_latency_cycle + matrix.output_buffer_latency_cycle
    back = matrix.adc_latency_cycle + after + (conversions - 1) * max(matrix.adc_latency_cycle, after)
    cycles = front + back + (passes - 1) * max(front, back) if matrix.pipeline_mode else (front + back) * passes
    front_pj = (
        matrix.period * matrix.dac_dynamic_power * matrix.dac_latency_cycle * matrix.dac_count
        + matrix.xbar_read_power * matrix.xbar_latency
        + matrix.period * matrix.sample_hold_dynamic_power * matrix.sample_hold_latency_cycle * columns
    )
    adc_pj = matrix.period * matrix.adc_dynamic_power * matrix.adc_latency_cycle * matrix.adc_count
    back_pj = conversions * (
        adc_pj
        + matrix.period * matrix.shift_adder_dynamic_power * matrix.shift_adder_latency_cycle
        + matrix.period * matrix.output_buffer_dynamic_power * matrix.output_buffer_latency_cycle
    )
    return ProductTiming(cycles * matrix.period, passes * (front_pj + back_pj), passes * conversions * adc_pj)


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
