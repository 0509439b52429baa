"""BatchNormalization folded into the operation before it, or left where it cannot be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from raptor_core.frontend.load import load_graph
from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, nodes_of

node = helper.make_node


def _norm(value: str, result: str, name: str = "norm", **attributes: object) -> onnx.NodeProto:
    return node("BatchNormalization", [value, "s", "b", "m", "v"], [result], name=name, **attributes)


def _parameters(channels: int) -> dict[str, object]:
    return {
        "s": floats(1, channels) + 2,
        "b": floats(2, channels),
        "m": floats(3, channels),
        "v": np.abs(floats(4, channels)) + np.float32(0.5),
    }


@settings(max_examples=40, deadline=None)
@given(
    axes=st.integers(1, 2),
    groups=st.integers(1, 3),
    inputs=st.integers(1, 3),
    outputs=st.integers(1, 3),
    with_bias=st.booleans(),
    transposed=st.booleans(),
    epsilon=st.sampled_from([1e-5, 1e-3, 0.5]),
)
def test_convolutions(
    axes: int, groups: int, inputs: int, outputs: int, with_bias: bool, transposed: bool, epsilon: float
) -> None:
    channels = groups * outputs
    window = (3, 2)[:axes]
    shape = (groups * inputs, outputs, *window) if transposed else (channels, inputs, *window)
    constants = {"w": floats(0, *shape), **_parameters(channels)}
    names = ["x", "w"]
    if with_bias:
        constants["bias"] = floats(5, channels)
        names.append("bias")
    op_type = "ConvTranspose" if transposed else "Conv"
    nodes = [
        node(op_type, names, ["c"], name="conv", group=groups),
        _norm("c", "n", epsilon=epsilon),
        node("Relu", ["n"], ["y"], name="relu"),
    ]
    module = check_same(make_model(nodes, {"x": [2, groups * inputs, 5, 4][: 2 + axes]}, constants))
    assert nodes_of(module) == [(op_type, "conv"), ("Relu", "relu")]
    assert module.operations[0].results == ("n",)
    assert len(module.constants) == 2


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("bias_shape", [None, (), (1,), (4,), (1, 4), (3, 1), (3, 4)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0)])
def test_gemm(trans_b: int, bias_shape: tuple[int, ...] | None, alpha: float, beta: float) -> None:
    constants = {"w": floats(0, *((4, 5) if trans_b else (5, 4))), **_parameters(4)}
    names = ["x", "w"]
    if bias_shape is not None:
        constants["bias"] = floats(5, *bias_shape)
        names.append("bias")
    nodes = [
        node("Gemm", names, ["g"], name="gemm", transB=trans_b, alpha=alpha, beta=beta),
        _norm("g", "y"),
    ]
    assert nodes_of(check_same(make_model(nodes, {"x": [3, 5]}, constants))) == [("Gemm", "gemm")]


def test_matmul_becomes_gemm() -> None:
    nodes = [node("MatMul", ["x", "w"], ["g"], name="product"), _norm("g", "y")]
    module = check_same(make_model(nodes, {"x": [3, 5]}, {"w": floats(0, 5, 4), **_parameters(4)}))
    assert nodes_of(module) == [("Gemm", "product")]


def test_a_chain_of_norms() -> None:
    nodes = [node("Conv", ["x", "w"], ["c"], name="conv"), _norm("c", "d"), _norm("d", "y", "norm2")]
    module = check_same(make_model(nodes, {"x": [1, 2, 3, 3]}, {"w": floats(0, 4, 2, 2, 2), **_parameters(4)}))
    assert nodes_of(module) == [("Conv", "conv")]


def test_shared_weights_are_not_changed_for_others() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="with"),
        _norm("c", "d"),
        node("Conv", ["d", "w"], ["y"], name="without"),
    ]
    module = check_same(make_model(nodes, {"x": [1, 2, 5, 5]}, {"w": floats(0, 2, 2, 2, 2), **_parameters(2)}))
    assert nodes_of(module) == [("Conv", "with"), ("Conv", "without")]


def test_rounding_happens_once() -> None:
    """The folded weights are the float32 numbers nearest to the exact ones."""
    weight, parameters = floats(0, 4, 2, 3, 3), _parameters(4)
    nodes = [node("Conv", ["x", "w"], ["c"]), _norm("c", "y", epsilon=1e-3)]
    module = check_same(make_model(nodes, {"x": [1, 2, 5, 5]}, {"w": weight, **parameters}))
    s, b, m, v = (np.asarray(parameters[k], np.float64) for k in "sbmv")
    epsilon = float(np.float32(1e-3))
    factor = s / np.sqrt(v + epsilon)
    exact = weight.astype(np.float64) * factor[:, None, None, None]
    np.testing.assert_array_equal(module.constants[module.operations[0].operands[1]], exact.astype(np.float32))
    np.testing.assert_array_equal(
        module.constants[module.operations[0].operands[2]], (b - m * factor).astype(np.float32)
    )


def _kept(
    nodes: list[onnx.NodeProto], inputs: dict[str, list[int]], outputs: tuple[str, ...] = ("y",), **more: object
) -> bool:
    constants = {"w": floats(0, 4, 2, 1, 1), **_parameters(4), **more}
    used = {name for item in nodes for name in item.input}
    constants = {name: value for name, value in constants.items() if name in used and name not in inputs}
    module = check_same(make_model(nodes, inputs, constants, outputs))
    return "BatchNormalization" in [op for op, _ in nodes_of(module)]


CONV = node("Conv", ["x", "w"], ["c"], name="conv")
IMAGE = {"x": [1, 2, 3, 3]}


def test_kept_when_something_else_reads_the_value() -> None:
    assert not _kept([CONV, _norm("c", "y")], IMAGE)
    assert _kept([CONV, _norm("c", "d"), node("Add", ["c", "d"], ["y"])], IMAGE)
    assert _kept([CONV, _norm("c", "y")], IMAGE, ("y", "c"))
    assert _kept(
        [CONV, _norm("c", "y"), node("BatchNormalization", ["c", "s", "b", "m", "v"], ["z"])], IMAGE, ("y", "z")
    )


def test_kept_without_a_weight_or_an_operation_before() -> None:
    assert _kept([CONV, _norm("c", "y")], {**IMAGE, "w": [4, 2, 1, 1]})
    assert _kept([node("Conv", ["x", "w", "bias"], ["c"]), _norm("c", "y")], {**IMAGE, "bias": [4]})
    assert _kept([_norm("x", "y")], {"x": [1, 4, 3]})
    assert _kept([CONV, node("Relu", ["c"], ["r"]), _norm("r", "y")], IMAGE)


def test_kept_where_channels_are_not_the_columns() -> None:
    assert _kept([node("MatMul", ["x", "k"], ["c"]), _norm("c", "y")], {"x": [2, 4, 5]}, k=floats(0, 5, 3))


def test_kept_when_the_result_is_not_finite() -> None:
    constants = {"w": floats(0, 4, 2, 1, 1), **_parameters(4), "v": np.full(4, -1, np.float32)}
    model = make_model([CONV, _norm("c", "y")], IMAGE, constants)
    assert nodes_of(load_graph(model)) == [("Conv", "conv"), ("BatchNormalization", "norm")]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("scale", "variance"), [(np.inf, 1.0), (1.0, -1.0), (3e38, 0.0)])
def test_what_is_not_finite_is_left_alone_without_a_warning(scale: float, variance: float) -> None:
    constants = {
        name: np.full(2, value, np.float32) for name, value in zip("sbmv", (scale, 1, 1, variance), strict=True)
    }
    nodes = [node("Conv", ["x", "w"], ["c"], name="conv"), _norm("c", "y")]
    module = load_graph(make_model(nodes, {"x": [1, 2, 3, 3]}, {"w": floats(0, 2, 2, 1, 1), **constants}))
    assert nodes_of(module) == [("Conv", "conv"), ("BatchNormalization", "norm")]
