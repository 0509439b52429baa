"""Bounds, predictions and achieved latencies of networks, and where the time between them goes.

    python benchmarks/bounds.py NETWORK[@CHIP] ... [--csv FILE]

Builds every network (benchmarks/build_models.py), compiles it for the chip (default: pim-arch-a) and runs ``raptor
report bound``, softmax timed as ``vsigm``, all as whole processes. One row per network and chip, on standard output and
in the file. A network that cannot be compiled or timed has no row, but a line on standard error.
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
CHIP = "pim-arch-a"

FIGURES = (
    "bound_ms",
    "host_bound_ms",
    "achieved_ms",
    "achieved_over_bound",
    "predicted_ms",
    "products",
    "least_products",
)
CAUSES = (
    "padding_waste",
    "shared_windows",
    "other_vector_work",
    "copies_and_clears",
    "register_loads_and_dispatch",
    "transfers",
    "waiting_for_peers",
    "waiting_for_tokens",
    "host_traffic",
    "imbalance",
    "unused_cores",
)
COLUMNS = ("network", "chip", *FIGURES, *(f"{cause}_ms" for cause in CAUSES))


def main() -> int:
    """Measure every network named, and write each row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", metavar="NETWORK[@CHIP]")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    streams = [sys.stdout]
    with tempfile.TemporaryDirectory() as folder:
        if arguments.csv:
            streams.append(arguments.csv.open("w", newline=""))
        write(streams, COLUMNS)
        for wanted in arguments.networks:
            network, _, chip = wanted.partition("@")
            model = Path(folder) / f"{network}.onnx"
            if not model.exists():
                run([sys.executable, str(HERE / "build_models.py"), network, "--out", folder])
            try:
                figures = bound(model, chip or CHIP)
            except SystemExit as failed:
                _, error, *_ = str(failed).splitlines()
                print(f"{network} on {chip or CHIP}: {error}", file=sys.stderr, flush=True)
                continue
            write(streams, row(network, chip or CHIP, figures))
    for stream in streams[1:]:
        stream.close()
    return 0


def bound(model: Path, chip: str) -> dict[str, Any]:
    """The report of ``raptor report bound``. Raises SystemExit with the command and its messages when it fails."""
    program = str(model.with_suffix(".program"))
    run([RAPTOR, "compile", str(model), "--target", chip, "-o", program, "--force"])
    report = run([RAPTOR, "report", "bound", program, "--softmax-as", "vsigm", "--json"])
    figures: dict[str, Any] = json.loads(report.output)
    return figures


def row(network: str, chip: str, figures: dict[str, Any]) -> list[str]:
    """The texts of one row."""
    values = [*(figures[name] for name in FIGURES), *(figures["gap_ms"][cause] for cause in CAUSES)]
    return [network, chip, *(f"{value:.6g}" if isinstance(value, float) else str(value) for value in values)]


def write(streams: list[Any], values: Any) -> None:
    """One row to every stream."""
    for stream in streams:
        csv.writer(stream, lineterminator="\n").writerow(values)
        stream.flush()


if __name__ == "__main__":
    sys.exit(main())
