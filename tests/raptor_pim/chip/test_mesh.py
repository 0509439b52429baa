"""The network on chip: rule and table, refusals, and files for other simulators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raptor_core.diagnostics import RaptorError
from raptor_pim.artifacts.chip import ChipConfiguration, SimulationMode, chip_from_json, load_chip
from raptor_pim.artifacts.export_chip import chip_files, write_chip
from raptor_pim.artifacts.mesh import MeshRule, read_mesh, rule_mesh
from raptor_pim.profiles import ARCH_A, PROFILES

LAYOUTS = {"pim-arch-a": (12, 14), "pim-arch-b": (6, 23), "pim-arch-c": (8, 8), "pim-standard": (12, 12)}


def chip(folder: Path, network: Any, cores: int = 2, layout: tuple[int, int] = (1, 2)) -> ChipConfiguration:
    """A chip of a few cores whose network file holds ``network`` (JSON value or text)."""
    text = network if isinstance(network, str) else json.dumps(network)
    (folder / "n.json").write_text(text)
    document = {
        "chip_config": {
            "core_config": {},
            "network_config": {"net_config_file_path": "n.json", "layout": list(layout)},
            "core_cnt": cores,
        }
    }
    return chip_from_json(document, where="test", folder=folder)


FULL = {"0": {"1": 3, "-10": 6}, "1": {"0": 4, "-10": 6}, "-10": {"0": 7, "1": 8}}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_profiles_obey_the_mesh_rule(profile: Any) -> None:
    mesh = read_mesh(load_chip(profile.configuration))
    rows, columns = LAYOUTS[profile.name]
    cores = rows * columns
    assert mesh.cores == cores
    for i in range(cores):
        for j in range(cores):
            hops = abs(i // columns - j // columns) + abs(i % columns - j % columns)
            assert mesh.latency[i, j] == (2 + hops if i != j else 0)
            assert mesh.energy[i, j] == (12 + 3 * hops if i != j else 0)
    assert (mesh.latency[:-1, -1] == 6).all()
    assert (mesh.latency[-1, :-1] == 6).all()
    assert (mesh.energy[:-1, -1] == 24).all()
    assert (mesh.energy[-1, :-1] == 24).all()


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_written_profile_loads_again(profile: Any, tmp_path: Path) -> None:
    original = load_chip(profile.configuration)
    again = load_chip(write_chip(original, tmp_path / "out"))
    mesh, table = read_mesh(original), read_mesh(again)
    assert table.rules is None
    np.testing.assert_array_equal(mesh.latency, table.latency)
    np.testing.assert_array_equal(mesh.energy, table.energy)
    np.testing.assert_array_equal(mesh.stated, table.stated)
    assert again.chip_config.core_config == original.chip_config.core_config
    assert again.sim_config == original.sim_config


def test_written_files_have_the_published_form(tmp_path: Path) -> None:
    configuration = load_chip(ARCH_A.configuration)
    write_chip(configuration.with_mode(SimulationMode.THROUGHPUT), tmp_path, name="throughput_config.json")
    written = json.loads((tmp_path / "throughput_config.json").read_text())
    expected = json.loads(ARCH_A.configuration.read_text())
    expected["chip_config"]["network_config"]["net_config_file_path"] = "network_mesh.json"
    expected["sim_config"] = {"sim_mode": 0, "sim_time": 200, "report_verbose_level": 0}
    assert written == expected
    table = json.loads((tmp_path / "network_mesh.json").read_text())
    assert set(table) == {"latency", "energy"}
    names = {str(k) for k in range(168)} | {"-10"}
    assert set(table["latency"]) == names
    assert set(table["energy"]["-10"]) == names - {"-10"}
    assert table["latency"]["0"]["15"] == 4
    assert table["energy"]["167"]["0"] == 12 + 3 * 24
    assert table["latency"]["5"]["-10"] == 6


def test_files_inside_an_artifact_keep_the_rule(tmp_path: Path) -> None:
    configuration = load_chip(ARCH_A.configuration)
    files = chip_files(configuration, read_mesh(configuration))
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert sum(map(len, files.values())) < 4000
    again = load_chip(tmp_path / "chip" / "chip.json")
    np.testing.assert_array_equal(read_mesh(again).latency, read_mesh(configuration).latency)


def test_an_explicit_network_is_kept_pair_by_pair(tmp_path: Path) -> None:
    energy = {"0": {"1": 0.5}, "1": {"-10": 2}}
    configuration = chip(tmp_path, {"latency": FULL, "energy": energy})
    mesh = read_mesh(configuration)
    assert mesh.latency.tolist() == [[0, 3, 6], [4, 0, 6], [7, 8, 0]]
    assert mesh.energy.tolist() == [[0, 0.5, 0], [0, 0, 2], [0, 0, 0]]
    files = chip_files(configuration, mesh)
    assert json.loads(files["chip/network.json"])["latency"] == FULL


def test_missing_pairs_cost_nothing_and_other_switches_are_left_out(tmp_path: Path) -> None:
    network = {"latency": {"0": {"1": 3, "77": 9}, "-10": {"0": 1}, "99": {"0": 5}}, "energy": {}}
    mesh = read_mesh(chip(tmp_path, network))
    assert mesh.latency.tolist() == [[0, 3, 0], [0, 0, 0], [1, 0, 0]]
    assert mesh.stated.sum() == 2


def test_a_chip_of_one_core_needs_no_pairs(tmp_path: Path) -> None:
    assert read_mesh(chip(tmp_path, {"latency": {}, "energy": {}}, cores=1)).latency.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("network", "place", "reason"),
    [
        ("{", "n.json:1:2", "not JSON"),
        ([], "$", "object"),
        ({"energy": {}}, "$.latency", "missing"),
        ({"latency": FULL}, "$.energy", "missing"),
        ({"latency": [], "energy": {}}, "$.latency", "object of objects"),
        ({"latency": {"0": 3}, "energy": {}}, "$.latency.0", "object"),
        ({"latency": {"zero": {}}, "energy": {}}, "$.latency.zero", "number of a switch"),
        ({"latency": {"0": {"1.5": 3}}, "energy": {}}, "$.latency.0.1.5", "number of a switch"),
        ({"latency": {"0": {"1": -3}}, "energy": {}}, "$.latency.0.1", "between 0"),
        ({"latency": {"0": {"1": "3"}}, "energy": {}}, "$.latency.0.1", "number"),
        ({"latency": {"0": {"1": None}}, "energy": {}}, "$.latency.0.1", "number"),
        ({"latency": {"0": {"1": 2.5}}, "energy": {}}, "$.latency.0.1", "whole ns"),
        ({"latency": {"0": {"1": 10**12}}, "energy": {}}, "$.latency.0.1", "between 0"),
        ({"latency": FULL, "energy": {"0": {"1": -0.1}}}, "$.energy.0.1", "between 0"),
        ('{"latency": {"0": {"1": Infinity}}, "energy": {}}', "n.json", "Infinity"),
        ({"latency": {"0": {"1": 3}}, "energy": {}}, "$.latency", "no pair with the host"),
        ({"latency": {}, "energy": {}}, "$.latency", "no pair with core 0, core 1, the host"),
        ({"rule": {"latency": {"base": 1, "hop": 1, "host": 1}}}, "$.rule.energy", "object of"),
        ({"rule": {"latency": {"base": -1, "hop": 1, "host": 1}}}, "$.rule.latency.base", "between 0"),
        ({"rule": {"latency": {"base": 0.5, "hop": 1, "host": 1}}}, "$.rule.latency.base", "whole ns"),
        ({"rule": {"latency": {"base": 1, "hop": 1}}}, "$.rule.latency", "object of"),
        ({"rule": 3}, "$.rule.latency", "object of"),
    ],
)
def test_refusals_name_file_and_place(tmp_path: Path, network: Any, place: str, reason: str) -> None:
    with pytest.raises(RaptorError) as caught:
        read_mesh(chip(tmp_path, network))
    where = caught.value.where or ""
    assert str(tmp_path / "n.json") in where
    assert where.endswith(place)
    assert reason in (caught.value.reason or "")


def test_a_network_for_fewer_cores_is_too_small(tmp_path: Path) -> None:
    with pytest.raises(RaptorError) as caught:
        read_mesh(chip(tmp_path, {"latency": FULL, "energy": {}}, cores=9))
    assert "too small for 9 cores" in (caught.value.reason or "")
    assert "core 2, core 3, core 4, core 5, core 6 and 2 more" in (caught.value.reason or "")


def test_a_rule_needs_a_layout_with_room(tmp_path: Path) -> None:
    rule = {"base": 1, "hop": 1, "host": 1}
    with pytest.raises(RaptorError, match="no room for 3 cores"):
        read_mesh(chip(tmp_path, {"rule": {"latency": rule, "energy": rule}}, cores=3))


def test_a_missing_network_file(tmp_path: Path) -> None:
    configuration = chip(tmp_path, {"latency": FULL, "energy": {}})
    (tmp_path / "n.json").unlink()
    with pytest.raises(RaptorError, match="network file cannot be read"):
        read_mesh(configuration)


def test_more_cores_than_a_table_can_hold(tmp_path: Path) -> None:
    configuration = chip(tmp_path, {})
    large = attrs.evolve(configuration, chip_config=attrs.evolve(configuration.chip_config, core_cnt=1_000_000))
    with pytest.raises(RaptorError, match="1000000 cores"):
        read_mesh(large)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_rules_are_symmetric_and_grow_with_distance(rows: int, columns: int, base: int, hop: int, host: int) -> None:
    rule = MeshRule(base, hop, host)
    mesh = rule_mesh(rule, rule, (rows, columns), rows * columns)
    np.testing.assert_array_equal(mesh.latency, mesh.latency.T)
    assert mesh.latency[0, rows * columns - 1] == (base + hop * (rows + columns - 2) if rows * columns > 1 else 0)
    assert (mesh.latency.diagonal() == 0).all()
