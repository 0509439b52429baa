"""Graphs that are no graphs: names defined twice or never, circles, and nodes out of order."""

from __future__ import annotations

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from raptor_core.frontend.load import load_graph
from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, nodes_of, refusal

node = helper.make_node
WHERE = "\n  where    the given model 'test'"
AGAIN = "\n  help     the model is not a valid ONNX graph; export it again"


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(4)))
def test_nodes_in_any_order(order: list[int]) -> None:
    nodes = [node("Relu", ["x"], ["a"], name="n0"), node("Tanh", ["a"], ["b"], name="n1")]
    nodes += [node("Add", ["a", "b"], ["c"], name="n2"), node("Neg", ["c"], ["y"], name="n3")]
    model = make_model(nodes, {"x": [3]})
    del model.graph.node[:]
    model.graph.node.extend(nodes[k] for k in order)
    assert [name for _, name in nodes_of(load_graph(model))] == ["n0", "n1", "n2", "n3"]


def test_order_is_kept_where_it_can_be() -> None:
    nodes = [node("Relu", ["x"], ["a"], name="b"), node("Tanh", ["x"], ["b"], name="a"), node("Add", ["a", "b"], ["y"])]
    assert [name for _, name in nodes_of(check_same(make_model(nodes, {"x": [3]})))] == ["b", "a", "Add_2"]


def test_a_circle() -> None:
    nodes = [
        node("Add", ["x", "c"], ["a"], name="first"),
        node("Relu", ["a"], ["b"], name="second"),
        node("Tanh", ["b"], ["c"], name="third"),
        node("Neg", ["c"], ["y"], name="after"),
    ]
    assert refusal(make_model(nodes, {"x": [3]})) == (
        f"error[invalid-model]: nodes of the network depend on each other in a circle{WHERE}\n"
        "  - Add node 'first' needs Tanh node 'third'\n"
        "  - Tanh node 'third' needs Relu node 'second'\n"
        f"  - Relu node 'second' needs Add node 'first'{AGAIN}"
    )


def test_a_node_that_needs_itself() -> None:
    text = refusal(make_model([node("Relu", ["y"], ["y"], name="self")], {"x": [3]}))
    assert "  - Relu node 'self' needs Relu node 'self'\n" in text


def test_values_defined_twice() -> None:
    relu, tanh = node("Relu", ["x"], ["y"], name="relu"), node("Tanh", ["x"], ["y"], name="tanh")
    assert refusal(make_model([relu, tanh], {"x": [3]})) == (
        "error[invalid-model]: the value 'y' is defined twice: by Relu node 'relu' and by Tanh node 'tanh'"
        + WHERE
        + AGAIN
    )
    text = refusal(make_model([node("Relu", ["x"], ["x"], name="relu")], {"x": [3]}, outputs=["x"]))
    assert "the value 'x' is defined twice: by a network input and by Relu node 'relu'" in text
    text = refusal(make_model([relu], {"x": [3]}, {"y": floats(0, 3)}))
    assert "the value 'y' is defined twice: by an initializer and by Relu node 'relu'" in text


def test_inputs_and_initializers_listed_twice() -> None:
    model = make_model([node("Add", ["x", "w"], ["y"])], {"x": [3]}, {"w": floats(0, 3)})
    twice = onnx.ModelProto()
    twice.CopyFrom(model)
    twice.graph.initializer.append(numpy_helper.from_array(floats(1, 3), "w"))
    assert "the value 'w' is defined twice, both times as an initializer" in refusal(twice)
    model.graph.input.append(model.graph.input[0])
    assert "the value 'x' is defined twice, both times as a network input" in refusal(model)


def test_values_that_nothing_defines() -> None:
    model = make_model([node("Add", ["x", "wieght"], ["y"], name="add")], {"x": [3]}, {"weight": floats(0, 3)})
    assert refusal(model) == (
        "error[invalid-model]: Add node 'add' uses the value 'wieght', which nothing defines"
        f"{WHERE}\n  help     did you mean 'weight'?"
    )
    model = make_model([node("Relu", ["x"], ["y"])], {"x": [3]}, outputs=["z"])
    assert "the network output 'z' is not defined" in refusal(model)


def test_values_that_only_a_subgraph_uses() -> None:
    branch = helper.make_graph([node("Relu", ["lost"], ["b"])], "branch", [], [onnx.ValueInfoProto(name="b")])
    nodes = [node("If", ["k"], ["y"], name="if", then_branch=branch, else_branch=branch)]
    assert "If node 'if' uses the value 'lost', which nothing defines" in refusal(make_model(nodes, {"k": [1]}))


def test_outputs_listed_twice() -> None:
    model = make_model([node("Relu", ["x"], ["y"])], {"x": [3]}, outputs=["y", "y"])
    assert "the network output 'y' is listed twice" in refusal(model)


def test_inputs_without_a_name() -> None:
    assert "a network input has no name" in refusal(make_model([node("Relu", ["x"], ["y"])], {"x": [3], "": [1]}))
