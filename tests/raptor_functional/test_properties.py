"""Random programs do the same on the simulator and on the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from functional_runs import artifact, dumps, floats, op, same_numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_interpreter import Chip, Instruction, ProgramError

from raptor_core.diagnostics import RaptorError

BINARY = ("vvadd", "vvsub", "vvmul", "vvdmul", "vvmax", "vvsll", "vvsra")
UNARY = ("vrelu", "vtanh", "vsigm", "vsoftmax")
HOST_BYTES, PRIVATE = 1024, 256
MATRIX = np.array([[2, 0, -1, 0.5, 1], [0, 0, 0, 0, 0], [1, -3, 0, 0, 4]], np.float32)

ADDRESSES = st.integers(0, 40).map(lambda k: 4 * k)
COUNTS = st.integers(0, 9)
VALUES = st.integers(-32, 32).map(lambda k: k / 4)


def flat(parts: list[list[Instruction]]) -> list[Instruction]:
    return [instruction for part in parts for instruction in part]


@st.composite
def local_work(draw: st.DrawFn, shift: int) -> list[Instruction]:
    """One instruction on local memory with its operands; addresses are ``shift`` modulo 4."""
    d, a, b = (draw(ADDRESSES) + shift for _ in range(3))
    count = draw(COUNTS)
    setup = [op("sldi", rd=1, imm=d), op("sldi", rd=2, imm=a), op("sldi", rd=3, imm=b)]
    offset = {"select": draw(st.integers(0, 7)), "value": draw(st.integers(-2, 6))}
    aligned = {"select": offset["select"], "value": 4 * offset["value"]}
    kind = draw(st.sampled_from(["binary", "unary", "gather", "mean", "clamp", "product", "move", "fill"]))
    stride = op("sldi", rd=4, imm=draw(st.integers(-3, 3)))
    choices: dict[str, Any] = {
        "binary": lambda: op(draw(st.sampled_from(BINARY)), rd=1, rs1=2, rs2=3, len=count, **offset),
        "unary": lambda: op(draw(st.sampled_from(UNARY)), rd=1, rs1=2, len=count, **offset),
        "gather": lambda: op("vmv", rd=1, rs1=2, rs2=4, len=count, **offset),
        "mean": lambda: op("vavg", rd=1, rs1=2, rs2=4, len=count + 1, **offset),
        "clamp": lambda: op(draw(st.sampled_from(("vrsu", "vrsl"))), rd=1, rs1=2, rs2=4, len=count, **offset),
        "product": lambda: op("mvmul", rd=1, rs1=2, group=0, relu=draw(st.integers(0, 1))),
        "move": lambda: op("lmv", rd=1, rs1=2, len=4 * count, **aligned),
        "fill": lambda: op("lldi", rd=1, imm=0, len=4 * count, **aligned),
    }
    return [*setup, stride, choices[kind]()]


@st.composite
def tame_work(draw: st.DrawFn) -> list[Instruction]:
    """Local work that cannot fail."""
    names = ("vvadd", "vvmax", "mvmul", "lmv", "vrelu")
    work = draw(local_work(0).filter(lambda work: work[-1]["op"] in names))
    if "offset" in work[-1]:
        work[-1]["offset"] = {"offset_select": 0, "offset_value": 0}
    return work


def begin(host_address: int, shift: int) -> list[Instruction]:
    """Fills local memory from the host."""
    return [op("sldi", rd=9, imm=shift), op("sldi", rd=10, imm=host_address), op("ld", rd=9, rs1=10, size=PRIVATE)]


def end(host_address: int, shift: int) -> list[Instruction]:
    """Shows local memory to the host."""
    return [op("sldi", rd=9, imm=shift), op("sldi", rd=10, imm=host_address), op("st", rd=10, rs1=9, size=PRIVATE)]


def failure_of(chip: Chip) -> ProgramError | None:
    try:
        chip.run()
    except ProgramError as failure:
        return failure
    return None


def compare(programs: list[list[Instruction]], host: bytes, iterations: int = 1, **options: Any) -> None:
    """Same images of the host memory after every iteration, or an error at the same place."""
    weights = [[MATRIX] for _ in programs]
    made = artifact(programs, host=host, matrices=weights)
    chip = Chip(programs, host=host, matrices=weights, iterations=iterations, ranges=[(0, len(host))])
    options |= {"samples": [{}] * iterations, "mode": "throughput"}
    failure = failure_of(chip)
    if failure is not None:
        with pytest.raises(RaptorError) as caught:
            dumps(made, **options)
        assert str(caught.value.where).startswith(f"core {failure.core} pc {failure.pc}:")
        return
    for got, wanted in zip(dumps(made, **options), chip.outputs, strict=True):
        assert same_numbers(got, bytes(wanted[0]))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_straight_line_programs(data: st.DataObject) -> None:
    shift = data.draw(st.integers(0, 3))
    host = floats(*data.draw(st.lists(VALUES, min_size=64, max_size=64))) + bytes(HOST_BYTES - 256)
    work = data.draw(st.lists(local_work(shift), min_size=1, max_size=12))
    compare([[*begin(0, shift), *flat(work), *end(512, shift)]], host)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_programs_of_narrow_elements(data: st.DataObject) -> None:
    widths = op("setbw", ibiw=data.draw(st.sampled_from((8, 16))), obiw=data.draw(st.sampled_from((8, 16))))
    shift = data.draw(st.integers(0, 3))
    host = bytes(data.draw(st.lists(st.sampled_from((0, 1, 3, 31, 100, 128, 255)), min_size=256, max_size=256)))
    work = data.draw(st.lists(local_work(shift), min_size=1, max_size=8))
    compare([[*begin(0, shift), widths, *flat(work), *end(512, shift)]], host + bytes(HOST_BYTES - 256))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_programs_of_several_cores(data: st.DataObject) -> None:
    """Any global order of rendezvous and signals, cut into cores, ends, and its result does not depend on turns."""
    count = data.draw(st.integers(2, 4))
    programs = [begin(PRIVATE * n, 0) for n in range(count)]
    for _ in range(data.draw(st.integers(1, 12))):
        first, second = data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
        kind = data.draw(st.sampled_from(["transfer", "event", "work"]))
        if kind == "transfer":
            size = 4 * data.draw(COUNTS)
            for core, name, peer in ((first, "send", second), (second, "recv", first)):
                address = op("sldi", rd=5, imm=data.draw(ADDRESSES))
                programs[core] += [
                    address,
                    op(name, rd=5, core=peer, size=size, select=1, value=data.draw(st.sampled_from((0, 4)))),
                ]
        elif kind == "event":
            register, number = data.draw(st.integers(0, 31)), data.draw(st.integers(1, 3))
            programs[first] += [op("sync", core=second, event_register=register)] * number
            programs[second].append(op("wait", event_register=register, wait_value=number))
        else:
            programs[first] += data.draw(tame_work())
    for n, program in enumerate(programs):
        program += end(PRIVATE * n, 0)
    host = floats(*data.draw(st.lists(VALUES, min_size=HOST_BYTES // 4, max_size=HOST_BYTES // 4)))
    options = data.draw(
        st.sampled_from(
            [
                {},
                {"schedule_policy": "randomized"},
                {"schedule_policy": "randomized", "schedule_seed": 77, "core_stall": "1:3"},
                {"target_stall": "0:2:2"},
                {"global_barrier": True},
            ]
        )
    )
    compare(programs, host, iterations=data.draw(st.integers(1, 3)), **options)
