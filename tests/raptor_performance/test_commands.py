"""The commands export, compare and report on a compiled network, and the chips that are refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from raptor_core.cli.main import main
from raptor_core.plugins.manager import PluginManager

COMMANDS = ("compare", "export", "report")
Run = Callable[..., Any]


def network(path: Path) -> Path:
    """A convolution of a [1, 4, 6, 6] map to 32 channels, and a fully connected layer."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((32, 4, 3, 3)), "v": rng.standard_normal((40, 1152))}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Flatten", ["r"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "v"], ["y"], transB=1, name="fc"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 40])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network compiled for the reference chip."""
    folder = tmp_path_factory.mktemp("compiled")
    model = network(folder / "net.onnx")
    assert main(["compile", str(model), "--target", "pim-arch-a", "-o", str(folder / "program")]) == 0
    return folder / "program"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line that must succeed and gives what it printed, JSON decoded."""

    def command(*words: str) -> Any:
        capsys.readouterr()
        code = main(list(words))
        printed = capsys.readouterr()
        assert code == 0, printed.err
        return json.loads(printed.out) if "--json" in words else printed.out

    return command


def test_they_are_plugins() -> None:
    plugins = PluginManager.discover()
    for name in COMMANDS:
        assert plugins.get("raptor.commands", name).name == name


@pytest.mark.parametrize("view", ["timing", "float32"])
def test_an_exported_folder_is_timed_alike(program: Path, tmp_path: Path, run: Run, view: str) -> None:
    out = tmp_path / "out"
    figures = run("export", str(program), "--view", view, "-o", str(out), "--json")
    assert figures["view"] == view
    config = str(out / "chip" / "latency_config.json")
    again = run("simulate", str(out), "--simulator", "performance", "--config", config, "--json")["metrics"]
    own = run("simulate", str(program), "--simulator", "performance", "--view", view, "--json")["metrics"]
    for key in ("latency_ms", "energy_pj", "average_power_mw", "instruction_histogram", "cores"):
        assert again[key] == own[key], key
    assert again["view"] == "float32"
    files = sorted(path.name for path in out.iterdir())
    assert files == sorted(["chip", "config.json", *(f"core_{core}.pim" for core in range(168))])
    network_file = json.loads((out / "chip" / "network_mesh.json").read_text())
    assert len(network_file["latency"]) >= 168
    assert json.loads((out / "chip" / "throughput_config.json").read_text())["sim_config"]["sim_mode"] == 0
    assert main(["export", str(program), "-o", str(out)]) == 1


def test_what_cannot_be_exported(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "absent"), "-o", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    assert main(["export", str(program), "-o", str(tmp_path / "file" / "out")]) == 1
    assert main(["export", str(program), "--view", "bits", "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("error[") == 3


def test_an_exported_softmax_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = helper.make_node("Softmax", ["x"], ["y"])
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy"]
    graph = helper.make_graph([node], "g", tensors[:1], tensors[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "softmax.onnx"
    )
    program = str(tmp_path / "program")
    assert main(["compile", str(tmp_path / "softmax.onnx"), "--target", "pim-arch-a", "-o", program]) == 0
    capsys.readouterr()
    assert main(["export", program, "-o", str(tmp_path / "as_it_is")]) == 0
    assert capsys.readouterr().err == (
        "warning: the program has 1 vsoftmax, and the published simulator refuses it: "
        "to time it there, export with --softmax-as vsigm\n"
    )
    assert main(["export", program, "-o", str(tmp_path / "timed"), "--softmax-as", "vsigm"]) == 0
    assert capsys.readouterr().err == ""


def test_compare_with_itself_and_with_another_view(program: Path, tmp_path: Path, run: Run) -> None:
    same = run("compare", str(program), str(program), "--json")["figures"]
    assert all(figure["ratio"] in (1, None) for figure in same.values())
    for name in ("latency_ms", "energy_pj", "instructions", "transfers", "products", "peak_local_memory_bytes"):
        assert same[name]["first"] > 0, name
    run("export", str(program), "--view", "float32", "-o", str(tmp_path / "whole"))
    config = str(tmp_path / "whole" / "chip" / "latency_config.json")
    other = run("compare", str(program), str(tmp_path / "whole"), "--config", config, "--json")["figures"]
    assert other["latency_ms"]["ratio"] > 1
    assert other["transfer_bytes"]["ratio"] == 4
    assert other["instructions"]["ratio"] == 1
    assert other["peak_local_memory_bytes"]["second"] is None
    table = run("compare", str(program), str(program))
    assert "latency ms" in table
    assert main(["compare", str(program), str(tmp_path / "absent")]) == 1


def test_peak_memory_is_the_compilers(program: Path, tmp_path: Path, run: Run) -> None:
    """Also where every core shares its row of the text report with others."""
    noted = json.loads((program / "reports" / "memory.json").read_text())
    figures = run("compare", str(program), str(program), "--json")["figures"]
    assert figures["peak_local_memory_bytes"]["first"] == noted["peak_bytes"] == max(noted["cores"].values())
    other = shutil.copytree(program, tmp_path / "other")
    (other / "manifest.json").unlink()  # changed files are refused where it is there
    words = ("compare", str(program), str(other), "--config", str(program / "chip" / "chip.json"))
    (other / "reports" / "memory.json").write_text('{"peak_bytes": 12, "cores": {"0": 12, "1": 12}}')
    assert run(*words, "--json")["figures"]["peak_local_memory_bytes"]["second"] == 12
    (other / "reports" / "memory.json").write_text('{"peak_bytes": "much"}')
    assert main(list(words)) == 1
    (other / "reports" / "memory.json").unlink()
    assert run(*words, "--json")["figures"]["peak_local_memory_bytes"]["second"] is None


def test_compare_in_throughput_mode(program: Path, run: Run) -> None:
    figures = run("compare", str(program), str(program), "--mode", "throughput", "--json")["figures"]
    assert figures["throughput_per_s"]["ratio"] == 1
    assert "latency_ms" not in figures


def test_bound_of_a_compiled_network(program: Path, run: Run) -> None:
    facts = json.loads((program / "reports" / "products.json").read_text())
    assert [tuple(layer.values()) for layer in facts] == [("conv", 36, 1, 36, 32), ("fc", 1, 1, 1152, 40)]
    report = run("report", "bound", str(program), "--json")
    assert report["source"] == "network"
    # Three positions of 36 rows share a product; the fully connected layer takes nine pieces.
    assert [layer["least_products"] for layer in report["layers"]] == [12, 9]
    own = run("simulate", str(program), "--simulator", "performance", "--json")["metrics"]
    assert report["achieved_ms"] == own["latency_ms"]
    parts = report["product_bound_ms"] + report["accumulation_bound_ms"] + sum(report["gap_ms"].values())
    assert math.isclose(parts, report["achieved_ms"])
    assert math.isclose(report["predicted_ms"], report["achieved_ms"], rel_tol=0.1)
    assert report["achieved_over_predicted"] == report["achieved_ms"] / report["predicted_ms"]
    assert run("report", "bound", str(program), "--view", "float32", "--json")["predicted_ms"] is None
    own_chip = program / "chip" / "chip.json"
    again = run("report", "bound", str(program), "--config", str(own_chip), "--json")
    assert again["predicted_ms"] == report["predicted_ms"]
    text = run("report", "bound", str(program))
    assert "achieved / bound" in text
    assert "achieved / predicted" in text
    assert main(["report", "weather", str(program)]) == 2


@pytest.mark.parametrize("change", ["chip", "network"])
def test_the_prediction_is_for_the_programs_own_chip(program: Path, tmp_path: Path, run: Run, change: str) -> None:
    chip = shutil.copytree(program / "chip", tmp_path / "chip")
    name, old = {"chip": ("chip.json", '"period": 1'), "network": ("network.json", '"hop":1')}[change]
    text = (chip / name).read_text()
    assert old in text
    (chip / name).write_text(text.replace(old, old[:-1] + "2"))
    report = run("report", "bound", str(program), "--config", str(chip / "chip.json"), "--json")
    assert report["predicted_ms"] is report["achieved_over_predicted"] is None


@pytest.mark.parametrize("mode", ["latency", "throughput"])
def test_the_text_report(program: Path, tmp_path: Path, run: Run, mode: str) -> None:
    words = ("simulate", str(program), "--simulator", "performance", "--mode", mode, "--json")
    metrics = run(*words, "--report", str(tmp_path / "report.txt"))["metrics"]
    text = (tmp_path / "report.txt").read_text()
    for section in ("Basic Information:", "Chip Simulation Result:", "Energy:"):
        assert section in text
    key, label = ("latency_ms", "latency") if mode == "latency" else ("average_latency_ms", "average latency")
    (line,) = [line for line in text.splitlines() if line.startswith(f"  - {label}:")]
    assert float(line.split(":")[1].split()[0]) == pytest.approx(metrics[key])
    assert line.endswith(" ms")
    assert main([*words, "--report", str(tmp_path / "absent" / "report.txt")]) == 1


NAN = float("nan")


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        ("core_cnt", None, "core_cnt"),
        ("core_cnt", -1, "core_cnt"),
        ("core_cnt", "many", "core_cnt"),
        ("core_config.period", NAN, "NaN"),
        ("core_config.period", 0, "period"),
        ("core_config.vector_width", 1.5, "vector_width"),
        ("core_config.matrix_config.xbar_size", [128], "xbar_size"),
        ("core_config.local_memory_config.data_width", 0, "data_width"),
        ("network_config.net_config_file_path", "absent.json", "absent.json"),
        ("network_config.bus_width", True, "bus_width"),
        ("core_cnt", 400, "too small"),
    ],
)
def test_a_malformed_chip_is_one_error(
    program: Path,
    chip_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    place: str,
    value: Any,
    text: str,
) -> None:
    document = json.loads((chip_folder / "latency_config.json").read_text())
    document["chip_config"]["network_config"]["net_config_file_path"] = str(chip_folder / "network_mesh.json")
    *way, last = place.split(".")
    section = document["chip_config"]
    for part in way:
        section = section[part]
    section[last] = value
    if value is None:
        del section[last]
    (tmp_path / "chip.json").write_text(json.dumps(document))
    capsys.readouterr()
    words = ["simulate", str(program), "--simulator", "performance", "--config", str(tmp_path / "chip.json")]
    assert main(words) == 1
    shown = capsys.readouterr().err
    assert shown.count("error[") == 1
    assert text in shown
    assert "Traceback" not in shown
