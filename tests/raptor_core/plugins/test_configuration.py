"""The configuration file of the working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from raptor_core.diagnostics import UsageError
from raptor_core.plugins.configuration import enabled_plugins, read_configuration


def test_no_file_and_unrelated_files(tmp_path: Path) -> None:
    assert read_configuration(tmp_path) == ()
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 3\n")
    assert read_configuration(tmp_path) == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("raptor.toml", 'disable-plugins = ["peft", "acme:x"]'),
        ("pyproject.toml", '[tool.raptor]\ndisable-plugins = ["peft", "acme:x"]'),
    ],
)
def test_both_places(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    rules = read_configuration(tmp_path)
    assert [rule.text for rule in rules] == ["peft", "acme:x"]
    assert {rule.source for rule in rules} == {f"disable-plugins in {name}"}


def test_the_own_file_goes_first(tmp_path: Path) -> None:
    (tmp_path / "raptor.toml").write_text("")
    (tmp_path / "pyproject.toml").write_text('[tool.raptor]\ndisable-plugins = ["peft"]')
    assert read_configuration(tmp_path) == ()


def test_plugins_without_those_of_the_command_line_and_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raptor.toml").write_text('disable-plugins = ["scheduler/peft"]')
    monkeypatch.chdir(tmp_path)
    plugins = enabled_plugins(["command/compare"])
    assert not plugins.has("raptor.schedulers", "peft")
    assert not plugins.has("raptor.commands", "compare")
    assert plugins.has("raptor.commands", "report")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("disable-plugin = []", "unknown key 'disable-plugin'; did you mean 'disable-plugins'?"),
        ("disable-plugins = 'x'", "disable-plugins is not a list of texts"),
        ("disable-plugins = [1]", "disable-plugins is not a list of texts"),
        ("disable-plugins = [", None),
    ],
)
def test_bad_files(tmp_path: Path, text: str, reason: str | None) -> None:
    (tmp_path / "raptor.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_configuration(tmp_path)
    assert caught.value.code == "bad-configuration"
    assert caught.value.where == str(tmp_path / "raptor.toml")
    assert reason is None or caught.value.reason == reason


def test_a_bad_table_and_bad_bytes(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nraptor = 3\n")
    with pytest.raises(UsageError, match="is not a table"):
        read_configuration(tmp_path)
    (tmp_path / "raptor.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be used"):
        read_configuration(tmp_path)
