"""The simulator as a plugin: inputs, outputs, options, refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from functional_runs import artifact, floats, op, simulate

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.simulation.contract import SimulationRequest, Simulator
from raptor_functional.plugin import SIMULATOR
from raptor_pim.artifacts import TensorInfo, write_artifact

COPY = [
    op("sldi", rd=1, imm=16),
    op("ld", rd=0, rs1=0, size=16),
    op("st", rd=1, rs1=0, size=16),
]
TWO_INPUTS: dict[str, Any] = {
    "inputs_addresses": (0, 8),
    "inputs_sizes": (8, 8),
    "outputs_addresses": (16,),
    "outputs_sizes": (16,),
}
NAMED = {
    **TWO_INPUTS,
    "inputs": (TensorInfo("a", (2,)), TensorInfo("b", (1, 2))),
    "outputs": (TensorInfo("c", (4, 1)),),
}


def test_the_contract(tmp_path: Path) -> None:
    assert isinstance(SIMULATOR, Simulator)
    folder = write_artifact(tmp_path / "out", artifact([COPY], **NAMED), manifest_fields={})
    sample = {"a": np.array([1, 2], np.float32), "b": np.array([[3, 4]], np.float32)}
    result = SIMULATOR.simulate(SimulationRequest(folder, (sample,)))
    assert result.outputs[0]["c"].tolist() == [[1.0], [2.0], [3.0], [4.0]]
    assert result.outputs[0]["c"].dtype == np.float32
    assert result.metrics["instructions"] == result.metrics["executed_instructions"] == 3
    assert result.metrics["wall_seconds"] > 0


def test_asking_for_the_plugin_does_not_load_the_compiler() -> None:
    code = "import sys; from raptor_functional.plugin import SIMULATOR; sys.exit('numba' in sys.modules)"
    path = [str(Path(__file__).parents[2] / part) for part in (".", "targets", "simulators")]
    code = f"import sys; sys.path[:0] = {path!r}; {code}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unnamed_tensors_are_numbered_and_flat() -> None:
    sample = {"input_0": np.array([[1, 2]], np.int64), "input_1": np.array([3, 4], np.float32)}
    (out,) = simulate(artifact([COPY], **TWO_INPUTS), [sample]).outputs
    assert out["output_0"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"b": None}, "input 'b' of sample 0 does not fit.*it is missing"),
        ({"b": np.zeros(2, np.float32)}, r"shape \[2\].*must have shape \[1, 2\]"),
        ({"b": np.zeros((1, 2))}, "of type float64"),
        ({"b": np.array([[2**24 + 1, 0]])}, "cannot hold all its numbers exactly"),
        ({"b": np.array([[2**62 + 1, 0]])}, "cannot hold all its numbers exactly"),
        ({"b": np.array([["x", "y"]])}, "of type <U1"),
        ({"bb": np.zeros(1)}, "input 'bb' that the network has not.*did you mean 'b'"),
    ],
)
def test_inputs_that_do_not_fit(change: dict[str, Any], words: str) -> None:
    sample = {"a": np.zeros(2, np.float32), "b": np.zeros((1, 2), np.float32), **change}
    sample = {name: value for name, value in sample.items() if value is not None}
    with pytest.raises(RaptorError, match="(?s)" + words):
        simulate(artifact([COPY], **NAMED), [sample])


def test_whole_numbers_and_truth_values_are_accepted() -> None:
    sample = {"a": np.array([True, False]), "b": np.array([[-(2**24), 255]], np.int32)}
    (out,) = simulate(artifact([COPY], **NAMED), [sample]).outputs
    assert out["c"].ravel().tolist() == [1, 0, -(2**24), 255]


def test_samples_must_fit_the_mode(tmp_path: Path) -> None:
    made = artifact([COPY], **NAMED)
    with pytest.raises(UsageError, match=r"no sample was given[\s\S]*a, b"):
        simulate(made)
    with pytest.raises(UsageError, match="2 samples were given, and a provenance trace in latency mode follows one"):
        simulate(made, [{}, {}], provenance_trace=str(tmp_path / "trace"))


def test_samples_in_latency_mode_are_runs_of_their_own() -> None:
    """The program counts in host memory; a batch goes on counting, runs of their own start again."""
    count = [
        op("setbw", ibiw=32, obiw=32),
        op("sldi", rd=1, imm=0),
        op("sldi", rd=2, imm=64),
        op("ld", rd=1, rs1=1, size=4),
        op("ld", rd=2, rs1=2, size=4),
        op("vvadd", rd=2, rs1=1, rs2=2, len=1),
        op("st", rd=2, rs1=2, size=4),
    ]
    regions = {"inputs_addresses": (0,), "inputs_sizes": (4,), "outputs_addresses": (64,), "outputs_sizes": (4,)}
    made = artifact([count], host=bytes(68), **regions)
    samples = [{"input_0": np.full(1, value, np.float32)} for value in (1, 10, 100)]
    apart, batch = simulate(made, samples), simulate(made, samples, mode="throughput")
    assert [float(out["output_0"][0]) for out in apart.outputs] == [1, 10, 100]
    assert [float(out["output_0"][0]) for out in batch.outputs] == [1, 11, 111]
    assert apart.metrics["samples"] == 3
    assert apart.metrics["executed_instructions"] == 21


def test_unnamed_regions_must_be_whole_elements() -> None:
    with pytest.raises(RaptorError, match="input 0 is no whole number of elements"):
        simulate(artifact([COPY], inputs_addresses=(0,), inputs_sizes=(6,)), [{}])


def test_outputs_of_unknown_size() -> None:
    made = artifact([COPY], host=floats(1, 2, 3, 4, 0, 0, 0, 0), outputs_addresses=(16,), outputs_sizes=None)
    with pytest.raises(UsageError, match="--dump-ranges"):
        simulate(made)
    (out,) = simulate(made, dump_ranges="16,8").outputs
    assert list(out) == ["range_0"]
    assert out["range_0"].tobytes() == floats(1, 2)


def test_outputs_and_ranges_together() -> None:
    (out,) = simulate(artifact([COPY], outputs_addresses=(16,), outputs_sizes=(8,)), dump_ranges="0,4").outputs
    assert set(out) == {"output_0", "range_0"}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ([op("setbw", ibiw=32, obiw=4)], "core 0 pc 0: setbw ibiw=32, obiw=4"),
        ([op("nop"), op("vavg", rd=0, rs1=0, rs2=0, len=0)], "the mean of no elements is undefined"),
    ],
)
def test_programs_without_a_numerical_meaning(program: list[Any], words: str) -> None:
    with pytest.raises(RaptorError, match=words):
        simulate(artifact([program]))


def test_products_need_weights() -> None:
    made = artifact([[op("mvmul", rd=0, rs1=0, group=0)]], matrices=[[np.ones((4, 4), np.float32)]])
    bare = attrs.evolve(made, config=attrs.evolve(made.config, weights=()), matrices=())
    with pytest.raises(RaptorError, match="the artifact has no weights"):
        simulate(bare)


HIGH = 2**31 - 1


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (
            [op("sldi", rd=1, imm=-1), op("lldi", rd=1, imm=0, len=2)],
            "core 0 pc 1: lldi.*bytes -1 to 1 are not",
        ),
        ([op("sldi", rd=1, imm=HIGH), op("lldi", rd=1, imm=0, len=2)], "pc 1.*bytes 2147483647 to 2147483649"),
        ([op("sldi", rd=1, imm=-4), op("vrelu", rd=0, rs1=1, len=1)], "pc 1: vrelu r0, r1, len=1.*bytes -4 to 0"),
        ([op("sldi", rd=1, imm=HIGH), op("vmv", rd=0, rs1=0, rs2=1, len=HIGH)], "are not in local memory"),
        ([op("sldi", rd=1, imm=-1), op("vmv", rd=0, rs1=0, rs2=1, len=0)], "the stride is -1"),
        (
            [op("sldi", rd=1, imm=60), op("ld", rd=0, rs1=1, size=5)],
            "60 to 65 are not in host memory, which has 64",
        ),
        ([op("sldi", rd=1, imm=-1), op("st", rd=1, rs1=0, size=1)], "bytes 4294967295 to 4294967296 are not in host"),
        ([op("sldi", rd=1, imm=61), op("sld", rd=0, rs1=1, offset_value=0)], "bytes 61 to 65 are not in host"),
    ],
)
def test_errors_while_running(program: list[Any], words: str) -> None:
    with pytest.raises(RaptorError, match="(?s)" + words) as caught:
        simulate(artifact([program]))
    assert caught.value.code == "runtime-error"


@pytest.mark.parametrize(
    ("value", "count", "words"),
    [
        (1.0, 32.0, "the shift count of element 0 is 32; counts are 0..31"),
        (1.0, -1.0, "the shift count of element 0 is -1"),
        (1.0, np.nan, "the shift count of element 0 is not a 32-bit integer"),
        (3e9, 1.0, "element 0 is not a number that fits a 32-bit integer"),
        (np.nan, 1.0, "element 0 is not a number"),
    ],
)
def test_errors_of_shifts(value: float, count: float, words: str) -> None:
    program = [
        op("ld", rd=0, rs1=0, size=8),
        op("sldi", rd=1, imm=4),
        op("vvsll", rd=0, rs1=0, rs2=1, len=1),
    ]
    with pytest.raises(RaptorError, match=words):
        simulate(artifact([program], host=floats(value, count)))


def test_the_highest_local_byte_can_be_used_sparingly() -> None:
    program = [op("sldi", rd=1, imm=-(2**31)), op("sldi", rd=2, imm=40), op("lmv", rd=2, rs1=2, len=4)]
    assert simulate(artifact([program])).metrics["peak_local_memory_bytes"] == 44


def test_runs_are_independent() -> None:
    made = artifact([COPY], **NAMED)
    sample = {"a": np.array([1, 2], np.float32), "b": np.array([[3, 4]], np.float32)}
    first, second = (simulate(made, [sample]).outputs[0]["c"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not made.memory.any()
