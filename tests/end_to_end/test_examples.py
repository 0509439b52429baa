"""What the README promises: the main job, the sixty seconds, and files that are there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import DIGITS, ROOT
from doc_pages import Block, blocks_of, run_line

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
_PATH = re.compile(r"(?<![\w/.-])(?:examples|benchmarks|docs|tests|plugins|targets|simulators|raptor_core)/[\w./-]*\w")


def test_the_main_job(tmp_path: Path) -> None:
    words = [sys.executable, DIGITS / "classify.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" +\d+ ", line)]
    assert [int(row[0]) for row in rows] == list(range(32))
    assert all(row[1] == row[2] for row in rows)
    assert all(float(row[3]) <= 1e-3 for row in rows)
    assert len({row[2] for row in rows}) == 10, "the images show all ten digits"
    assert "right: 32 of 32" in done.stdout

    from matplotlib import image

    picture = image.imread(tmp_path / "digits-out" / "digits.png")
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.05, "the picture is not blank"
    assert (tmp_path / "digits-out" / "program" / "config.json").is_file()


def test_the_main_job_says_what_is_wrong(tmp_path: Path) -> None:
    words = [sys.executable, DIGITS / "classify.py", "--target", "pim-arch-q"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error[unknown-target]")


def section(heading: str) -> list[Block]:
    """The fenced blocks under a heading of the README."""
    text = README.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert text, f"no section '{heading}'"
    return blocks_of(text)


def test_the_sixty_seconds(tmp_path: Path) -> None:
    """Every line of the tour runs as it stands, in order."""
    (tmp_path / "examples").mkdir()
    shutil.copytree(DIGITS, tmp_path / "examples" / "digits")
    here = tmp_path
    ran = 0
    for block in section("Sixty seconds"):
        if block.language == "python":
            (here / "tour.py").write_text(block.text)
            lines = ["python tour.py"]
        else:
            lines = [line.partition(" #")[0].strip() for line in block.text.splitlines()]
        for line in filter(None, lines):
            if line.startswith("cd "):
                here = here / line[3:]
                continue
            done = run_line(line, here)
            assert done.returncode == 0, f"$ {line}\n{done.stdout}"
            assert done.stdout, line
            ran += 1
    assert ran >= 9


def test_the_two_commands_name_what_there_is() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    commands = [block.text.strip() for block in section("Two commands") if block.language == "sh"]
    assert len(commands) == 2
    for command in commands:
        assert "\n" not in command
        (extra,) = re.findall(r"pip install -q -e '\.\[(\w+)\]'", command)
        assert extra in extras
        assert (ROOT / command.split()[-1]).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_pages_are_there(page: Path) -> None:
    missing = [
        path
        for path in _PATH.findall(page.read_text())
        if not any((base / path).exists() for base in (ROOT, page.parent))
    ]
    assert missing == []
