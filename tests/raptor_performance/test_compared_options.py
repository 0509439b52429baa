"""Compare on models: two sets of options, compiled on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raptor_core.cli.main import main

DIGITS = str(Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_cnn.onnx")
CHIP = "--core-count 12 --crossbar-count 40 --crossbar-size 64"
Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Compare:
    """Runs ``raptor compare``, which must succeed, and gives its result."""

    def command(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main(["compare", *words, "--json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        result: dict[str, Any] = json.loads(printed.out)
        return result

    return command


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs ``raptor compare``, which must refuse its words, and gives the message."""

    def command(*words: str) -> str:
        capsys.readouterr()
        assert main(["compare", *words]) == 2
        return capsys.readouterr().err

    return command


def test_one_model_under_two_sets_of_options(compare: Compare, digits_program: Path) -> None:
    # The option of the second side is the whole text, and looks like one of compare's own.
    options = ("--first-options", CHIP, "--second-options", f"{CHIP} --no-event-ordering")
    result = compare(DIGITS, "--target", "pim", *options)
    assert result["first"] == f"{DIGITS} {CHIP}"
    assert result["second"] == f"{DIGITS} {CHIP} --no-event-ordering"
    latency = result["figures"]["latency_ms"]
    assert latency["ratio"] > 1
    assert result["figures"]["products"]["ratio"] == 1
    # What is compiled on the way is what `raptor compile` makes.
    assert compare(DIGITS, str(digits_program), "--target", "pim", *options[:2])["figures"]["latency_ms"] == {
        "first": latency["first"],
        "second": latency["first"],
        "ratio": 1,
    }


def test_one_option_that_begins_with_dashes(compare: Compare) -> None:
    result = compare(DIGITS, "--target", "pim-standard", "--second-options", "--no-event-ordering")
    assert result["figures"]["latency_ms"]["ratio"] > 1


def test_a_side_may_have_a_target_of_its_own(compare: Compare) -> None:
    result = compare(DIGITS, "--target", "pim-arch-a", "--second-options", f"--target pim {CHIP}")
    assert result["figures"]["cores_in_use"]["second"] <= 12 < result["figures"]["cores_in_use"]["first"]


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ((DIGITS, "--target", "pim-arch-a"), ["needs B"]),
        ((DIGITS, "--second-options", "--seed 3"), ["A is a model", "--first-options"]),
        (
            (DIGITS, "--target", "pim-arch-a", "--second-options", "--no-mirors"),
            ["no option '--no-mirors'", "the options of B", "--second-options", "did you mean '--no-mirrors'"],
        ),
        (
            (DIGITS, "--target", "pim-arch-a", "--first-options", "--seed many"),
            ["bad value 'many'", "the options of A", "--first-options"],
        ),
        ((DIGITS, "--target", "pim-arch-a", "--first-options", "--seed '3"), ["--first-options", "no closing"]),
        ((DIGITS, "--target", "pim-arch-a", "--first-options", "more.onnx"), ["no place for 'more.onnx'"]),
        ((DIGITS, "--target", "pim-arch-z", "--first-options", ""), ["unknown target 'pim-arch-z'"]),
        ((DIGITS, "--target", "pim-arch-a", "--first-options"), ["--first-options"]),
        ((DIGITS, "--target", "pim-arch-a", "--second-options", "--hook nix"), ["unknown hooks", "the options of B"]),
        ((DIGITS, "--target", "pim-arch-a", "--first-options", "--dump-ir=d"), ["no effect", "the options of A"]),
        ((DIGITS, "--target", "pim-arch-a", "--second-options", "--help"), ["--help has no effect"]),
    ],
)
def test_wrong_options_of_models(refused: Callable[..., str], words: tuple[str, ...], texts: list[str]) -> None:
    message = refused(*words)
    assert message.count("error[") == 1
    for text in texts:
        assert text in message


def test_options_of_programs_are_refused(refused: Callable[..., str], digits_program: Path) -> None:
    program = str(digits_program)
    assert "needs B" in refused(program)
    assert "--first-options is given, but A" in refused(program, program, "--first-options", "--no-mirrors")
    assert "--second-options is given, but B" in refused(
        DIGITS, program, "--target", "pim-arch-a", "--second-options", "--no-mirrors"
    )
    assert "neither A nor B is a model" in refused(program, program, "--target", "pim-arch-a")
