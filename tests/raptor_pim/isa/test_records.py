"""Records, the binary container, the assembler and the disassembler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raptor_core.diagnostics import RaptorError
from raptor_pim.isa import (
    BY_MNEMONIC,
    OPCODES,
    RECORD,
    Opcode,
    OpcodeInfo,
    assemble,
    decode_program,
    disassemble,
    disassemble_at,
    empty_program,
    encode_program,
    to_json,
    validate_programs,
)

NAMES = [
    *("nop", "sldi", "sld", "sadd", "ssub", "smul", "saddi", "smuli", "setbw", "mvmul", "vvadd", "vvsub", "vvmul"),
    *("vvdmul", "vvmax", "vvsll", "vvsra", "vavg", "vrelu", "vtanh", "vsigm", "vsoftmax", "vmv", "vrsu", "vrsl"),
    *("ld", "st", "lldi", "lmv", "send", "recv", "wait", "sync"),
]


def test_the_table() -> None:
    assert [info.mnemonic for info in OPCODES] == NAMES
    assert [int(info.opcode) for info in OPCODES] == list(range(33))
    assert BY_MNEMONIC["vmv"].opcode is Opcode.VMV
    assert RECORD.itemsize == 20


def test_the_instruction_set_needs_no_compiler() -> None:
    root = Path(__file__).parents[3]
    code = f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'targets')!r}]; import raptor_pim.isa; "
    code += "import raptor_pim.artifacts; sys.exit(any(name in sys.modules for name in ('numba', 'onnx')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


OFFSET = {"offset": {"offset_select": 5, "offset_value": -6}}
SAMPLES: list[tuple[dict[str, Any], tuple[int, ...], str]] = [
    ({"op": "nop"}, (0, 0, 0, 0, 0, 0, 0, 0), "nop"),
    ({"op": "sldi", "rd": 3, "imm": -7}, (1, 3, 0, 0, -7, 0, 0, 0), "sldi r3, imm=-7"),
    ({"op": "sld", "rd": 3, "rs1": 4, "offset_value": 9}, (2, 3, 4, 0, 0, 0, 9, 0), "sld r3, r4, offset(rs1)=9"),
    ({"op": "sadd", "rd": 1, "rs1": 2, "rs2": 3}, (3, 1, 2, 0, 3, 0, 0, 0), "sadd r1, r2, r3"),
    ({"op": "saddi", "rd": 1, "rs1": 2, "imm": 3}, (6, 1, 2, 0, 3, 0, 0, 0), "saddi r1, r2, imm=3"),
    ({"op": "setbw", "ibiw": 8, "obiw": 16}, (8, 0, 0, 0, 0, 8, 16, 0), "setbw ibiw=8, obiw=16"),
    (
        {"op": "mvmul", "rd": 1, "rs1": 2, "mbiw": 8, "relu": 1, "group": 5},
        (9, 1, 2, 0, 8, 1, 5, 0),
        "mvmul r1, r2, mbiw=8, relu=1, group=5",
    ),
    (
        {"op": "vvadd", "rd": 1, "rs1": 2, "rs2": 3, "len": 4, **OFFSET},
        (10, 1, 2, 0, 3, 5, -6, 4),
        "vvadd r1, r2, r3, len=4, offset(rd, rs2)=-6",
    ),
    (
        {"op": "vavg", "rd": 1, "rs1": 2, "rs2": 3, "len": 4, **OFFSET},
        (17, 1, 2, 0, 3, 5, -6, 4),
        "vavg r1, r2, r3, len=4, offset(rs1)=-6",
    ),
    ({"op": "vrelu", "rd": 1, "rs1": 2, "len": 4}, (18, 1, 2, 0, 0, 0, 0, 4), "vrelu r1, r2, len=4"),
    (
        {"op": "ld", "rd": 1, "rs1": 2, "size": 8, **OFFSET},
        (25, 1, 2, 0, 0, 5, -6, 8),
        "ld r1, r2, size=8, offset(rd, rs2)=-6",
    ),
    ({"op": "lldi", "rd": 1, "imm": 255, "len": 8}, (27, 1, 0, 0, 255, 0, 0, 8), "lldi r1, imm=255, len=8"),
    ({"op": "lmv", "rd": 1, "rs1": 2, "len": 8}, (28, 1, 2, 0, 0, 0, 0, 8), "lmv r1, r2, len=8"),
    ({"op": "send", "rd": 1, "core": 6, "size": 8}, (29, 1, 0, 0, 6, 0, 0, 8), "send r1, core=6, size=8"),
    ({"op": "recv", "rd": 1, "core": 6, "size": 8}, (30, 1, 0, 0, 6, 0, 0, 8), "recv r1, core=6, size=8"),
    (
        {"op": "wait", "event_register": 3, "wait_value": 2},
        (31, 0, 0, 0, 0, 3, 2, 0),
        "wait event_register=3, wait_value=2",
    ),
    ({"op": "sync", "core": 4, "event_register": 3}, (32, 0, 0, 0, 4, 3, 0, 0), "sync core=4, event_register=3"),
]


@pytest.mark.parametrize(("instruction", "record", "text"), SAMPLES, ids=[s[0]["op"] for s in SAMPLES])
def test_one_instruction_in_its_three_forms(instruction: dict[str, Any], record: tuple[int, ...], text: str) -> None:
    records = assemble([instruction])
    assert tuple(records[0].item()) == record
    assert disassemble_at(records, 0) == text
    (back,) = to_json(records)
    assert {**back, **instruction} == back
    assert tuple(assemble([back])[0].item()) == record


def record_strategy(info: OpcodeInfo) -> st.SearchStrategy[tuple[int, ...]]:
    """Records of an opcode whose unused fields are zero."""
    used = set(info.layout.values())
    columns: list[st.SearchStrategy[int]] = [st.just(int(info.opcode))]
    for name in (RECORD.names or ())[1:]:
        limit = 255 if name in ("rd", "rs1", "flags") else 2**31 - 1
        low = 0 if limit == 255 else -(2**31)
        columns.append(st.integers(low, limit) if name in used else st.just(0))
    return st.tuples(*columns)


@given(st.lists(st.sampled_from(OPCODES).flatmap(record_strategy), max_size=20))
def test_json_and_binary_round_trips(rows: list[tuple[int, ...]]) -> None:
    records = np.array(rows, dtype=RECORD)
    np.testing.assert_array_equal(assemble(to_json(records)), records)
    np.testing.assert_array_equal(decode_program(encode_program(records), where="x"), records)
    assert len(disassemble(records)) == len(rows)


def test_the_container() -> None:
    data = encode_program(assemble([{"op": "sldi", "rd": 1, "imm": 513}]))
    assert data == b"PIMB\x01\0\0\0\x01\0\0\0" + bytes([1, 1, 0, 0, 1, 2, 0, 0]) + bytes(12)
    assert encode_program(empty_program()) == b"PIMB\x01\0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 bytes, fewer than the 12"),
        (b"PIMC\x01\0\0\0\0\0\0\0", "starts with b'PIMC'"),
        (b"PIMB\x02\0\0\0\0\0\0\0", "its version is 2"),
        (b"PIMB\x01\0\0\0\x01\0\0\0" + bytes(19), "counts 1 instructions of 20 bytes; 19 bytes follow"),
        (b"PIMB\x01\0\0\0\xff\xff\xff\xff" + bytes(20), "counts 4294967295 instructions"),
    ],
)
def test_broken_containers(data: bytes, words: str) -> None:
    with pytest.raises(RaptorError, match=words) as caught:
        decode_program(data, where="core_7.pim")
    assert caught.value.where == "core_7.pim"


def test_the_source_of_a_send_in_either_field() -> None:
    offset = {"offset_select": 2, "offset_value": 12}
    either = assemble([{"op": "send", "rs1": 5, "core": 1, "size": 4, "offset": offset}])[0]
    assert (either["rd"], either["rs1"], int(either["generic1"]) & 1, either["generic2"]) == (5, 0, 1, 12)
    both = assemble([{"op": "send", "rd": 4, "rs1": 5, "core": 1, "size": 4}])[0]
    assert both["rd"] == 4


def test_an_unused_rs2_of_a_vector_instruction_is_kept() -> None:
    assert assemble([{"op": "vtanh", "rd": 1, "rs1": 2, "rs2": 9, "len": 4}])[0]["r2_or_imm"] == 9


def test_whole_floats_and_fractions() -> None:
    assert assemble([{"op": "lldi", "rd": 0, "imm": 3.0, "len": 4}])[0]["r2_or_imm"] == 3
    half = [{"op": "lldi", "rd": 0, "imm": 0.5, "len": 4}]
    assert assemble(half, truncate_fractions=True)[0]["r2_or_imm"] == 0
    with pytest.raises(RaptorError, match=r"must be a whole number, not 0\.5"):
        assemble(half)


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (7, "an instruction is a JSON object"),
        ({}, "there is no opcode 'None'"),
        ({"op": ["nop"]}, "there is no opcode"),
        ({"op": "vvad"}, "did you mean 'vvadd'"),
        ({"op": "sldi", "rd": 1}, "field 'imm' is missing"),
        ({"op": "sldi", "rd": 1, "imm": "2"}, "must be a whole number, not '2'"),
        ({"op": "sldi", "rd": 1, "imm": True}, "must be a whole number, not True"),
        ({"op": "sldi", "rd": 1, "imm": 2**31}, "must be in -2147483648..2147483647"),
        ({"op": "sldi", "rd": 256, "imm": 0}, "field 'rd' must be in 0..255"),
        ({"op": "sldi", "rd": -1, "imm": 0}, "field 'rd' must be in 0..255"),
        ({"op": "sldi", "rd": 1, "imm": 0, "coer": 1}, "no field 'coer'[\\s\\S]*did you mean 'core'"),
        ({"op": "ld", "rd": 1, "rs1": 1, "size": 4, "offset": 3}, "'offset' is an object"),
        ({"op": "ld", "rd": 1, "rs1": 1, "size": 4, "offset": {"offset_select": 1}}, "'offset' is an object"),
        ({"op": "send", "core": 1, "size": 4}, "field 'rd' is missing"),
    ],
)
def test_instructions_that_cannot_be_read(instruction: object, words: str) -> None:
    with pytest.raises(RaptorError, match=words) as caught:
        assemble([{"op": "nop"}, instruction], where="core_3.json")
    assert caught.value.where == "core_3.json"
    assert "instruction 1" in caught.value.message


def test_only_the_asked_range_is_disassembled() -> None:
    records = assemble([{"op": "sldi", "rd": n, "imm": n} for n in range(5)])
    assert disassemble(records, 1, 3) == ["sldi r1, imm=1", "sldi r2, imm=2"]
    assert disassemble(records, 4) == ["sldi r4, imm=4"]
    unknown = empty_program(1)
    unknown["op"] = 99
    assert disassemble_at(unknown, 0).startswith("opcode 99?")


GOOD = {"op": "send", "rd": 31, "core": 1, "size": 0}


@pytest.mark.parametrize(
    ("instruction", "change", "words"),
    [
        ({"op": "nop"}, {"op": 33}, "opcodes end at 32"),
        ({"op": "nop"}, {"flags": 1}, "the flags byte must be 0"),
        ({"op": "sldi", "rd": 32, "imm": 0}, {}, "rd must be in 0..31"),
        ({"op": "sadd", "rd": 0, "rs1": 32, "rs2": 0}, {}, "rs1 must be in 0..31"),
        ({"op": "sadd", "rd": 0, "rs1": 0, "rs2": 32}, {}, "rs2 must be in 0..31"),
        ({"op": "vvadd", "rd": 0, "rs1": 0, "rs2": -1, "len": 1}, {}, "rs2 must be in 0..31"),
        ({"op": "vvadd", "rd": 0, "rs1": 0, "rs2": 1, "len": -1}, {}, "a count cannot be negative"),
        ({"op": "ld", "rd": 0, "rs1": 0, "size": -1}, {}, "a count cannot be negative"),
        ({"op": "lmv", "rd": 0, "rs1": 0, "len": 4}, {"generic1": 8}, "offset_select must be in 0..7"),
        ({"op": "mvmul", "rd": 0, "rs1": 0, "relu": 2, "group": 0}, {}, "relu must be 0 or 1"),
        ({"op": "mvmul", "rd": 0, "rs1": 0, "mbiw": -1, "group": 0}, {}, "mbiw cannot be negative"),
        ({"op": "mvmul", "rd": 0, "rs1": 0, "group": 2}, {}, "groups of core 0 are 0..1"),
        ({"op": "mvmul", "rd": 0, "rs1": 0, "group": -1}, {}, "groups of core 0 are 0..1"),
        ({"op": "send", "rd": 0, "core": 2, "size": 4}, {}, "cores are 0..1"),
        ({"op": "recv", "rd": 0, "core": -1, "size": 4}, {}, "cores are 0..1"),
        ({"op": "send", "rd": 0, "core": 0, "size": 4}, {}, "a core cannot exchange data with itself"),
        ({"op": "sync", "core": 2, "event_register": 0}, {}, "cores are 0..1"),
        ({"op": "sync", "core": 0, "event_register": 32}, {}, "events are 0..31"),
        ({"op": "wait", "event_register": -1, "wait_value": 1}, {}, "events are 0..31"),
        ({"op": "wait", "event_register": 0, "wait_value": -1}, {}, "wait_value cannot be negative"),
        ({"op": "setbw", "ibiw": 0, "obiw": 8}, {}, "element widths must be positive"),
        ({"op": "lldi", "rd": 0, "imm": 256, "len": 1}, {}, "must be in -128..255"),
    ],
)
def test_rules_of_programs(instruction: dict[str, Any], change: dict[str, int], words: str) -> None:
    records = assemble([GOOD, instruction])
    for name, value in change.items():
        records[name][1] = value
    with pytest.raises(RaptorError, match=words) as caught:
        validate_programs([records, empty_program()], group_counts=[2, 0])
    assert caught.value.where == "core 0 pc 1"
    assert str(caught.value.reason).startswith("core 0 pc 1: " + disassemble_at(records, 1))


def test_a_program_that_keeps_the_rules() -> None:
    product = {"op": "mvmul", "rd": 0, "rs1": 0, "group": 1}
    signal = {"op": "sync", "core": 0, "event_register": 31}
    validate_programs([assemble([GOOD, product, signal]), empty_program()], group_counts=[2, 0])
    validate_programs([assemble([GOOD, product]), empty_program()])


def test_products_on_a_core_without_groups() -> None:
    records = assemble([{"op": "mvmul", "rd": 0, "rs1": 0, "group": 0}])
    with pytest.raises(RaptorError, match="core 1 has no crossbar group"):
        validate_programs([empty_program(), records], group_counts=[1, 0], where="folder")


def test_several_violations_come_in_one_error() -> None:
    bad = assemble([{"op": "sldi", "rd": 40, "imm": 0}, {"op": "lldi", "rd": 50, "imm": 999, "len": -1}])
    with pytest.raises(RaptorError) as caught:
        validate_programs([bad] * 9)
    assert len(caught.value.details) == 9
    with pytest.raises(TypeError):
        validate_programs([np.zeros(3)])  # type: ignore[list-item]
