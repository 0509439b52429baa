"""Energy of a run, by what it was spent on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from raptor_performance.engine import Run
from raptor_performance.kernels import constants as k
from raptor_pim.artifacts.chip import ChipConfiguration, CoreConfig
from raptor_pim.artifacts.timing import pass_energy, vector_step_pj
from raptor_pim.isa.records import Records


@attrs.frozen
class Energy:
    """Energy of a run, pJ. ``static`` and ``dynamic`` hold it by unit; units that take none are there with 0."""

    static: Mapping[str, float]
    dynamic: Mapping[str, float]

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.static.values()) + sum(self.dynamic.values())


def run_energy(
    configuration: ChipConfiguration, run: Run, programs: Sequence[Records], listed: int, time_ns: float
) -> Energy:
    """What a run took in ``time_ns``, its program listing ``listed`` cores."""
    chip = configuration.chip_config
    core, local, host = chip.core_config, chip.core_config.local_memory_config, chip.global_memory_config
    sums = {column: int(run.core[:, column].sum()) for column in range(k.LOCAL_READS, k.PRODUCTS + 1)}
    of_pass = pass_energy(core.matrix_config)
    static = {unit: listed * power * time_ns for unit, power in _static_mw(core).items()}
    static["host_memory"] = host.static_power * time_ns
    dynamic = {
        "crossbar": sums[k.PASSES] * of_pass.crossbar,
        "adc": sums[k.PASSES] * of_pass.adc,
        "crossbar_periphery": sums[k.PASSES] * of_pass.periphery,
        "vector": sums[k.VECTOR_STEPS] * vector_step_pj(core),
        "local_memory": sums[k.LOCAL_READS] * local.read_dynamic_energy
        + sums[k.LOCAL_WRITES] * local.write_dynamic_energy,
        "host_memory": sums[k.HOST_READS] * host.read_dynamic_energy + sums[k.HOST_WRITES] * host.write_dynamic_energy,
        "network": float(run.network_pj.sum()),
        "front_end": _front_end_pj(core, run, programs),
    }
    return Energy(static, dynamic)


def _static_mw(core: CoreConfig) -> dict[str, float]:
    """Static power of one core by unit. The controller's and the crossbars' is not charged, as in the reference."""
    return {
        "local_memory": core.local_memory_config.static_power,
        "front_end": core.inst_fetch_static_power
        + core.inst_decode_static_power
        + core.inst_decode_offset_static_power
        + core.reg_file_static_power,
        "scalar": core.scalar_static_power,
        "vector": core.vector_alu_static_power + core.vector_reg_static_power,
        "transfer": core.transfer_static_power,
    }


def _front_end_pj(core: CoreConfig, run: Run, programs: Sequence[Records]) -> float:
    """Fetch, decode, register file and scalar unit: one activity per instruction that came as far."""
    powers = (
        core.inst_fetch_dynamic_power
        + core.inst_decode_dynamic_power
        + core.inst_decode_offset_dynamic_power
        + core.reg_file_read_dynamic_power
    )
    scalar_power = core.scalar_dynamic_power + core.reg_file_write_dynamic_power
    if powers == 0 and scalar_power == 0:
        return 0.0
    total = 0.0
    for row, records in zip(run.core, programs, strict=True):
        whole, part = (int(row[k.ROUNDS]), int(row[k.PC])) if run.looping else (0, int(row[k.PC]))
        scalar = (records["op"] > k.NOP) & (records["op"] < k.SETBW)
        scalars = whole * int(scalar.sum()) + int(np.count_nonzero(scalar[:part]))
        total += (whole * records.size + part) * powers + scalars * scalar_power
    return total * core.period
