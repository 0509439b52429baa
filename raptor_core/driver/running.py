"""Compile, simulate, and compare with the reference, in one go."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from raptor_core.driver.comparing import ATOL, RTOL, Comparison, compare_with_reference
from raptor_core.driver.compiling import CompileResult, Progress, compile
from raptor_core.driver.samples import Inputs, random_sample, samples_of
from raptor_core.driver.simulating import DEFAULT_SIMULATOR, simulate
from raptor_core.driver.source import is_text
from raptor_core.plugins.manager import PluginManager
from raptor_core.simulation.contract import Sample, SimulationResult
from raptor_core.targets.inspection import TensorSignature

if TYPE_CHECKING:
    import onnx


@attrs.frozen
class RunResult:
    """What was compiled, what went in and came out, and how it compares with onnxruntime.

    ``compilation.path`` is None when the program folder was a temporary one.
    """

    compilation: CompileResult
    samples: tuple[Sample, ...]
    simulation: SimulationResult
    comparison: Comparison


def run(
    model: str | Path | onnx.ModelProto,
    inputs: Inputs | None = None,
    *,
    target: str,
    output: str | Path | None = None,
    simulator: str = DEFAULT_SIMULATOR,
    simulator_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    atol: float = ATOL,
    rtol: float = RTOL,
    disable_plugins: Iterable[str] = (),
    plugins: PluginManager | None = None,
    progress: Progress | None = None,
    **compile_arguments: Any,
) -> RunResult:
    """Compile ``model``, run it on ``inputs`` (None: one random sample of ``seed``), and compare the outputs.

    The program goes to ``output``, or to a temporary folder that is gone afterwards. Other arguments are those of
    :func:`compile`; inputs and simulator options as in :func:`simulate`. Outputs are compared when onnxruntime is
    installed, runs the model, and the simulator computes numbers; an element passes when
    ``|a - b| <= atol + rtol * |b|``.
    """
    plugins = plugins if plugins is not None else PluginManager.discover(disable_plugins)
    report = progress or (lambda step: None)
    with contextlib.ExitStack() as stack:
        if output is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="raptor-"))) / "program"
        else:
            folder = Path(output)
        compilation = compile(
            model, target=target, output=folder, plugins=plugins, progress=progress, **compile_arguments
        )
        tensors = _inputs_of(compilation)
        samples = [random_sample(tensors, seed)] if inputs is None else samples_of(inputs, tensors)
        report("simulating")
        simulation = simulate(folder, samples, simulator=simulator, options=simulator_options, plugins=plugins)
    report("comparing with onnxruntime")
    comparison = _compare(model, samples, simulation, atol, rtol)
    if output is None:
        compilation = attrs.evolve(compilation, path=None)
    return RunResult(compilation, tuple(samples), simulation, comparison)


def _inputs_of(compilation: CompileResult) -> list[TensorSignature]:
    module = compilation.module
    return [TensorSignature(name, module.types[name].shape) for name in module.inputs]


def _compare(
    model: str | Path | onnx.ModelProto,
    samples: Sequence[Sample],
    simulation: SimulationResult,
    atol: float,
    rtol: float,
) -> Comparison:
    if is_text(model):
        return Comparison(not_compared="the text of a stage is no ONNX model")
    if not simulation.outputs or not simulation.outputs[0]:
        return Comparison(not_compared="the simulator computes no numbers")
    return compare_with_reference(model, samples, simulation.outputs, atol=atol, rtol=rtol)
