"""The trace of where every byte comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from functional_runs import artifact, floats, op, simulate

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_functional.provenance.tags import Tags


def trace(path: Path, programs: list[Any], samples: int = 1, host: bytes = bytes(64), **options: Any) -> list[Any]:
    """The events of a run whose inputs are the host bytes 0 to 7."""
    matrices = options.pop("matrices", ())
    made = artifact(programs, host=host, matrices=matrices, inputs_addresses=(0,), inputs_sizes=(8,))
    inputs = [{"input_0": np.full(2, number + 1, np.float32)} for number in range(samples)]
    file = path / "trace.jsonl"
    plain = simulate(made, inputs, mode="throughput", dump_ranges="0,64", **options)
    traced = simulate(made, inputs, mode="throughput", dump_ranges="0,64", provenance_trace=str(file), **options)
    assert [o["range_0"].tolist() for o in plain.outputs] == [o["range_0"].tolist() for o in traced.outputs]
    return [json.loads(line) for line in file.read_text().splitlines()]


def named(events: list[Any], name: str) -> list[Any]:
    return [event for event in events if event["event"] == name]


LOAD = [op("sldi", rd=1, imm=0), op("ld", rd=0, rs1=1, size=8)]


def test_head_loads_and_stores(tmp_path: Path) -> None:
    events = trace(tmp_path, [[*LOAD, op("sldi", rd=2, imm=4), op("st", rd=2, rs1=0, size=8)]])
    assert events[0] == {"event": "trace_start", "schema": 1, "cores": 1, "cycle": 0}
    assert events[1]["event"] == "batch_start"
    assert [event["event"] for event in events[2:]] == ["input_store", "scheduler", "host_load", "host_store"]
    first = {"version": 1, "cycle": 0, "core": None, "pc": None, "iteration": 0}
    load, store = events[4:]
    assert (load["begin"], load["bytes"], load["tag"], load["written_by"]) == (0, 8, [0], [first])
    assert (store["core"], store["pc"], store["iteration"], store["cycle"], store["version"]) == (0, 3, 0, 4, 2)
    assert store["overwritten"] == [{"version": 0}, first]


def test_samples_that_meet_are_told(tmp_path: Path) -> None:
    program = [*LOAD, op("sldi", rd=3, imm=16), op("vvadd", rd=3, rs1=0, rs2=3, len=2)]
    events = trace(tmp_path, [program], samples=3)
    mixes = named(events, "cross_sample_data_mix")
    assert [(mix["iteration"], mix["samples"]) for mix in mixes] == [(1, [0, 1]), (2, [0, 1, 2])]
    assert {(mix["core"], mix["pc"], mix["op"], mix["begin"], mix["bytes"]) for mix in mixes} == {
        (0, 3, "vvadd", 16, 8)
    }


def last_tag(path: Path, body: list[Any], **options: Any) -> Any:
    """The tag of the last local operation of a program that has sample 0 at bytes 0 to 7 and nothing behind."""
    return named(
        trace(path, [[*LOAD, op("sldi", rd=3, imm=16), op("sldi", rd=4, imm=8), *body]], **options), "local_operation"
    )[-1]


@pytest.mark.parametrize(
    ("instruction", "tag", "size"),
    [
        (op("lldi", rd=0, imm=0, len=3), "uninitialized", 3),
        (op("lmv", rd=3, rs1=4, len=4), "uninitialized", 4),
        (op("lmv", rd=3, rs1=0, len=9), [0], 9),
        (op("vmv", rd=3, rs1=4, rs2=5, len=2), "uninitialized", 8),
        (op("vmv", rd=3, rs1=0, rs2=4, len=2), [0], 8),
        (op("vavg", rd=3, rs1=0, rs2=4, len=2), [0], 4),
        (op("vvdmul", rd=3, rs1=0, rs2=4, len=2), [0], 4),
        (op("vsoftmax", rd=3, rs1=0, len=3), [0], 12),
        (op("vrelu", rd=3, rs1=0, len=1, select=2, value=2), "uninitialized", 4),
        (op("mvmul", rd=3, rs1=0, group=0), [0], 12),
        (op("mvmul", rd=3, rs1=0, group=1), "uninitialized", 8),
        (op("mvmul", rd=3, rs1=0, group=2), "uninitialized", 4),
    ],
)
def test_tags_of_results(tmp_path: Path, instruction: Any, tag: Any, size: int) -> None:
    only_second = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]], np.float32)
    only_third = np.array([[0, 0], [0, 0], [1, 0]], np.float32)
    matrices = [[only_second, only_third, np.zeros((3, 1), np.float32)]]
    event = last_tag(tmp_path, [instruction], matrices=matrices)
    assert (event["tag"], event["bytes"], event["begin"]) == (tag, size, 0 if instruction["op"] == "lldi" else 16)


def test_elements_of_another_width(tmp_path: Path) -> None:
    event = last_tag(tmp_path, [op("setbw", ibiw=32, obiw=8), op("vvmul", rd=3, rs1=0, rs2=4, len=3)])
    assert (event["bytes"], event["tag"]) == (3, [0])


@pytest.mark.parametrize("first", ["sender", "receiver"])
def test_transfers_carry_tags(tmp_path: Path, first: str) -> None:
    sender = [*LOAD, op("send", rd=0, core=1, size=8)]
    receiver = [op("sldi", rd=1, imm=32), op("recv", rd=1, core=0, size=8), op("vrelu", rd=1, rs1=1, len=2)]
    options = {"core_stall": "1:5" if first == "sender" else "0:5"}
    events = trace(tmp_path, [sender, receiver], **options)
    (transfer,) = named(events, "transfer")
    assert transfer["from"] == {"core": 0, "begin": 0, "pc": 2, "iteration": 0}
    assert transfer["to"] == {"core": 1, "begin": 32, "pc": 1, "iteration": 0}
    assert (transfer["bytes"], transfer["tag"]) == (8, [0])
    assert named(events, "local_operation")[-1]["tag"] == [0]
    assert named(events, "stall")


def test_samples_beyond_the_limit_are_unknown(tmp_path: Path) -> None:
    events = trace(tmp_path, [LOAD], samples=66)
    assert [event["tag"] for event in named(events, "host_load")][62:] == [[62], [63], "unknown", "unknown"]
    assert [event["sample"] for event in named(events, "input_store")] == list(range(66))


def test_merging() -> None:
    unknown, first, nothing = Tags.of_sample(64, 2), Tags.of_sample(0, 2), Tags.none(2)
    assert first.merged_with(nothing).to_json() == [0]
    assert first.merged_with(unknown).to_json() == "unknown"
    assert first.merged_with(Tags.of_sample(63, 2)).mixtures() == [[0, 63]]
    assert first.merged_with(unknown).merged_with(Tags.of_sample(1, 2)).mixtures() == []
    assert nothing.to_json() == "uninitialized"


def test_the_trace_of_a_program_that_fails_ends_there(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    made = artifact([[op("lldi", rd=0, imm=1, len=4), op("sldi", rd=1, imm=99), op("ld", rd=0, rs1=1, size=4)]])
    with pytest.raises(RaptorError, match="core 0 pc 2"):
        simulate(made, provenance_trace=str(file))
    assert json.loads(file.read_text().splitlines()[-1])["op"] == "lldi"


def test_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the trace cannot be written"):
        simulate(artifact([[op("nop")]]), provenance_trace=str(tmp_path / "none" / "trace"))


def test_scalar_loads_are_loads(tmp_path: Path) -> None:
    events = trace(
        tmp_path, [[op("sldi", rd=1, imm=2), op("sld", rd=2, rs1=1, offset_value=1)]], host=floats(*range(16))
    )
    (load,) = named(events, "host_load")
    assert (load["op"], load["begin"], load["bytes"], load["tag"]) == ("sld", 3, 4, [0])
