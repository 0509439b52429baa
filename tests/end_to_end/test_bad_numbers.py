"""Bad numbers for every numeric option of every command, found from the declarations of the options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from command_line import refused
from raptor_core.cli import inspect_command, run_command
from raptor_core.cli.main import main
from raptor_core.driver.compile_options import CORE_OPTIONS
from raptor_core.options import Option
from raptor_core.plugins.manager import PluginManager
from tiny_models import tiny_network

PLUGINS = PluginManager.discover()
SMALL = {"--core-count": "4", "--crossbar-count": "8", "--crossbar-size": "32"}
Capture = pytest.CaptureFixture[str]
Case = tuple[tuple[str, ...], Option]


def options_of(group: str, name: str) -> tuple[Option, ...]:
    return tuple(PLUGINS.get(group, name).options)


def own_options(module: object) -> list[Option]:
    """The options that a command declares for itself."""
    return [value for value in vars(module).values() if isinstance(value, Option)]


def cases() -> list[Case]:
    """Every option with the words of a command that takes it, but the option itself."""
    found: list[Case] = []
    run, compile_ = ("run", "m.onnx", "--target", "pim"), ("compile", "m.onnx", "-o", "out/p", "--target", "pim")
    for prefix in (compile_, run):
        found += [(prefix, option) for option in (*CORE_OPTIONS, *options_of("raptor.targets", "pim"))]
        for name in PLUGINS.names("raptor.schedulers"):
            words = (*prefix, "--scheduler", name)
            found += [(words, option) for option in options_of("raptor.schedulers", name)]
        for name in PLUGINS.names("raptor.conv_strategies"):
            words = (*prefix, "--conv-strategy", name)
            found += [(words, option) for option in options_of("raptor.conv_strategies", name)]
    for name in PLUGINS.names("raptor.simulators"):
        words = ("simulate", "p", "--simulator", name, "--input", "x.npz", "-o", "y.npz")
        found += [(words, option) for option in options_of("raptor.simulators", name)]
    found += [(run, option) for option in own_options(run_command) if option.name != "seed"]
    core = ("inspect", "p", "--core", "0")
    found += [(core if o.name != "core" else ("inspect", "p"), o) for o in own_options(inspect_command)]
    return found


CASES = cases()
NUMERIC = [case for case in CASES if case[1].type in (int, float)]
TEXTS = [case for case in CASES if case[1].type is str and not case[1].choices]

NUMBERS_IN_TEXTS = {
    "crossbar_size": ["", "x", "0", "-1", "1.5", "abc", "nan", "32x0", "0x32", "32x-1", "32x32x32", "99999999999"],
    "dump_ranges": ["abc", "1", "0,-1", "0,1.5", "nan,1", "0,4,8", "0,4294967296", "99999999999,4", "0,100000000"],
    "adversarial_target": ["abc", "1:2:3", "0:0:0:0:4:4", "0:0:0:0:0:-4", "0:0:0:0:0:nan", "0:0:0:0:0:1.5"],
    "core_stall": ["abc", "0", "0:0", "0:-1", "0:1.5", "0:nan", "99:1", "0:1,", "99999999999999999999:1"],
    "target_stall": ["abc", "0:1", "0:0:0", "0:0:-1", "0:0:1.5", "0:0:nan", "99:0:1", "0:99999999999999999999:1"],
    "trace_window": ["abc", "5", "5:1", "-1:3", "nan:", "0:nan", "0:inf:3", "1e400:"],
}
"""Options whose text holds numbers, with bad ones."""
NAMES_AND_FILES = {"conv_strategy", "scheduler", "config", "trace", "plot", "report", "provenance_trace"}
"""Options whose text is a name or a file."""
NEEDED_WITH = {
    "adversarial_target": ("--schedule-policy", "adversarial"),
    "trace_window": ("--trace", "trace.json"),
    "trace_limit": ("--trace", "trace.json"),
    "sim_time_ms": ("--mode", "throughput"),
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    """The working folder, with a model ``m.onnx``, its program ``p`` and inputs ``x.npz``."""
    monkeypatch.chdir(tmp_path)
    onnx.save(tiny_network(), "m.onnx")
    np.savez("x.npz", x=np.ones((1, 2, 4, 4), np.float32))
    chip = [word for pair in SMALL.items() for word in pair]
    assert main(["compile", "m.onnx", "-o", "p", "--target", "pim", *chip]) == 0
    capsys.readouterr()
    return tmp_path


def words_for(case: Case, value: str) -> tuple[str, ...]:
    """The command line that gives the option a value, and all else that it needs soundly."""
    words, option = case
    chip = (
        ()
        if "--target" not in words
        else tuple(word for flag, number in SMALL.items() if flag != option.flag for word in (flag, number))
    )
    return (*words, *chip, *NEEDED_WITH.get(option.name, ()), f"{option.flag}={value}")


def bad_numbers(option: Option) -> list[str]:
    """Texts that are no value of the option."""
    bad = ["", "abc", "nan", "inf", "-inf", "1e999", "0x10", "1,5", "--1", "9" * 5000, "1 2"]
    if option.type is int:
        bad += ["1.5", "1e3", "1.0"]
    if option.minimum is not None:
        bad += [f"{int(option.minimum) - 1}", "-1", f"-{'9' * 30}"]
    if option.maximum is not None:
        bad += [f"{int(option.maximum) + 1}", "9" * 30]
    return bad


def label(case: Case) -> str:
    words, option = case
    chosen = [words[k + 1] for k, word in enumerate(words) if word in ("--scheduler", "--conv-strategy", "--simulator")]
    return " ".join([words[0], *chosen, option.flag])


@pytest.mark.parametrize("case", NUMERIC, ids=label)
def test_bad_numbers(work: Path, case: Case, capsys: Capture) -> None:
    for value in bad_numbers(case[1]):
        refused(words_for(case, value), capsys, code=2, names=["error[bad-option-value]", case[1].flag])


@pytest.mark.parametrize("case", NUMERIC, ids=label)
def test_huge_and_tiny_numbers(work: Path, case: Case, capsys: Capture) -> None:
    """A number that is one, however large, is used or refused; it is never a fault of Raptor."""
    values = ["9" * 30, str(2**63), "1000000000000"] if case[1].type is int else ["1e300", "1e30", "1e-300", "0"]
    for value in values:
        if case[1].name == "count" or (case[1].minimum is None and case[1].name != "sim_time_ms"):
            assert main(list(words_for(case, value))) in (0, 1, 2)
            continue
        got = main([*words_for(case, value), *(["--force"] if case[0][0] != "inspect" else [])])
        captured = capsys.readouterr()
        assert got in (0, 1, 2), f"{value}: {captured.err}"
        assert (captured.err == "") == (got == 0)


def test_every_text_option_is_known() -> None:
    """A new option whose text holds numbers must be tried here."""
    assert {option.name for _, option in TEXTS} == NUMBERS_IN_TEXTS.keys() | NAMES_AND_FILES


@pytest.mark.parametrize("case", [case for case in TEXTS if case[1].name in NUMBERS_IN_TEXTS], ids=label)
def test_bad_numbers_in_texts(work: Path, case: Case, capsys: Capture) -> None:
    option = case[1]
    for value in NUMBERS_IN_TEXTS[option.name]:
        refused(words_for(case, value), capsys, code=2, names=[option.flag])


def test_choices(work: Path, capsys: Capture) -> None:
    cases = [case for case in CASES if case[1].choices]
    assert len(cases) >= 4
    for case in cases:
        for value in ("", "nonsense", case[1].choices[0].upper()):
            refused(words_for(case, value), capsys, code=2, names=[case[1].flag, *case[1].choices])


def test_all_commands_are_walked() -> None:
    assert {words[0] for words, _ in NUMERIC} == {"compile", "run", "simulate", "inspect"}
    flags = {option.flag for _, option in NUMERIC}
    assert {"--core-count", "--crossbar-count", "--pipeline", "--seed", "--cut-sweeps", "--energy-weight"} <= flags
    assert {"--atol", "--rtol", "--core", "--from", "--count", "--schedule-seed", "--sim-time-ms"} <= flags
