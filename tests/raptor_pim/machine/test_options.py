"""Which machine the options and profiles make, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.options import resolve_options
from raptor_pim.artifacts.chip import load_chip
from raptor_pim.artifacts.export_chip import write_chip
from raptor_pim.options import OPTIONS, configure
from raptor_pim.profiles import ARCH_A, ARCH_C, PROFILES

BARE = {"core_count": 10, "crossbar_count": 4, "crossbar_size": "64x96"}


def configured(given: dict[str, Any], profile: Any = None, profile_file: Path | None = None) -> Any:
    return configure(resolve_options(OPTIONS, given, owner="target pim"), profile, profile_file)


def test_a_bare_target() -> None:
    configuration = configured(BARE)
    machine = configuration.machine
    assert (machine.core_count, machine.crossbars_per_core) == (10, 4)
    assert (machine.crossbar_rows, machine.crossbar_columns) == (64, 96)
    assert machine.configuration.chip_config.network_config.layout == (3, 4)
    assert machine.mesh.cores == 10
    assert configuration.data is machine
    assert configuration.facts == {
        "chip": "pim",
        "core_count": 10,
        "crossbar_count": 4,
        "crossbar_size": [64, 96],
        "layout": [3, 4],
    }
    json.dumps(dict(configuration.facts))


@pytest.mark.parametrize("cores", [1, 2, 3, 12, 13, 168, 4096])
def test_bare_layouts_have_room(cores: int) -> None:
    rows, columns = configured({**BARE, "core_count": cores}).machine.configuration.chip_config.network_config.layout
    assert rows * columns >= cores
    assert 0 <= columns - rows <= 2


def test_one_number_is_a_square() -> None:
    machine = configured({**BARE, "crossbar_size": "128"}).machine
    assert (machine.crossbar_rows, machine.crossbar_columns) == (128, 128)


@pytest.mark.parametrize("missing", list(BARE))
def test_a_bare_target_needs_all_three(missing: str) -> None:
    given = {name: value for name, value in BARE.items() if name != missing}
    with pytest.raises(UsageError) as caught:
        configured(given)
    assert "--" + missing.replace("_", "-") in caught.value.message
    with pytest.raises(UsageError, match="--core-count, --crossbar-count, --crossbar-size"):
        configured({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("core_count", 0),
        ("core_count", -5),
        ("core_count", "many"),
        ("core_count", 1.5),
        ("core_count", 2**31),
        ("crossbar_count", 0),
        ("crossbar_count", 2**40),
        ("crossbar_size", "0"),
        ("crossbar_size", "-128"),
        ("crossbar_size", "128x"),
        ("crossbar_size", "128x0"),
        ("crossbar_size", "12.5"),
        ("crossbar_size", "x"),
        ("crossbar_size", ""),
        ("crossbar_size", "99999999999"),
    ],
)
def test_bad_values(name: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        configured({**BARE, name: value})
    assert "--" + name.replace("_", "-") in caught.value.message
    assert repr(value) in caught.value.message


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"crossbar_count": 2**20, "crossbar_size": "128"}, "cells of one core"),
        ({"crossbar_size": "65536"}, "cells of one core"),
        ({"core_count": 4096, "crossbar_count": 2**20, "crossbar_size": "1"}, "crossbars of the chip"),
    ],
)
def test_products_that_overflow(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        configured({**BARE, **changes})
    assert what in (caught.value.reason or "")
    assert caught.value.code == "chip-too-large"


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_profiles(profile: Any) -> None:
    configuration = configured({}, profile)
    assert configuration.machine.configuration == load_chip(profile.configuration)
    assert configuration.facts["chip"] == profile.name


def test_profile_figures() -> None:
    shapes = {}
    for profile in PROFILES:
        m = configured({}, profile).machine
        shapes[profile.name] = (m.core_count, m.crossbars_per_core, m.crossbar_rows, m.crossbar_columns)
    assert shapes == {
        "pim-arch-a": (168, 96, 128, 128),
        "pim-arch-b": (138, 128, 128, 128),
        "pim-arch-c": (64, 8, 512, 1024),
        "pim-standard": (144, 64, 128, 128),
    }


def test_equal_options_agree_with_a_profile() -> None:
    given = {"core_count": 64, "crossbar_count": 8, "crossbar_size": "512x1024"}
    assert configured(given, ARCH_C).machine == configured({}, ARCH_C).machine


def test_a_conflict_shows_both_values(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        configured({"core_count": 10, "crossbar_size": "512"}, ARCH_C)
    text = caught.value.render()
    assert "profile 'pim-arch-c'" in text
    assert "--core-count is 10, the profile says 64" in text
    assert "--crossbar-size is 512x512, the profile says 512x1024" in text
    path = write_chip(load_chip(ARCH_A.configuration), tmp_path)
    with pytest.raises(UsageError, match="--crossbar-count is 3, the profile says 96"):
        configured({"crossbar_count": 3}, None, path)


def test_a_profile_file_with_its_own_network(tmp_path: Path) -> None:
    path = write_chip(load_chip(ARCH_A.configuration), tmp_path, name="mine.json", mesh="net.json")
    configuration = configured({}, None, path)
    assert configuration.facts["chip"] == "mine"
    assert configuration.machine.core_count == 168
    (tmp_path / "net.json").unlink()
    with pytest.raises(RaptorError, match="network file cannot be read"):
        configured({}, None, path)


def test_both_profile_forms_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        configured({}, ARCH_A, tmp_path / "x.json")
