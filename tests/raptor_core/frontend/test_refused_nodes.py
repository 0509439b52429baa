"""Nodes that cannot be compiled: each kind, and that one error lists them all."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from raptor_core.frontend.load import load_graph
from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, nodes_of, refusal

node = helper.make_node
FLOAT_HINT = "  help     only float32 is computed: export the network in float32"


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (TensorProto.DOUBLE, "float64"),
        (TensorProto.FLOAT16, "float16"),
        (TensorProto.INT64, "int64"),
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.BOOL, "bool"),
    ],
)
def test_inputs_of_other_element_types(type_: int, words: str) -> None:
    model = make_model([node("Add", ["a", "b"], ["y"])], {"a": [2], "b": [1, 2]}, input_type=type_)
    assert refusal(model) == (
        "error[unsupported-element-type]: the inputs of a network must be float32\n"
        "  where    the given model 'test'\n"
        f"  - input 'a' is {words}[2]\n  - input 'b' is {words}[1,2]\n{FLOAT_HINT}"
    )


def test_nodes_of_other_element_types_are_all_listed() -> None:
    nodes = [
        node("Cast", ["x"], ["d"], name="to_double", to=TensorProto.DOUBLE),
        node("Relu", ["d"], ["r"], name="relu"),
        node("Cast", ["r"], ["y"], name="back", to=TensorProto.FLOAT),
        node("ArgMax", ["x"], ["z"], name="best"),
    ]
    model = make_model(nodes, {"x": [2]}, outputs=["y", "z"])
    assert refusal(model) == (
        "error[unsupported-element-type]: 3 of 4 nodes cannot be compiled\n"
        "  where    network 'test' (the given model 'test')\n"
        "  - Cast node 'to_double' (node 0): its result 'd' is float64[2]\n"
        "  - Relu node 'relu' (node 1): its result 'r' is float64[2]\n"
        f"  - ArgMax node 'best' (node 3): its result 'z' is int64[1]\n{FLOAT_HINT}"
    )


def test_nodes_without_a_lowering_are_listed_along() -> None:
    nodes = [
        node("Tanh", ["x"], ["t"], name="tanh"),
        node("ArgMax", ["t"], ["z"], name="best"),
        node("Selu", ["t"], ["y"], name="selu"),
    ]
    model = make_model(nodes, {"x": [2]}, outputs=["y", "z"])
    assert refusal(model, has_lowering=lambda operator: operator == "Tanh") == (
        "error[unsupported-operators]: 2 of 3 nodes cannot be compiled\n"
        "  where    network 'test' (the given model 'test')\n"
        "  - ArgMax node 'best' (node 1): no installed plugin lowers this operator; its result 'z' is int64[1]\n"
        "  - Selu node 'selu' (node 2): no installed plugin lowers this operator\n"
        "  help     'raptor plugins list --kind operator-lowering' shows the operators that can be compiled; "
        "a plugin may add others"
    )


def test_unsupported_operators_alone_are_left_to_the_lowering() -> None:
    module = check_same(make_model([node("Selu", ["x"], ["y"], name="selu")], {"x": [2]}), has_lowering=lambda _: False)
    assert nodes_of(module) == [("Selu", "selu")]


def test_operators_of_other_domains_keep_what_the_model_declares() -> None:
    nodes = [node("Swish", ["x"], ["s"], name="swish", domain="com.acme", beta=2.0), node("Relu", ["s"], ["y"])]
    model = make_model(nodes, {"x": ["N", 3]}, domains={"com.acme": 4})
    model.graph.value_info.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, ["N", 5]))
    module = load_graph(model, shapes={"x": (2, 3)})
    swish = module.operations[0]
    assert (swish.operator, swish.version, swish.attributes) == ("com.acme::Swish", 4, {"beta": 2.0})
    assert module.types["s"].shape == module.types["y"].shape == (2, 5)


def test_unknown_operators_without_types_are_all_listed() -> None:
    nodes = [
        node("Swish", ["x"], ["s"], name="first", domain="com.acme"),
        node("Relu", ["s"], ["r"], name="between"),
        node("Swoosh", ["x"], ["t"], name="second"),
        node("Add", ["r", "t"], ["y"], name="after"),
    ]
    model = make_model(nodes, {"x": [2]}, domains={"com.acme": 1})
    assert refusal(model) == (
        "error[unknown-type]: 2 of 4 nodes cannot be compiled\n"
        "  where    network 'test' (the given model 'test')\n"
        "  - com.acme::Swish node 'first' (node 0): onnx does not know this operator, and the model does not state the "
        "type of its result 's'\n"
        "  - Swoosh node 'second' (node 2): onnx does not know this operator, and the model does not state the type of "
        "its result 't'\n"
        "  help     state the types of its results in the model (value_info)"
    )
    text = refusal(model, has_lowering=lambda operator: operator in ("Relu", "Swoosh"))
    assert "com.acme::Swish node 'first' (node 0): no installed plugin lowers this operator; onnx" in text
    assert "Add node 'after' (node 3): no installed plugin lowers this operator\n" in text
    assert "Swoosh node 'second' (node 2): onnx does not know" in text
    assert "'between'" not in text


def test_shapes_that_depend_on_data() -> None:
    nodes = [node("Compress", ["x", "x_positive"], ["y"], name="pick"), node("Greater", ["x", "zero"], ["x_positive"])]
    text = refusal(make_model(nodes, {"x": [4]}, {"zero": np.float32(0)}))
    assert "Compress node 'pick' (node 0): its result 'y' (float32[" in text
    assert ") has no static shape\n" in text


@pytest.mark.parametrize(
    ("operator", "attributes", "reason"),
    [
        ("Conv", {}, "along axis 2 its kernel of 7 is larger than the padded input of 4"),
        ("Conv", {"pads": [2, 1, 1, 1]}, "along axis 3 its kernel of 7 is larger than the padded input of 5 (3 and "),
        ("MaxPool", {"kernel_shape": [5, 5]}, "along axis 2 its kernel of 5 is larger than the padded input of 4"),
        (
            "AveragePool",
            {"kernel_shape": [1, 2], "dilations": [1, 4]},
            "along axis 3 its kernel of 5 (2 elements, dilation 4) is larger than the padded input of 3",
        ),
    ],
)
def test_kernels_larger_than_the_padded_input(operator: str, attributes: dict[str, list[int]], reason: str) -> None:
    inputs = ["x", "w"] if operator == "Conv" else ["x"]
    window = node(operator, inputs, ["y"], name="window", **attributes)
    text = refusal(make_model([window], {"x": [1, 3, 4, 3]}, {"w": floats(0, 5, 3, 7, 7)}, opset=19))
    assert text.startswith("error[kernel-too-large]: 1 of 1 nodes cannot be compiled\n")
    assert f"  - {operator} node 'window' (node 0): {reason}" in text
    assert text.endswith("  help     use larger images, more padding or a smaller kernel")


def test_a_folded_node_is_named_as_in_the_model() -> None:
    text = refusal(make_model([node("Shape", ["x"], ["y"], name="extents")], {"x": [4, 2]}))
    assert "  - Shape node 'extents' (node 0): its result 'y' is int64[2]\n" in text


@pytest.mark.parametrize("opset", [11, 13])
def test_reasons_of_onnx_are_given_whole(opset: int) -> None:
    softmax = node("Softmax", ["x"], ["y"], name="last", axis=4)
    text = refusal(make_model([softmax], {"x": [2, 3, 4, 5]}, opset=opset))
    assert "Softmax node 'last' (node 0): 'axis' must be in [-4 , 3]. Its actual value is: 4\n" in text


def test_sequences() -> None:
    nodes = [node("SplitToSequence", ["x"], ["s"], name="parts"), node("SequenceAt", ["s", "k"], ["y"])]
    text = refusal(make_model(nodes, {"x": [4, 2]}, {"k": 0}))
    assert "SplitToSequence node 'parts' (node 0): its result 's' (a sequence) has no static shape" in text


def test_invalid_nodes() -> None:
    nodes = [
        node("Conv", ["x"], ["a"], name="no_weight"),
        node("Conv", ["x", "w"], ["b"], name="bad_attribute", colour=1),
        node("MatMul", ["x", "w"], ["c"], name="bad_shapes"),
        node("Concat", ["a", "b", "c"], ["y"], axis=0),
    ]
    text = refusal(make_model(nodes, {"x": [1, 2, 3, 3]}, {"w": floats(0, 2, 2, 2, 2)}))
    assert text.startswith("error[invalid-node]: 3 of 4 nodes cannot be compiled\n")
    assert "Conv node 'no_weight' (node 0): " in text
    assert "Conv node 'bad_attribute' (node 1): Unrecognized attribute: colour for operator Conv" in text
    assert "MatMul node 'bad_shapes' (node 2): Incompatible dimensions for matrix multiplication" in text
    assert "export it again" in text


def test_a_constant_of_another_kind() -> None:
    model = make_model([node("Cast", ["x"], ["y"], name="cast", to=TensorProto.UINT32)], {"x": [2]})
    assert "Cast node 'cast' (node 0): its result 'y' is uint32[2]" in refusal(model)


def test_the_mask_of_dropout() -> None:
    nodes = [node("Dropout", ["x"], ["y", "mask"], name="drop"), node("Cast", ["mask"], ["z"], to=TensorProto.FLOAT)]
    text = refusal(make_model(nodes, {"x": [2]}, outputs=["y", "z"]))
    assert text.startswith("error[training-mode]: 1 of 3 nodes cannot be compiled\n")
    assert "Dropout node 'drop' (node 0): its mask 'mask' is used, and masks are for training" in text
    assert nodes_of(check_same(make_model(nodes, {"x": [2]}))) == [("Identity", "drop")]


def test_dropout_in_training_mode() -> None:
    nodes = [node("Dropout", ["x", "", "training"], ["y"], name="drop")]
    model = make_model(nodes, {"x": [2]}, {"training": np.array(True)})
    assert refusal(model) == (
        "error[training-mode]: 1 of 1 nodes cannot be compiled\n"
        "  where    network 'test' (the given model 'test')\n"
        "  - Dropout node 'drop' (node 0): it is in training mode, and nothing random can be computed\n"
        "  help     export the network for inference (evaluation mode)"
    )
    nodes = [node("Greater", ["x", "zero"], ["training"]), *nodes]
    text = refusal(make_model(nodes, {"x": []}, {"zero": np.float32(0)}))
    assert "Dropout node 'drop' (node 1): whether it is in training mode is known only at run time" in text


@pytest.mark.parametrize(
    ("opset", "attributes", "results"),
    [(14, {"training_mode": 1}, ["y", "m2", "v2"]), (9, {}, ["y", "m2", "v2", "m3", "v3"])],
)
def test_batch_normalisation_in_training_mode(opset: int, attributes: dict[str, int], results: list[str]) -> None:
    nodes = [node("BatchNormalization", ["x", "s", "s", "s", "s"], results, name="norm", **attributes)]
    text = refusal(make_model(nodes, {"x": [1, 2, 3]}, {"s": np.float32([1, 2])}, opset=opset))
    assert "BatchNormalization node 'norm' (node 0): it is in training mode, and the statistics of a batch" in text


def test_sparse_initializers() -> None:
    model = make_model([node("Add", ["x", "w"], ["y"])], {"x": [3]}, {"w": floats(0, 3)})
    dense = model.graph.initializer.pop()
    indices = helper.make_tensor("i", TensorProto.INT64, [3], [0, 1, 2])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(dense, indices, [3]))
    text = refusal(model)
    assert "the model has sparse initializers" in text
    assert "these are sparse: 'w'" in text


def test_training_information_is_not_part_of_the_network() -> None:
    model = make_model([node("Relu", ["x"], ["y"])], {"x": [3]})
    model.training_info.add().algorithm.CopyFrom(helper.make_graph([], "algorithm", [], []))
    assert nodes_of(load_graph(model)) == [("Relu", "Relu_0")]
