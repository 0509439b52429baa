"""The chip configuration: a chip's resources, timing, power and network as one JSON file says them.

The JSON form is that of the published performance simulators and of PIMCOMP-NN, so their files load as they are.
Sections and fields keep their names there; a field that the file does not give has the default stated here.
Times are ns, powers mW, energies pJ, widths of memories and the bus bytes.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import attrs

from raptor_pim.artifacts._chip_fields import (
    Section,
    amount,
    choice,
    count,
    flag,
    pair,
    read_section,
    section,
    text,
    write_section,
)
from raptor_pim.artifacts._json_files import bad_chip_file, read_json


@attrs.frozen(kw_only=True)
class MatrixConfig(Section):
    """Crossbars and their converters, the same for every crossbar of the chip."""

    xbar_array_count: int = count(1)
    """Crossbars of one core."""
    period: float = amount(1 / 1.28, positive=True)
    """Clock period of the crossbar unit."""
    pipeline_mode: bool = flag(True)
    """Whether driving and reading one input slice overlaps converting the one before."""
    dac_resolution: int = count(1)
    """Input bits driven per pass."""
    dac_latency_cycle: int = count(1, minimum=0)
    dac_static_power: float = amount(0.0)
    dac_dynamic_power: float = amount(0.0)
    dac_count: int = count(128)
    """Rows driven at once."""
    xbar_size: tuple[int, int] = pair((128, 128))
    """(rows, columns): rows take inputs, columns give outputs."""
    cell_precision: int = count(2)
    """Bits of one cell."""
    xbar_latency: float = amount(30.0)
    """ns of one analog read."""
    xbar_read_power: float = amount(0.0)
    sample_hold_latency_cycle: int = count(1, minimum=0)
    sample_hold_static_power: float = amount(0.0)
    sample_hold_dynamic_power: float = amount(0.0)
    adc_resolution: int = count(1)
    adc_latency_cycle: int = count(1, minimum=0)
    adc_static_power: float = amount(0.0)
    adc_dynamic_power: float = amount(0.0)
    adc_count: int = count(1)
    """Columns converted at once."""
    shift_adder_latency_cycle: int = count(1, minimum=0)
    shift_adder_static_power: float = amount(0.0)
    shift_adder_dynamic_power: float = amount(0.0)
    input_buffer_static_power: float = amount(0.0)
    input_buffer_dynamic_power: float = amount(0.0)
    output_buffer_latency_cycle: int = count(1, minimum=0)
    output_buffer_static_power: float = amount(0.0)
    output_buffer_dynamic_power: float = amount(0.0)

    ignored = frozenset({"input_buffer_latency_cycle"})


@attrs.frozen(kw_only=True)
class MemoryConfig(Section):
    """A memory that serves requests one after another, ``data_width`` bytes per access."""

    memory_size: int = count(1024 * 1024, minimum=0)
    """Bytes; not used in any formula."""
    data_width: int = count(16)
    period: float = amount(1.0, positive=True)
    static_power: float = amount(1.0)
    write_latency_cycle: int = count(10, minimum=0)
    write_dynamic_energy: float = amount(0.0)
    """pJ per access."""
    read_latency_cycle: int = count(8, minimum=0)
    read_dynamic_energy: float = amount(0.0)
    """pJ per access."""


@attrs.frozen(kw_only=True)
class CoreConfig(Section):
    """One core: clock, front end, units and local memory."""

    period: float = amount(1.0, positive=True)
    """Clock period of all cores."""
    controller_static_power: float = amount(0.0)
    controller_dynamic_power: float = amount(0.0)
    inst_fetch_static_power: float = amount(0.0)
    inst_fetch_dynamic_power: float = amount(0.0)
    inst_decode_static_power: float = amount(0.0)
    inst_decode_dynamic_power: float = amount(0.0)
    inst_decode_offset_static_power: float = amount(0.0)
    inst_decode_offset_dynamic_power: float = amount(0.0)
    reg_file_static_power: float = amount(0.0)
    reg_file_read_dynamic_power: float = amount(0.0)
    reg_file_write_dynamic_power: float = amount(0.0)
    scalar_static_power: float = amount(0.0)
    scalar_dynamic_power: float = amount(0.0)
    matrix_config: MatrixConfig = attrs.field(factory=MatrixConfig, metadata=section(MatrixConfig))
    vector_width: int = count(16)
    """Elements a vector instruction handles per step."""
    vector_latency_cycle: int = count(8, minimum=0)
    """Duration of one step; taken as ns, whatever the period."""
    vector_alu_static_power: float = amount(0.0)
    vector_alu_dynamic_energy: float = amount(0.0)
    """pJ per step."""
    vector_reg_static_power: float = amount(0.0)
    vector_reg_read_dynamic_energy: float = amount(0.0)
    vector_reg_write_dynamic_energy: float = amount(0.0)
    transfer_static_power: float = amount(0.0)
    transfer_dynamic_power: float = amount(0.0)
    local_memory_config: MemoryConfig = attrs.field(factory=MemoryConfig, metadata=section(MemoryConfig))
    rob_size: int = count(1)
    """Instructions in flight."""
    global_memory_switch_id: int = count(-10, minimum=None)
    """Number by which the cores address the host memory."""


@attrs.frozen(kw_only=True)
class NetworkConfig(Section):
    """The network on chip; see raptor_pim.artifacts.mesh for the file it names."""

    bus_topology: str = text("mesh")
    bus_width: int = count(16)
    """Bytes of one flit."""
    layout: tuple[int, int] = pair((0, 0), minimum=0)
    """(rows, columns) of the mesh; (0, 0) where the file does not say."""
    net_config_file_path: str = text(required=True)
    """Path of the network file, from the folder of the configuration."""


@attrs.frozen(kw_only=True)
class ChipConfig(Section):
    """The chip itself."""

    core_config: CoreConfig = attrs.field(metadata=section(CoreConfig, required=True))
    global_memory_config: MemoryConfig = attrs.field(factory=MemoryConfig, metadata=section(MemoryConfig))
    network_config: NetworkConfig = attrs.field(metadata=section(NetworkConfig, required=True))
    core_cnt: int = count(required=True)
    global_memory_switch_id: int = count(-10, minimum=None)


class SimulationMode(enum.IntEnum):
    """``sim_mode``: whether cores repeat their programs for a given time, or run them once."""

    THROUGHPUT = 0
    LATENCY = 1


@attrs.frozen(kw_only=True)
class SimConfig(Section):
    """How a performance simulation runs."""

    sim_mode: int = choice(0, (0, 1))
    """A :class:`SimulationMode`."""
    sim_time: float = amount(1.0, positive=True)
    """ms simulated in throughput mode."""
    latency_timeout_ms: float = amount(60000.0, positive=True)
    """ms of simulated time after which an unfinished latency run is an error."""
    report_verbose_level: int = count(0, minimum=0)


@attrs.frozen(kw_only=True)
class ChipConfiguration(Section):
    """A whole chip configuration.

    ``folder`` is where relative paths in it start. It is no part of what the configuration says (not compared).
    """

    chip_config: ChipConfig = attrs.field(metadata=section(ChipConfig, required=True))
    sim_config: SimConfig = attrs.field(factory=SimConfig, metadata=section(SimConfig))
    folder: Path = attrs.field(default=Path(), eq=False)

    @property
    def core_count(self) -> int:
        """Number of cores."""
        return self.chip_config.core_cnt

    @property
    def crossbar_shape(self) -> tuple[int, int]:
        """(rows, columns) of one crossbar."""
        return self.chip_config.core_config.matrix_config.xbar_size

    @property
    def crossbars_per_core(self) -> int:
        """Number of crossbars of one core."""
        return self.chip_config.core_config.matrix_config.xbar_array_count

    @property
    def host_switch(self) -> int:
        """Number of the host memory's switch in the network file."""
        return self.chip_config.core_config.global_memory_switch_id

    @property
    def network_file(self) -> Path:
        """Where the network file stands."""
        return self.folder / self.chip_config.network_config.net_config_file_path

    def with_mode(self, mode: SimulationMode) -> ChipConfiguration:
        """The same chip, simulated in another mode (a time-out is only stated for latency)."""
        given = set(self.sim_config.given) | {"sim_mode"}
        if mode is SimulationMode.LATENCY:
            given.add("latency_timeout_ms")
        else:
            given.discard("latency_timeout_ms")
        simulation = attrs.evolve(self.sim_config, sim_mode=int(mode), given=frozenset(given))
        return attrs.evolve(self, sim_config=simulation, given=self.given | {"sim_config"})


def load_chip(path: Path) -> ChipConfiguration:
    """The configuration in the file at ``path``.

    Raises RaptorError, naming the file and the place in it (``$.chip_config.core_config.period``), when the file is
    missing or no JSON, when a field is missing, unknown or of the wrong type, or when a number is not finite,
    negative, or zero where that makes no sense.
    """
    return chip_from_json(read_json(path, "chip configuration"), where=str(path), folder=path.parent)


def chip_from_json(document: Any, *, where: str, folder: Path = Path()) -> ChipConfiguration:
    """The configuration in a JSON value; ``where`` names its source in messages. Raises RaptorError as load_chip."""
    problems: list[tuple[str, str]] = []
    values = read_section(ChipConfiguration, document, "$", problems)
    if problems:
        raise _refused(where, problems)
    configuration = ChipConfiguration(**values, folder=folder)
    _check_whole(configuration, where)
    return configuration


def chip_to_json(configuration: ChipConfiguration) -> dict[str, Any]:
    """The JSON value of a configuration: every field that its file gave or whose value is not the default."""
    return write_section(configuration)


def _refused(where: str, problems: list[tuple[str, str]]) -> Exception:
    first_path, first_reason = problems[0]
    others = [f"{path}: {reason}" for path, reason in problems[1:]]
    return bad_chip_file(f"{where}: {first_path}", first_reason, details=others)


def _check_whole(configuration: ChipConfiguration, where: str) -> None:
    """What no single field can say."""
    chip = configuration.chip_config
    core = chip.core_config
    if core.global_memory_switch_id != chip.global_memory_switch_id:
        raise bad_chip_file(
            f"{where}: $.chip_config.core_config.global_memory_switch_id",
            f"it is {core.global_memory_switch_id} and $.chip_config.global_memory_switch_id is "
            f"{chip.global_memory_switch_id}; both name the switch of the host memory",
        )
    if 0 <= core.global_memory_switch_id < chip.core_cnt:
        raise bad_chip_file(
            f"{where}: $.chip_config.global_memory_switch_id",
            f"{core.global_memory_switch_id} is the number of a core (there are {chip.core_cnt})",
        )


__all__ = [
    "ChipConfig",
    "ChipConfiguration",
    "CoreConfig",
    "MatrixConfig",
    "MemoryConfig",
    "NetworkConfig",
    "SimConfig",
    "SimulationMode",
    "chip_from_json",
    "chip_to_json",
    "load_chip",
]
