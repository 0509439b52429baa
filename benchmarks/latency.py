"""Latency and energy of compiled networks on the performance model, beside published figures and ablations.

    python benchmarks/latency.py [NETWORK ...] [--target pim-arch-a] [--ablation] [--softmax-as vsigm]
                                 [--csv FILE] [--plot FILE.png]

Without names: the four networks of the published comparison. Each is compiled and timed with ``raptor`` as whole
processes. ``--ablation`` also compiles with each optimisation off, one at a time, and prints latency and energy as
ratios to everything on. Networks with softmax need ``--softmax-as``, an instruction to take its time from.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import run

HERE = Path(__file__).resolve().parent
RAPTOR = str(Path(sys.executable).parent / "raptor")

PUBLISHED_MS = {
    "vgg8-pimcomp": (7.985074, 1.465778),
    "resnet18": (43.352919, 28.099952),
    "resnet34": (66.710, 45.781486),
    "googlenet-pim": (49.044, 13.371204),
}
"""On pim-arch-a: the better mapping of PIMCOMP-NN, and the C++ compiler that Raptor succeeds."""

ABLATIONS = {
    "everything on": [],
    "no layout planning": ["--no-layout-planning"],
    "one convolution strategy": ["--conv-strategy", "streamed-patch"],
    "no input staging": ["--no-input-staging"],
    "energy not weighed by the scheduler": ["--energy-weight", "0"],
    "cuts not fitted again": ["--cut-sweeps", "1"],
    "lanes not spread": ["--lane-spreading", "0"],
    "movements anywhere": ["--no-movement-in-place"],
    "events in step order": ["--no-event-ordering"],
    "one storage per value": ["--no-mirrors"],
    "no multicast": ["--no-multicast"],
}


def main() -> int:
    """Measure, print a table, and keep it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(PUBLISHED_MS), metavar="NETWORK")
    parser.add_argument("--target", default="pim-arch-a")
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--softmax-as", metavar="INSTRUCTION", help="as of 'raptor simulate'; rows then state it")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for network in arguments.networks:
            model = Path(folder) / f"{network}.onnx"
            run([sys.executable, str(HERE / "build_models.py"), network, "--out", folder])
            for label, flags in ABLATIONS.items() if arguments.ablation else [("everything on", [])]:
                rows.append(measure(model, arguments.target, label, flags, rows, arguments.softmax_as))
                print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if arguments.plot:
        draw(rows, arguments.target, arguments.plot)
    return 0


def measure(
    model: Path, target: str, label: str, flags: list[str], before: list[dict[str, Any]], softmax: str | None
) -> dict[str, Any]:
    """Compile and time once; the model is deterministic, only the compile time varies."""
    program = model.with_suffix(".program")
    compiled = run([RAPTOR, "compile", str(model), "--target", target, "-o", str(program), "--force", *flags])
    stand_in = ["--softmax-as", softmax] if softmax else []
    timed = run([RAPTOR, "simulate", str(program), "--simulator", "performance", "--json", *stand_in])
    metrics = json.loads(timed.output)["metrics"]
    network = model.stem
    full = next((row for row in before if row["network"] == network), None)
    latency, energy = metrics["latency_ms"], metrics["energy_pj"] / 1e9
    pimcomp, predecessor = PUBLISHED_MS.get(network, (None, None)) if target == "pim-arch-a" else (None, None)
    return {
        "network": network,
        "target": target,
        "variant": label,
        "latency_ms": round(latency, 6),
        "energy_mj": round(energy, 6),
        "instructions": metrics["instructions"],
        "compile_seconds": round(compiled.wall_seconds, 1),
        "latency_ratio": round(latency / full["latency_ms"], 3) if full else 1.0,
        "energy_ratio": round(energy / full["energy_mj"], 3) if full else 1.0,
        "times_faster_than_pimcomp": round(pimcomp / latency, 1) if pimcomp else "",
        "times_faster_than_predecessor": round(predecessor / latency, 1) if predecessor else "",
        **({"softmax_as": metrics.get("softmax_as", "")} if softmax else {}),
    }


def draw(rows: list[dict[str, Any]], target: str, path: Path) -> None:
    """Latency of every row, beside the published figures where there are any."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(9, 0.5 + 0.7 * len(rows)), layout="constrained")
    for k, row in enumerate(rows):
        axis.barh(k, row["latency_ms"], color="tab:blue", label="Raptor" if k == 0 else None)
        published = PUBLISHED_MS.get(row["network"]) if target == "pim-arch-a" else None
        for value, marker, name in zip(published or (), "sD", ("PIMCOMP-NN", "predecessor"), strict=False):
            axis.plot(value, k, marker, color="black" if marker == "s" else "grey", label=name if k == 0 else None)
    axis.set_yticks(range(len(rows)), [f"{row['network']}, {row['variant']}" for row in rows])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel(f"latency on {target} (ms, logarithmic)")
    axis.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
