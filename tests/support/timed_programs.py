"""Small programs to be timed, written by hand or at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from raptor_performance.engine import Run, run_programs
from raptor_performance.kernels import constants as k
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.mesh import Mesh
from raptor_pim.isa.assembler import assemble

Instruction = dict[str, Any]
WIDTHS: Instruction = {"op": "setbw", "ibiw": 8, "obiw": 8}
END: Instruction = {"op": "vrelu", "rd": 1, "rs1": 0, "len": 16}
GROUPS = (1, 2, 4)


def with_core(configuration: ChipConfiguration, **changes: Any) -> ChipConfiguration:
    """The chip with other fields in its core configuration."""
    chip = configuration.chip_config
    core = attrs.evolve(chip.core_config, **changes)
    return attrs.evolve(configuration, chip_config=attrs.evolve(chip, core_config=core))


def timed(
    configuration: ChipConfiguration, mesh: Mesh, programs: Sequence[Sequence[Instruction]], **options: Any
) -> Run:
    """Runs programs of instruction objects; every core has groups of 1, 2 and 4 crossbars."""
    records = [assemble(program) for program in programs]
    return run_programs(configuration, mesh, records, [GROUPS] * len(records), **options)


def finish_ns(run: Run, core: int = 0) -> float:
    """When a core finished."""
    return int(run.core[core, k.FINISH]) / 1000


def _vector(op: str, rd: int, rs1: int, rs2: int, length: int) -> Instruction:
    fields = {"op": op, "rd": rd, "rs1": rs1, "len": length}
    return fields if op in ("vrelu", "vtanh", "vsigm") else {**fields, "rs2": rs2}


_REGISTER = st.integers(0, 5)
_SIZE = st.integers(0, 500)
_LOCAL = st.one_of(
    st.builds(
        _vector, st.sampled_from(["vvadd", "vvmul", "vvdmul", "vmv", "vavg", "vrsu", "vtanh"]), _REGISTER, _REGISTER,
        _REGISTER, _SIZE,
    ),
    st.builds(lambda rd, rs1, n: {"op": "lmv", "rd": rd, "rs1": rs1, "len": n}, _REGISTER, _REGISTER, _SIZE),
    st.builds(lambda rd, n: {"op": "lldi", "rd": rd, "imm": 0, "len": n}, _REGISTER, _SIZE),
    st.builds(
        lambda rd, rs1, g: {"op": "mvmul", "rd": rd, "rs1": rs1, "mbiw": 8, "relu": 0, "group": g},
        _REGISTER, _REGISTER, st.integers(0, 2),
    ),
    st.builds(lambda rd, rs1, n: {"op": "ld", "rd": rd, "rs1": rs1, "size": n}, _REGISTER, _REGISTER, _SIZE),
    st.builds(lambda rd, rs1, n: {"op": "st", "rd": rd, "rs1": rs1, "size": n}, _REGISTER, _REGISTER, _SIZE),
    st.builds(lambda rd, imm: {"op": "sldi", "rd": rd, "imm": imm}, _REGISTER, st.integers(0, 4000)),
    st.builds(lambda rd, rs1, imm: {"op": "saddi", "rd": rd, "rs1": rs1, "imm": imm}, _REGISTER, _REGISTER, _SIZE),
    st.builds(lambda i, o: {"op": "setbw", "ibiw": i, "obiw": o}, st.sampled_from([8, 16]), st.sampled_from([8, 32])),
)  # fmt: skip


@st.composite
def programs_of(draw: st.DrawFn, cores: int, steps: int) -> list[list[Instruction]]:
    """Programs that cannot deadlock: transfers and tokens come in one order for all cores."""
    programs: list[list[Instruction]] = [[WIDTHS] for _ in range(cores)]
    for _ in range(draw(st.integers(1, steps))):
        kind = draw(st.sampled_from(["local", "local", "local", "transfer", "token"]))
        core = draw(st.integers(0, cores - 1))
        if kind == "local" or cores == 1:
            programs[core].append(draw(_LOCAL))
            continue
        other = draw(st.integers(0, cores - 2))
        other += other >= core
        if kind == "transfer":
            size = draw(_SIZE)
            programs[core].append({"op": "send", "rd": 0, "core": other, "size": size})
            programs[other].append({"op": "recv", "rd": 1, "core": core, "size": size})
        else:
            register, count = draw(st.integers(0, 3)), draw(st.integers(1, 3))
            programs[core] += [{"op": "sync", "core": other, "event_register": register}] * count
            programs[other].append({"op": "wait", "event_register": register, "wait_value": count})
    return [[*program, END] for program in programs]
