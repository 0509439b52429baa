"""The reference of the command line is that of the parsers; exit codes are all there."""

from __future__ import annotations

import re

from cli_reference import BEGIN, END, PAGE, with_reference
from raptor_core.cli.main import BROKEN_PIPE, INTERRUPTED
from raptor_core.diagnostics import ExitCode
from raptor_core.plugins.configuration import KEYS


def test_reference_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert BEGIN in page
    assert END in page
    assert page == with_reference(page), "run: python tests/support/cli_reference.py"


def test_exit_codes_and_configuration_keys() -> None:
    page = PAGE.read_text()
    assert set(map(int, re.findall(r"^\| (\d+) \|", page, re.MULTILINE))) == {*ExitCode, INTERRUPTED, BROKEN_PIPE}
    for key in KEYS:
        assert f"| `{key}` |" in page
