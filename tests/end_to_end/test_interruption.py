"""A compilation that is stopped at any moment leaves a whole program folder or none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import raptor_core
from command_line import RAPTOR, raptor, snapshot
from tiny_models import tiny_network

CHIP = ("--target", "pim", "--core-count", "40", "--crossbar-count", "8", "--crossbar-size", "32")
_SLOW_WRITING = """
import pathlib, sys, time
from raptor_core.cli.main import main

write_bytes = pathlib.Path.write_bytes

def slowly(self, data):
    time.sleep(0.01)
    return write_bytes(self, data)

pathlib.Path.write_bytes = slowly
sys.exit(main())
"""
SLOW_RAPTOR = (sys.executable, "-c", _SLOW_WRITING)
"""``raptor`` that takes 10 ms for each of the some fifty files of a program."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with a model, and a folder ``out`` for programs."""
    onnx.save(tiny_network(), tmp_path / "m.onnx")
    (tmp_path / "out").mkdir()
    return tmp_path


def begin(command: tuple[str, ...], work: Path, *extra: str) -> subprocess.Popen[bytes]:
    words = [*command, "compile", "m.onnx", *CHIP, "-o", "out/p", *extra]
    return subprocess.Popen(words, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def being_written(work: Path) -> int:
    """How many files the folder that is being written beside ``out/p`` holds."""
    return sum(1 for folder in (work / "out").glob(".p.*.new") for path in folder.rglob("*") if path.is_file())


def is_whole(program: Path) -> bool:
    """Every file of the manifest is there with its size, and the simulator takes the folder."""
    files = json.loads((program / "manifest.json").read_text())["files"]
    assert all((program / name).stat().st_size == entry["bytes"] for name, entry in files.items())
    assert set(files) | {"manifest.json"} == {k for k, v in snapshot(program).items() if v != "folder"}
    x = np.ones((1, 2, 4, 4), np.float32)
    (outputs,) = raptor_core.simulate(program, {"x": x}).outputs
    return bool(np.abs(outputs["y"]).max() > 0)


def visible(work: Path) -> list[str]:
    return sorted(path.name for path in (work / "out").iterdir() if not path.name.startswith("."))


def test_killed_at_any_moment(work: Path) -> None:
    start = time.monotonic()
    assert begin(RAPTOR, work).wait() == 0
    duration = time.monotonic() - start
    assert is_whole(work / "out" / "p")
    expected = snapshot(work / "out")
    for path in sorted((work / "out" / "p").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (work / "out" / "p").rmdir()

    killed = 0
    for part in np.linspace(0.1, 1.0, 8):
        process = begin(RAPTOR, work)
        time.sleep(duration * float(part))
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        assert visible(work) in ([], ["p"])
        if visible(work):
            assert snapshot(work / "out" / "p") == {k[2:]: v for k, v in expected.items() if k.startswith("p/")}
            (work / "out" / "p").rename(work / f"finished-{part:.2f}")
    assert killed >= 4, "most processes were stopped before they were done"
    assert begin(RAPTOR, work).wait() == 0
    assert snapshot(work / "out") == expected, "the next compilation succeeds and clears what the others left"


@pytest.mark.parametrize("files", [1, 20, 40])
def test_killed_while_writing(work: Path, files: int) -> None:
    process = begin(SLOW_RAPTOR, work)
    while being_written(work) < files and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was still writing"
    assert visible(work) == []
    assert being_written(work) >= files, "its work is left under a hidden name"
    raptor("compile", "m.onnx", *CHIP, "-o", "out/p", folder=work)
    assert sorted(path.name for path in (work / "out").iterdir()) == ["p"]
    assert is_whole(work / "out" / "p")


def test_killed_while_replacing(work: Path) -> None:
    """The earlier program stays until the new one is whole."""
    raptor("compile", "m.onnx", *CHIP, "-o", "out/p", folder=work)
    earlier = snapshot(work / "out" / "p")
    process = begin(SLOW_RAPTOR, work, "--force", "--no-layout-planning")
    while being_written(work) < 20 and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert snapshot(work / "out" / "p") == earlier
    raptor("compile", "m.onnx", *CHIP, "-o", "out/p", "--force", folder=work)
    assert sorted(path.name for path in (work / "out").iterdir()) == ["p"]
    assert snapshot(work / "out" / "p") == earlier


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("files", [1, 30])
def test_interrupted_while_writing(work: Path, files: int, number: signal.Signals) -> None:
    process = begin(SLOW_RAPTOR, work)
    while being_written(work) < files and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert visible(work) == []
    if number == signal.SIGINT:
        assert (process.returncode, out, err) == (130, b"", b"interrupted\n")
        assert list((work / "out").iterdir()) == [], "nothing is left, hidden or not"


def test_interrupted_while_compiling(work: Path) -> None:
    """Ctrl-C at moments spread over the passes, counted from the first line of the log."""
    for delay in (0.0, 0.03, 0.1):
        process = begin(RAPTOR, work, "-v", "--log-json")
        assert process.stderr is not None
        first = process.stderr.readline()
        assert json.loads(first)["event"] == "model read"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        if process.returncode == 0:  # it was quicker
            assert visible(work) == ["p"]
            break
        assert (process.returncode, out) == (130, b""), err
        assert err.endswith(b"interrupted\n")
        assert b"Traceback" not in err
        assert list((work / "out").iterdir()) == []
    assert delay > 0, "at least one was interrupted"
