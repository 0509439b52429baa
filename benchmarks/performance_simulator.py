"""How fast the performance simulator is, on a program of some million instructions over 168 cores.

    python benchmarks/performance_simulator.py [--instructions 2000000] [--rob-size 1] [--runs 5] [--csv FILE]

Cores work on products, vectors and local moves, and exchange data in pairs; addresses are loaded before every
instruction, as compiled programs do. The first run compiles or loads the kernels and is not counted.
"""

from __future__ import annotations

import argparse
import csv
import platform
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from raptor_performance.engine import run_programs
from raptor_pim.artifacts.chip import load_chip
from raptor_pim.artifacts.mesh import read_mesh
from raptor_pim.isa.assembler import assemble
from raptor_pim.profiles import ARCH_A


def block(core: int) -> list[dict[str, Any]]:
    """One round of work of a core and its exchange with its neighbour."""
    load = [{"op": "sldi", "rd": r, "imm": 1000 * r} for r in range(3)]
    result: list[dict[str, Any]] = []
    for turn in range(8):
        result += [*load[:2], {"op": "lmv", "rd": 0, "rs1": 1, "len": 64 + turn}]
    result += [*load[:2], {"op": "mvmul", "rd": 0, "rs1": 1, "mbiw": 8, "group": 0}]
    for _ in range(3):
        result += [*load, {"op": "vvadd", "rd": 0, "rs1": 1, "rs2": 2, "len": 128}]
    result += [load[0], {"op": "vrelu", "rd": 0, "rs1": 0, "len": 128}]
    to_next = {"op": "send" if core % 2 == 0 else "recv", "rd": 0, "core": core ^ 1, "size": 128}
    from_next = {"op": "recv" if core % 2 == 0 else "send", "rd": 0, "core": core ^ 1, "size": 64}
    return [*result, to_next, from_next, {"op": "ld", "rd": 0, "rs1": 0, "size": 32}]


def main() -> int:
    """Time the simulation ``--runs`` times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", type=int, default=2_000_000)
    parser.add_argument("--rob-size", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="file to add the figures to")
    arguments = parser.parse_args()
    chip = load_chip(ARCH_A.configuration)
    core = attrs.evolve(chip.chip_config.core_config, rob_size=arguments.rob_size)
    chip = attrs.evolve(chip, chip_config=attrs.evolve(chip.chip_config, core_config=core))
    mesh = read_mesh(chip)
    widths = assemble([{"op": "setbw", "ibiw": 8, "obiw": 8}])
    programs = []
    for number in range(chip.core_count):
        records = assemble(block(number))
        turns = max(arguments.instructions // chip.core_count // records.size, 1)
        programs.append(np.concatenate([widths, np.tile(records, turns)]))
    groups = [(1,)] * chip.core_count
    count = sum(int(records.size) for records in programs)
    small = [records[:100] for records in programs]
    run_programs(chip, mesh, small, groups)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(arguments.runs):
        begin = time.perf_counter()
        run_programs(chip, mesh, programs, groups)
        seconds.append(time.perf_counter() - begin)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / count
    middle = statistics.median(seconds)
    print(f"{count} instructions, rob_size {arguments.rob_size}: median {middle:.3f} s")
    print(f"{count / middle / 1e6:.1f} million instructions per second; {more:.0f} bytes per instruction beside them")
    if arguments.csv is not None:
        keep(
            arguments.csv,
            {
                "instructions": count,
                "cores": chip.core_count,
                "rob_size": arguments.rob_size,
                "median_seconds": round(middle, 4),
                "instructions_per_second": round(count / middle),
                "bytes_per_instruction": round(more),
                "python": platform.python_version(),
                "machine": platform.machine(),
            },
        )
    return 0


def keep(path: Path, figures: dict[str, Any]) -> None:
    """Add a row to a CSV file."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(figures))
        if new:
            writer.writeheader()
        writer.writerow(figures)


if __name__ == "__main__":
    sys.exit(main())
