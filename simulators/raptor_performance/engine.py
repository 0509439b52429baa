"""From a chip and programs to what happened: tables set up, kernel chosen and run."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt

from raptor_performance.kernels import constants as k
from raptor_pim.artifacts.chip import ChipConfiguration, SimulationMode
from raptor_pim.artifacts.mesh import Mesh
from raptor_pim.artifacts.timing import picoseconds, product_stages
from raptor_pim.isa.records import RECORD, Records

Table = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Run:
    """What a simulation left behind.

    ``core`` [cores, CORE_COLUMNS] is the table of raptor_performance.kernels.constants, ``network_pj`` [cores] the
    energy of each core's messages, ``trace`` [n, 4] rows of core, pc, start and end (ps) in no particular order.
    ``end`` is the time, ps, at which the simulation had to stop.
    """

    core: Table
    network_pj: npt.NDArray[np.float64]
    trace: Table
    end: int
    looping: bool


def kernel_timing(configuration: ChipConfiguration, end: int) -> k.Timing:
    """The configuration as the kernels take it."""
    chip = configuration.chip_config
    core, host = chip.core_config, chip.global_memory_config
    matrix, local = core.matrix_config, core.local_memory_config
    stages = product_stages(matrix)
    return k.Timing(
        period=max(picoseconds(core.period), 1),
        local_width=local.data_width,
        local_read=local.read_latency_cycle,
        local_write=local.write_latency_cycle,
        local_period=local.period,
        host_width=host.data_width,
        host_read=host.read_latency_cycle,
        host_write=host.write_latency_cycle,
        host_period=host.period,
        bus_width=chip.network_config.bus_width,
        vector_width=core.vector_width,
        vector_step=core.vector_latency_cycle * 1000,
        rows=matrix.xbar_size[0],
        columns=matrix.xbar_size[1],
        cell_bits=matrix.cell_precision,
        matrix_period=matrix.period,
        dac_resolution=matrix.dac_resolution,
        row_passes=matrix.xbar_size[0] // matrix.dac_count,
        front=stages.front,
        back=stages.back,
        pipelined=matrix.pipeline_mode,
        rob_size=core.rob_size,
        end=end,
    )


def run_programs(
    configuration: ChipConfiguration,
    mesh: Mesh,
    programs: Sequence[Records],
    groups: Sequence[Sequence[int]],
    *,
    trace_rows: int = 0,
    in_step: bool = False,
) -> Run:
    """Simulates the programs of cores 0, 1, ... in the mode that the configuration states.

    ``groups`` holds for every core the crossbars of each group. Programs must have been checked (see
    raptor_performance.check). Up to ``trace_rows`` instructions are traced, those looked at first. ``in_step`` takes
    the kernel for overlapping instructions even where each core has one at a time: the figures are the same.
    """
    simulation = configuration.sim_config
    looping = simulation.sim_mode == SimulationMode.THROUGHPUT
    end = max(picoseconds((simulation.sim_time if looping else simulation.latency_timeout_ms) * 1e6), 1)
    timing = kernel_timing(configuration, end)
    cores = len(programs)
    serial = timing.rob_size == 1 and not in_step
    width = k.CORE_COLUMNS if serial else k.ENTRIES + timing.rob_size * k.ENTRY_COLUMNS
    core = np.zeros((cores, width), dtype=np.int64)
    chip = np.zeros(k.CHIP_COLUMNS, dtype=np.int64)
    energy = np.zeros(cores, dtype=np.float64)
    trace = np.zeros((trace_rows, k.TRACE_COLUMNS), dtype=np.int64)
    program = _program(programs, groups)
    net = _network(mesh, cores)
    stack = np.zeros(cores + 1, dtype=np.int64)
    heap = np.zeros((cores * (k.TOKEN_BURST + 2) + 1, 2), dtype=np.int64)
    tokens = np.zeros((cores, k.EVENT_REGISTERS), dtype=np.int64)
    _start(core, chip, stack, program[1], timing, looping)
    work = (stack, heap, tokens, energy, trace)
    if serial:
        from raptor_performance.kernels.serial import simulate_serial

        simulate_serial(program, net, work, core, chip, looping, timing)
    else:
        from raptor_performance.kernels.overlapped import simulate_overlapped

        own = _units(cores, program[3].size)
        simulate_overlapped(program, net, work, own, core, chip, looping, timing)
    return Run(core, energy, trace[: chip[k.TRACED]], end, looping)


_Program = tuple[npt.NDArray[np.int32], Table, Table, Table]


def _program(programs: Sequence[Records], groups: Sequence[Sequence[int]]) -> _Program:
    """Records of all cores in one table, where each core's start, and the same for groups."""
    records = np.concatenate([np.zeros(0, dtype=RECORD), *programs])
    words = np.frombuffer(records, dtype="<i4").reshape(-1, RECORD.itemsize // 4)
    first = np.cumsum([0, *(program.size for program in programs)], dtype=np.int64)
    group_first = np.cumsum([0, *(len(group) for group in groups)], dtype=np.int64)
    sizes = np.array([size for group in groups for size in group], dtype=np.int64)
    return words, first, group_first, sizes


def _network(mesh: Mesh, cores: int) -> tuple[Table, npt.NDArray[np.float64]]:
    """Latency (ps) and energy of one flit between the first ``cores`` cores and the host, which comes last."""
    chosen = [*range(cores), mesh.cores]
    grid = np.ix_(chosen, chosen)
    return np.ascontiguousarray(mesh.latency[grid] * 1000), np.ascontiguousarray(mesh.energy[grid])


def _start(core: Table, chip: Table, stack: Table, first: Table, timing: k.Timing, looping: bool) -> None:
    """Every core that has instructions is ready to run, its first instruction in the dispatcher from edge 2."""
    counts = np.diff(first)
    core[:, k.STATUS] = np.where(counts > 0, k.RUNNING, k.FINISHED)
    core[:, k.STAND] = 2
    if looping and timing.end >= 2 * timing.period:
        # The last of one, two or three instructions is fetched before the first has come to the dispatcher.
        core[:, k.ROUNDS] = np.select([counts == 1, counts == 2, counts == 3], [3, 1, 1], 0)
    ready = np.flatnonzero(counts > 0)[::-1]
    stack[: ready.size] = ready
    chip[k.DEPTH] = ready.size


def _units(cores: int, groups: int) -> tuple[Table, Table]:
    """When each group is ready, and the tree of minima, all at rest."""
    leaves = 1 << max(cores - 1, 1).bit_length()
    return np.zeros(groups, dtype=np.int64), np.full(2 * leaves, k.FAR, dtype=np.int64)
