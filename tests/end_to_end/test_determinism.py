"""Equal inputs give equal bytes: from process to process, from API and command line, from any stage's text on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import raptor_core
from command_line import DIGITS, raptor, snapshot
from raptor_core.cli.main import main

BARE = {"core_count": 5, "crossbar_count": 60, "crossbar_size": "32x48"}
CHIPS: dict[str, tuple[str, dict[str, Any]]] = {"arch-a": ("pim-arch-a", {}), "bare": ("pim", BARE)}
FLAGS = [word for name, value in BARE.items() for word in (f"--{name.replace('_', '-')}", str(value))]
STAGES = (
    "graph",
    "lower",
    "plan-layouts",
    "realise",
    "merge",
    "stage-inputs",
    "schedule",
    "mirror",
    "communicate",
    "to-pim",
    "order-events",
    "plan-memory",
    "verify",
)


def branching(seed: int) -> onnx.ModelProto:
    """Branches, a residual sum, a depthwise and a grouped convolution, two outputs."""
    rng = np.random.default_rng(seed)
    shapes = {"a": (8, 3, 3, 3), "b": (8, 1, 3, 3), "c": (8, 4, 1, 1), "d": (5, 3, 5, 5), "g": (7, 13)}
    arrays = {name: (rng.standard_normal(shape) / 4).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["1"], name="stem", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["1"], ["2"], name="relu"),
        helper.make_node("Conv", ["2", "b"], ["3"], name="depthwise", group=8, pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["3", "c"], ["4"], name="grouped", group=2),
        helper.make_node("Add", ["2", "4"], ["5"], name="sum"),
        helper.make_node("Conv", ["x", "d"], ["6"], name="side", pads=[2, 2, 2, 2]),
        helper.make_node("Concat", ["5", "6"], ["maps"], name="both", axis=1),
        helper.make_node("MaxPool", ["maps"], ["7"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["7"], ["8"], name="mean"),
        helper.make_node("Flatten", ["8"], ["9"], name="flat"),
        helper.make_node("Gemm", ["9", "g"], ["y"], name="classes", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "branching",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 10, 9))],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 7)),
            helper.make_tensor_value_info("maps", TensorProto.FLOAT, (1, 13, 10, 9)),
        ],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module", params=["digits", "branching"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a model."""
    if request.param == "digits":
        return DIGITS / "digits_cnn.onnx"
    path = tmp_path_factory.mktemp("models") / "branching.onnx"
    onnx.save(branching(11), path)
    return path


@pytest.mark.parametrize("chip", CHIPS)
def test_processes_and_the_api_agree(model: Path, chip: str, tmp_path: Path) -> None:
    target, options = CHIPS[chip]
    flags = FLAGS if options else []
    for seed in ("0", "4242"):
        # Different seeds give sets and dictionaries of texts another order of iteration.
        raptor("compile", model, "--target", target, *flags, "-o", f"by-{seed}", folder=tmp_path, PYTHONHASHSEED=seed)
    raptor_core.compile(model, target=target, output=tmp_path / "by-api", options=options)
    first = snapshot(tmp_path / "by-0")
    assert {"config.json", "manifest.json", "memory.bin", "core_0.pim"} <= set(first)
    assert snapshot(tmp_path / "by-4242") == first
    assert snapshot(tmp_path / "by-api") == first


def test_no_stage_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--target", "pim-arch-a", "--print-pipeline", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stages"] == list(STAGES)


def test_texts_of_stages_are_equal_too(model: Path, tmp_path: Path) -> None:
    for seed in ("1", "77"):
        words = ("compile", model, "--target", "pim", *FLAGS, "-o", f"p{seed}", "--dump-ir", f"ir{seed}")
        raptor(*words, folder=tmp_path, PYTHONHASHSEED=seed)
    first = snapshot(tmp_path / "ir1")
    assert len([name for name in first if name.endswith(".rir")]) == len(STAGES)
    assert snapshot(tmp_path / "ir77") == first


@pytest.mark.parametrize("stage", STAGES)
def test_going_on_from_a_stage_gives_the_same_program(
    model: Path, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the chip and the simulators read is equal; the manifest and the reports tell of the passes that ran."""
    monkeypatch.chdir(tmp_path)
    chip = ["--target", "pim", *FLAGS]
    assert main(["compile", str(model), *chip, "-o", "straight"]) == 0
    assert main(["compile", str(model), *chip, "--stop-after", stage, "-o", "stage.rir"]) == 0
    assert main(["compile", "stage.rir", *chip, "-o", "resumed"]) == 0
    straight, resumed = (snapshot(tmp_path / name) for name in ("straight", "resumed"))

    def told(name: str) -> bool:
        return name == "manifest.json" or name.split("/")[0] == "reports"

    assert {k: v for k, v in resumed.items() if not told(k)} == {k: v for k, v in straight.items() if not told(k)}
    assert set(resumed) <= set(straight)
    for name in set(resumed) - {"manifest.json"}:
        assert resumed[name] == straight[name], name
    first, second = (json.loads(Path(name, "manifest.json").read_text()) for name in ("straight", "resumed"))
    assert first.keys() == second.keys()
    for field in first.keys() - {"plugins", "files"}:
        assert first[field] == second[field], field


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_read_and_written_again_is_the_same_text(
    model: Path, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    chip = ["--target", "pim", *FLAGS]
    assert main(["compile", str(model), *chip, "--stop-after", stage, "-o", "a.rir"]) == 0
    assert main(["compile", "a.rir", *chip, "--stop-after", stage, "-o", "b.rir"]) == 0
    a, b = (Path(name).read_text().replace(f"{name}.npz", "ARRAYS") for name in ("a.rir", "b.rir"))
    assert a == b


def test_outputs_of_simulations_are_equal_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(branching(3), "m.onnx")
    x = np.random.default_rng(0).standard_normal((1, 3, 10, 9)).astype(np.float32)
    np.savez("x.npz", x=x)
    assert main(["compile", "m.onnx", "--target", "pim", *FLAGS, "-o", "p"]) == 0
    for name in ("one.npz", "two.npz"):
        assert main(["simulate", "p", "--input", "x.npz", "-o", name]) == 0
    assert Path("one.npz").read_bytes() == Path("two.npz").read_bytes()
