"""Everything that must hold before a change lands: lint, format, types, import contracts, tests.

Runs with the interpreter of the environment that holds the ``dev`` extra; stops at the first failure.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

STEPS = (
    ("lint", [BIN / "ruff", "check", "."]),
    ("format", [BIN / "ruff", "format", "--check", "."]),
    ("types", [BIN / "mypy"]),
    ("imports", [BIN / "lint-imports"]),
    ("tests", [sys.executable, "-m", "pytest", "-q", "-n", "2"]),
)


def main() -> int:
    """Run every step in order; the exit code of the first that fails, else 0."""
    for name, command in STEPS:
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        done = subprocess.run([str(part) for part in command], cwd=ROOT, check=False)
        print(
            f"== {name}: {'ok' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - begin:.0f} s", flush=True
        )
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
