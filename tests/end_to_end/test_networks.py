"""Published topologies on chips of different kinds compute what onnxruntime computes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import raptor_core
from command_line import DIGITS, ROOT
from onnx_networks import reference

CHIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "arch-a": ("pim-arch-a", {}),
    "arch-c": ("pim-arch-c", {}),
    "small": ("pim", {"core_count": 6, "crossbar_count": 64, "crossbar_size": "64x96"}),
}
NETWORKS = ("lenet5", "lenet5-relu", "resnet8", "ds-cnn", "mobilenetv1-vww")


@pytest.fixture(scope="module")
def models() -> ModuleType:
    """benchmarks/build_models.py."""
    spec = importlib.util.spec_from_file_location("build_models", ROOT / "benchmarks" / "build_models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check(
    model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], chip: str, folder: Path, **options: Any
) -> dict[str, np.ndarray]:
    """Compile with every check on, simulate, compare elementwise, and give the outputs."""
    target, described = CHIPS[chip]
    raptor_core.compile(
        model, target=target, output=folder / "p", options={**described, "verify_communication": True, **options}
    )
    (outputs,) = raptor_core.simulate(folder / "p", dict(inputs)).outputs
    expected = reference(model, dict(inputs))
    assert set(outputs) == set(expected)
    for name, array in expected.items():
        assert outputs[name].shape == array.shape
        assert array.std() > 1e-4, f"{name} says nothing"
        np.testing.assert_allclose(outputs[name], array, atol=1e-3, rtol=1e-5, err_msg=name)
    return dict(outputs)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("network", NETWORKS)
def test_published_networks(models: ModuleType, network: str, chip: str, tmp_path: Path) -> None:
    model, net = models.build(network)
    check(model, models.sample_input(net), chip, tmp_path)


@pytest.mark.parametrize("chip", CHIPS)
def test_the_trained_network(chip: str, tmp_path: Path) -> None:
    model = onnx.load(DIGITS / "digits_cnn.onnx")
    data = np.load(DIGITS / "digits_32.npz")
    for k in range(2):
        outputs = check(model, {"image": data["images"][k][None]}, chip, tmp_path / str(k))
        assert outputs["logits"].argmax() == data["labels"][k]


@pytest.mark.parametrize("network", ["lenet5", "resnet8", "ds-cnn"])
def test_a_batch_of_two(models: ModuleType, network: str, tmp_path: Path) -> None:
    model, net = models.build(network, batch=2)
    outputs = check(model, models.sample_input(net), "small", tmp_path)
    for array in outputs.values():
        assert array.shape[0] == 2
        assert np.abs(array[0] - array[1]).max() > 1e-4, "the two samples differ"


@pytest.mark.parametrize("opset", [13, 15, 18, 20, 22])
def test_opsets_of_a_published_network(models: ModuleType, opset: int, tmp_path: Path) -> None:
    model, net = models.build("resnet8", opset=opset, bn="unfolded")
    check(model, models.sample_input(net), "small", tmp_path)


def assemble(
    nodes: list[onnx.NodeProto], shape: tuple[int, ...], constants: dict[str, np.ndarray], *, opset: int, ir: int
) -> onnx.ModelProto:
    """A model with the input ``x`` and the output ``y``."""
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    if ir < 4:  # initializers had to be inputs as well
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in initializers]
    graph = helper.make_graph(
        nodes, "net", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def constants(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Normally distributed arrays by name, scaled by the square root of what is summed over."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)
        for name, shape in shapes.items()
    }


def old_style(opset: int, ir: int) -> onnx.ModelProto:
    """Convolution, normalization, pooling and a classifier, in words that all opsets from 9 on know."""
    weights = constants(1, w=(8, 3, 3, 3), b=(8,), s=(8,), o=(8,), m=(8,), g=(10, 128), c=(10,))
    weights["v"] = np.linspace(0.5, 2, 8, dtype=np.float32)
    weights["shape"] = np.array([1, 128], np.int64)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["1"], kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2]),
        helper.make_node("BatchNormalization", ["1", "s", "o", "m", "v"], ["2"], epsilon=1e-3),
        helper.make_node("LeakyRelu", ["2"], ["3"], alpha=0.1),
        helper.make_node("MaxPool", ["3"], ["4"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["4", "shape"], ["5"]),
        helper.make_node("Gemm", ["5", "g", "c"], ["6"], transB=1),
        helper.make_node("Softmax", ["6"], ["y"], axis=1),
    ]
    return assemble(nodes, (1, 3, 16, 16), weights, opset=opset, ir=ir)


@pytest.mark.parametrize(
    ("opset", "ir"), [(9, 3), (9, 4), (10, 5), (11, 6), (12, 7), (14, 7), (16, 8), (18, 8), (19, 9), (21, 10)]
)
def test_opsets_and_file_versions(opset: int, ir: int, tmp_path: Path) -> None:
    model = old_style(opset, ir)
    x = np.random.default_rng(2).standard_normal((1, 3, 16, 16)).astype(np.float32)
    check(model, {"x": x}, "small", tmp_path)


def one_dimensional() -> tuple[onnx.ModelProto, tuple[int, ...]]:
    """A keyword spotter over time: 1-D convolutions, one of them depthwise and one dilated, and 1-D pooling."""
    weights = constants(3, w1=(12, 4, 5), b1=(12,), w2=(12, 1, 3), w3=(16, 12, 3), g=(6, 16), c=(6,))
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["1"], pads=[2, 2], strides=[2]),
        helper.make_node("Relu", ["1"], ["2"]),
        helper.make_node("Conv", ["2", "w2"], ["3"], group=12, pads=[1, 1]),
        helper.make_node("Add", ["2", "3"], ["4"]),
        helper.make_node("MaxPool", ["4"], ["5"], kernel_shape=[3], strides=[2]),
        helper.make_node("Conv", ["5", "w3"], ["6"], dilations=[2]),
        helper.make_node("Tanh", ["6"], ["7"]),
        helper.make_node("GlobalAveragePool", ["7"], ["8"]),
        helper.make_node("Flatten", ["8"], ["9"]),
        helper.make_node("Gemm", ["9", "g", "c"], ["y"], transB=1),
    ]
    shape = (1, 4, 50)
    return assemble(nodes, shape, weights, opset=17, ir=8), shape


def two_branches() -> tuple[onnx.ModelProto, tuple[int, ...]]:
    """Branches of different depth that are concatenated, added and multiplied, in a batch of two."""
    weights = constants(4, a=(6, 4, 1, 1), b=(6, 4, 3, 3), c=(6, 6, 3, 3), d=(12, 12, 1, 1), e=(12, 1, 1))
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["1"]),
        helper.make_node("Conv", ["x", "b"], ["2"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["2"], ["3"]),
        helper.make_node("Conv", ["3", "c"], ["4"], pads=[1, 1, 1, 1]),
        helper.make_node("Concat", ["1", "4"], ["5"], axis=1),
        helper.make_node("Conv", ["5", "d"], ["6"]),
        helper.make_node("Mul", ["6", "5"], ["7"]),
        helper.make_node("Sub", ["7", "e"], ["8"]),
        helper.make_node("AveragePool", ["8"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    ]
    shape = (2, 4, 9, 11)
    return assemble(nodes, shape, weights, opset=17, ir=8), shape


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("make", [one_dimensional, two_branches])
def test_networks_of_other_forms(
    make: Callable[[], tuple[onnx.ModelProto, tuple[int, ...]]], chip: str, tmp_path: Path
) -> None:
    model, shape = make()
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    check(model, {"x": x}, chip, tmp_path)
