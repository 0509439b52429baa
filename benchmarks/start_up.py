"""How long the command line takes to start: medians of ``raptor --help`` and ``raptor plugins list``.

    python benchmarks/start_up.py [--runs 21]

Bare Python is measured along with them, in turn, and the ratio to it is printed too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from measure import run

RAPTOR = str(Path(sys.executable).parent / "raptor")
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "raptor --help": [RAPTOR, "--help"],
    "raptor plugins list": [RAPTOR, "plugins", "list"],
    "raptor targets list": [RAPTOR, "targets", "list"],
}


def main() -> int:
    """Run all commands in turn, ``--runs`` times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=21)
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(arguments.runs + 1):
        for name, command in COMMANDS.items():
            wall = run(command).wall_seconds
            if turn:
                seconds[name].append(wall)
    bare = statistics.median(seconds["python -c pass"])
    for name, walls in seconds.items():
        middle = statistics.median(walls)
        spread = f"least {min(walls):6.3f}   most {max(walls):6.3f}"
        print(f"{name:24} median {middle:6.3f} s   {spread}   x{middle / bare:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
