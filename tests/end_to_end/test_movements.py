"""Chains of movements, whose lanes may follow fragments: right numbers, whatever was compiled before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import raptor_core
from onnx_networks import reference

NUMBERS = {
    "first": [0], "second": [1], "one": [1], "channels": [4],
    "pads": [0, 0, 1, 2, 0, 0, 2, 1], "from": [1, 1], "to": [13, 13], "spatial": [2, 3],
}  # fmt: skip


def movements(seed: int, length: int) -> onnx.ModelProto:
    """A convolution, then padding, joining, slicing, more and fewer axes and transposing in random order."""
    rng = np.random.default_rng(seed)
    node = helper.make_node
    nodes = [node("Conv", ["x", "w"], ["v0"], pads=[1] * 4)]
    for k in range(length):
        source, target = f"v{k}", f"v{k + 1}"
        match int(rng.integers(0, 4)):
            case 0:
                nodes += [
                    node("Concat", [source] * 2, [f"{target}.both"], axis=1),
                    node("Slice", [f"{target}.both", "first", "channels", "one"], [target]),
                ]
            case 1:
                nodes += [
                    node("Pad", [source, "pads"], [f"{target}.wide"]),
                    node("Slice", [f"{target}.wide", "from", "to", "spatial"], [target]),
                ]
            case 2:
                nodes += [
                    node("Unsqueeze", [source, "first"], [f"{target}.more"]),
                    node("Concat", [f"{target}.more"] * 2, [f"{target}.both"], axis=0),
                    node("Slice", [f"{target}.both", "first", "second", "first"], [f"{target}.half"]),
                    node("Squeeze", [f"{target}.half", "first"], [target]),
                ]
            case _:
                nodes.append(node("Transpose", [source], [target], perm=[0, 1, 3, 2]))
    nodes.append(node("Relu", [f"v{length}"], ["y"]))
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in NUMBERS.items()]
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "movements",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 12, 12])],
        [*constants, numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("seed", range(4))
def test_chains_of_movements_compute_the_same(seed: int, tmp_path: Path) -> None:
    model = movements(seed, 12)
    raptor_core.compile(model, target="pim-arch-a", output=tmp_path / "program")
    inputs = {"x": np.random.default_rng(seed).standard_normal((1, 3, 12, 12)).astype(np.float32)}
    (outputs,) = raptor_core.simulate(tmp_path / "program", inputs).outputs
    np.testing.assert_allclose(outputs["y"], reference(model, inputs)["y"], atol=1e-4)


def test_what_was_compiled_before_does_not_matter(tmp_path: Path) -> None:
    def scheduled(folder: str) -> bytes:
        file = tmp_path / folder / "m.rir"
        file.parent.mkdir()
        raptor_core.compile(movements(3, 10), target="pim-arch-a", output=file, stop_after="schedule")
        return file.read_bytes() + file.with_suffix(".rir.npz").read_bytes()

    first = scheduled("a")
    for seed in (5, 6, 7):
        other = tmp_path / f"{seed}.rir"
        raptor_core.compile(movements(seed, 9), target="pim-arch-a", output=other, stop_after="schedule")
        assert scheduled(f"b{seed}") == first
