"""Random networks on random chips compute what onnxruntime computes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import raptor_core
from onnx_networks import networks, reference
from raptor_core.diagnostics import RaptorError

CHIPS = st.fixed_dictionaries(
    {
        "core_count": st.integers(1, 12),
        "crossbar_count": st.integers(20, 400),
        "crossbar_size": st.sampled_from(["8", "16", "32x16", "16x64", "128"]),
        "layout_planning": st.booleans(),
        "mirrors": st.booleans(),
        "verify_communication": st.just(True),
    }
)


def check(model: onnx.ModelProto, options: dict[str, Any], seed: int = 0) -> None:
    """Compile, simulate, and compare elementwise."""
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    inputs = {"x": np.random.default_rng(seed).normal(size=shape).astype(np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        raptor_core.compile(model, target="pim", output=program, options=options)
        (outputs,) = raptor_core.simulate(program, inputs).outputs
    for name, array in reference(model, inputs).items():
        np.testing.assert_allclose(outputs[name], array, atol=1e-3, rtol=1e-5, err_msg=name)


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(networks(), CHIPS, st.integers(0, 99))
def test_random_networks_on_random_chips(model: onnx.ModelProto, options: dict[str, Any], seed: int) -> None:
    try:
        check(model, options, seed)
    except RaptorError as error:
        # Small chips are too small for some networks; nothing else may be refused.
        if error.code not in ("network-too-large", "network-does-not-pack", "no-conv-strategy"):
            raise


def test_a_chip_that_just_holds_the_weights_is_enough() -> None:
    """Fast strategies hold more weights than need be; on a small chip the sparing ones are taken."""
    digits = onnx.load(Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_cnn.onnx")
    options = {"core_count": 1, "crossbar_count": 5, "crossbar_size": "128"}
    inputs = {"image": np.random.default_rng(0).random((1, 1, 8, 8), dtype=np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        raptor_core.compile(digits, target="pim", output=Path(folder) / "p", options=options)
        (outputs,) = raptor_core.simulate(Path(folder) / "p", inputs).outputs
    np.testing.assert_allclose(outputs["logits"], reference(digits, inputs)["logits"], atol=1e-3)
