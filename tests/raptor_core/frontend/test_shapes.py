"""Shapes of inputs: the option's text, binding, contradictions and what stays open."""

from __future__ import annotations

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from raptor_core.diagnostics import UsageError
from raptor_core.frontend.load import load_graph
from raptor_core.frontend.shapes import parse_shape_option, parse_shape_options, shape_text
from tests.raptor_core.frontend.onnx_models import check_same, make_model, refusal


@given(st.text(min_size=1), st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=6))
def test_option_text_round_trip(name: str, shape: list[int]) -> None:
    assert parse_shape_option(f"{name}={shape_text(shape)}") == (name, tuple(shape))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not a name, '=' and a shape"),
        ("x", "it is not a name, '=' and a shape"),
        ("=1x2", "it is not a name, '=' and a shape"),
        ("x=", "it is not a name, '=' and a shape"),
        ("x=1x", "'' is not a whole number from 1 to 2147483647"),
        ("x=1xN", "'N' is not a whole number from 1 to 2147483647"),
        ("x=1x0", "'0' is not a whole number from 1 to 2147483647"),
        ("x=1x-3", "'-3' is not a whole number from 1 to 2147483647"),
        ("x=1.5", "'1.5' is not a whole number from 1 to 2147483647"),
        ("x=2147483648", "'2147483648' is not a whole number from 1 to 2147483647"),
        ("x=1,3,4", "'1,3,4' is not a whole number from 1 to 2147483647"),
        ("x=٣", "'٣' is not a whole number from 1 to 2147483647"),
    ],
)
def test_bad_option_text(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shape_option(text)
    assert caught.value.render() == (
        f"error[bad-shape-option]: bad value '{text}' for --shape\n  reason   {reason}\n"
        "  help     give it in the form NAME=1x3x224x224: an input's name and its whole shape"
    )


def test_options_given_twice() -> None:
    assert parse_shape_options(["x=1x2", "y=3", "x=1x2"]) == {"x": (1, 2), "y": (3,)}
    with pytest.raises(UsageError, match="input 'x' was given the shape 1x2 before"):
        parse_shape_options(["x=1x2", "x=2x2"])


def _sum(**inputs: list[int | str | None] | None) -> onnx.ModelProto:
    return make_model([helper.make_node("Sum", list(inputs), ["y"])], inputs)


def test_given_shapes_are_used() -> None:
    module = check_same(_sum(a=["N", 3, None], b=["N", 3, "W"]), shapes={"a": (2, 3, 4), "b": [2, 3, 4]})
    assert module.types["y"].shape == (2, 3, 4)


def test_one_input_settles_the_symbols_of_others() -> None:
    module = check_same(_sum(a=["N", 3], b=["N", 3]), shapes={"a": (5, 3)})
    assert module.types["b"].shape == (5, 3)


def test_inputs_of_unknown_rank() -> None:
    module = check_same(_sum(a=None, b=[2, 3]), shapes={"a": (2, 3)})
    assert module.types["a"].shape == (2, 3)


def test_stale_shapes_in_the_model_do_not_matter() -> None:
    model = _sum(a=["N", 3], b=["N", 3])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3]))
    assert load_graph(model, shapes={"a": (5, 3)}).types["y"].shape == (5, 3)


def test_scalars_are_static() -> None:
    assert check_same(_sum(a=[], b=[2])).types["a"].shape == ()


def test_open_shapes_are_all_listed() -> None:
    text = refusal(_sum(image=["batch", 3, "height", None], mask=["batch", 1], flag=None, fixed=[1, 1]))
    assert text == (
        "error[symbolic-shape]: the shapes of the network's inputs must be known\n"
        "  where    the given model 'test'\n"
        "  reason   every address of the program is worked out when it is compiled\n"
        "  - input 'image' [batch,3,height,?]: dimension 0 is 'batch', dimension 2 is 'height', dimension 3 is open\n"
        "  - input 'mask' [batch,1]: dimension 0 is 'batch'\n"
        "  - input 'flag': the model states no shape\n"
        "  help     give --shape 'image=1x3x<height>x<extent>' --shape mask=1x1 --shape 'flag=<extent>x<extent>x...'"
    )


def test_negative_extents_are_open() -> None:
    assert "dimension 0 is open, dimension 1 is open" in refusal(_sum(a=[-1, -1]))


def test_inputs_without_elements() -> None:
    assert refusal(_sum(a=["N", 0], b=[1], c=[0, 3])) == (
        "error[empty-input]: an input of no elements cannot be compiled\n"
        "  where    the given model 'test'\n"
        "  reason   the model gives a dimension the extent 0\n"
        "  - input 'a' [N,0]\n"
        "  - input 'c' [0,3]\n"
        "  help     export the model with the input's extents, or with a name for each that is open"
    )
    text = refusal(_sum(a=[0, 3]), shapes={"a": (1, 3)})
    assert "the model says [0,3], --shape says 1x3" in text


def test_unknown_input() -> None:
    with pytest.raises(UsageError) as caught:
        load_graph(_sum(image=["N", 3], mask=[1]), shapes={"imgae": (1, 3)})
    assert caught.value.render() == (
        "error[unknown-network-input]: unknown network input 'imgae'\n"
        "  help     did you mean 'image'? known: image, mask"
    )


def test_initializers_are_no_inputs() -> None:
    model = make_model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2], "w": [2]}, {"w": [1.0, 2.0]})
    with pytest.raises(UsageError, match="unknown network input 'w'"):
        load_graph(model, shapes={"w": (2,)})


@pytest.mark.parametrize("shape", [(1, 0), (1, -3), (1, True), (1, 2.0), (1, "3"), (2**31, 3)])
def test_bad_numbers(shape: tuple[object, ...]) -> None:
    with pytest.raises(UsageError, match="is not a whole number from 1 to 2147483647"):
        load_graph(_sum(a=["N", 3]), shapes={"a": shape})


@pytest.mark.parametrize("shape", [(1, 4), (1, 3, 1), (3,)])
def test_contradiction_to_the_model(shape: tuple[int, ...]) -> None:
    text = refusal(_sum(a=["N", 3]), shapes={"a": shape})
    given_text = "x".join(map(str, shape))
    assert text.startswith(f"error[shape-conflict]: the shape {given_text} does not fit input 'a'\n")
    assert f"the model says [N,3], --shape says {given_text}" in text


def test_contradiction_between_inputs() -> None:
    text = refusal(_sum(a=["N", 3], b=["N", 3]), shapes={"a": (1, 3), "b": (2, 3)})
    assert "the model calls the extents 1 (of input 'a') and 2 both 'N'" in text
    text = refusal(_sum(a=["N", "N"]), shapes={"a": (1, 3)})
    assert "the model calls the extents 1 (of another place) and 3 both 'N'" in text


def test_inputs_that_are_no_tensors() -> None:
    model = make_model([helper.make_node("SequenceAt", ["s", "k"], ["y"])], {}, {"k": 0})
    model.graph.input.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [1]))
    assert "input 's' is not a tensor\n  where    the given model 'test'\n  reason   it is a sequence" in refusal(model)
