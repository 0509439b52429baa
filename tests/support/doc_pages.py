"""Pages of documentation as data: their fenced blocks, and the worked example that the blocks make up."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import attrs

from fake_distributions import write_distribution

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PLUGIN_PAGES = tuple(sorted((DOCS / "plugins").glob("*.md")))
MODEL = ROOT / "examples" / "digits" / "digits_cnn.onnx"

_FENCE = re.compile(r"^```(?P<language>\w+)?(?: +(?P<info>.+))?$")
_FILE = re.compile(r"# (?P<name>[a-z_0-9]+\.py)$")
_TIMEOUT = 120


@attrs.frozen
class Block:
    """A fenced block: ``language`` and ``info`` of its fence, and its lines with their newlines."""

    language: str
    info: str
    text: str


@attrs.frozen
class Example:
    """The worked example of a page.

    ``files`` by name; ``entry_points`` by group; ``runs`` holds the lines of every ``sh`` block with the text that its
    ``text`` block says is printed (empty: it says nothing).
    """

    files: dict[str, str]
    entry_points: dict[str, dict[str, str]]
    runs: tuple[tuple[tuple[str, ...], str], ...]


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines: list[str] | None = None
    language = info = ""
    for line in text.splitlines():
        if lines is None:
            match = _FENCE.match(line)
            if match:
                language, info, lines = match["language"] or "", match["info"] or "", []
        elif line == "```":
            found.append(Block(language, info, "".join(f"{content}\n" for content in lines)))
            lines = None
        else:
            lines.append(line)
    assert lines is None, "a fenced block is not closed"
    return found


def example_of(text: str) -> Example:
    """The example of a page. Every Python block must be a file of it, so that all Python shown is executed."""
    files: dict[str, str] = {}
    entry_points: dict[str, dict[str, str]] = {}
    runs: list[tuple[tuple[str, ...], str]] = []
    previous = None
    for block in blocks_of(text):
        if block.language == "python":
            match = _FILE.match(block.text.partition("\n")[0])
            assert match, f"a Python block does not begin with the name of its file: {block.text[:60]!r}"
            files[match["name"]] = block.text
        elif block.language == "json":
            assert block.info, "a JSON block has no file name behind ```json"
            files[block.info] = block.text
        elif block.language == "toml" and "entry-points" in block.text:
            for group, points in tomllib.loads(block.text)["project"]["entry-points"].items():
                entry_points.setdefault(group, {}).update(points)
        elif block.language == "sh":
            runs.append((tuple(line for line in block.text.splitlines() if line and not line.startswith("#")), ""))
        elif block.language == "text" and previous is not None and previous.language == "sh":
            runs[-1] = runs[-1][0], block.text
        previous = block
    return Example(files, entry_points, tuple(runs))


def lay_out(example: Example, name: str, folder: Path) -> None:
    """Write the example's files into ``folder``, as an installed distribution ``name`` with the digits network."""
    for file, content in example.files.items():
        (folder / file).write_text(content)
    if example.entry_points:
        write_distribution(folder, name, example.entry_points)
    shutil.copy(MODEL, folder)


def run_line(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one command line of a page in ``folder``; output and errors come together in ``stdout``."""
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", line],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT,
    )


def environment(folder: Path) -> dict[str, str]:
    """An environment in which ``raptor`` and ``python`` are those of this run, and ``folder`` is importable."""
    commands = folder / ".commands"
    if not commands.exists():
        commands.mkdir()
        for name, words in (("raptor", "-m raptor_core.cli.main "), ("python", "")):
            script = commands / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n')
            script.chmod(0o755)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(commands), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(path),
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }


def missing_lines(claimed: str, printed: str) -> list[str]:
    """The claimed lines that were not printed, in order. ``...`` stands for any text, in a line or for lines."""
    lines = iter(printed.splitlines())
    missing = []
    for claim in claimed.splitlines():
        if claim.strip() in ("", "..."):
            continue
        pattern = ".*".join(re.escape(part) for part in re.split(r"\s*\.\.\.\s*", claim.rstrip()))
        if not any(re.fullmatch(pattern, line.rstrip()) for line in lines):
            missing.append(claim)
            lines = iter(printed.splitlines())
    return missing
