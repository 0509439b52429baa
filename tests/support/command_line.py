"""The command line as tests use it: in this process or in one of its own, and what must hold of every refusal."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from raptor_core.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
RAPTOR = (sys.executable, "-m", "raptor_core.cli.main")
"""The words that start ``raptor`` in a process of its own."""


def snapshot(folder: Path) -> dict[str, str]:
    """Everything under a folder, hidden things too: relative path to kind or SHA-256."""
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = f"link to {os.readlink(path)}" if path.is_symlink() else "folder"
        content = path.is_file() and not path.is_symlink()
        found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest() if content else kind
    return found


def refused(
    words: Sequence[object], capsys: pytest.CaptureFixture[str], *, code: int, names: Sequence[str] = ()
) -> str:
    """The message of a command that is refused.

    It ends with exit code ``code``, prints one error block on standard error and nothing else, writes nothing in the
    working folder, and says every one of ``names``.
    """
    before = snapshot(Path.cwd())
    got = main([str(word) for word in words])
    captured = capsys.readouterr()
    line = " ".join(map(str, words))[:200]
    assert got == code, f"{line}: exit code {got}\n{captured.err}"
    assert captured.out == "", line
    check_one_error(captured.err)
    assert snapshot(Path.cwd()) == before, f"{line} wrote something"
    for name in names:
        assert name in captured.err, f"{line}: {name!r} is not in\n{captured.err}"
    return captured.err


def check_one_error(message: str) -> None:
    """One error block: its head, and indented lines below it."""
    head, *rest = message.rstrip("\n").split("\n")
    assert head.startswith("error["), message
    assert all(line.startswith("  ") for line in rest), message
    assert message.count("error[") == 1, message
    assert "Traceback" not in message, message


def raptor(*words: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``raptor`` in a process of its own, which must succeed."""
    done = subprocess.run(
        [*RAPTOR, *map(str, words)], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done
