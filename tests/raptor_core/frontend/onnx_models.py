"""Small ONNX models, the module the frontend makes of them, and both run by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from raptor_core.diagnostics import ExitCode, RaptorError
from raptor_core.frontend.load import load_graph
from raptor_core.frontend.node import OnnxNode
from raptor_core.frontend.to_onnx import module_to_onnx
from raptor_core.ir.module import Module
from raptor_core.ir.verifier import verify_module


def floats(seed: int, *shape: int) -> np.ndarray:
    """Pseudo-random float32 numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str | None] | None],
    constants: Mapping[str, object] | None = None,
    outputs: Sequence[str] = ("y",),
    *,
    opset: int = 17,
    ir_version: int = 8,
    input_type: int = TensorProto.FLOAT,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of ``nodes``. Plain integers among the constants become int64."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, input_type, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in {"": opset, **(domains or {})}.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, functions=list(functions))


def run(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The model's outputs by onnxruntime, by name, every node as it is."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # no approximate fusions
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([info.name for info in model.graph.output], session.run(None, dict(inputs)), strict=True))


def check_same(model: onnx.ModelProto, seed: int = 0, **arguments: object) -> Module:
    """The frontend's module computes what the model does, is valid, and has the model's outputs. Returns it."""
    module = load_graph(model, **arguments)
    verify_module(module)
    inputs = {name: floats(seed, *module.types[name].shape) for name in module.inputs}
    expected, found = run(model, inputs), run(module_to_onnx(module), inputs)
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert module.types[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=2e-5, err_msg=name)
    return module


def nodes_of(module: Module) -> list[tuple[str, str]]:
    """Operator and name of every node."""
    return [(op.op_type, op.name) for op in module.find(OnnxNode)]


def refusal(source: object, **arguments: object) -> str:
    """The whole text of the error with which the frontend refuses a model."""
    with pytest.raises(RaptorError) as caught:
        load_graph(source, **arguments)
    assert caught.value.exit_code is ExitCode.INPUT
    return caught.value.render()
