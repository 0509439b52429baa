"""The bound of a network, what a program achieves, and the parts between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raptor_core.diagnostics import RaptorError
from raptor_performance.bound import Layer, UnitTimes, layer_bound
from raptor_performance.gap import FACTS_FILE, bound_report, read_facts
from raptor_performance.run import time_program
from raptor_pim.artifacts import Artifact, ArtifactConfig, TensorInfo, write_artifact
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.export_chip import chip_files
from raptor_pim.artifacts.mesh import Mesh
from raptor_pim.isa.assembler import assemble
from timed_programs import Instruction, finish_ns, timed, with_core

FLOATS: Instruction = {"op": "setbw", "ibiw": 32, "obiw": 32}
BYTES: Instruction = {"op": "setbw", "ibiw": 8, "obiw": 8}
EDGES = 3
"""Edges between two instructions in which no unit works."""


def product(group: int, bits: int = 8) -> Instruction:
    return {"op": "mvmul", "rd": 0, "rs1": 1, "mbiw": bits, "group": group}


def addition(length: int) -> Instruction:
    return {"op": "vvadd", "rd": 0, "rs1": 1, "rs2": 2, "len": length}


@pytest.mark.parametrize("bits", [2, 8])
@pytest.mark.parametrize(("group", "crossbars"), [(0, 1), (1, 2), (2, 4)])
def test_durations_of_products_are_the_simulators(
    arch_a: ChipConfiguration, arch_a_mesh: Mesh, group: int, crossbars: int, bits: int
) -> None:
    def until(count: int) -> float:
        return finish_ns(timed(arch_a, arch_a_mesh, [[BYTES, *[product(group, bits)] * count]]))

    assert UnitTimes(arch_a, 8, 8, bits).product(crossbars) == pytest.approx(until(3) - until(2) - EDGES, abs=1)


@pytest.mark.parametrize("length", [1, 16, 100, 1024])
@pytest.mark.parametrize("pipelined", [True, False])
def test_durations_of_additions_are_the_simulators(
    arch_a: ChipConfiguration, arch_a_mesh: Mesh, length: int, pipelined: bool
) -> None:
    import attrs

    matrix = attrs.evolve(arch_a.chip_config.core_config.matrix_config, pipeline_mode=pipelined)
    chip = with_core(arch_a, matrix_config=matrix)

    def until(instruction: Instruction, count: int) -> float:
        return finish_ns(timed(chip, arch_a_mesh, [[BYTES, *[instruction] * count]]))

    times = UnitTimes(chip, 8, 8, 8)
    vector = until(addition(length), 3) - until(addition(length), 2)
    assert times.addition(length) == pytest.approx(vector - EDGES, abs=1.5)
    assert times.product(1) == pytest.approx(until(product(0), 3) - until(product(0), 2) - EDGES, abs=1)


def test_layers(arch_a: ChipConfiguration) -> None:
    times = UnitTimes(arch_a, 8, 8, 8)
    one, wide = times.product(1), times.product(4)
    plain = layer_bound(Layer("conv", positions=196, groups=1, rows=1152, columns=128), times)
    assert (plain.products, plain.product_ns) == (196 * 9, 196 * 9 * one)
    assert plain.accumulation_ns == 196 * 8 * times.addition(128)
    broad = layer_bound(Layer("conv", 10, 1, 128, 512), times)
    assert (broad.products, broad.total_ns) == (10, 10 * wide)
    # Three positions of 40 rows share a product; their 3 x 100 columns take three crossbars.
    short = layer_bound(Layer("conv", 10, 1, 40, 100), times)
    assert (short.products, short.total_ns) == (4, 4 * times.product(3))
    # Half of the rows and one more leave no room for another position.
    assert layer_bound(Layer("conv", 10, 1, 65, 100), times).products == 10
    assert layer_bound(Layer("conv", 10, 1, 64, 100), times).products == 5
    # Nine elements to one column are faster in the vector unit.
    depthwise = layer_bound(Layer("conv", 100, 32, 9, 1), times)
    assert depthwise.products == 0
    assert 0 < depthwise.vector_ns < -(-3200 // 14) * one
    assert layer_bound(Layer("conv", 0, 1, 9, 1), times).total_ns == 0


FACTS = [{"layer": "conv1", "positions": 6, "groups": 1, "rows": 300, "columns": 256}]
RELU: Instruction = {"op": "vrelu", "rd": 0, "rs1": 0, "len": 512}
PROGRAMS: tuple[list[Instruction], ...] = (
    [FLOATS, *[product(0)] * 30, addition(256), RELU, {"op": "lmv", "rd": 0, "rs1": 1, "len": 400}],
    [FLOATS, {"op": "ld", "rd": 0, "rs1": 1, "size": 512}, {"op": "recv", "rd": 0, "core": 2, "size": 64}],
    [FLOATS, product(0), {"op": "send", "rd": 0, "core": 1, "size": 64}, RELU],
)


@pytest.fixture
def folder(tmp_path: Path, arch_a: ChipConfiguration, arch_a_mesh: Mesh) -> Any:
    """Writes a program of four of the chip's cores, one of them idle, with facts about its network."""

    def write(facts: Any = FACTS, chip: ChipConfiguration = arch_a) -> Path:
        config = ArtifactConfig(
            core_cnt=4,
            array_group_map=((2,), (), (1,), ()),
            inputs_addresses=(0,),
            inputs_sizes=(512,),
            inputs=(TensorInfo("x", (128,)),),
            outputs_addresses=(512,),
            outputs_sizes=(4,),
            outputs=(TensorInfo("y", (1,)),),
        )
        import numpy as np

        programs = (*(assemble(program) for program in PROGRAMS), assemble([]))
        artifact = Artifact(config, programs, memory=np.zeros(516, dtype=np.uint8))
        files = chip_files(chip, arch_a_mesh)
        if facts is not None:
            files[FACTS_FILE] = (facts if isinstance(facts, str) else json.dumps(facts)).encode()
        return write_artifact(tmp_path / "program", artifact, manifest_fields={}, extra_files=files, overwrite=True)

    return write


def test_the_parts_add_up(folder: Any, arch_a: ChipConfiguration) -> None:
    path = folder()
    report = bound_report(time_program(path, {}), path)
    times = UnitTimes(arch_a, 8, 8, 8)
    assert report.product_ns == pytest.approx(18 * times.product(2) / 168)
    assert report.accumulation_ns == pytest.approx(12 * times.addition(256) / 168)
    assert report.host_ns == times.host(128, 1)
    assert report.bound_ns == max(report.compute_ns, report.host_ns)
    parts = report.product_ns + report.accumulation_ns + sum(report.causes.values())
    assert parts == pytest.approx(report.achieved_ns, rel=1e-9)
    assert "overlap" not in report.causes
    assert report.causes["unused_cores"] == pytest.approx(report.achieved_ns * 165 / 168)
    assert (report.products, report.least_products) == (31, 18)
    assert report.causes["padding_waste"] > 0
    assert report.causes["shared_windows"] == 0
    for cause in ("host_traffic", "waiting_for_peers", "transfers", "copies_and_clears", "imbalance"):
        assert report.causes[cause] > 0, cause
    assert report.as_json()["source"] == "network"


def test_products_of_several_positions_may_need_fewer(folder: Any) -> None:
    path = folder([{**FACTS[0], "positions": 60}])
    report = bound_report(time_program(path, {}), path)
    assert report.causes["shared_windows"] < 0
    assert report.causes["padding_waste"] == 0


def test_without_facts_the_programs_own_products_count(folder: Any) -> None:
    path = folder(None)
    timed_program = time_program(path, {})
    report = bound_report(timed_program, path)
    busy = sum(core["product_ns"] for core in timed_program.metrics()["cores"])
    assert report.product_ns == pytest.approx(busy / 168)
    assert report.products == report.least_products == 31
    assert report.as_json()["source"] == "program"


def test_overlapping_units(folder: Any, arch_a: ChipConfiguration) -> None:
    path = folder(chip=with_core(arch_a, rob_size=4))
    report = bound_report(time_program(path, {}), path)
    parts = report.product_ns + report.accumulation_ns + sum(report.causes.values())
    assert parts == pytest.approx(report.achieved_ns, rel=1e-9)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ("{", "not a JSON document"),
        ({}, "not a list"),
        ([3], "not an object"),
        ([{**FACTS[0], "rows": -1}], "rows"),
        ([{**FACTS[0], "groups": 0}], "groups"),
        ([{"layer": "a"}], "positions"),
    ],
)
def test_wrong_facts(folder: Any, facts: Any, text: str) -> None:
    with pytest.raises(RaptorError) as caught:
        read_facts(folder(facts))
    assert text in caught.value.render()
    assert caught.value.where == FACTS_FILE
