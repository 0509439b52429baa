"""Chip configurations: reading, defaults, refusals, and writing them out again."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from raptor_core.diagnostics import RaptorError
from raptor_pim.artifacts.chip import SimulationMode, chip_from_json, chip_to_json, load_chip
from raptor_pim.profiles import ARCH_A, ARCH_C, PROFILES

SMALLEST: dict[str, Any] = {
    "chip_config": {"core_config": {}, "network_config": {"net_config_file_path": "n.json"}, "core_cnt": 2}
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The arch-a document with the value at a dotted path replaced (a value of ... removes it)."""
    document = copy.deepcopy(json.loads(ARCH_A.configuration.read_text()))
    *parents, name = path.split(".")
    place = document
    for parent in parents:
        place = place[parent]
    if value is ...:
        del place[name]
    else:
        place[name] = value
    return document


def test_defaults_where_the_file_is_silent() -> None:
    configuration = chip_from_json(SMALLEST, where="test")
    core = configuration.chip_config.core_config
    assert (core.period, core.vector_width, core.vector_latency_cycle, core.rob_size) == (1, 16, 8, 1)
    memory = core.local_memory_config
    assert (memory.data_width, memory.period, memory.static_power) == (16, 1, 1)
    assert (memory.write_latency_cycle, memory.read_latency_cycle) == (10, 8)
    matrix = core.matrix_config
    assert (matrix.period, matrix.pipeline_mode, matrix.xbar_size) == (1 / 1.28, True, (128, 128))
    assert (matrix.xbar_latency, matrix.cell_precision, matrix.dac_count, matrix.adc_count) == (30, 2, 128, 1)
    assert configuration.chip_config.network_config.bus_width == 16
    simulation = configuration.sim_config
    assert (simulation.sim_mode, simulation.sim_time, simulation.latency_timeout_ms) == (0, 1, 60000)
    assert configuration.host_switch == -10


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_written_configuration_says_what_was_read(profile: Any) -> None:
    document = json.loads(profile.configuration.read_text())
    assert chip_to_json(load_chip(profile.configuration)) == document


def test_a_changed_value_is_written_even_if_the_file_did_not_give_it() -> None:
    assert "rob_size" not in chip_to_json(chip_from_json(SMALLEST, where="test"))["chip_config"]["core_config"]
    document = copy.deepcopy(SMALLEST)
    document["chip_config"]["core_config"]["local_memory_config"] = {"read_dynamic_energy": 0.5}
    assert chip_to_json(chip_from_json(document, where="test")) == document


def test_modes_differ_in_the_simulation_only() -> None:
    latency = load_chip(ARCH_C.configuration)
    throughput = latency.with_mode(SimulationMode.THROUGHPUT)
    assert throughput.chip_config == latency.chip_config
    assert chip_to_json(throughput)["sim_config"] == {"sim_mode": 0, "sim_time": 200, "report_verbose_level": 0}
    assert throughput.with_mode(SimulationMode.LATENCY) == latency


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("chip_config", ..., "missing"),
        ("chip_config.core_cnt", ..., "missing"),
        ("chip_config.core_config", ..., "missing"),
        ("chip_config.network_config.net_config_file_path", ..., "missing"),
        ("chip_config.network_config.net_config_file_path", "", "text"),
        ("chip_config.core_config.period", -1, "positive"),
        ("chip_config.core_config.period", 0, "positive"),
        ("chip_config.core_config.period", "1", "number"),
        ("chip_config.core_config.period", True, "number"),
        ("chip_config.core_config.period", float("nan"), "finite"),
        ("chip_config.core_config.period", float("inf"), "finite"),
        ("chip_config.core_config.period", 10**400, "finite"),
        ("chip_config.core_config.rob_size", 0, "at least 1"),
        ("chip_config.core_config.rob_size", 1.5, "whole number"),
        ("chip_config.core_config.vector_width", 2**40, "too large"),
        ("chip_config.core_config.local_memory_config.data_width", 0, "at least 1"),
        ("chip_config.core_config.local_memory_config.read_latency_cycle", -3, "at least 0"),
        ("chip_config.core_config.matrix_config", [], "object"),
        ("chip_config.core_config.matrix_config.xbar_size", [128], "two whole numbers"),
        ("chip_config.core_config.matrix_config.xbar_size", [128, 0], "at least 1"),
        ("chip_config.core_config.matrix_config.pipeline_mode", 1, "true or false"),
        ("chip_config.core_config.matrix_config.adc_dynamic_power", -0.5, "at least 0"),
        ("chip_config.core_config.matrix_config.adc_cuont", 4, "did you mean 'adc_count'"),
        ("chip_config.global_memory_switch_id", 7, "both name the switch"),
        ("sim_config.sim_mode", 2, "one of 0, 1"),
        ("sim_config.latency_timeout_ms", 0, "positive"),
        ("unheard_of", 1, "unknown field"),
    ],
)
def test_one_error_with_the_place_in_the_file(path: str, value: Any, reason: str) -> None:
    with pytest.raises(RaptorError) as caught:
        chip_from_json(changed(path, value), where="chip.json")
    place = f"chip.json: $.{path}"
    if path == "chip_config.global_memory_switch_id":
        place = "chip.json: $.chip_config.core_config.global_memory_switch_id"
    assert caught.value.where == place
    assert reason in (caught.value.reason or "")
    assert caught.value.code == "bad-chip-configuration"


def test_a_host_switch_that_is_a_core() -> None:
    document = changed("chip_config.global_memory_switch_id", 3)
    document["chip_config"]["core_config"]["global_memory_switch_id"] = 3
    with pytest.raises(RaptorError, match="number of a core"):
        chip_from_json(document, where="x")


def test_all_problems_of_a_file_are_said_at_once() -> None:
    document = changed("chip_config.core_config.period", -1)
    document["chip_config"]["core_cnt"] = "many"
    with pytest.raises(RaptorError) as caught:
        chip_from_json(document, where="x")
    assert [detail.split(":")[0] for detail in caught.value.details] == ["$.chip_config.core_cnt"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "must be an object"),
        ('{"chip_config": {"core_cnt": NaN}}', "NaN"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[" * 100000, "nested too deeply"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "chip.json"
    path.write_text(text)
    with pytest.raises(RaptorError) as caught:
        load_chip(path)
    assert reason in (caught.value.reason or "")
    assert str(path) in (caught.value.where or "")


def test_a_missing_file_and_one_that_is_not_text(tmp_path: Path) -> None:
    with pytest.raises(RaptorError, match="cannot be read"):
        load_chip(tmp_path / "absent.json")
    with pytest.raises(RaptorError, match="cannot be read"):
        load_chip(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RaptorError, match="UTF-8"):
        load_chip(tmp_path / "binary")


def test_whole_floats_count_as_whole_numbers() -> None:
    configuration = chip_from_json(changed("chip_config.core_cnt", 168.0), where="x")
    assert configuration.core_count == 168
    assert isinstance(configuration.core_count, int)


def test_the_input_buffer_latency_is_known_and_ignored() -> None:
    document = changed("chip_config.core_config.matrix_config.input_buffer_latency_cycle", 5)
    assert chip_from_json(document, where="x") == load_chip(ARCH_A.configuration)
