"""The worked examples of the plugin pages do what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_pages import DOCS, PLUGIN_PAGES, example_of, lay_out, missing_lines, run_line
from raptor_core.plugins.kinds import KINDS


@pytest.mark.parametrize("page", [*PLUGIN_PAGES, DOCS / "cli.md"], ids=lambda page: page.stem)
def test_example(page: Path, tmp_path: Path) -> None:
    example = example_of(page.read_text())
    assert example.runs, f"{page.name} has no commands to try"
    lay_out(example, f"acme-{page.stem}", tmp_path)
    for lines, claimed in example.runs:
        printed = ""
        for line in lines:
            done = run_line(line, tmp_path)
            assert done.returncode == 0, f"$ {line}\n{done.stdout}"
            printed += done.stdout
        assert not missing_lines(claimed, printed), printed


@pytest.mark.parametrize("page", PLUGIN_PAGES, ids=lambda page: page.stem)
def test_page_has_a_whole_example(page: Path) -> None:
    example = example_of(page.read_text())
    assert any(name.endswith(".py") for name in example.files)
    assert example.entry_points
    assert any(claimed for _, claimed in example.runs), "the page does not say what its commands print"


def test_every_group_of_entry_points_has_an_example() -> None:
    shown = {group for page in PLUGIN_PAGES for group in example_of(page.read_text()).entry_points}
    assert shown == {kind.group for kind in KINDS}


def test_the_index_names_every_page_and_group() -> None:
    index = (DOCS / "plugins.md").read_text()
    for page in PLUGIN_PAGES:
        assert re.search(rf"\(plugins/{page.name}[)#]", index), page.name
    for kind in KINDS:
        assert f"`{kind.group}`" in index


def test_lines_that_are_not_printed_are_found() -> None:
    printed = "alpha  1\nbeta  22  pass\ngamma\n"
    assert missing_lines("alpha  1\nbeta ... pass\n...\ngamma\n", printed) == []
    assert missing_lines("gamma\nalpha  1\n", printed) == ["alpha  1"]
    assert missing_lines("beta ... FAIL\n", printed) == ["beta ... FAIL"]
