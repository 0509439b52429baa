"""A program of PIMCOMP-NN against onnxruntime, little programs written by hand, and what is refused."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pimcomp_networks import vgg8
from raptor_core.cli.main import main
from raptor_core.diagnostics import RaptorError
from raptor_core.options import resolve_options
from raptor_core.simulation.contract import SimulationRequest
from raptor_functional.plugin import SIMULATOR as FUNCTIONAL
from raptor_performance.plugin import SIMULATOR as PERFORMANCE
from raptor_pim.artifacts.chip import load_chip
from raptor_pim.artifacts.export_chip import write_chip
from raptor_pim.profiles import ARCH_A
from raptor_pimcomp.importer import import_stream
from raptor_pimcomp.stream import read_stream

RECORDED = Path(__file__).parents[1] / "golden" / "pimcomp" / "vgg8-arch-a-element-balance.verification.json.gz"


def functional(folder: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    options = resolve_options(FUNCTIONAL.options, {}, owner="functional")
    return dict(FUNCTIONAL.simulate(SimulationRequest(folder, [inputs], options)).outputs[0])


def test_the_recorded_program(tmp_path: Path) -> None:
    onnx.save(vgg8(seed=5), tmp_path / "vgg8.onnx")
    chip = write_chip(load_chip(ARCH_A.configuration), tmp_path / "chip")
    words = ["import-pimcomp", str(RECORDED), "--model", str(tmp_path / "vgg8.onnx"), "--config", str(chip)]
    assert main([*words, "-o", str(tmp_path / "out"), "--json"]) == 0
    image = np.random.default_rng(1).standard_normal((1, 1, 28, 28)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(tmp_path / "vgg8.onnx").run(None, {"input": image})
    got = functional(tmp_path / "out", {"input": image})["output"]
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    options = resolve_options(PERFORMANCE.options, {}, owner="performance")
    metrics = PERFORMANCE.simulate(SimulationRequest(tmp_path / "out", options=options)).metrics
    # The timing program of the same compilation takes as long.
    assert metrics["latency_ms"] == pytest.approx(8.340250, rel=1e-3)
    assert metrics["energy_pj"] == pytest.approx(1657884283.12, rel=1e-3)


WEIGHTS = np.random.default_rng(3).standard_normal((4, 2, 1, 1)).astype(np.float32)
BIAS = np.array([1, -2, 3, -4], dtype=np.float32)


def model(tmp_path: Path, *, groups: int = 1) -> Path:
    """A 1x1 convolution of a [1, 2 * groups, 2, 1] map."""
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], kernel_shape=[1, 1], group=groups, name="conv")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2 * groups, 2, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 2, 1])],
        [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(BIAS, "b")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def product(window: int, channels: int) -> list[dict[str, Any]]:
    """Load a pixel to address 0, multiply to 100, add the bias at 50, move to the result at 200."""
    return [
        {"operation": "LD", "stage": "INPUT", "node_index": 1, "source_address": -1, "source_offset": window * channels,
         "destination_address": 0, "destination_offset": 0, "element_num": channels},
        {"operation": "MVMUL", "stage": "MAIN", "source": 0, "source_address": 0, "source_offset": 0,
         "destination_address": 90, "destination_offset": 10},
        {"operation": "VVADD", "stage": "MAIN-B", "source_1_address": 100, "source_1_offset": 0,
         "source_2_address": 50, "source_2_offset": 0, "destination_address": 100, "destination_offset": 0,
         "element_num": 4},
        {"operation": "VER", "stage": "MAIN"},
        {"operation": "LMV", "stage": "POST", "source_address": 100, "source_offset": 0, "destination_address": 200,
         "destination_offset": 4 * window, "element_num": 4, "imm_value": 1e30},
    ]  # fmt: skip


def stream(channels: int = 2) -> dict[str, Any]:
    """The convolution on core 0, its result scaled by a quarter and stored by core 2."""
    bias = {"operation": "LD", "stage": "BIAS", "node_index": 1, "source_address": -1, "source_offset": 0,
            "destination_address": 50, "destination_offset": 0, "element_num": 4}  # fmt: skip
    return {
        "AG_info": [
            {"node_name": "y", "height_start": 0, "height_end": channels - 1,
             "crossbar": [{"width_start": 0, "width_end": 3}]}
        ],
        "node_list": [
            {"name": "x", "operation": "OP_INPUT", "output_dim": [1, channels, 2, 1], "provider_index": []},
            {"name": "y", "operation": "OP_CONV", "output_dim": [1, 4, 2, 1], "provider_index": [0]},
        ],
        "reshape_info": None,
        "instruction": {
            "core_list": [
                [bias, *product(0, channels), *product(1, channels),
                 {"operation": "SEND", "to_core": 2, "source_address": 200, "element_num": 8}],
                None,
                [{"operation": "LLDI", "destination_address": 8, "destination_offset": 0, "element_num": 8,
                  "imm_value": 0.25},
                 {"operation": "RECV", "from_core": 0, "destination_address": 0, "element_num": 8},
                 {"operation": "VVMUL", "source_1_address": 0, "source_1_offset": 0, "source_2_address": 8,
                  "source_2_offset": 0, "destination_address": 0, "destination_offset": 0, "element_num": 8},
                 {"operation": "ST", "source_address": 0, "source_offset": 0, "destination_address": -1,
                  "destination_offset": 0, "element_num": 8}],
            ]
        },
    }  # fmt: skip


def imported(tmp_path: Path, content: Any, **options: Any) -> Any:
    path = tmp_path / "stream.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return import_stream(read_stream(path), str(model(tmp_path, **options)))


@pytest.mark.parametrize("groups", [1, 2])
def test_pixels_are_gathered_and_results_scattered(tmp_path: Path, groups: int) -> None:
    path = tmp_path / "stream.json.gz"
    path.write_bytes(gzip.compress(json.dumps(stream(2 * groups)).encode()))
    words = ["import-pimcomp", str(path), "--model", str(model(tmp_path, groups=groups)), "-o", str(tmp_path / "out")]
    assert main(words) == 0
    image = np.arange(4 * groups, dtype=np.float32).reshape(1, 2 * groups, 2, 1) - 1.5
    (expected,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": image})
    np.testing.assert_allclose(functional(tmp_path / "out", {"x": image})["y"], expected / 4, rtol=1e-6, atol=1e-6)
    assert main(words) == 1
    assert main([*words, "--force"]) == 0


def at(content: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The stream with the member at ``path`` (dots between) replaced."""
    changed = copy.deepcopy(content)
    place: Any = changed
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        place = place[part]
    place[last] = value
    return changed


CORE = "instruction.core_list.0"


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("AG_info", None, "AG_info"),
        ("AG_info.0.node_name", "z", "does not make"),
        ("AG_info.0.height_end", 7, "rows 0 to 8"),
        ("AG_info.0.crossbar", [], "at least one"),
        ("node_list.1.name", 3, "name"),
        ("node_list.1.provider_index", ["a"], "provider_index"),
        ("node_list.1.operation", "OP_SOFTMAX", "OP_SOFTMAX"),
        ("node_list.1.with_bn", 1, "batch normalisation"),
        ("node_list.1.provider_index", [5], "element mode"),
        ("instruction", {}, "core_list"),
        (CORE, {}, "core_list[0]"),
        (f"{CORE}.0", 3, "core_list[0][0]"),
        (f"{CORE}.0.operation", "VFLY", "VFLY"),
        (f"{CORE}.0.operation", None, "None"),
        (f"{CORE}.0.node_index", 0, "no bias"),
        (f"{CORE}.1.source_offset", 4, "beyond the 4 elements"),
        (f"{CORE}.1.destination_address", -4, "destination_address"),
        (f"{CORE}.1.element_num", 1 << 30, "too large"),
        (f"{CORE}.2.source", 9, "array group 9"),
        (f"{CORE}.2.destination_address", 1 << 30, "beyond any local memory"),
        (f"{CORE}.11.to_core", 3, "no other core"),
        (f"{CORE}.11.to_core", 0, "no other core"),
        ("instruction.core_list.2.0.imm_value", "a", "imm_value"),
        ("instruction.core_list.2.3.operation", "VER", "stores no output"),
        ("instruction.core_list.2.3.destination_address", 5, "element mode"),
    ],
)
def test_refusals(tmp_path: Path, path: str, value: Any, text: str) -> None:
    with pytest.raises(RaptorError) as caught:
        imported(tmp_path, at(stream(), path, value))
    assert text in caught.value.render()
    assert "stream.json" in (caught.value.where or "")


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 100000, '{"AG_info": 1}'])
def test_files_that_are_no_program(tmp_path: Path, content: str) -> None:
    with pytest.raises(RaptorError, match="PIMCOMP"):
        imported(tmp_path, content)


def test_a_chip_that_is_too_small(tmp_path: Path) -> None:
    import attrs

    chip = load_chip(ARCH_A.configuration)
    small = attrs.evolve(chip, chip_config=attrs.evolve(chip.chip_config, core_cnt=2))
    path = tmp_path / "stream.json"
    path.write_text(json.dumps(stream()))
    with pytest.raises(RaptorError, match="3 cores"):
        import_stream(read_stream(path), str(model(tmp_path)), small)
    assert import_stream(read_stream(path), str(model(tmp_path)), chip).config.xbar_size == (128, 128)
