"""Comparison of simulated outputs with what onnxruntime computes."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.simulation.contract import Sample

if TYPE_CHECKING:
    import onnx

ATOL, RTOL = 1e-3, 1e-5
"""Default tolerances: an element passes when ``|a - b| <= atol + rtol * |b|``, b being the reference."""

_INPUT_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_QUIET = 3


@attrs.frozen
class OutputComparison:
    """One output over all samples: the largest absolute and relative difference, and whether every element passes."""

    name: str
    max_abs: float
    max_rel: float
    passed: bool
    elements: int
    failing: int


@attrs.frozen
class Comparison:
    """All outputs; or why there is nothing to compare with."""

    outputs: tuple[OutputComparison, ...] = ()
    not_compared: str | None = None

    @property
    def passed(self) -> bool | None:
        """Whether all outputs pass; None when nothing was compared."""
        return None if self.not_compared is not None else all(output.passed for output in self.outputs)


def compare_with_reference(
    model: str | Path | onnx.ModelProto,
    samples: Sequence[Sample],
    outputs: Sequence[Sample],
    *,
    atol: float = ATOL,
    rtol: float = RTOL,
) -> Comparison:
    """Compare ``outputs`` with those of onnxruntime on the same samples. It need not be installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return Comparison(not_compared="onnxruntime is not installed (pip install raptor-pim[reference])")
    try:
        expected = _reference(model, samples)
    except Exception as error:  # onnxruntime has exceptions of its own for models it does not take
        return Comparison(not_compared=f"onnxruntime does not run this model: {_one_line(error)}")
    names = list(outputs[0]) if outputs else []
    return Comparison(
        tuple(
            compare_output(
                name,
                np.stack([np.asarray(sample[name]) for sample in outputs]),
                np.stack([sample[name] for sample in expected]),
                atol=atol,
                rtol=rtol,
            )
            for name in names
            if name in expected[0]
        )
    )


def compare_output(
    name: str, got: npt.NDArray[Any], expected: npt.NDArray[Any], *, atol: float, rtol: float
) -> OutputComparison:
    """Compare arrays of one shape. Equal infinities and NaN against NaN differ by nothing."""
    a, b = got.astype(np.float64), expected.astype(np.float64).reshape(got.shape)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(same, 0.0, np.abs(a - b))
        difference = np.where(np.isnan(difference), np.inf, difference)
        good = same | (difference <= atol + rtol * np.where(np.isfinite(b), np.abs(b), 0.0))
    relative = np.divide(difference, np.abs(b), out=np.where(same, 0.0, np.inf), where=(b != 0) & np.isfinite(b))
    return OutputComparison(
        name=name,
        max_abs=float(difference.max(initial=0.0)),
        max_rel=float(relative.max(initial=0.0)),
        passed=bool(good.all()),
        elements=int(good.size),
        failing=int(good.size - np.count_nonzero(good)),
    )


def _reference(model: str | Path | onnx.ModelProto, samples: Sequence[Sample]) -> list[dict[str, npt.NDArray[Any]]]:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = _QUIET
    source = str(model) if isinstance(model, str | Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, settings, providers=["CPUExecutionProvider"])
    types = {value.name: _INPUT_TYPES.get(value.type, np.float32) for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    results = []
    for sample in samples:
        feeds = {name: np.asarray(array).astype(types[name]) for name, array in sample.items() if name in types}
        results.append(dict(zip(names, session.run(names, feeds), strict=True)))
    return results


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
