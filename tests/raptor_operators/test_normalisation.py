"""BatchNormalization and Softmax against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.raptor_operators.checking import check_node, floats, refusal
from tests.raptor_operators.evaluation import lower
from tests.raptor_operators.graphs import make_model, make_module


@pytest.mark.parametrize("shape", [(2, 5, 4, 3), (3, 5), (2, 5, 6), (1, 5, 2, 2, 2)])
@pytest.mark.parametrize("epsilon", [1e-5, 1e-2])
def test_batch_normalization(shape: tuple[int, ...], epsilon: float) -> None:
    statistics = {name: floats(n, 5) for n, name in enumerate("sbm")} | {"v": np.abs(floats(9, 5)) + 0.1}
    check_node("BatchNormalization", {"x": floats(1, *shape)}, statistics, epsilon=epsilon, rounds=4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("scale", "variance"), [(1.0, -1.0), (3e38, 0.0), (np.inf, 1.0), (1.0, np.nan)])
def test_numbers_that_are_not_finite_are_no_warnings(scale: float, variance: float) -> None:
    values = {"s": scale, "b": 1.0, "m": 2.0, "v": variance}
    constants = {name: np.full(3, value, np.float32) for name, value in values.items()}
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    module = lower(make_module(make_model([node], {"x": floats(1, 2, 3, 4)}, constants)))
    assert not np.isfinite(module.constants["y.factor"]).any()


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3, -1, -2])
def test_softmax(opset: int, axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    check_node("Softmax", {"x": floats(1, 2, 3, 4, 5)}, opset=opset, rounds=6, **attributes)


def test_softmax_is_not_cut_along_its_axis() -> None:
    module = check_node("Softmax", {"x": floats(1, 4, 7)}, axis=-1)
    assert module.operations[0].cut_granularity(module.types) == (1, 7)


def test_refusals() -> None:
    x = {"x": floats(1, 2, 3, 2, 2), "s": floats(1, 3)}
    constants = {name: np.ones(3, np.float32) for name in "bmv"}
    assert "must be constant" in refusal("BatchNormalization", x, constants)
    x.pop("s")
    reason = refusal("BatchNormalization", x, {"s": np.ones(3, np.float32), **constants},
                     outputs=["y", "m2", "v2"], training_mode=1)  # fmt: skip
    assert "is used" in reason
