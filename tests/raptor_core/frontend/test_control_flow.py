"""If nodes with a known condition are replaced by their branch; other control flow is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, nodes_of, refusal

node = helper.make_node


def _graph(nodes: list[onnx.NodeProto], *outputs: str, **constants: np.ndarray) -> onnx.GraphProto:
    return helper.make_graph(
        nodes,
        "branch",
        [],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )


@pytest.mark.parametrize("condition", [True, False])
def test_the_branch_that_is_taken(condition: bool) -> None:
    then = _graph([node("Add", ["x", "k"], ["t"], name="plus"), node("Relu", ["t"], ["r"])], "r", k=floats(0, 2))
    otherwise = _graph([node("Tanh", ["x"], ["t2"], name="tanh")], "t2")
    nodes = [
        node("If", ["c"], ["i"], name="choice", then_branch=then, else_branch=otherwise),
        node("Neg", ["i"], ["y"], name="neg"),
    ]
    module = check_same(make_model(nodes, {"x": [2]}, {"c": np.array(condition)}))
    taken = [("Add", "choice/plus"), ("Relu", "choice/Relu_1")] if condition else [("Tanh", "choice/tanh")]
    assert nodes_of(module) == [*taken, ("Neg", "neg")]


def test_a_condition_on_a_shape() -> None:
    then = _graph([node("Squeeze", ["x", "axis"], ["t"], name="squeeze")], "t")
    otherwise = _graph([node("Identity", ["x"], ["e"])], "e")
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "one"], ["extent"]),
        node("Equal", ["extent", "one"], ["c"]),
        node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=otherwise),
    ]
    constants = {"one": 1, "axis": [1]}
    model = make_model(nodes, {"x": ["N", "C", 3]}, constants)
    assert nodes_of(check_same(model, shapes={"x": (2, 1, 3)})) == [("Squeeze", "if/squeeze")]
    module = check_same(model, shapes={"x": (2, 4, 3)})
    assert nodes_of(module) == [("Identity", "if")]


def test_branches_in_branches() -> None:
    deep = _graph([node("Mul", ["t", "k"], ["d"], name="scale")], "d", k=floats(1, 1))
    other = _graph([node("Neg", ["t"], ["d"], name="neg")], "d")
    then = _graph(
        [
            node("Relu", ["x"], ["t"], name="relu"),
            node("If", ["c"], ["m"], name="inner", then_branch=deep, else_branch=other),
            node("If", ["c"], ["n"], name="again", then_branch=deep, else_branch=other),
            node("Add", ["m", "n"], ["s"], name="add"),
        ],
        "s",
    )
    otherwise = _graph([node("Tanh", ["x"], ["s"], name="tanh")], "s")
    nodes = [
        node("Relu", ["x"], ["t0"], name="before"),
        node("If", ["c"], ["i"], name="outer", then_branch=then, else_branch=otherwise),
        node("Add", ["i", "t0"], ["y"], name="after"),
    ]
    module = check_same(make_model(nodes, {"x": [2]}, {"c": np.array(True)}))
    assert [name for _, name in nodes_of(module)] == [
        "before",
        "outer/relu",
        "outer/inner/scale",
        "outer/again/scale",
        "outer/add",
        "after",
    ]


def test_branches_with_several_outputs_and_constants() -> None:
    then = _graph([node("Split", ["x"], ["p", "q"], axis=0)], "q", "k", "p", k=floats(0, 2))
    otherwise = _graph([node("Split", ["x"], ["p", "q"], axis=0)], "p", "k", "q", k=floats(1, 2))
    nodes = [
        node("If", ["c"], ["a", "b", "d"], then_branch=then, else_branch=otherwise),
        node("Sub", ["a", "d"], ["s"]),
        node("Mul", ["s", "b"], ["y"]),
    ]
    module = check_same(make_model(nodes, {"x": [4]}, {"c": np.array([True])}, opset=13))
    assert [op for op, _ in nodes_of(module)] == ["Split", "Sub", "Mul"]


def test_everything_that_runs_conditionally_is_listed() -> None:
    branch = _graph([node("Relu", ["x"], ["r"])], "r")
    body = helper.make_graph(
        [node("Identity", ["go"], ["go_on"]), node("Relu", ["v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("k", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [2]),
        ],
    )
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["c"]),
        node("If", ["c"], ["i"], name="choice", then_branch=branch, else_branch=branch),
        node("Loop", ["count", "", "x"], ["l"], name="loop", body=body),
        node("Add", ["i", "l"], ["y"]),
    ]
    text = refusal(make_model(nodes, {"x": [2]}, {"zero": np.float32(0), "count": 3}))
    reason = "it has a subgraph, and which of its nodes run is known only at run time"
    assert f"If node 'choice' (node 2): {reason}\n" in text
    assert f"Loop node 'loop' (node 3): {reason}\n" in text
    assert "the chip has no branches or loops: export the network with its loops unrolled and choices made" in text


def test_if_without_two_whole_branches() -> None:
    branch = _graph([node("Relu", ["x"], ["r"])], "r")
    reason = "it needs a then_branch and an else_branch with as many outputs as it has"
    nodes = [node("If", ["c"], ["y"], name="if", then_branch=branch)]
    assert f"If node 'if' (node 0): {reason}" in refusal(make_model(nodes, {"x": [2]}, {"c": np.array(True)}))
    nodes = [node("If", ["c"], ["y", "z"], name="if", then_branch=branch, else_branch=branch)]
    assert f"If node 'if' (node 0): {reason}" in refusal(make_model(nodes, {"x": [2]}, {"c": np.array(True)}))


def test_a_branch_that_defines_a_value_twice() -> None:
    branch = _graph([node("Relu", ["x"], ["r"]), node("Tanh", ["x"], ["r"])], "r")
    nodes = [node("If", ["c"], ["y"], name="if", then_branch=branch, else_branch=branch)]
    text = refusal(make_model(nodes, {"x": [2]}, {"c": np.array(True)}))
    assert "the value 'r' is defined twice in then_branch of If node 'if'" in text
