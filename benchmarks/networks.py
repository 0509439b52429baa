"""Compile time, functional simulation time, peak memory and instruction count per network.

    python benchmarks/networks.py resnet18 googlenet-pim [--target pim-arch-a] [--runs 3] [--csv FILE]

Builds the networks (benchmarks/build_models.py), then runs ``raptor compile`` and ``raptor simulate`` as whole
processes, one warm-up each, and compares the outputs with onnxruntime. Prints medians; ``--csv`` keeps them.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import Run, median, run

HERE = Path(__file__).resolve().parent
RAPTOR = Path(sys.executable).parent / "raptor"


def main() -> int:
    """Measure every network named and print one row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", metavar="NETWORK")
    parser.add_argument("--target", default="pim-arch-a")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network in arguments.networks:
            row = measure(network, arguments.target, arguments.runs, Path(folder))
            rows.append(row)
            print(json.dumps(row), flush=True)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return 0


def measure(network: str, target: str, runs: int, folder: Path) -> dict[str, Any]:
    """One row: medians over ``runs`` runs after a warm-up."""
    run([sys.executable, str(HERE / "build_models.py"), network, "--out", str(folder)])
    model, program = folder / f"{network}.onnx", folder / f"{network}-program"
    inputs = sample_inputs(model)
    np.savez(folder / "inputs.npz", **inputs)
    compile_command = [RAPTOR, "compile", model, "--target", target, "-o", program, "--force", "--json"]
    simulate_command = [RAPTOR, "simulate", program, "--input", folder / "inputs.npz", "-o", folder / "outputs.npz"]
    compiled = repeat([*map(str, compile_command)], runs)
    simulated = repeat([*map(str, simulate_command), "--force", "--json"], runs)
    outputs = np.load(folder / "outputs.npz")
    difference = max(float(np.abs(outputs[name] - array).max()) for name, array in reference(model, inputs).items())
    instructions = sum((file.stat().st_size - 12) // 20 for file in program.glob("core_*.pim"))
    return {
        "network": network,
        "target": target,
        "compile_seconds": round(median(compiled, "wall_seconds"), 2),
        "compile_peak_mib": round(median(compiled, "peak_mib")),
        "simulate_seconds": round(median(simulated, "wall_seconds"), 2),
        "simulate_peak_mib": round(median(simulated, "peak_mib")),
        "instructions": instructions,
        "max_difference": difference,
        "runs": runs,
        "machine": f"{platform.machine()} {platform.system()}, Python {platform.python_version()}",
    }


def repeat(command: list[str], runs: int) -> list[Run]:
    """One warm-up, then ``runs`` counted runs."""
    run(command)
    return [run(command) for _ in range(runs)]


def sample_inputs(model: Path) -> dict[str, np.ndarray]:
    """Seeded normal inputs."""
    import onnxruntime

    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return {value.name: rng.normal(size=value.shape).astype(np.float32) for value in session.get_inputs()}


def reference(model: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What onnxruntime computes, by output name."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


if __name__ == "__main__":
    sys.exit(main())
