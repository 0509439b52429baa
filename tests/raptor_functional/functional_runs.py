"""Runs of small programs on the simulator and on the reference, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from reference_interpreter import Chip, Instruction

from raptor_core.options import resolve_options
from raptor_core.simulation.contract import SimulationResult
from raptor_functional.run import simulate_artifact
from raptor_functional.settings import OPTIONS, parse_settings
from raptor_pim.artifacts import Artifact, ArtifactConfig
from raptor_pim.isa import assemble, validate_programs

Programs = Sequence[Sequence[Instruction]]


def op(name: str, **fields: Any) -> Instruction:
    """An instruction object; ``select`` and ``value`` make its offset."""
    instruction = {"op": name, **fields}
    if "select" in instruction:
        instruction["offset"] = {
            "offset_select": instruction.pop("select"),
            "offset_value": instruction.pop("value"),
        }
    if name == "mvmul":
        instruction = {"mbiw": 8, "relu": 0, **instruction}
    return instruction


def artifact(programs: Programs, *, host: bytes = bytes(64), matrices: Any = (), **config: Any) -> Artifact:
    """An artifact of programs as instruction objects and matrices [core][group]."""
    distinct = [matrix for core in matrices for matrix in core]
    numbers = iter(range(len(distinct)))
    records = tuple(assemble(program) for program in programs)
    groups = tuple(tuple(-(-m.shape[1] // 4) for m in core) for core in matrices) or ((),) * len(records)
    made = Artifact(
        ArtifactConfig(
            core_cnt=len(records),
            xbar_size=(distinct[0].shape[0] if distinct else 4, 4),
            array_group_map=groups,
            weights=tuple(tuple(next(numbers) for _ in core) for core in matrices),
            **config,
        ),
        records,
        tuple(distinct),
        np.frombuffer(host, dtype=np.uint8),
    )
    validate_programs(records, group_counts=made.config.group_counts)
    return made


def simulate(made: Artifact, samples: Any = (), **options: Any) -> SimulationResult:
    """A run with simulator options by name."""
    return simulate_artifact(made, samples, parse_settings(resolve_options(OPTIONS, options, owner="functional")))


def dumps(made: Artifact, samples: Any = (), **options: Any) -> list[bytes]:
    """The whole host memory after every iteration, as recorded."""
    size = made.memory.size
    result = simulate(made, samples, dump_ranges=f"0,{size}", **options)
    return [output["range_0"].tobytes() for output in result.outputs]


def final_host(programs: Programs, *, host: bytes = bytes(64), matrices: Any = (), **options: Any) -> bytes:
    """The host memory after one run on the simulator, which must agree with the reference byte by byte."""
    (simulated,) = dumps(artifact(programs, host=host, matrices=matrices), **options)
    reference = Chip(programs, host=host, matrices=matrices, ranges=[(0, len(host))]).run()
    assert same_numbers(simulated, bytes(reference.outputs[0][0]))
    return simulated


def same_numbers(left: bytes, right: bytes) -> bool:
    """Whether two memories hold the same bytes, apart from which NaN a NaN is (float32 at multiples of 4)."""
    a, b = np.frombuffer(left, "<f4"), np.frombuffer(right, "<f4")
    same = a.view(np.int32) == b.view(np.int32)
    return bool(np.all(same | (np.isnan(a) & np.isnan(b))))


def floats(*values: float) -> bytes:
    """Values as float32 bytes."""
    return np.array(values, "<f4").tobytes()


@attrs.frozen
class Vectors:
    """A program that loads vectors to local addresses, does something and stores local memory back.

    ``loads`` are (local address, bytes); registers 10 up hold the local addresses; ``result`` is (address, size).
    """

    loads: tuple[tuple[int, bytes], ...]
    body: tuple[Instruction, ...]
    result: tuple[int, int]

    def run(self, **options: Any) -> bytes:
        """The bytes of the result, checked against the reference."""
        program: list[Instruction] = []
        host = b""
        for number, (address, data) in enumerate(self.loads):
            program += [op("sldi", rd=10 + number, imm=address), op("sldi", rd=31, imm=len(host))]
            program.append(op("ld", rd=10 + number, rs1=31, size=len(data)))
            host += data + bytes(-len(data) % 4)
        address, size = self.result
        program += [*self.body, op("sldi", rd=30, imm=len(host)), op("sldi", rd=31, imm=address)]
        program.append(op("st", rd=30, rs1=31, size=size))
        begin = len(host)
        return final_host([program], host=host + bytes(size + -size % 4), **options)[begin : begin + size]
