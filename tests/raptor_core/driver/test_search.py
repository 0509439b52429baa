"""The search for options: never worse, reproducible, bounded, and only over what the user left open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.cli.main import main
from raptor_core.diagnostics import InternalError, PluginError, RaptorError
from raptor_core.driver.search import SearchResult, search
from raptor_core.options import Option
from tiny_models import tiny_network

OPTIONS = (
    Option("weight", float, "a weight", 0.5, trials=(0.0, 1.0, 2.0)),
    Option("sweeps", int, "sweeps", 4, trials=(1, 8)),
    Option("fast", bool, "speed", default=True, trials=(False,)),
    Option("name", str, "not searched", "x"),
)


class Clock:
    """A clock on which every look takes ``step`` seconds."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def run(evaluate: Any, given_: Mapping[str, Any] | None = None, *, step: float = 0.1, seed: int = 0) -> SearchResult:
    return search(
        OPTIONS, given_ or {}, evaluate, seconds=1000, seed=seed, progress=lambda text: None, clock=Clock(step)
    )


def cost(values: Mapping[str, Any]) -> float:
    """Least, 1, at weight 2, 8 sweeps and not fast; every one of the three helps by itself."""
    return 10 - 4 * (values.get("weight") == 2.0) - 3 * (values.get("sweeps") == 8) - 2 * ("fast" in values)


def test_it_finds_the_least() -> None:
    found = run(cost)
    assert dict(found.values) == {"weight": 2.0, "sweeps": 8, "fast": False}
    assert (found.first_ms, found.best_ms) == (10, 1)
    assert found.trials == 4 * 3 * 2


@pytest.mark.parametrize("kind", [InternalError, PluginError])
def test_faults_are_not_taken_for_bad_choices(kind: type[RaptorError]) -> None:
    def evaluate(values: Mapping[str, Any]) -> float:
        if values:
            raise kind("pass-failed", "pass 'schedule' failed")
        return 1.0

    with pytest.raises(kind):
        run(evaluate)


def test_two_changes_at_once_are_tried_when_no_single_one_helps() -> None:
    found = run(lambda values: 1.0 if values == {"weight": 1.0, "sweeps": 1} else 2.0 + len(values))
    assert dict(found.values) == {"weight": 1.0, "sweeps": 1}


def test_what_the_user_gave_stays() -> None:
    seen = []
    run(lambda values: seen.append(values) or cost(values), {"weight": 0.5})
    assert all("weight" not in values and "name" not in values for values in seen)
    assert len(seen) == 3 * 2


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 23), st.floats(0.1, 100)), st.integers(0, 100))
def test_it_is_never_worse_and_repeats(costs: dict[int, float], seed: int) -> None:
    def evaluate(values: Mapping[str, Any]) -> float:
        return costs.get(hash(str(sorted(values.items()))) % 24, 50.0)

    first, second = run(evaluate, seed=seed), run(evaluate, seed=seed)
    assert first == second
    assert first.best_ms <= first.first_ms
    assert evaluate(first.values) == first.best_ms


def test_time_ends_it_and_more_time_is_no_worse() -> None:
    results = [
        search(OPTIONS, {}, cost, seconds=seconds, seed=3, progress=lambda text: None, clock=Clock(1))
        for seconds in (0, 10, 30, 60, 200)
    ]
    assert results[0].trials == 1
    assert [result.best_ms for result in results] == sorted((result.best_ms for result in results), reverse=True)
    assert results[0].best_ms > results[-1].best_ms


def test_values_that_do_not_do_are_passed_over() -> None:
    def evaluate(values: Mapping[str, Any]) -> float:
        if values.get("sweeps") == 8:
            raise RaptorError("network-does-not-pack", "no room")
        return cost(values)

    assert dict(run(evaluate).values) == {"weight": 2.0, "fast": False}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.onnx"
    onnx.save(tiny_network(), path)
    return path


def test_the_manifest_tells_and_the_program_can_be_made_again(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chip = ["--target", "pim-arch-a", "--lane-spreading", "3"]
    assert main(["compile", str(model), *chip, "--optimize", "2", "-o", str(tmp_path / "best")]) == 0
    manifest = json.loads((tmp_path / "best" / "manifest.json").read_text())
    found = manifest["search"]
    assert found["trials"] >= 1
    assert found["best_ms"] <= found["first_ms"]
    assert manifest["options"]["lane_spreading"] == 3.0
    assert "lane_spreading" not in found["values"]
    flags = []
    for name, value in found["values"].items():
        flag = name.replace("_", "-")
        flags += [f"--no-{flag}"] if value is False else [f"--{flag}", str(value)]
    assert main(["compile", str(model), *chip, *flags, "-o", str(tmp_path / "again")]) == 0
    again = json.loads((tmp_path / "again" / "manifest.json").read_text())
    assert again["search"] is None
    assert again["options"] == manifest["options"]
    assert again["files"] == manifest["files"]


def test_nothing_to_search_is_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chip = ["--target", "pim-arch-a"]
    assert main(["compile", str(model), *chip, "--optimize", "5", "--stop-after", "merge"]) == 2
    assert "nothing is scheduled between the stages 'graph' and 'merge'" in capsys.readouterr().err
    stage = tmp_path / "late.rir"
    assert main(["compile", str(model), *chip, "--stop-after", "to-pim", "-o", str(stage)]) == 0
    assert main(["compile", str(stage), *chip, "--optimize", "5", "-o", str(tmp_path / "p")]) == 2
    assert "nothing is scheduled between the stages 'to-pim' and 'verify'" in capsys.readouterr().err
    assert main(["compile", str(model), *chip, "--optimize", "-1", "-o", str(tmp_path / "p")]) == 2
