"""The commands at work: what they print and write."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from fake_distributions import scheduler_source, write_distribution
from raptor_core.cli.console import Console, plain_table
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


def output(words: list[str], capsys, code: int = 0) -> str:
    assert main(words) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_compile_simulate_inspect(here: Path, capsys) -> None:
    out = output(["compile", "m.onnx", "-o", "p", *CHIP], capsys)
    assert out.splitlines()[0].split() == ["program", "p"]
    assert (here / "p" / "config.json").is_file()
    x = np.random.default_rng(0).standard_normal((3, 1, 2, 4, 4)).astype(np.float32)
    np.savez("batch.npz", x=x)
    np.save("one.npy", x[0])
    output(["simulate", "p", "--input", "batch.npz", "-o", "batch_out.npz"], capsys)
    output(["simulate", "p", "--input", "one.npy", "-o", "one_out.npz"], capsys)
    output(["simulate", "p", "--input", "one.npy", "--input", "batch.npz", "-o", "four_out.npz"], capsys)
    batch, one, four = (np.load(f"{name}_out.npz")["y"] for name in ("batch", "one", "four"))
    assert (batch.shape, one.shape, four.shape) == ((3, 1, 3, 4, 4), (1, 3, 4, 4), (4, 1, 3, 4, 4))
    np.testing.assert_array_equal(four, np.concatenate([one[None], batch]))
    first = (here / "one_out.npz").read_bytes()
    output(["simulate", "p", "--input", "one.npy", "-o", "one_out.npz", "--force"], capsys)
    assert (here / "one_out.npz").read_bytes() == first
    figures = json.loads(output(["inspect", "p", "--json"], capsys))
    assert figures["inputs"] == [{"name": "x", "shape": [1, 2, 4, 4], "dtype": "float32"}]
    assert figures["instructions"] == sum(figures["instructions_by_opcode"].values()) > 0
    assert figures["target"] == "pim"
    listing = output(["inspect", "p", "--core", "0", "--from", "1", "--count", "2"], capsys).splitlines()
    whole = json.loads(output(["inspect", "p", "--core", "0", "--json", "--count", "1000000"], capsys))["instructions"]
    assert [line.split(None, 1) for line in listing] == [[str(i["pc"]), i["text"]] for i in whole[1:3]]
    for words in (["--core", "4"], ["--core", "0", "--from", str(len(whole))]):
        assert main(["inspect", "p", *words]) == 2
        assert "error[no-such-" in capsys.readouterr().err


def test_inspect_without_manifest(here: Path, capsys) -> None:
    output(["compile", "m.onnx", "-o", "p", *CHIP], capsys)
    (here / "p" / "manifest.json").unlink()
    assert "target" not in json.loads(output(["inspect", "p", "--json"], capsys))
    output(["inspect", "p", "--target", "pim"], capsys)
    assert main(["inspect", "p", "--target", "pin"]) == 2


def test_json_of_compile_and_simulate(here: Path, capsys) -> None:
    result = json.loads(output(["compile", "sum.onnx", "-o", "p", "--json", *CHIP], capsys))
    assert result["output"] == "p"
    assert result["figures"]["instructions"] > 0
    assert [entry["name"] for entry in result["passes"]][:2] == ["lower", "plan-layouts"]
    assert result["manifest"]["target"] == "pim"
    np.savez("in.npz", a=np.ones((1, 6), np.float32), b=np.ones((1, 6), np.float32))
    result = json.loads(output(["simulate", "p", "--input", "in.npz", "--json"], capsys))
    assert result["outputs"] == [{"name": "y", "shape": [1, 6], "dtype": "float32"}]
    assert result["metrics"]["samples"] == 1


def test_stop_print_dump_and_times(here: Path, capsys) -> None:
    text = output(["compile", "sum.onnx", "--stop-after", "lower", *CHIP], capsys)
    assert text.startswith("raptor-ir 1\n")
    output(["compile", "sum.onnx", "--stop-after", "lower", "-o", "s.rir", *CHIP], capsys)
    assert (here / "s.rir").read_text().rstrip("\n") + "\n" == text
    names = output(["compile", "--print-pipeline", *CHIP], capsys).strip().split(", ")
    assert names[0] == "lower"
    stages = json.loads(output(["compile", "--print-pipeline", "--json", *CHIP], capsys))["stages"]
    assert stages == ["graph", *names]
    out = output(["compile", "s.rir", "-o", "p", "--dump-ir", "dumps", "--time-passes", *CHIP], capsys)
    assert sorted(path.name for path in (here / "dumps").glob("*.rir"))[0] == "00-lower.rir"
    assert "plan-memory" in out
    large = ["compile", "m.onnx", "--stop-after", "graph", *CHIP]
    assert main([*large, "--time-passes"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("raptor-ir")
    assert "total" in captured.err


def test_run(here: Path, capsys) -> None:
    pytest.importorskip("onnxruntime")
    np.savez("in.npz", x=np.ones((2, 1, 2, 4, 4), np.float32))
    out = output(["run", "m.onnx", "--input", "in.npz", "-o", "out.npz", *CHIP], capsys)
    assert out.splitlines()[-1].split()[0] == "y"
    assert out.splitlines()[-1].split()[3:] == ["96", "of", "96", "pass"]
    assert np.load("out.npz")["y"].shape == (2, 1, 3, 4, 4)
    result = json.loads(output(["run", "m.onnx", "--json", "--seed", "7", "--program", "kept", *CHIP], capsys))
    assert result["comparison"]["passed"] is True
    assert (here / "kept" / "config.json").is_file()
    assert sorted(path.name for path in here.iterdir()) == ["in.npz", "kept", "m.onnx", "out.npz", "sum.onnx"]


def test_run_says_when_numbers_differ(here: Path, monkeypatch, capsys) -> None:
    pytest.importorskip("onnxruntime")
    import raptor_core.driver.comparing as comparing

    honest = comparing._reference

    def other(model, samples):
        return [{name: array + 1 for name, array in outputs.items()} for outputs in honest(model, samples)]

    monkeypatch.setattr(comparing, "_reference", other)
    out = output(["run", "m.onnx", *CHIP], capsys, code=1)
    assert out.splitlines()[-1].split()[3:] == ["0", "of", "48", "FAIL"]


def test_run_without_onnxruntime(here: Path, monkeypatch, capsys) -> None:
    import raptor_core.driver.comparing as comparing

    monkeypatch.setattr(comparing.importlib.util, "find_spec", lambda name: None)
    out = output(["run", "m.onnx", *CHIP], capsys)
    assert out.splitlines()[-1] == "not compared: onnxruntime is not installed (pip install raptor-pim[reference])"


def test_options_of_plugins_are_flags(here: Path, site: Path, capsys) -> None:
    source = scheduler_source("one")
    write_distribution(site, "acme-one", {"raptor.schedulers": {"one": "acme_one:PLUGIN"}}, {"acme_one": source})
    words = ["compile", "m.onnx", "-o", "p", "--json", *CHIP]
    result = json.loads(output([*words, "--scheduler", "one", "--fake-weight", "4"], capsys))
    assert result["manifest"]["options"]["fake_weight"] == 4
    assert main([*words, "--scheduler", "one", "--fake-weight", "11"]) == 2
    assert capsys.readouterr().err == (
        "error[bad-option-value]: bad value '11' for --fake-weight\n"
        "  reason   it must be at most 9\n  help     a weight\n"
    )
    assert main([*words, "--fake-weight", "4"]) == 2
    assert "no option '--fake-weight'" in capsys.readouterr().err
    assert main(["compile", "--scheduler=one", "--target=pim", "-h"]) == 0
    assert "options of scheduler 'one'" in capsys.readouterr().out


def test_flags_of_options_that_are_on_by_default(here: Path, capsys) -> None:
    words = ["compile", "m.onnx", "-o", "p", "--json", "--force", *CHIP]
    flags = ["--no-layout-planning", "--emit-json", "--verify-communication"]
    options = json.loads(output([*words, *flags], capsys))["manifest"]["options"]
    assert (options["layout_planning"], options["emit_json"]) == (False, True)
    assert (here / "p" / "core_0.json").is_file()
    options = json.loads(output(words, capsys))["manifest"]["options"]
    assert (options["layout_planning"], options["emit_json"]) == (True, False)


def test_a_configuration_file_disables(here: Path, site: Path, capsys) -> None:
    write_distribution(
        site, "acme-p", {"raptor.schedulers": {"peft": "acme_p:PLUGIN"}}, {"acme_p": scheduler_source("peft")}
    )
    words = ["compile", "m.onnx", "-o", "p", *CHIP]
    assert main(words) == 3
    assert "error[duplicate-plugin]: there is more than one scheduler 'peft'" in capsys.readouterr().err
    (here / "raptor.toml").write_text('disable-plugins = ["acme-p:peft"]\n')
    output(words, capsys)


def test_logs(here: Path, capsys) -> None:
    assert main(["-v", "--log-json", "compile", "m.onnx", "-o", "p", *CHIP]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines[0]["event"] == "model read"
    assert lines[-1]["event"] == "program written"
    assert {"level", "network", "target", "timestamp"} <= set(lines[0])
    assert main(["compile", "m.onnx", "-o", "q", "-v", *CHIP]) == 0
    err = capsys.readouterr().err
    assert "pass done" in err
    assert "\x1b" not in err


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no descriptor")


def test_progress_is_for_terminals(monkeypatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    Console().progress("lower")
    assert pipe.getvalue() == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    console = Console()
    console.progress("lower")
    console.message("hello")
    assert terminal.getvalue() == "\r\x1b[Klower ...\r\x1b[Khello\n"


def test_tables(monkeypatch) -> None:
    assert plain_table(("name", "n"), [("a", "1"), ("long name", "")]) == "NAME       N\na          1\nlong name"
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    Console().table(("name",), [("[bold]x[/bold]",)])
    assert "[bold]x[/bold]" in terminal.getvalue()
    assert "\x1b[3" not in terminal.getvalue()


def test_json_has_no_numbers_that_json_does_not_know(capsys) -> None:
    Console().json({"a": float("inf"), "b": np.float32(0.5), "c": (1, np.int64(2)), "d": Path("x")})
    assert json.loads(capsys.readouterr().out) == {"a": "inf", "b": 0.5, "c": [1, 2], "d": "x"}
