"""Reshaping, transposing, joining, padding, slicing and repeating against onnxruntime: exact equality."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from raptor_operators.rearrange import Rearrange, affine_segments
from tests.raptor_operators.checking import check_model, check_node, floats, refusal
from tests.raptor_operators.graphs import make_model

_SHAPE = st.lists(st.integers(1, 5), min_size=1, max_size=5)


def _i64(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


@st.composite
def reshapes(draw):
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), min_size=1, max_size=6))

    def grouped() -> list[int]:
        shape, start = [], 0
        order = factors
        while start < len(order):
            stop = draw(st.integers(start + 1, len(order)))
            shape.append(math.prod(order[start:stop]))
            start = stop
        return shape

    source, target = grouped(), grouped()
    if draw(st.booleans()):
        source.insert(draw(st.integers(0, len(source))), 1)
    if draw(st.booleans()):
        target.insert(draw(st.integers(0, len(target))), 1)
    if draw(st.booleans()):
        target = list(draw(st.permutations(target)))
    return source, target


@settings(max_examples=120, deadline=None)
@given(reshapes(), st.integers(0, 99))
def test_reshape(shapes, seed: int) -> None:
    source, target = shapes
    check_node("Reshape", {"x": floats(seed, *source)}, {"shape": _i64(*target)}, seed=seed, rounds=3)


@pytest.mark.parametrize("target", [(0, -1), (-1,), (2, -1, 5), (0, 0, 20), (1, 0, -1)])
def test_reshape_with_zero_and_minus_one(target: tuple[int, ...]) -> None:
    shape = (2, 3, 4, 5) if target != (1, 0, -1) else (2, 3, 4)
    check_node("Reshape", {"x": floats(1, *shape)}, {"shape": _i64(*target)})


def test_reshape_allowzero() -> None:
    check_node("Reshape", {"x": floats(1, 2, 6)}, {"shape": _i64(3, -1)}, allowzero=1)


def test_reshape_that_keeps_axes_is_no_linear_move() -> None:
    module = check_node("Reshape", {"x": floats(1, 2, 1, 3, 1)}, {"shape": _i64(1, 2, 3)})
    assert isinstance(module.operations[0], Rearrange)


@pytest.mark.parametrize("axis", [0, 1, 2, 4, -1, -3])
def test_flatten(axis: int) -> None:
    check_node("Flatten", {"x": floats(1, 2, 3, 4, 5)}, axis=axis, rounds=4)


@settings(max_examples=40, deadline=None)
@given(_SHAPE.flatmap(lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))))
def test_transpose(case) -> None:
    shape, permutation = case
    check_node("Transpose", {"x": floats(1, *shape)}, perm=list(permutation))


def test_transpose_without_permutation() -> None:
    check_node("Transpose", {"x": floats(1, 2, 3, 4)})


@pytest.mark.parametrize("opset", [11, 21])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    def node(op_type: str, names: list[str], output: str, axes: list[int]):
        if opset < 13:
            return helper.make_node(op_type, names[:1], [output], axes=axes)
        return helper.make_node(op_type, names, [output])

    nodes = [node("Squeeze", ["x", "a"], "t", [1, -1]), node("Unsqueeze", ["t", "b"], "y", [0, 3])]
    x = {"x": floats(1, 2, 1, 3, 4, 1)}
    constants = {"a": _i64(1, -1), "b": _i64(0, 3)} if opset >= 13 else {}
    check_model(make_model(nodes, x, constants, opset=opset), x)


def test_squeeze_to_a_number() -> None:
    check_node("Squeeze", {"x": floats(1, 1, 1)})


@settings(max_examples=40, deadline=None)
@given(_SHAPE, st.data())
def test_concat(shape, data) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    arrays = {f"x{n}": floats(n, *shape[: axis % len(shape)], size, *shape[axis % len(shape) + 1 :])
              for n, size in enumerate(sizes)}  # fmt: skip
    constant = data.draw(st.sampled_from([None, *arrays])) if len(arrays) > 1 else None
    inputs = {name: array for name, array in arrays.items() if name != constant}
    constants = {name: array for name, array in arrays.items() if name == constant}
    check_node("Concat", inputs, constants, operands=list(arrays), axis=axis)


def test_concat_of_one_value_twice() -> None:
    check_node("Concat", {"x": floats(1, 2, 3, 4)}, operands=["x", "x"], axis=1, rounds=4)


@settings(max_examples=60, deadline=None)
@given(_SHAPE, st.sampled_from([0.0, 1.5, -math.inf, math.nan]), st.data())
def test_pad_with_a_constant(shape, value: float, data) -> None:
    pads = []
    for extent in shape:
        begin = data.draw(st.integers(-extent + 1, 3))
        pads.append((begin, data.draw(st.integers(-(extent + min(begin, 0)) + 1, 3))))
    flat = [begin for begin, _ in pads] + [end for _, end in pads]
    constants = {"pads": _i64(*flat), "value": np.array(value, np.float32)}
    check_node("Pad", {"x": floats(1, *shape)}, constants, rounds=3)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize(("shape", "pads"), [((4, 5), (2, 3, 3, 1)), ((1, 3, 4, 4), (0, 0, 1, 2, 0, 0, 3, 0))])
def test_pad_from_the_operand(mode: str, shape, pads) -> None:
    check_node("Pad", {"x": floats(1, *shape)}, {"pads": _i64(*pads)}, mode=mode, rounds=5)


def test_pad_with_axes() -> None:
    constants = {"pads": _i64(1, 2, 0, 3), "value": np.array(7, np.float32), "axes": _i64(-1, 1)}
    check_node("Pad", {"x": floats(1, 2, 3, 4)}, constants)


def test_pad_with_attributes() -> None:
    check_node("Pad", {"x": floats(1, 2, 3)}, opset=10, pads=[1, 0, 0, 2], value=2.5)


@settings(max_examples=60, deadline=None)
@given(_SHAPE, st.data())
def test_slice(shape, data) -> None:
    count = data.draw(st.integers(1, len(shape)))
    axes = data.draw(st.permutations(range(len(shape))))[:count]
    rows = []
    for axis in axes:
        low = data.draw(st.integers(0, shape[axis] - 1))
        high = data.draw(st.integers(low, shape[axis] - 1))
        step = data.draw(st.sampled_from([1, 1, 2, 3]))
        if data.draw(st.booleans()):
            rows.append((low, high + 1 if data.draw(st.booleans()) else 2**31, step))
        else:
            rows.append((high, low - 1 if low else -(2**31), -step))
    starts, ends, steps = (_i64(*column) for column in zip(*rows, strict=True))
    constants = {"starts": starts, "ends": ends, "axes": _i64(*axes), "steps": steps}
    check_node("Slice", {"x": floats(1, *shape)}, constants)


def test_slice_with_attributes() -> None:
    check_node("Slice", {"x": floats(1, 4, 6)}, opset=9, starts=[1, -3], ends=[3, 100], axes=[0, 1])


@pytest.mark.parametrize("axis", [1, -2])
def test_split(axis: int) -> None:
    check_node("Split", {"x": floats(1, 2, 7, 3)}, {"split": _i64(2, 4, 1)}, outputs=["a", "b", "c"], axis=axis)


@pytest.mark.parametrize("target", [(3, 4), (2, 3, 4), (2, 1, 5, 4), (5, 1)])
def test_expand(target: tuple[int, ...]) -> None:
    source = {(3, 4): (3, 1), (2, 3, 4): (3, 4), (2, 1, 5, 4): (1, 4), (5, 1): (1,)}[target]
    check_node("Expand", {"x": floats(1, *source)}, {"shape": _i64(*target)})


def test_identity_and_dropout() -> None:
    nodes = [helper.make_node("Identity", ["x"], ["t"]), helper.make_node("Dropout", ["t"], ["y"])]
    x = {"x": floats(1, 2, 3)}
    check_model(make_model(nodes, x), x)


@pytest.mark.parametrize("value", [{"value_float": 2.0}, {"value_floats": [1.0, 2.0, 3.0]}])
def test_constant(value) -> None:
    nodes = [helper.make_node("Constant", [], ["c"], **value), helper.make_node("Add", ["x", "c"], ["y"])]
    x = {"x": floats(1, 2, 3)}
    check_model(make_model(nodes, x), x)


def test_affine_segments_give_the_indices_back() -> None:
    indices = np.array([3, 2, 1, 0, 1, 2, 2, 2, 5])
    found = np.concatenate([s.offset + s.step * np.arange(s.lo, s.hi) for s in affine_segments(indices)])
    np.testing.assert_array_equal(found, indices)


def test_refusals() -> None:
    x = {"x": floats(1, 2, 3)}
    assert "must be constant" in refusal("Slice", {**x, "s": _i64(0), "e": _i64(1)}, {"a": _i64(0)},
                                         operands=["x", "s", "e", "a"])  # fmt: skip
    assert "mode 'mirror'" in refusal("Pad", x, opset=10, pads=[0, 0, 0, 0], mode="mirror")
    assert "result 1" in refusal("Dropout", x, outputs=["y", "mask"])
