"""What the command says to wrong words and bad values: one error, its exit code, nothing written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from raptor_core.cli.main import main
from tiny_models import tiny_network, two_inputs

CHIP = ["--target", "pim", "--core-count", "4", "--crossbar-count", "8", "--crossbar-size", "32"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with models ``m.onnx`` and ``sum.onnx``."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    onnx.save(tiny_network(), "m.onnx")
    onnx.save(two_inputs(), "sum.onnx")
    return folder


def refused(words: list[str], capsys) -> tuple[int, str]:
    """Exit code and message of a command that must print nothing else and write nothing."""
    before = sorted(os.listdir())
    code = main(words)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sorted(os.listdir()) == before
    assert "Traceback" not in captured.err
    return code, captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "compil m.onnx",
            "error[unknown-command]: unknown command 'compil'\n"
            "  help     did you mean 'compile'? known: compare, compile, export, import-pimcomp, inspect, plugins, "
            "report, run, simulate, targets\n",
        ),
        (
            "--verson",
            "error[unknown-option]: raptor has no option '--verson'\n"
            "  help     did you mean '--version'? 'raptor --help' shows all options\n",
        ),
        ("-v", None),
        (
            "compile m.onnx -o p",
            "error[missing-argument]: raptor compile needs --target\n"
            "  help     'raptor compile --help' shows all options\n",
        ),
        (
            "compile m.onnx --target pim-arch-a",
            "error[missing-argument]: raptor compile needs -o DIR\n  reason   it says where the program folder goes\n",
        ),
        (
            "compile --target pim-arch-a -o p",
            "error[missing-argument]: raptor compile needs MODEL\n"
            "  help     'raptor compile --help' shows all options\n",
        ),
        (
            "compile m.onnx --target",
            "error[bad-arguments]: wrong arguments for raptor\n"
            "  reason   argument --target: expected one argument\n"
            "  help     'raptor --help' shows all options\n",
        ),
        (
            "compile m.onnx --target pim-arch-a -o p --sheduler x",
            "error[unknown-option]: raptor compile has no option '--sheduler'\n"
            "  help     did you mean '--scheduler'? 'raptor compile --help' shows all options\n",
        ),
        (
            "compile m.onnx --target pim-arch-a -o p --sched peft",
            "error[unknown-option]: raptor compile has no option '--sched'\n"
            "  help     did you mean '--scheduler'? 'raptor compile --help' shows all options\n",
        ),
        (
            "compile m.onnx extra --target pim-arch-a -o p",
            "error[unexpected-argument]: raptor compile has no place for 'extra'\n"
            "  help     'raptor compile --help' shows all options\n",
        ),
        (
            "compile m.onnx --target pim-arch-a -o p --scheduler peff",
            "error[unknown-scheduler]: unknown scheduler 'peff'\n  help     did you mean 'peft'? known: peft",
        ),
        ("compile m.onnx --target pim-arch-a -o p --conv-strategy dephtwise", "did you mean 'depthwise'"),
        ("compile m.onnx --target pim-arch-a -o p --pass x", "error[unknown-pass]: unknown pass 'x'"),
        ("compile m.onnx --target pim-arch-a -o p --hook x", "error[unknown-hooks]: unknown hooks 'x'"),
        ("compile m.onnx --target pim-arch-a --stop-after lowre", "did you mean 'lower'"),
        ("compile m.onnx --target pim-arch-a --stop-after lower --json", "needs -o FILE"),
        ("compile m.onnx --target pim -o p", "error[missing-option]: the target 'pim' needs --core-count"),
        ("compile m.onnx --target pim-arch-a -o p --core-count 5", "error[profile-conflict]"),
        ("compile m.onnx --target pim-arch-a -o p --disable-plugin peff", "no plugin 'peff' to disable"),
        ("compile m.onnx --target pim-arch-a -o p --disable-plugin peft", "the scheduler 'peft' is disabled"),
        ("compile m.onnx --target pim-arch-a -o p --disable-plugin=pim-arch-a", "'pim-arch-a' is disabled"),
        ("run --target pim-arch-a", "error[missing-argument]: raptor run needs MODEL"),
        ("run m.onnx --target pim-arch-a --simulator funktional", "did you mean 'functional'"),
        ("simulate", "error[missing-argument]: raptor simulate needs DIR"),
        ("simulate p -o out.csv", "bad value 'out.csv' for -o"),
        ("inspect p --count 3", "error[missing-argument]: raptor inspect needs --core N"),
        ("plugins info", "error[missing-argument]: raptor plugins info needs NAME"),
        ("plugins lst", "unknown command 'plugins lst'\n  help     did you mean 'plugins list'"),
        ("targets lost", "did you mean 'targets list'"),
        ("--disable-plugin", "error"),
    ],
)
def test_wrong_words(here: Path, words: str, message: str | None, capsys) -> None:
    code, err = refused(words.split(), capsys)
    assert code == 2
    if message is None:
        message = "error[no-command]: no command was given"
    assert err == message if message.endswith("\n") else message in err


NUMBERS = {
    "compile m.onnx -o p": [
        "--core-count",
        "--crossbar-count",
        "--pipeline",
        "--seed",
    ],
    "run m.onnx": ["--atol", "--rtol", "--seed", "--schedule-seed", "--deferral-budget"],
    "simulate p": ["--schedule-seed", "--deferral-budget"],
    "inspect p": ["--core"],
    "inspect p --core 0": ["--from", "--count"],
}


@pytest.mark.parametrize(("words", "flag"), [(words, flag) for words, flags in NUMBERS.items() for flag in flags])
@pytest.mark.parametrize("value", ["x", "", "-1", "1e", "nan", "0x10"])
def test_bad_numbers(here: Path, words: str, flag: str, value: str, capsys) -> None:
    target = ["--target", "pim-arch-a"] if words.startswith(("compile", "run")) else []
    code, err = refused([*words.split(), *target, f"{flag}={value}"], capsys)
    assert code == 2
    assert err.startswith(f"error[bad-option-value]: bad value {value!r} for {flag}\n  reason   it must be ")


@pytest.mark.parametrize("value", ["", "x", "0", "-3", "3x0", "3x-1", "3.5", "axb", "1x2x3"])
def test_bad_crossbar_sizes(here: Path, value: str, capsys) -> None:
    words = ["compile", "m.onnx", "-o", "p", "--target", "pim", "--core-count", "4", "--crossbar-count", "8"]
    code, err = refused([*words, f"--crossbar-size={value}"], capsys)
    assert code == 2
    assert f"bad value {value!r} for --crossbar-size" in err


@pytest.mark.parametrize("value", ["x", "x=", "x=0", "x=1x", "x=1x2x0", "x=-1", "x=ax2", "=1", "x=1.5", "x=1,2"])
def test_bad_shapes(here: Path, value: str, capsys) -> None:
    code, err = refused(["compile", "m.onnx", "-o", "p", *CHIP, f"--shape={value}"], capsys)
    if value == "x=":
        assert code in (1, 2)
        return
    assert code == 2
    assert err == (
        f"error[bad-option-value]: bad value {value!r} for --shape\n"
        "  reason   it must be an input's name, =, and positive whole numbers with x between them\n"
        "  help     for example --shape image=1x3x224x224\n"
    )


def test_a_shape_given_twice_and_of_no_input(here: Path, capsys) -> None:
    code, err = refused(["compile", "m.onnx", "-o", "p", *CHIP, "--shape", "x=1", "--shape", "x=2"], capsys)
    assert (code, "two values for --shape x" in err) == (2, True)
    assert refused(["compile", "m.onnx", "-o", "p", *CHIP, "--shape", "z=1x2x4x4"], capsys)[0] == 2


def test_models_that_cannot_be_read(here: Path, capsys) -> None:
    (here / "text.onnx").write_text("hello")
    (here / "cut.onnx").write_bytes((here / "m.onnx").read_bytes()[:-40])
    (here / "text.rir").write_text("hello")
    for name in ("none.onnx", "text.onnx", "cut.onnx", ".", "none.rir", "text.rir"):
        code, err = refused(["compile", name, "-o", "p", *CHIP], capsys)
        assert code == 1
        assert err.startswith("error[")


def test_input_files_that_cannot_be_used(here: Path, capsys) -> None:
    assert main(["compile", "sum.onnx", "-o", "p", *CHIP]) == 0
    capsys.readouterr()
    (here / "text.npz").write_text("hello")
    (here / "text.npy").write_text("hello")
    np.save(here / "object.npy", np.array([{}]), allow_pickle=True)
    np.save(here / "one.npy", np.zeros((1, 6), np.float32))
    np.savez(here / "wrong.npz", a=np.zeros((1, 6), np.float32), b=np.zeros((1, 7), np.float32))
    np.savez(here / "names.npz", a=np.zeros((1, 6), np.float32), c=np.zeros((1, 6), np.float32))
    cases = {
        "none.npz": (1, "error[input-not-found]: there is no such input file\n  where    none.npz\n"),
        "text.npz": (
            1,
            "error[unreadable-input]: the input file cannot be read\n  where    text.npz\n"
            "  reason   it is not an .npz archive (a zip file of arrays)\n",
        ),
        "text.npy": (1, "  where    text.npy\n  reason   it does not begin like an .npy file\n"),
        "object.npy": (1, "  reason   it holds Python objects, and only arrays of numbers are read\n"),
        "values.csv": (2, "error[bad-option-value]: bad value 'values.csv' for --input"),
        "one.npy": (2, "error[array-without-name]"),
        "wrong.npz": (1, "  where    wrong.npz: b\n  reason   it has shape [1, 7]; one sample has [1, 6]\n"),
        "names.npz": (2, "the network has no input 'c'\n  where    names.npz\n"),
    }
    for name, (expected, message) in cases.items():
        code, err = refused(["simulate", "p", "--input", name, "-o", "out.npz"], capsys)
        assert (code, message in err) == (expected, True), err


def test_outputs_are_not_overwritten_unasked(here: Path, capsys) -> None:
    assert main(["compile", "sum.onnx", "-o", "p", *CHIP]) == 0
    np.savez(here / "in.npz", a=np.ones((1, 6), np.float32), b=np.ones((1, 6), np.float32))
    assert main(["simulate", "p", "--input", "in.npz", "-o", "out.npz"]) == 0
    capsys.readouterr()
    assert refused(["simulate", "p", "--input", "in.npz", "-o", "out.npz"], capsys) == (
        1,
        "error[output-exists]: the output is there already\n"
        "  where    out.npz\n  help     choose another name, or give --force\n",
    )
    assert refused(["simulate", "p", "--input", "in.npz", "-o", "no/out.npz"], capsys)[0] == 1
    assert refused(["compile", "sum.onnx", "-o", "p", *CHIP], capsys) == (
        1,
        "error[output-exists]: the output is there already\n"
        "  where    p\n  help     choose another name, or overwrite it: --force (overwrite=True)\n",
    )
    assert main(["simulate", "p", "--input", "in.npz", "-o", "out.npz", "--force"]) == 0
    assert main(["compile", "sum.onnx", "-o", "p", "--force", *CHIP]) == 0
    (here / "folder").mkdir()
    (here / "folder" / "mine.txt").write_text("keep")
    assert main(["compile", "sum.onnx", "-o", "folder", "--force", *CHIP]) == 1
    assert (here / "folder" / "mine.txt").read_text() == "keep"


@pytest.mark.parametrize("command", ["simulate", "run"])
def test_options_of_another_simulator_say_how_to_choose_it(here: Path, command: str, capsys) -> None:
    chip = CHIP if command == "run" else ()
    assert refused([command, "m.onnx", "--softmax-as", "vsigm", *chip], capsys) == (
        2,
        f"error[unknown-option]: raptor {command} has no option '--softmax-as' as it is called\n"
        "  reason   it belongs to simulator 'performance'\n"
        "  help     choose that simulator with --simulator performance\n",
    )
    words = [command, "m.onnx", "--simulator", "performance", "--schedule-policy=greedy", *chip]
    assert "choose that simulator with --simulator functional\n" in refused(words, capsys)[1]


def test_folders_that_are_no_programs(here: Path, capsys) -> None:
    (here / "empty").mkdir()
    for folder, code in (("none", "artifact-not-found"), ("empty", "bad-artifact"), ("m.onnx", "artifact-not-found")):
        for words in (
            ["inspect", folder],
            ["inspect", folder, "--core", "0"],
            ["simulate", folder, "--input", "x.npz"],
        ):
            exit_code, err = refused(words, capsys)
            assert (exit_code, err.startswith(f"error[{code}]")) == (1, True), err


def test_a_fault_of_ours_asks_for_a_report(here: Path, monkeypatch, capsys) -> None:
    import raptor_core.cli.compile_command as module

    def fail(*args, **kwargs):
        raise KeyError("lost")

    monkeypatch.setattr(module, "compile", fail)
    words = ["compile", "m.onnx", "-o", "p", *CHIP]
    assert refused(words, capsys) == (
        3,
        "error[internal-error]: Raptor failed in a way that it should not\n"
        "  reason   KeyError: 'lost'\n"
        "  help     this is a bug in Raptor or in a plugin: please report it with what --debug shows\n",
    )
    assert main([*words, "--debug"]) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "in fail" in err
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert main(["--debug", "compile", "none.onnx", "-o", "p", *CHIP]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (MemoryError(), 1, "error[out-of-memory]: there is not enough memory"),
    ],
)
def test_interrupts_and_full_memory(here: Path, monkeypatch, capsys, error, code: int, message: str) -> None:
    import raptor_core.cli.compile_command as module

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(module, "compile", fail)
    got, err = refused(["compile", "m.onnx", "-o", "p", *CHIP], capsys)
    assert (got, err.startswith(message)) == (code, True)


@pytest.mark.parametrize(
    "words", ["plugins list", "plugins list --json", "--help", "plugins list --help", "compile m.onnx -o p"]
)
@pytest.mark.parametrize(
    ("where", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_standard_output_that_cannot_be_written(here: Path, words: str, where: str, reason: str) -> None:
    chip = CHIP if words.startswith("compile") else ()
    raptor = [sys.executable, "-m", "raptor_core.cli.main", *words.split(), *chip]
    done = subprocess.run(["bash", "-c", f'"$@" {where}', "bash", *raptor], capture_output=True, text=True, cwd=here)
    assert (done.returncode, done.stderr) == (
        1,
        "error[cannot-write-output]: cannot write to standard output\n"
        f"  reason   {reason}\n"
        "  help     send it where there is room, or to /dev/null if the results are not wanted\n",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_compilation_that_is_stopped_leaves_nothing(here: Path, site: Path, number: int) -> None:
    from fake_distributions import write_distribution

    waiting = here / "waiting"
    source = f"""
import pathlib, time
from raptor_core.plugins.hookspecs import hookimpl
api_version = 1

@hookimpl
def before_pass(name):
    if name == "verify":
        pathlib.Path({str(waiting)!r}).touch()
        time.sleep(60)
"""
    write_distribution(site, "acme-wait", {"raptor.hooks": {"wait": "acme_wait"}}, {"acme_wait": source})
    words = [sys.executable, "-m", "raptor_core.cli.main", "compile", "m.onnx", "-o", "out/p", *CHIP]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not waiting.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert out == b""
    assert (process.returncode, err) == ((130, b"interrupted\n") if number == signal.SIGINT else (-9, b""))
    assert not (here / "out").exists() or list((here / "out").iterdir()) == []
