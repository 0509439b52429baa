"""compile, simulate and run as a Python API."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import raptor_core
from fake_distributions import scheduler_source, write_distribution
from raptor_core.diagnostics import PluginError, RaptorError, UsageError
from raptor_core.driver.compile_options import CORE_OPTIONS
from raptor_core.plugins.manager import PluginManager
from tiny_models import tiny_network, two_inputs

CHIP = {"core_count": 4, "crossbar_count": 8, "crossbar_size": "32"}


def compile_tiny(output: Path, model=None, *, options=None, **arguments):
    return raptor_core.compile(
        tiny_network() if model is None else model,
        target="pim",
        output=output,
        options={**CHIP, **(options or {})},
        **arguments,
    )


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def assert_same_folders(a: Path, b: Path) -> None:
    assert files(a) == files(b)
    assert filecmp.cmpfiles(a, b, files(a), shallow=False)[0] == files(a)


def test_a_program_and_its_numbers(tmp_path: Path) -> None:
    steps: list[str] = []
    result = compile_tiny(tmp_path / "prog", progress=steps.append)
    assert result.path == tmp_path / "prog"
    assert result.figures["instructions"] > 0
    assert steps[0] == "reading the model"
    assert steps[-1] == "writing the program"
    assert tuple(steps[1:-1]) == tuple(result.passes.timings)
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 4)).astype(np.float32)
    (output,) = raptor_core.simulate(tmp_path / "prog", {"x": x}).outputs
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(tiny_network().SerializeToString())
    np.testing.assert_allclose(output["y"], session.run(None, {"x": x})[0], atol=1e-4)


def test_the_manifest(tmp_path: Path) -> None:
    onnx.save(tiny_network(), tmp_path / "m.onnx")
    result = compile_tiny(tmp_path / "prog", tmp_path / "m.onnx")
    manifest = json.loads((tmp_path / "prog" / "manifest.json").read_text())
    assert {key: manifest[key] for key in result.manifest} == json.loads(json.dumps(result.manifest))
    assert manifest["raptor_version"] == raptor_core.__version__
    assert (manifest["plugin_api_version"], manifest["target"], manifest["profile"]) == (1, "pim", None)
    assert manifest["machine"]["core_count"] == 4
    assert manifest["model"]["file"] == "m.onnx"
    assert manifest["model"]["opset"] == {"ai.onnx": 13}
    assert len(manifest["model"]["sha256"]) == 64
    assert manifest["options"]["scheduler"] == "peft"
    assert "verify_communication" not in manifest["options"]
    assert manifest["options"]["seed"] == 0  # the scheduler's variations draw from it
    used = {(plugin["kind"], plugin["name"]) for plugin in manifest["plugins"]}
    assert {("target", "pim"), ("scheduler", "peft"), ("operator lowering", "Conv")} <= used
    assert ("simulator", "functional") not in used
    assert ("operator lowering", "Softmax") not in used
    assert all(set(plugin) == {"kind", "name", "distribution", "version"} for plugin in manifest["plugins"])


def test_equal_inputs_give_equal_folders(tmp_path: Path) -> None:
    plugins = PluginManager.discover()
    compile_tiny(tmp_path / "a", plugins=plugins)
    raptor_core.run(two_inputs(), target="pim", options=CHIP, plugins=plugins)
    compile_tiny(tmp_path / "b", plugins=plugins)
    spelt_out = {"scheduler": "peft", "conv_strategy": "auto", "layout_planning": True, "verify_communication": True}
    compile_tiny(tmp_path / "c", options=spelt_out)
    assert_same_folders(tmp_path / "a", tmp_path / "b")
    assert_same_folders(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize("stage", ["graph", "lower", "plan-layouts", "realise", "schedule", "to-pim", "verify"])
def test_going_on_from_the_text_of_a_stage(tmp_path: Path, stage: str) -> None:
    onnx.save(tiny_network(), tmp_path / "m.onnx")
    whole = compile_tiny(tmp_path / "whole", tmp_path / "m.onnx")
    stopped = compile_tiny(tmp_path / "stage.rir", tmp_path / "m.onnx", stop_after=stage)
    assert (stopped.path, stopped.module.stage) == (None, stage)
    resumed = compile_tiny(tmp_path / "resumed", tmp_path / "stage.rir")
    assert resumed.figures == whole.figures
    same = [name for name in files(tmp_path / "whole") if not name.startswith(("manifest", "reports/"))]
    assert filecmp.cmpfiles(tmp_path / "whole", tmp_path / "resumed", same, shallow=False)[0] == same


def test_a_stage_of_another_chip_is_refused(tmp_path: Path) -> None:
    compile_tiny(tmp_path / "stage.rir", stop_after="schedule")
    with pytest.raises(RaptorError) as caught:
        compile_tiny(tmp_path / "prog", tmp_path / "stage.rir", options={"core_count": 5})
    assert caught.value.code == "other-chip"
    with pytest.raises(UsageError, match="already past it"):
        compile_tiny(tmp_path / "s2.rir", tmp_path / "stage.rir", stop_after="lower")
    with pytest.raises(UsageError, match="shapes cannot be given"):
        compile_tiny(tmp_path / "prog", tmp_path / "stage.rir", shapes={"x": (1, 2, 4, 4)})


def test_stop_without_output_and_dumps(tmp_path: Path) -> None:
    result = compile_tiny(None, stop_after="lower", dump_ir=tmp_path / "dumps")
    assert result.module.stage == "lower"
    assert files(tmp_path) == ["dumps/00-graph.rir", "dumps/01-lower.rir"]


def test_symbolic_shapes(tmp_path: Path) -> None:
    model = tiny_network(("n", 2, 4, 4))
    with pytest.raises(RaptorError):
        compile_tiny(tmp_path / "prog", model)
    result = compile_tiny(tmp_path / "prog", model, shapes={"x": (2, 2, 4, 4)})
    assert result.module.types["x"].shape == (2, 2, 4, 4)


def test_output_is_refused_before_work(tmp_path: Path) -> None:
    compile_tiny(tmp_path / "prog")
    steps: list[str] = []
    with pytest.raises(RaptorError) as caught:
        compile_tiny(tmp_path / "prog", progress=steps.append)
    assert (caught.value.code, steps) == ("output-exists", [])
    compile_tiny(tmp_path / "prog", overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RaptorError, match="output-not-a-folder"):
        compile_tiny(tmp_path / "file")
    with pytest.raises(RaptorError, match="output-is-a-folder"):
        compile_tiny(tmp_path / "prog", stop_after="lower")
    with pytest.raises(UsageError, match="no-output"):
        compile_tiny(None)
    with pytest.raises(UsageError, match="unknown stage 'lowe'"):
        compile_tiny(None, stop_after="lowe")


def test_nothing_is_left_of_a_refused_compilation(tmp_path: Path) -> None:
    with pytest.raises(RaptorError):
        compile_tiny(tmp_path / "prog", options={"core_count": 1, "crossbar_count": 1, "crossbar_size": "2"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "option", [option for option in CORE_OPTIONS if option.type is int], ids=lambda option: option.name
)
@pytest.mark.parametrize("value", ["x", "1.5", "", -1, 1.5, True])
def test_bad_numbers(option, value: object) -> None:
    with pytest.raises(UsageError) as caught:
        compile_tiny(None, options={option.name: value}, stop_after="lower")
    assert caught.value.code == "bad-option-value"
    assert caught.value.message == f"bad value {value!r} for {option.flag}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conv_stratgy": "auto"}, "unknown option 'conv_stratgy'"),
        ({"conv_strategy": "deptwise"}, "unknown conv strategy 'deptwise'"),
        ({"scheduler": "pft"}, "unknown scheduler 'pft'"),
        ({"layout_planning": "yes"}, "bad value 'yes' for --layout-planning"),
        ({"lane_spreading": "1e308"}, "bad value '1e308' for --lane-spreading"),
        ({"energy_weight": 1e300}, "bad value 1e+300 for --energy-weight"),
        ({"pipeline": 2}, "--pipeline 2 cannot be compiled"),
        ({"core_count": None}, "the target 'pim' needs --core-count"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_tiny(None, options=options, stop_after="lower")
    assert caught.value.message == message


def test_unknown_targets_are_compared_with_both_kinds() -> None:
    for name, near in (("pin", "pim"), ("pim-arch-x", "pim-arch-")):
        with pytest.raises(UsageError) as caught:
            raptor_core.compile(tiny_network(), target=name, output="unused")
        assert caught.value.message == f"unknown target '{name}'"
        assert f"did you mean '{near}" in caught.value.hint
    with pytest.raises(UsageError, match="the hardware profile 'pim-arch-a' is disabled"):
        raptor_core.compile(tiny_network(), target="pim-arch-a", output="unused", disable_plugins=["pim-arch-a"])


def test_a_scheduler_of_ones_own_with_an_option(site: Path, tmp_path: Path) -> None:
    write_distribution(
        site, "acme-one", {"raptor.schedulers": {"one": "acme_one:PLUGIN"}}, {"acme_one": scheduler_source("one")}
    )
    result = compile_tiny(tmp_path / "a", options={"scheduler": "one", "fake_weight": "4"})
    assert result.manifest["options"]["fake_weight"] == 4
    assert {"kind": "scheduler", "name": "one", "distribution": "acme-one", "version": "1.0"} in result.manifest[
        "plugins"
    ]
    default = compile_tiny(tmp_path / "b", options={"scheduler": "one", "fake_weight": 3})
    assert "fake_weight" not in default.manifest["options"]
    with pytest.raises(UsageError, match="bad value 10 for --fake-weight"):
        compile_tiny(tmp_path / "c", options={"scheduler": "one", "fake_weight": 10})
    with pytest.raises(UsageError, match="unknown option 'fake_weight'"):
        compile_tiny(tmp_path / "c", options={"fake_weight": 4})


EXTRA_PASS = """
from raptor_core.passes.base import PassResult

class Mark:
    name, api_version, summary, after = "{name}", 1, "marks the module", "{after}"

    def run(self, module, context):
        return PassResult(module, notes={{"marked": True}}, reports={{"{name}.txt": "marked"}})

PLUGIN = Mark()
"""


def test_extra_passes_run_when_asked_for(site: Path, tmp_path: Path) -> None:
    for name, after in (("mark-a", "lower"), ("mark-b", "lower"), ("mark-first", "graph"), ("mark-lost", "nowhere")):
        module = name.replace("-", "_")
        source = EXTRA_PASS.format(name=name, after=after)
        write_distribution(
            site, f"acme-{name}", {"raptor.passes": {name: f"acme_{module}:PLUGIN"}}, {f"acme_{module}": source}
        )
    assert "mark-a" not in compile_tiny(None, stop_after="merge").passes.timings
    result = compile_tiny(tmp_path / "prog", passes=["mark-b", "mark-a", "mark-first"])
    assert list(result.passes.timings)[:5] == ["mark-first", "lower", "mark-b", "mark-a", "plan-layouts"]
    assert (tmp_path / "prog" / "reports" / "mark-a.txt").read_text() == "marked"
    assert result.manifest["passes"] == ["mark-b", "mark-a", "mark-first"]
    with pytest.raises(PluginError, match="it follows 'nowhere', which is not in it"):
        compile_tiny(None, passes=["mark-lost"], stop_after="merge")
    with pytest.raises(UsageError, match="unknown pass 'mark'"):
        compile_tiny(None, passes=["mark"], stop_after="merge")


def test_hooks_are_told_and_broken_ones_are_warnings(site: Path, tmp_path: Path) -> None:
    head = "from raptor_core.plugins.hookspecs import hookimpl\napi_version = 1\ncalls = []\n"
    listen = (
        head
        + "@hookimpl\ndef before_pass(name): calls.append(name)\n@hookimpl\ndef after_emit(path): calls.append(path)\n"
    )
    write_distribution(site, "acme-l", {"raptor.hooks": {"listen": "acme_listen"}}, {"acme_listen": listen})
    write_distribution(site, "acme-b", {"raptor.hooks": {"bad": "acme_bad_hook"}}, {"acme_bad_hook": "1 / 0\n"})
    plugins = PluginManager.discover()
    result = compile_tiny(tmp_path / "prog", plugins=plugins)
    calls = plugins.get("raptor.hooks", "listen").calls
    assert calls == [*result.passes.timings, tmp_path / "prog"]
    (warning,) = result.warnings
    assert warning == (
        "the hooks 'bad' cannot be used and is left out: "
        "its import failed with ZeroDivisionError: division by zero (acme_bad_hook, from acme-b 1.0)"
    )
    with pytest.raises(PluginError):
        compile_tiny(tmp_path / "prog2", hooks=["bad"])
    assert not (tmp_path / "prog2").exists()


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    compile_tiny(folder / "tiny")
    compile_tiny(folder / "sum", two_inputs())
    return folder


def test_samples_in_every_form(programs: Path) -> None:
    x = np.random.default_rng(2).standard_normal((3, 1, 2, 4, 4)).astype(np.float32)
    batch = raptor_core.simulate(programs / "tiny", {"x": x}).outputs
    assert len(batch) == 3
    for inputs in (x, [{"x": x[0]}, {"x": x[1:]}], lambda tensors: [{tensors[0].name: sample} for sample in x]):
        for got, expected in zip(raptor_core.simulate(programs / "tiny", inputs).outputs, batch, strict=True):
            np.testing.assert_array_equal(got["y"], expected["y"])
    (single,) = raptor_core.simulate(programs / "tiny", x[1]).outputs
    np.testing.assert_array_equal(single["y"], batch[1]["y"])


def test_samples_in_the_other_order_of_bytes(programs: Path) -> None:
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 4)).astype(np.float32)
    (expected,) = raptor_core.simulate(programs / "tiny", {"x": x}).outputs
    for order in "<>":
        (got,) = raptor_core.simulate(programs / "tiny", {"x": x.astype(x.dtype.newbyteorder(order))}).outputs
        np.testing.assert_array_equal(got["y"], expected["y"])


def test_samples_that_do_not_fit(programs: Path) -> None:
    one = np.zeros((1, 6), np.float32)
    cases = {
        "error[unknown-input]: the network has no input 'aa'\n  help     did you mean 'a'? the network has: a, b": {
            "aa": one,
            "b": one,
        },
        "error[missing-input]: no array was given for input 'b'\n  help     the network has: a, b": {"a": one},
        "error[bad-input]: the array for input 'b' does not fit\n  where    b\n"
        "  reason   it has shape [7]; one sample has [1, 6]\n"
        "  help     give that shape, or [samples, 1, 6] for a batch": {"a": np.stack([one]), "b": np.zeros(7)},
        "error[bad-input]: some arrays hold one sample and others a batch\n  reason   one sample: b; a batch: a": {
            "a": np.stack([one]),
            "b": one,
        },
        "error[bad-input]: the arrays do not hold the same number of samples\n  reason   'a' has 1, 'b' has 2": {
            "a": np.stack([one]),
            "b": np.stack([one, one]),
        },
        "error[bad-input]: the arrays hold no sample\n  reason   'a' has 0, 'b' has 0": {
            "a": np.zeros((0, 1, 6)),
            "b": np.zeros((0, 1, 6)),
        },
        "error[array-without-name]: one array without a name is for networks with one input\n"
        "  reason   this one has 2 inputs: a, b\n  help     give arrays by name (.npz)": one,
    }
    for message, inputs in cases.items():
        with pytest.raises(RaptorError) as caught:
            raptor_core.simulate(programs / "sum", inputs)
        assert caught.value.render() == message


def test_simulate_refusals(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown simulator 'functinal'"):
        raptor_core.simulate(programs / "tiny", simulator="functinal")
    with pytest.raises(UsageError, match="bad value 'x' for --schedule-seed"):
        raptor_core.simulate(programs / "tiny", options={"schedule_seed": "x"})
    with pytest.raises(UsageError, match="unknown option of simulator 'functional' 'mod'"):
        raptor_core.simulate(programs / "tiny", options={"mod": "latency"})
    with pytest.raises(RaptorError, match="there is no program folder"):
        raptor_core.simulate(tmp_path / "none", np.zeros(3))


def test_a_simulator_that_fails_is_named(site: Path, programs: Path) -> None:
    source = """
class Bad:
    name, api_version, summary, options, needs_inputs = "bad", 1, "fails", (), False
    def simulate(self, request):
        raise ValueError('lost count')
PLUGIN = Bad()
"""
    write_distribution(site, "acme-sim", {"raptor.simulators": {"bad": "acme_sim:PLUGIN"}}, {"acme_sim": source})
    with pytest.raises(PluginError) as caught:
        raptor_core.simulate(programs / "tiny", simulator="bad")
    assert caught.value.render() == (
        "error[simulator-failed]: the simulator 'bad' failed\n"
        "  where    acme_sim:PLUGIN, from acme-sim 1.0\n"
        "  reason   ValueError: lost count\n"
        "  help     please report this, with the program folder and the inputs"
    )


def test_run_compares_with_the_reference(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    result = raptor_core.run(tiny_network(), target="pim", options=CHIP, seed=3)
    assert result.compilation.path is None
    assert result.comparison.passed is True
    (output,) = result.comparison.outputs
    assert (output.name, output.elements, output.failing) == ("y", 48, 0)
    assert output.max_abs < 1e-4
    again = raptor_core.run(tiny_network(), target="pim", options=CHIP, seed=3, output=tmp_path / "prog")
    assert again.compilation.path == tmp_path / "prog"
    np.testing.assert_array_equal(again.samples[0]["x"], result.samples[0]["x"])
    np.testing.assert_array_equal(again.simulation.outputs[0]["y"], result.simulation.outputs[0]["y"])
    strict = raptor_core.run(tiny_network(), target="pim", options=CHIP, seed=3, atol=0, rtol=0)
    assert strict.comparison.passed == (output.max_abs == 0)


def test_run_from_text_has_nothing_to_compare_with(tmp_path: Path) -> None:
    compile_tiny(tmp_path / "stage.rir", stop_after="lower")
    result = raptor_core.run(tmp_path / "stage.rir", target="pim", options=CHIP)
    assert result.comparison.passed is None
    assert result.comparison.not_compared == "the text of a stage is no ONNX model"
