"""Programs and configurations as they come: folders, single files, views, and everything that is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raptor_core.cli.main import main
from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.options import resolve_options
from raptor_core.simulation.contract import SimulationRequest, Simulator
from raptor_performance.export import export_program
from raptor_performance.plugin import SIMULATOR, SOFTMAX_STAND_INS
from raptor_performance.program import read_program
from raptor_performance.view import timing_view
from raptor_pim.artifacts import Artifact, ArtifactConfig, write_artifact
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.export_chip import chip_files
from raptor_pim.artifacts.mesh import Mesh
from raptor_pim.isa.assembler import assemble
from raptor_pim.isa.records import encode_program
from timed_programs import END, WIDTHS

PRODUCT = {"op": "mvmul", "rd": 0, "rs1": 1, "mbiw": 8, "group": 1}
PROGRAM = {
    "config": {"core_cnt": 3, "array_group_map": {"core0": [1, 2], "core2": []}},
    "core0": [WIDTHS, PRODUCT, {"op": "send", "rd": 0, "core": 2, "size": 64}],
    "core2": [WIDTHS, {"op": "recv", "rd": 0, "core": 0, "size": 64}, END],
}


def simulate(path: Path, **options: Any) -> dict[str, Any]:
    resolved = resolve_options(SIMULATOR.options, options, owner="performance")
    return dict(SIMULATOR.simulate(SimulationRequest(path, options=resolved)).metrics)


def single(folder: Path, program: Any) -> Path:
    path = folder / "program.json"
    path.write_text(program if isinstance(program, str) else json.dumps(program))
    return path


@pytest.fixture
def config(chip_folder: Path) -> str:
    return str(chip_folder / "latency_config.json")


def test_it_is_a_simulator() -> None:
    assert isinstance(SIMULATOR, Simulator)
    assert SIMULATOR.needs_inputs is False


def test_absent_cores_cost_no_static_power(tmp_path: Path, config: str) -> None:
    metrics = simulate(single(tmp_path, PROGRAM), config=config)
    # Two cores and the host memory, 1 mW each.
    assert sum(metrics["energy"]["static_pj"].values()) == pytest.approx(3 * metrics["latency_ms"] * 1e6)
    listed = {**PROGRAM, "core1": []}
    assert simulate(single(tmp_path, listed), config=config)["energy_pj"] > metrics["energy_pj"]


@pytest.mark.parametrize("form", ["plain", "gzip", "spaced", "reversed"])
def test_single_files_in_any_form(tmp_path: Path, config: str, form: str) -> None:
    expected = simulate(single(tmp_path, PROGRAM), config=config)["energy_pj"]
    path = tmp_path / "other"
    if form == "gzip":
        path.write_bytes(gzip.compress(json.dumps(PROGRAM).encode()))
    elif form == "reversed":
        path.write_text(json.dumps(dict(reversed(PROGRAM.items()))))
    else:
        path.write_text("\n " + json.dumps(PROGRAM, indent=3 if form == "spaced" else None) + "\n")
    assert simulate(path, config=config)["energy_pj"] == expected


def test_files_larger_than_one_read(tmp_path: Path, config: str) -> None:
    long = {"config": {"core_cnt": 2, "array_group_map": {}}, "core0": [WIDTHS, *[END] * 30000], "core1": [END] * 9}
    metrics = simulate(single(tmp_path, long), config=config)
    assert metrics["instructions"] == 30010
    assert metrics["instruction_histogram"] == {"vrelu": 30009, "setbw": 1}


@pytest.mark.parametrize("suffix", ["json", "pim"])
def test_folders_of_others(tmp_path: Path, config: str, suffix: str) -> None:
    program = {**PROGRAM, "core1": []}
    expected = simulate(single(tmp_path, program), config=config)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(program["config"]))
    for core in range(3):
        instructions = program[f"core{core}"]
        if suffix == "json":
            (folder / f"core_{core}.json").write_text(json.dumps(instructions))
        else:
            (folder / f"core_{core}.pim").write_bytes(encode_program(assemble(instructions)))
    metrics = simulate(folder, config=config)
    assert metrics["view"] == "float32"
    assert {**metrics, "wall_seconds": 0} == {**expected, "wall_seconds": 0}


FLOAT = [
    {"op": "setbw", "ibiw": 32, "obiw": 32},
    {"op": "sldi", "rd": 0, "imm": 400},
    {"op": "vrelu", "rd": 0, "rs1": 0, "len": 100, "offset": {"offset_select": 1, "offset_value": 8}},
    {"op": "lmv", "rd": 0, "rs1": 0, "len": 400},
    {"op": "st", "rd": 0, "rs1": 0, "size": 402, "offset": {"offset_select": 2, "offset_value": 8}},
]
BYTES = [
    {"op": "setbw", "ibiw": 8, "obiw": 8},
    {"op": "sldi", "rd": 0, "imm": 100},
    {"op": "vrelu", "rd": 0, "rs1": 0, "len": 100, "offset": {"offset_select": 1, "offset_value": 8}},
    {"op": "lmv", "rd": 0, "rs1": 0, "len": 100},
    {"op": "st", "rd": 0, "rs1": 0, "size": 101, "offset": {"offset_select": 2, "offset_value": 2}},
]


def test_the_timing_view() -> None:
    records = assemble(FLOAT)
    np.testing.assert_array_equal(timing_view(records), assemble(BYTES))
    np.testing.assert_array_equal(records, assemble(FLOAT))


def test_own_folders_bring_their_chip_and_are_seen_in_bytes(
    tmp_path: Path, arch_a: ChipConfiguration, arch_a_mesh: Mesh, config: str
) -> None:
    artifact = Artifact(ArtifactConfig(core_cnt=1, array_group_map=((),)), (assemble(FLOAT),))
    folder = write_artifact(tmp_path / "own", artifact, manifest_fields={}, extra_files=chip_files(arch_a, arch_a_mesh))
    seen = simulate(folder)
    assert seen["view"] == "timing"
    expected = single(tmp_path, {"config": {"core_cnt": 1, "array_group_map": {"core0": []}}, "core0": BYTES})
    assert seen["latency_ms"] == simulate(expected, config=config)["latency_ms"]
    whole = simulate(folder, view="float32")
    assert whole["latency_ms"] > seen["latency_ms"]
    assert simulate(folder, mode="throughput", sim_time_ms=0.01)["output_count"] > 5


def test_an_exported_program_is_timed_alike(tmp_path: Path, arch_a: ChipConfiguration, arch_a_mesh: Mesh) -> None:
    artifact = Artifact(ArtifactConfig(core_cnt=2, array_group_map=((1,), ())), (assemble(FLOAT), assemble([])))
    own = write_artifact(tmp_path / "own", artifact, manifest_fields={}, extra_files=chip_files(arch_a, arch_a_mesh))
    out = export_program(own, tmp_path / "out", view="timing", configuration=arch_a)
    assert sorted(path.name for path in out.iterdir()) == ["chip", "config.json", "core_0.pim", "core_1.pim"]
    assert json.loads((out / "config.json").read_text()) == {
        "core_cnt": 2,
        "array_group_map": {"core0": [1], "core1": []},
    }
    np.testing.assert_array_equal(read_program(out).programs[0], assemble(BYTES))
    metrics = simulate(out, config=str(out / "chip" / "latency_config.json"))
    assert metrics["latency_ms"] == simulate(own)["latency_ms"]
    again = simulate(out, config=str(out / "chip" / "throughput_config.json"), sim_time_ms=0.01)
    assert again["mode"] == "throughput"
    with pytest.raises(RaptorError, match="exists already"):
        export_program(own, out, view="timing")
    whole = read_program(export_program(own, tmp_path / "whole", view="float32"))
    np.testing.assert_array_equal(whole.programs[0], assemble(FLOAT))


def test_throughput_figures(tmp_path: Path, config: str) -> None:
    metrics = simulate(single(tmp_path, PROGRAM), config=config, mode="throughput", sim_time_ms=0.1)
    count = metrics["output_count"]
    assert count > 10
    assert metrics["throughput_per_s"] == pytest.approx(count / 1e-4)
    assert metrics["average_latency_ms"] == pytest.approx(0.1 / count)
    assert metrics["energy_pj_per_iteration"] == pytest.approx(metrics["energy_pj"] / count)
    assert metrics["average_power_mw"] == pytest.approx(metrics["energy_pj"] / 1e5)
    with pytest.raises(UsageError, match="positive"):
        simulate(single(tmp_path, PROGRAM), config=config, sim_time_ms=0.0)


def test_times_of_a_core_add_up(tmp_path: Path, config: str) -> None:
    metrics = simulate(single(tmp_path, PROGRAM), config=config)
    assert [core["core"] for core in metrics["cores"]] == [0, 2]
    for core in metrics["cores"]:
        spent = sum(value for name, value in core.items() if name.endswith("_ns") and name != "finish_ns")
        assert spent == pytest.approx(metrics["latency_ms"] * 1e6)
    json.dumps(metrics)


def test_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--config"):
        simulate(single(tmp_path, PROGRAM))


def changed(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in {**PROGRAM, **members}.items() if value is not None}


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("", "not JSON"),
        ("[]", "'{' was expected"),
        ('{"config": {}', "'}' was expected"),
        ('{"config": {}} x', "something follows"),
        ('{"config" 3}', "':' was expected"),
        ("{1: 2}", "name was expected"),
        ("{}", "$.config"),
        (changed(config=None), "$.config"),
        (changed(config={"core_cnt": 3}), "array_group_map"),
        (changed(config={"core_cnt": 0, "array_group_map": {}}), "core_cnt"),
        (changed(config={"core_cnt": 2, "array_group_map": {"core0": [1, 2]}}), "core_cnt is 2"),
        (changed(config={"core_cnt": 3, "array_group_map": {"core0": [1, 0]}}), "core0"),
        (changed(config={"core_cnt": 3, "array_group_map": {"core0": [1]}}), "groups of core 0"),
        (changed(config={"core_cnt": 3, "array_group_map": {"core0": [1, 96]}}), "97 crossbars"),
        (changed(config={"core_cnt": 300, "array_group_map": {"core0": [1, 2]}}, core200=[END]), "201 cores"),
        ({"config": {"core_cnt": 3, "array_group_map": {}}}, "no core"),
        (changed(core0={}), "list of instructions"),
        (changed(core1x=[]), "$.core1x"),
        (changed(core0=[{"op": "vfly", "rd": 0}]), "vfly"),
        (changed(core0=[{"op": "vsoftmax", "rd": 0, "rs1": 0, "len": 4}]), "vsoftmax"),
        (changed(core0=[{**PRODUCT, "mbiw": 0}]), "mbiw"),
        (changed(core0=[{"op": "sync", "core": 1, "event_register": 0}]), "core 1, is not in the program"),
    ],
    ids=str,
)
def test_bad_programs(tmp_path: Path, config: str, program: Any, text: str) -> None:
    with pytest.raises(RaptorError) as caught:
        simulate(single(tmp_path, program), config=config)
    assert text in caught.value.render()
    assert "program.json" in caught.value.render()


SOFTMAX = {"op": "vsoftmax", "rd": 0, "rs1": 0, "len": 40}


def test_a_softmax_is_refused_with_the_way_out(tmp_path: Path, config: str) -> None:
    with pytest.raises(RaptorError) as caught:
        simulate(single(tmp_path, changed(core0=[WIDTHS, SOFTMAX])), config=config)
    assert "core 0 pc 1" in caught.value.render()
    assert "--softmax-as vsigm" in caught.value.render()


@pytest.mark.parametrize("stand_in", SOFTMAX_STAND_INS)
def test_a_softmax_takes_the_time_of_its_stand_in(tmp_path: Path, config: str, stand_in: str) -> None:
    core2 = PROGRAM["core2"]
    assert isinstance(core2, list)
    other = changed(core2=[*core2, {**SOFTMAX, "op": stand_in}])
    expected = simulate(single(tmp_path, other), config=config)
    assert "softmax_as" not in expected
    timed = simulate(single(tmp_path, changed(core2=[*core2, SOFTMAX])), config=config, softmax_as=stand_in)
    assert timed["softmax_as"] == stand_in
    assert timed["instruction_histogram"]["vsoftmax"] == 1
    for figure in ("latency_ms", "energy_pj", "cores"):
        assert timed[figure] == expected[figure]
    assert timed["latency_ms"] > simulate(single(tmp_path, PROGRAM), config=config)["latency_ms"]


def test_a_stand_in_without_a_softmax_changes_nothing(tmp_path: Path, config: str) -> None:
    plain = simulate(single(tmp_path, PROGRAM), config=config)
    wished = simulate(single(tmp_path, PROGRAM), config=config, softmax_as="vsigm")
    assert {**plain, "wall_seconds": 0} == {**wished, "wall_seconds": 0}


@pytest.mark.parametrize("words", [("compare", "X", "X"), ("report", "critical-path", "X"), ("report", "bound", "X")])
def test_commands_say_what_a_softmax_was_timed_as(
    tmp_path: Path, config: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    core2 = PROGRAM["core2"]
    assert isinstance(core2, list)
    for name, program, said in (("with", changed(core2=[*core2, SOFTMAX]), "vtanh"), ("without", PROGRAM, None)):
        (tmp_path / name).mkdir()
        path = str(single(tmp_path / name, program))
        line = [path if word == "X" else word for word in words] + ["--config", config, "--softmax-as", "vtanh"]
        assert main([*line, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["softmax_as"] == said
        assert main(line) == 0
        (shown,) = [row for row in capsys.readouterr().out.splitlines() if row.startswith("softmax timed as")]
        assert shown.split("as", 1)[1].strip() == (said or "there is none")


def test_an_exported_softmax_can_be_timed(tmp_path: Path, config: str) -> None:
    core2 = PROGRAM["core2"]
    assert isinstance(core2, list)
    path = single(tmp_path, changed(core1=[], core2=[*core2, SOFTMAX]))
    with pytest.raises(RaptorError, match="cannot be timed"):
        simulate(export_program(path, tmp_path / "kept", view="float32"), config=config)
    written = export_program(path, tmp_path / "replaced", view="float32", softmax="vtanh")
    expected = simulate(path, config=config, softmax_as="vtanh")
    assert simulate(written, config=config)["latency_ms"] == expected["latency_ms"]


def test_files_that_cannot_be_read(tmp_path: Path, config: str) -> None:
    with pytest.raises(RaptorError, match="cannot be read"):
        simulate(tmp_path / "absent.json", config=config)
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(json.dumps(PROGRAM).encode())[:-20])
    with pytest.raises(RaptorError, match=r"broken\.gz"):
        simulate(broken, config=config)
    binary = tmp_path / "core_0.pim"
    binary.write_bytes(encode_program(assemble([END])))
    with pytest.raises(RaptorError, match="not a whole program"):
        simulate(binary, config=config)
    text = tmp_path / "text"
    text.write_bytes(b'{"config": "\xff"}')
    with pytest.raises(RaptorError, match="UTF-8"):
        simulate(text, config=config)


@pytest.mark.parametrize("name", ["core_x.pim", "core_00.pim", "core_1.bin", "core_7.json"])
def test_folders_with_files_of_no_core(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"core_cnt": 1, "array_group_map": {"core0": []}}))
    (tmp_path / "core_0.json").write_text(json.dumps([END]))
    assert read_program(tmp_path).instruction_count == 1
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(RaptorError) as caught:
        read_program(tmp_path)
    assert name in (caught.value.where or "")


def test_folders_need_every_core(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"core_cnt": 2, "array_group_map": {}}))
    (tmp_path / "core_0.json").write_text(json.dumps([END]))
    with pytest.raises(RaptorError, match=r"core_1\.pim"):
        read_program(tmp_path)
