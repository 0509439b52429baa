"""Network outputs keep their names, whatever they are."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, nodes_of, refusal

node = helper.make_node


def test_an_output_behind_a_copy() -> None:
    module = check_same(
        make_model([node("Relu", ["x"], ["a"], name="relu"), node("Identity", ["a"], ["y"])], {"x": [2]})
    )
    assert nodes_of(module) == [("Relu", "relu")]


def test_a_value_under_two_names() -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="relu"),
        node("Identity", ["a"], ["y"], name="first"),
        node("Identity", ["a"], ["z"], name="second"),
        node("Tanh", ["a"], ["t"], name="tanh"),
    ]
    module = check_same(make_model(nodes, {"x": [2]}, outputs=["z", "t", "y"]))
    assert sorted(nodes_of(module)) == [("Identity", "first"), ("Relu", "relu"), ("Tanh", "tanh")]


def test_an_output_that_is_copied_to_another() -> None:
    nodes = [node("Relu", ["x"], ["y"], name="relu"), node("Identity", ["y"], ["z"], name="copy")]
    module = check_same(make_model(nodes, {"x": [2]}, outputs=["y", "z"]))
    assert nodes_of(module) == [("Relu", "relu"), ("Identity", "copy")]


def test_a_copied_input() -> None:
    module = check_same(make_model([node("Identity", ["x"], ["y"], name="copy")], {"x": [2]}))
    assert nodes_of(module) == [("Identity", "copy")]
    module = check_same(make_model([node("Dropout", ["x"], ["y"], name="drop")], {"x": [2]}))
    assert nodes_of(module) == [("Identity", "drop")]


def test_constants() -> None:
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("Add", ["c", "c"], ["folded"]),
        node("Identity", ["c"], ["copied"], name="copy"),
    ]
    model = make_model(nodes, {"x": [2]}, {"c": floats(0, 3)}, outputs=["y", "folded", "c", "copied"])
    module = check_same(model)
    assert ("Identity", "copy") in nodes_of(module)
    assert set(module.constants).isdisjoint(module.outputs)


def test_only_constants() -> None:
    module = check_same(make_model([], {}, {"y": floats(0, 3)}))
    assert nodes_of(module) == [("Identity", "Identity_y")]


def test_inputs_that_nothing_reads_stay() -> None:
    assert check_same(make_model([node("Relu", ["x"], ["y"])], {"x": [2], "other": [3]})).inputs == ("x", "other")


def test_an_output_that_is_an_input() -> None:
    model = make_model([node("Relu", ["x"], ["y"])], {"x": [2]}, outputs=["y", "x"])
    assert refusal(model) == (
        "error[output-is-input]: the network output 'x' is a network input\n"
        "  where    the given model 'test'\n"
        "  reason   nothing computes it, and the two cannot have one name in the compiled program\n"
        "  help     take it out of the outputs, or copy it by an Identity node under another name"
    )


def test_constant_outputs_of_other_element_types() -> None:
    model = make_model([node("Relu", ["x"], ["y"]), node("Shape", ["x"], ["s"])], {"x": [2]}, outputs=["y", "s"])
    model.graph.output[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    assert "its result 's' is int64[1]" in refusal(model)


def test_values_survive_renaming() -> None:
    """A value renamed to an output is still what its other readers read."""
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Identity", ["a"], ["b"]),
        node("Add", ["a", "b"], ["y"]),
        node("Identity", ["b"], ["z"]),
    ]
    module = check_same(make_model(nodes, {"x": [4]}, outputs=["y", "z"]))
    assert module.operations[1].operands == ("z", "z")
    assert np.prod(module.types["z"].shape) == 4


def test_constants_that_are_outputs_and_are_read() -> None:
    nodes = [node("Exp", ["c"], ["e"], name="exp"), node("Add", ["x", "e"], ["y"], name="add")]
    module = check_same(make_model(nodes, {"x": [3]}, {"c": floats(0, 3)}, outputs=["e", "y"]))
    assert sorted(nodes_of(module)) == [("Add", "add"), ("Identity", "exp")]


def test_names_of_copies_are_unique() -> None:
    nodes = [node("Split", ["c"], ["y", "z"], name="split"), node("Relu", ["x"], ["r"], name="Identity_w")]
    model = make_model(nodes, {"x": [3]}, {"c": floats(0, 4), "w": floats(1, 2)}, ["y", "z", "w", "r"], opset=13)
    names = [name for _, name in nodes_of(check_same(model))]
    assert sorted(names) == ["Identity_w", "Identity_w_1", "split", "split_1"]
