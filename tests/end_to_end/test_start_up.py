"""Help and listings read metadata only: neither plugins nor heavy libraries are imported for them."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numpy", "onnx", "numba", "llvmlite", "onnxruntime", "matplotlib"}
LIGHT = ([], ["--help"], ["plugins", "--help"], ["plugins", "list"], ["plugins", "list", "--json"])


def plugin_packages() -> set[str]:
    """The top-level packages behind the installed entry points of all kinds of plugins."""
    points = importlib.metadata.entry_points()
    groups = [group for group in points.groups if group.startswith("raptor.")]
    modules = [point.module for group in groups for point in points.select(group=group)]
    return {module.partition(".")[0] for module in modules} - {"raptor_core"}


def loaded_by(words: list[str], folder: Path) -> set[str]:
    """The top-level modules that are loaded after a command in a fresh process."""
    script = (
        "import json, sys\n"
        "from raptor_core.cli.main import main\n"
        f"main({words!r})\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("words", LIGHT, ids=" ".join)
def test_no_plugin_and_no_heavy_library(words: list[str], tmp_path: Path) -> None:
    assert plugin_packages() >= {"raptor_pim", "raptor_conv", "raptor_schedulers", "raptor_functional"}
    assert loaded_by(words, tmp_path) & (plugin_packages() | HEAVY) == set()


@pytest.mark.parametrize("words", [["--version"], ["compile", "--help"], ["compil"]], ids=" ".join)
def test_no_plugin_where_numpy_may_be(words: list[str], tmp_path: Path) -> None:
    assert loaded_by(words, tmp_path) & (plugin_packages() | HEAVY - {"numpy"}) == set()


def test_the_check_sees_imports(tmp_path: Path) -> None:
    """The same look at the modules finds a plugin where one is needed."""
    assert "raptor_schedulers" in loaded_by(["plugins", "info", "peft"], tmp_path)
