"""A run as a picture: which core did what when, and where the energy went."""

from __future__ import annotations

import base64
import importlib.util
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import UsageError
from raptor_performance.traced import UNITS, Traced

_COLUMNS = 1400
_COLORS = ("#2b6cb0", "#38a169", "#d69e2e", "#805ad5", "#e53e3e", "#ed8936", "#718096")
_IDLE = "#f7fafc"
_ENERGY_COLORS = ("#234e52", "#319795", "#81e6d9", "#97266d", "#ed64a6", "#fbb6ce", "#4a5568", "#a0aec0", "#744210")


def write_plot(path: Path, traced: Traced, cores: int, metrics: Mapping[str, Any], title: str) -> None:
    """Write a PNG, or an HTML page that holds it.

    Raises UsageError for another file ending, or without matplotlib.
    """
    check_plot(path)
    import matplotlib

    matplotlib.use("Agg")
    image = _image(traced, cores, metrics, title)
    if path.suffix == ".html":
        encoded = base64.b64encode(image).decode()
        page = f'<!doctype html><meta charset="utf-8"><title>{_escaped(title)}</title>'
        image = (page + f'<img style="max-width:100%" alt="occupancy" src="data:image/png;base64,{encoded}">').encode()
    temporary = path.with_name(f".{path.name}.partial")
    try:
        temporary.write_bytes(image)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_plot(path: Path) -> None:
    """Raises UsageError for a file ending other than .png and .html, or without matplotlib."""
    if path.suffix not in (".png", ".html"):
        raise UsageError("bad-option-value", f"bad value '{path}' for --plot", reason="it must end in .png or .html")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "missing-package",
            "pictures need matplotlib, which is not installed",
            hint="pip install 'raptor-pim[demo]'",
        )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def occupancy(traced: Traced, cores: int, end_ns: float) -> npt.NDArray[np.int64]:
    """[cores, columns]: the unit that is busy longest in each slice of time, -1 where the core does nothing."""
    width = max(end_ns, 1.0) / _COLUMNS
    busy = np.zeros((cores * _COLUMNS, len(UNITS)))
    first = np.minimum((traced.start / width).astype(np.int64), _COLUMNS - 1)
    last = np.minimum((traced.end / width).astype(np.int64), _COLUMNS - 1)
    for step in range(int((last - first).max(initial=0)) + 1):
        spans = np.flatnonzero(first + step <= last)
        column = first[spans] + step
        begin = np.maximum(traced.start[spans], column * width)
        share = np.maximum(np.minimum(traced.end[spans], (column + 1) * width) - begin, 0)
        np.add.at(busy, (traced.core[spans] * _COLUMNS + column, traced.unit[spans]), share)
    unit = busy.argmax(axis=1)
    unit[busy.max(axis=1) < 0.02 * width] = -1
    return np.asarray(unit.reshape(cores, _COLUMNS), dtype=np.int64)


def _image(traced: Traced, cores: int, metrics: Mapping[str, Any], title: str) -> bytes:
    from matplotlib import pyplot
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    end_ns = float(traced.end.max(initial=1.0))
    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(12, 8), height_ratios=(5, 1), layout="constrained")
    units = occupancy(traced, cores, end_ns)
    colors = ListedColormap([_IDLE, *_COLORS])
    extent = (0, end_ns / 1000, cores - 0.5, -0.5)
    upper.imshow(units, aspect="auto", cmap=colors, vmin=-1.5, vmax=6.5, extent=extent, interpolation="nearest")
    upper.set_xlabel("time (microseconds)")
    upper.set_ylabel("core")
    upper.set_title(title)
    names = [f"{unit} (waiting included)" if unit in ("host", "send", "receive") else unit for unit in UNITS]
    patches = [Patch(color=color, label=name) for color, name in zip(_COLORS, names, strict=True)]
    patches.append(Patch(facecolor=_IDLE, edgecolor="#a0aec0", label="nothing"))
    upper.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncol=len(patches), fontsize=8)
    _energy_bar(lower, metrics["energy"])
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": "Raptor"})
    pyplot.close(figure)
    return buffer.getvalue()


def _energy_bar(axis: Any, energy: Mapping[str, Any]) -> None:
    """One stacked bar of the parts of the energy that count, in microjoules."""
    parts = {f"{name} (static)": value for name, value in energy["static_pj"].items()} | dict(energy["dynamic_pj"])
    shown = sorted(((value, name) for name, value in parts.items() if value > 0), reverse=True)
    left = 0.0
    for number, (value, name) in enumerate(shown):
        width = value / 1e6
        label = f"{name.replace('_', ' ')}: {width:.4g} uJ ({value / energy['total_pj']:.0%})"
        axis.barh(0, width, left=left, color=_ENERGY_COLORS[number % len(_ENERGY_COLORS)], label=label)
        left += width
    axis.set_yticks([])
    axis.set_xlabel("energy (microjoules)")
    axis.set_xlim(0, left or 1)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45), ncol=3, fontsize=8)
