"""Programs with the figures that the reference simulator printed for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raptor_core.options import resolve_options
from raptor_core.simulation.contract import SimulationRequest
from raptor_performance.plugin import SIMULATOR

FOLDER = Path(__file__).parents[1] / "golden" / "performance"
CASES = sorted(FOLDER.glob("*.json"))

COUNTS = {"latency_ms", "output_count", "throughput_per_s", "average_latency_ms"}
"""What was printed exactly; power and energy are sums of rounded terms."""
PRINTED = 6e-10
"""Ten digits were printed of everything but energies."""


def test_the_corpus_is_there() -> None:
    assert len(CASES) == 103


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, chip_folder: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    configuration = case["config"]
    network = chip_folder / configuration["chip_config"]["network_config"]["net_config_file_path"]
    configuration["chip_config"]["network_config"]["net_config_file_path"] = str(network)
    (tmp_path / "chip.json").write_text(json.dumps(configuration))
    (tmp_path / "program.json").write_text(json.dumps(case["program"]))
    options = resolve_options(SIMULATOR.options, {"config": str(tmp_path / "chip.json")}, owner="performance")
    metrics = SIMULATOR.simulate(SimulationRequest(tmp_path / "program.json", options=options)).metrics
    for name, expected in case["expected"].items():
        tolerance = case["relative_tolerance"] or (PRINTED if name in COUNTS else 1e-9)
        assert metrics[name] == pytest.approx(expected, rel=tolerance, abs=0), name


@pytest.mark.parametrize(
    ("name", "latency_ms", "energy_pj"),
    [
        ("vgg8-arch-a-element-ga", 7.985074, 1597904071.12),
        ("vgg8-arch-a-element-balance", 8.340250, 1657884283.12),
    ],
)
def test_streams_of_another_compiler(name: str, latency_ms: float, energy_pj: float, chip_folder: Path) -> None:
    path = FOLDER.parent / "pimcomp" / f"{name}.json.gz"
    given = {"config": str(chip_folder / "latency_config.json")}
    options = resolve_options(SIMULATOR.options, given, owner="performance")
    metrics = SIMULATOR.simulate(SimulationRequest(path, options=options)).metrics
    assert metrics["latency_ms"] == pytest.approx(latency_ms, rel=5e-5)
    assert metrics["energy_pj"] == pytest.approx(energy_pj, rel=5e-5)
