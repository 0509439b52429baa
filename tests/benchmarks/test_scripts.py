"""The scripts that fill benchmarks/results, on networks that take seconds."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def script(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / name), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_bounds(tmp_path: Path) -> None:
    file = tmp_path / "bounds.csv"
    done = script("bounds.py", "mlp-mnist", "mlp-mnist@no-chip", "mlp-mnist@pim-standard", "--csv", str(file))
    assert done.returncode == 0, done.stderr
    (failed,) = done.stderr.splitlines()
    assert failed.startswith("mlp-mnist on no-chip: error[")
    assert file.read_text() == done.stdout
    with file.open() as text, (ROOT / "benchmarks" / "results" / "bounds.csv").open() as kept:
        rows, recorded = csv.DictReader(text), csv.DictReader(kept)
        assert rows.fieldnames == recorded.fieldnames
        found = list(rows)
        assert {"mlp-mnist"} <= {row["network"] for row in recorded}
    assert [(row["network"], row["chip"]) for row in found] == [
        ("mlp-mnist", "pim-arch-a"),
        ("mlp-mnist", "pim-standard"),
    ]
    for row in found:
        assert all(row.values())
        assert float(row["achieved_ms"]) >= float(row["bound_ms"]) > 0


def test_latency_of_a_network_with_softmax(tmp_path: Path) -> None:
    file = tmp_path / "latency.csv"
    done = script("latency.py", "ds-cnn", "--softmax-as", "vsigm", "--csv", str(file))
    assert done.returncode == 0, done.stderr
    with file.open() as text:
        (row,) = csv.DictReader(text)
    assert (row["network"], row["softmax_as"]) == ("ds-cnn", "vsigm")
    assert float(row["latency_ms"]) > 0
