"""Starting the command: help, versions, and what must not be imported for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import raptor_core
from fake_distributions import write_distribution
from raptor_core.cli.commands import BUILT_INS
from raptor_core.cli.main import main

HEAVY = (
    "numpy onnx numba pluggy structlog rich raptor_pim raptor_schedulers raptor_conv raptor_operators raptor_functional"
)


@pytest.mark.parametrize("words", [[], ["--help"], ["plugins", "list"], ["plugins", "list", "--json"], ["compil"]])
def test_nothing_heavy_is_imported(words: list[str]) -> None:
    script = f"""
import sys
from raptor_core.cli.main import main
main({words!r})
loaded = set({HEAVY!r}.split()) & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True)


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["-v", "--help"]])
def test_help_names_all_commands(words: list[str], capsys) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    for command in BUILT_INS:
        assert re.search(rf"^  {command.name} +{command.summary}$", out, re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    [
        ["compile"],
        ["run"],
        ["simulate"],
        ["inspect"],
        ["targets"],
        ["targets", "list"],
        ["plugins"],
        ["plugins", "list"],
        ["plugins", "info"],
        ["plugins", "check"],
    ],
)
def test_every_command_has_help(words: list[str], capsys) -> None:
    for flag in ("-h", "--help"):
        assert main([*words, flag]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"usage: raptor {' '.join(words)}")
        assert "--disable-plugin" in out
        assert "--json" in out


def test_help_of_compile_shows_the_options_of_plugins(capsys) -> None:
    assert main(["compile", "--help"]) == 0
    without = capsys.readouterr().out
    assert "--core-count" not in without
    assert "--target NAME, --help also shows" in without
    assert main(["compile", "--target", "pim", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in ("--core-count", "--no-layout-planning", "--conv-strategy", "--scheduler", "--emit-json", "--pass"):
        assert flag in out
    assert main(["simulate", "--help"]) == 0
    assert "--schedule-policy" in capsys.readouterr().out


def test_version(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"raptor {raptor_core.__version__} (plugin API 1)\n"


def test_help_is_there_with_a_bad_configuration(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "raptor.toml").write_text("nonsense = 1")
    monkeypatch.chdir(tmp_path)
    assert main(["--help"]) == 0
    assert main(["plugins", "list"]) == 2
    assert "error[bad-configuration]" in capsys.readouterr().err


COMMAND = """
from typing import ClassVar

class Sweep:
    name: ClassVar[str] = "sweep"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "compile for many chips"

    def configure(self, parser):
        parser.add_argument("count", type=int)

    def run(self, arguments):
        print(arguments.count + 1, arguments.json)
        return 0

PLUGIN = Sweep()
"""


def test_commands_of_plugins(site: Path, capsys) -> None:
    write_distribution(site, "acme-sweep", {"raptor.commands": {"sweep": "acme_sweep:PLUGIN"}}, {"acme_sweep": COMMAND})
    assert main(["--help"]) == 0
    assert re.search(r"^  sweep +compile for many chips$", capsys.readouterr().out, re.MULTILINE)
    assert "acme_sweep" not in sys.modules
    assert main(["sweep", "41", "--json"]) == 0
    assert capsys.readouterr().out == "42 True\n"
    assert main(["sweep", "x"]) == 2
    assert "invalid int value: 'x'" in capsys.readouterr().err
    assert main(["swep", "1"]) == 2
    assert "did you mean 'sweep'" in capsys.readouterr().err
    assert main(["--disable-plugin", "sweep", "sweep", "1"]) == 2
    assert "unknown command 'sweep'" in capsys.readouterr().err


def test_a_broken_command_hurts_only_who_gives_it(site: Path, capsys) -> None:
    write_distribution(
        site, "acme-bad", {"raptor.commands": {"bad": "acme_bad_command:P"}}, {"acme_bad_command": "1/0"}
    )
    assert main(["--help"]) == 0
    assert main(["plugins", "list"]) == 0
    assert main(["bad"]) == 3
    assert "its import failed with ZeroDivisionError" in capsys.readouterr().err


def test_a_command_cannot_take_the_place_of_a_built_in_one(site: Path, capsys) -> None:
    source = COMMAND.replace('"sweep"', '"compile"')
    write_distribution(site, "acme-c", {"raptor.commands": {"compile": "acme_c:PLUGIN"}}, {"acme_c": source})
    assert main(["compile", "--help"]) == 0
    assert "--target" in capsys.readouterr().out


def test_plugins_list_and_info(site: Path, capsys) -> None:
    assert main(["plugins", "list", "--json", "--kind", "scheduler"]) == 0
    records = json.loads(capsys.readouterr().out)
    (peft,) = [record for record in records if record["name"] == "peft"]
    assert peft == {
        "kind": "scheduler",
        "group": "raptor.schedulers",
        "name": "peft",
        "distribution": "raptor-pim",
        "version": raptor_core.__version__,
        "built_in": True,
        "value": "raptor_schedulers.peft:PEFT",
        "status": "unchecked",
        "summary": peft["summary"],
        "reason": "",
    }
    assert main(["plugins", "info", "simulator/functional"]) == 0
    out = capsys.readouterr().out
    assert "--schedule-policy" in out
    assert re.search(r"^status +ok$", out, re.MULTILINE)
    assert main(["plugins", "info", "pefd"]) == 2
    assert capsys.readouterr().err == (
        "error[unknown-plugin]: no plugin is named 'pefd'\n"
        "  help     did you mean 'peft'? 'raptor plugins list' shows all\n"
    )
    assert main(["plugins", "list", "--kind", "schedular"]) == 2
    assert "did you mean 'scheduler'" in capsys.readouterr().err


def test_plugins_check_fails_for_a_fault(site: Path, capsys) -> None:
    assert main(["plugins", "check"]) == 0
    assert "unchecked" not in capsys.readouterr().out
    write_distribution(site, "acme-b", {"raptor.layouts": {"bad": "acme_bad_layout:P"}}, {"acme_bad_layout": "1/0"})
    assert main(["plugins", "check"]) == 3
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if "acme-b" in line]
    assert "broken" in line
    assert "ZeroDivisionError" in line
    assert main(["plugins", "check", "--kind", "scheduler"]) == 0
    assert main(["plugins", "check", "--disable-plugin", "acme-b"]) == 0


def test_plugins_check_holds_hooks_to_their_specifications(site: Path, capsys) -> None:
    source = "from raptor_core.plugins.hookspecs import hookimpl\napi_version = 1\n@hookimpl\ndef befor_pass(): pass\n"
    write_distribution(site, "acme-h", {"raptor.hooks": {"h": "acme_hook_h"}}, {"acme_hook_h": source})
    assert main(["plugins", "check", "--kind", "hooks"]) == 3
    assert "unknown hook 'befor_pass'" in capsys.readouterr().out


def test_targets_list(site: Path, capsys) -> None:
    write_distribution(site, "acme-p", {"raptor.hardware_profiles": {"acme-chip": "acme_gone_chip:P"}})
    assert main(["targets", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["pim-arch-a"]["target"] == "pim"
    assert "168 cores" in rows["pim-arch-a"]["summary"]
    assert rows["pim"]["kind"] == "target"
    assert "cannot be used" in rows["acme-chip"]["summary"]
    assert main(["targets", "list"]) == 0
    assert capsys.readouterr().out.startswith("NAME")


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "raptor_core.cli.main", "plugins", "list"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
