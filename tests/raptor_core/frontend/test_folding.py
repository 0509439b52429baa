"""What the frontend takes out: constants, copies, dead nodes; and what it must keep."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from raptor_core.frontend.folding import GROWTH_ELEMENTS
from raptor_core.frontend.load import load_graph
from raptor_core.ir.equality import modules_equal
from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, nodes_of, refusal

node = helper.make_node


def test_shape_gather_concat_reshape() -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"], axis=0),
        node("Unsqueeze", ["batch", "axes"], ["batch1"]),
        node("Concat", ["batch1", "rest"], ["wanted"], axis=0),
        node("Reshape", ["x", "wanted"], ["y"], name="flatten"),
    ]
    model = make_model(nodes, {"x": ["N", 3, 4]}, {"zero": 0, "axes": [0], "rest": [-1]})
    module = check_same(model, shapes={"x": (2, 3, 4)})
    assert nodes_of(module) == [("Reshape", "flatten")]
    assert module.types["y"].shape == (2, 12)
    assert module.constants["wanted"].tolist() == [2, -1]


def test_the_shape_of_a_computed_value_does_not_keep_it_alive() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Shape", ["c"], ["shape"], start=-2),
        node("Size", ["c"], ["size"]),
        node("ConstantOfShape", ["shape"], ["filled"], value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2.5])),
        node("Cast", ["size"], ["number"], to=TensorProto.FLOAT),
        node("Mul", ["filled", "number"], ["scale"]),
        node("Mul", ["x", "scale"], ["y"]),
    ]
    module = check_same(make_model(nodes, {"x": [1, 2, 3, 5]}, {"w": floats(0, 2, 2, 1, 1)}))
    assert nodes_of(module) == [("Mul", "Mul_6")]
    np.testing.assert_array_equal(module.constants["scale"], np.full((3, 5), 2.5 * 30, np.float32))


def test_slice_cast_concat_cast_for_resize() -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "zero", "two"], ["front"]),
        node("Cast", ["front"], ["front32"], to=TensorProto.INT32),
        node("Concat", ["front32", "size"], ["sizes32"], axis=0),
        node("Cast", ["sizes32"], ["sizes"], to=TensorProto.INT64),
        node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest", name="up"),
    ]
    constants = {"zero": [0], "two": [2], "size": np.array([6, 8], np.int32)}
    module = check_same(make_model(nodes, {"x": [1, 2, 3, 4]}, constants))
    assert nodes_of(module) == [("Resize", "up")]
    (op,) = module.operations
    assert op.operands == ("x", "", "", "sizes")


@pytest.mark.parametrize(
    ("attributes", "value"),
    [
        ({"value": numpy_helper.from_array(np.float32([1, 2]))}, [1, 2]),
        ({"value_float": 3.0}, 3),
        ({"value_floats": [4.0, 5.0]}, [4, 5]),
    ],
)
def test_constant_nodes(attributes: dict[str, object], value: object) -> None:
    module = check_same(
        make_model([node("Constant", [], ["c"], **attributes), node("Add", ["x", "c"], ["y"])], {"x": [2]})
    )
    assert nodes_of(module) == [("Add", "Add_1")]
    np.testing.assert_array_equal(module.constants["c"], value)


def test_integer_constant_nodes() -> None:
    nodes = [
        node("Constant", [], ["wanted"], value_ints=[3, -1]),
        node("Constant", [], ["axis"], value_int=1),
        node("Reshape", ["x", "wanted"], ["r"]),
        node("CumSum", ["r", "axis"], ["y"]),
    ]
    module = check_same(make_model(nodes, {"x": [2, 6]}))
    assert module.constants["wanted"].dtype == module.constants["axis"].dtype == np.int64


@pytest.mark.parametrize("attributes", [{"value_string": "text"}, {"value_strings": ["a", "b"]}])
def test_constants_that_are_no_numbers(attributes: dict[str, object]) -> None:
    nodes = [node("Constant", [], ["c"], name="words", **attributes), node("Add", ["x", "c"], ["y"])]
    text = refusal(make_model(nodes, {"x": [2]}))
    assert "Constant node 'words' (node 0): its value is neither a dense tensor nor numbers" in text


def test_half_precision_weights_that_are_cast() -> None:
    nodes = [node("Cast", ["w"], ["w32"], to=TensorProto.FLOAT), node("MatMul", ["x", "w32"], ["y"])]
    module = check_same(make_model(nodes, {"x": [2, 3]}, {"w": floats(0, 3, 4).astype(np.float16)}))
    assert nodes_of(module) == [("MatMul", "MatMul_1")]
    assert module.constants["w32"].dtype == np.float32


def test_quantised_weights() -> None:
    nodes = [node("DequantizeLinear", ["q", "scale", "zero"], ["w"], axis=1), node("MatMul", ["x", "w"], ["y"])]
    rng = np.random.default_rng(0)
    constants = {
        "q": rng.integers(-128, 127, (3, 4)).astype(np.int8),
        "scale": np.abs(floats(1, 4)) / 100,
        "zero": np.int8([1, -2, 3, 0]),
    }
    module = check_same(make_model(nodes, {"x": [2, 3]}, constants))
    assert nodes_of(module) == [("MatMul", "MatMul_1")]


def test_copies_disappear() -> None:
    nodes = [
        node("Identity", ["x"], ["a"]),
        node("Dropout", ["a", "ratio", "training"], ["b", "mask"]),
        node("Cast", ["b"], ["c"], to=TensorProto.FLOAT),
        node("Reshape", ["c", "same"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("Sum", ["e"], ["f"]),
        node("Concat", ["f"], ["g"], axis=1),
        node("Expand", ["g", "one"], ["h"]),
        node("Tile", ["h", "ones"], ["i"]),
        node("Relu", ["i"], ["j"], name="relu"),
        node("Identity", ["j"], ["y"]),
    ]
    constants = {"ratio": np.float32(0.5), "training": np.array(False), "same": [0, -1], "one": [1], "ones": [1, 1]}
    module = check_same(make_model(nodes, {"x": [2, 3]}, constants))
    assert nodes_of(module) == [("Relu", "relu")]
    assert module.operations[0].operands == ("x",)
    assert module.operations[0].results == ("y",)
    assert not module.constants


def test_changes_of_shape_stay() -> None:
    nodes = [node("Flatten", ["x"], ["a"]), node("Tile", ["a", "twice"], ["b"]), node("Sum", ["b", "b"], ["y"])]
    module = check_same(make_model(nodes, {"x": [2, 3, 1]}, {"twice": [1, 2]}))
    assert [op for op, _ in nodes_of(module)] == ["Flatten", "Tile", "Sum"]


def test_dead_nodes_disappear_whatever_they_are() -> None:
    nodes = [
        node("Relu", ["x"], ["y"], name="live"),
        node("Loop", ["", ""], ["l"], name="loop", body=helper.make_graph([], "body", [], [])),
        node("Unknown", ["y"], ["u"], domain="nowhere"),
        node("Dropout", ["x", "", "training"], ["d"]),
    ]
    module = check_same(make_model(nodes[:1], {"x": [2]}))
    with_dead = load_graph(make_model(nodes, {"x": [2]}, {"training": np.array(True), "unused": floats(0, 3)}))
    assert modules_equal(attrs.evolve(with_dead, properties=module.properties), module)


def test_unused_indices_go_and_unused_parts_stay() -> None:
    nodes = [
        node("MaxPool", ["x"], ["m", "indices"], kernel_shape=[2, 2]),
        node("Split", ["m"], ["a", "y", "b"], axis=1),
    ]
    module = check_same(make_model(nodes, {"x": [1, 3, 4, 4]}, opset=13))
    assert [op.results for op in module.operations] == [("m",), ("a", "y", "b")]


def test_names_of_nodes() -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="act"),
        node("Relu", ["a"], ["b"]),
        node("Tanh", ["b"], ["c"], name="act"),
        node("Relu", ["c"], ["d"], name="Relu_1"),
        node("Tanh", ["d"], ["y"]),
    ]
    module = load_graph(make_model(nodes, {"x": [2]}))
    assert [op.name for op in module.operations] == ["act", "Relu_1_1", "act_2", "Relu_1", "Tanh_4"]
    assert [op.index for op in module.operations] == [0, 1, 2, 3, 4]


def test_attributes_are_plain_values() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[0, 1, 0, 1], auto_pad="NOTSET", group=1),
        node("LeakyRelu", ["c"], ["y"], alpha=0.25, domain="ai.onnx"),
    ]
    conv, leaky = check_same(make_model(nodes, {"x": [1, 2, 3, 3]}, {"w": floats(0, 2, 2, 1, 3)})).operations
    assert conv.attributes == {"pads": (0, 1, 0, 1), "auto_pad": "NOTSET", "group": 1}
    assert leaky.attributes == {"alpha": 0.25}
    assert (leaky.operator, leaky.version, leaky.label) == ("LeakyRelu", 17, "LeakyRelu node 'LeakyRelu_1'")


def test_large_results_of_small_inputs_are_not_folded() -> None:
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
    nodes = [node("ConstantOfShape", ["shape"], ["k"], value=value, name="fill"), node("Add", ["x", "k"], ["y"])]
    model = make_model(nodes, {"x": [1]}, {"shape": [2, GROWTH_ELEMENTS]})
    module = load_graph(model)
    assert nodes_of(module) == [("ConstantOfShape", "fill"), ("Add", "Add_1")]
    assert list(module.constants) == ["shape"]
    model = make_model(nodes, {"x": [1]}, {"shape": [2**62, 2**62]})
    assert nodes_of(load_graph(model))[0] == ("ConstantOfShape", "fill")


def test_large_weights_are_folded_when_they_do_not_grow() -> None:
    nodes = [node("Transpose", ["w"], ["wt"]), node("MatMul", ["x", "wt"], ["y"])]
    module = load_graph(make_model(nodes, {"x": [1, 16]}, {"w": np.ones((GROWTH_ELEMENTS // 8, 16), np.float32)}))
    assert [op for op, _ in nodes_of(module)] == ["MatMul"]


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike"])
def test_chance_is_not_folded(op: str) -> None:
    nodes = [node(op, ["k"], ["r"], name="noise"), node("Add", ["x", "r"], ["y"])]
    assert nodes_of(load_graph(make_model(nodes, {"x": [2]}, {"k": floats(0, 2)})))[0] == (op, "noise")


def test_folding_what_is_not_finite_is_silent(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    nodes = [
        node("Div", ["one", "zero"], ["inf"]),
        node("Log", ["minus"], ["nan"]),
        node("Sum", ["x", "inf", "nan"], ["y"]),
    ]
    constants = {"one": np.float32([1]), "zero": np.float32([0]), "minus": np.float32([-1])}
    module = load_graph(make_model(nodes, {"x": [1]}, constants))
    assert np.isinf(module.constants["inf"]).all()
    assert np.isnan(module.constants["nan"]).all()
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_two_processes_give_one_text(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("BatchNormalization", ["c", "s", "b", "m", "v"], ["d"]),
        node("Shape", ["d"], ["shape"]),
        node("Split", ["d"], ["p", "q"], axis=1),
        node("Concat", ["q", "p"], ["r"], axis=1),
        node("Reshape", ["r", "shape"], ["y"]),
        node("Identity", ["y"], ["z"]),
    ]
    constants = {"w": floats(0, 4, 2, 3, 3), **{k: np.abs(floats(n, 4)) for n, k in enumerate("sbmv", 1)}}
    onnx.save(make_model(nodes, {"x": [1, 2, 5, 5]}, constants, ["y", "z"], opset=13), path)
    code = (
        "import sys; from pathlib import Path; from raptor_core.frontend.load import load_graph; "
        "from raptor_core.ir.files import write_module; write_module(load_graph(sys.argv[1]), Path(sys.argv[2]))"
    )
    for seed in ("1", "2"):
        target = str(tmp_path / f"{seed}.rir")
        subprocess.run(
            [sys.executable, "-c", code, str(path), target],
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())},
        )
    assert (tmp_path / "1.rir").read_bytes() == (tmp_path / "2.rir").read_bytes()
