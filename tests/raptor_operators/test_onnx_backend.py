"""The single-node tests of the ONNX standard, for every operator with a lowering here."""

from __future__ import annotations

import random
import warnings

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.raptor_operators.evaluation import LOWERINGS, Evaluation, lower, refusals
from tests.raptor_operators.graphs import make_module

_CONSTANT_SIDE = {"Conv": 1, "Gemm": 1, "MatMul": 1, "Div": 1, "BatchNormalization": 1}
"""Operators that need constants, with the first input that becomes one."""


def _collect():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = {}
        for case in collect_testcases(None):
            graph = case.model.graph
            types = {info.type.tensor_type.elem_type for info in (*graph.output[:1], *graph.input[:1])}
            if len(graph.node) == 1 and graph.node[0].op_type in LOWERINGS and types == {onnx.TensorProto.FLOAT}:
                cases[case.name] = case
    return cases


CASES = _collect()


def _with_constants(case):
    """The model with inputs that are parameters turned into initializers, and the remaining inputs."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = model.graph.node[0]
    given, _ = case.data_sets[0]
    inputs, kept = {}, []
    for info, array in zip(list(model.graph.input), given, strict=True):
        position = list(node.input).index(info.name)
        is_float = info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        first = _CONSTANT_SIDE.get(node.op_type, 1 if node.op_type in ("Clip", "Pad", "Dropout") else None)
        is_parameter = (first is not None and position >= first) or not is_float
        if is_parameter and position > 0:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), info.name))
        else:
            inputs[info.name] = np.asarray(array)
            kept.append(info)
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, inputs


_REFUSED = {
    "test_batchnorm_epsilon_training_mode": "result 1 ('output_mean')",
    "test_batchnorm_example_training_mode": "result 1 ('output_mean')",
    "test_dropout_default_mask": "result 1 ('z')",
    "test_dropout_default_mask_ratio": "result 1 ('z')",
    "test_maxpool_with_argmax_2d_precomputed_pads": "result 1 ('z')",
    "test_maxpool_with_argmax_2d_precomputed_strides": "result 1 ('z')",
    "test_reshape_allowzero_reordered": "tensor 'data' is empty",
    "test_slice_start_out_of_bounds": "tensor 'y' is empty",
    "test_split_zero_size_splits_opset13": "tensor 'input' is empty",
    "test_split_zero_size_splits_opset18": "tensor 'input' is empty",
    "test_training_dropout": "training_mode is true",
    "test_training_dropout_default": "training_mode is true",
    "test_training_dropout_default_mask": "result 1 ('z')",
    "test_training_dropout_mask": "result 1 ('z')",
    "test_training_dropout_zero_ratio": "training_mode is true",
    "test_training_dropout_zero_ratio_mask": "result 1 ('z')",
}
"""Every standard case that is refused, and why."""

_ROUNDED = {"test_averagepool_2d_ceil_last_window_starts_on_pad": 1e-3}
"""Relative tolerance for expectations that are given with few digits."""


@pytest.mark.parametrize("name", sorted(set(CASES) - set(_REFUSED)))
def test_standard_case(name: str) -> None:
    case = CASES[name]
    model, inputs = _with_constants(case)
    lowered = lower(make_module(model))
    _, expected = case.data_sets[0]
    for seed in range(2):
        found = Evaluation(lowered, random.Random(seed)).run(inputs)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=_ROUNDED.get(name, 1e-5), atol=1e-5)


@pytest.mark.parametrize("name", sorted(_REFUSED))
def test_refused_standard_case(name: str) -> None:
    model, _ = _with_constants(CASES[name])
    (reason,) = refusals(make_module(model))
    assert _REFUSED[name] in reason


def test_every_operator_has_standard_cases() -> None:
    assert {case.model.graph.node[0].op_type for case in CASES.values()} == set(LOWERINGS)
