"""``raptor compare``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import ClassVar

from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode
from raptor_performance.plugin import SOFTMAX_HELP, SOFTMAX_STAND_INS


class CompareCommand:
    """``raptor compare A B``: latency, energy, instructions, transfers, memory of two programs, with ratios."""

    name: ClassVar[str] = "compare"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "two programs side by side: latency, energy, instructions, transfers, memory"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """See raptor_core.plugins.extensions.Command."""
        parser.add_argument("first", metavar="A", help="a program: a folder, or a single file")
        parser.add_argument("second", metavar="B", help="the one to compare with it")
        parser.add_argument("--config", metavar="FILE", help="chip to time both on; default: each on its own")
        parser.add_argument("--mode", choices=("latency", "throughput"), default="latency", help="default: latency")
        parser.add_argument("--view", choices=("timing", "float32"), help="default: timing for folders made by Raptor")
        parser.add_argument("--softmax-as", choices=SOFTMAX_STAND_INS, help=SOFTMAX_HELP)

    def run(self, arguments: argparse.Namespace) -> int:
        """See raptor_core.plugins.extensions.Command."""
        from raptor_performance.comparison import compare, program_figures
        from raptor_performance.run import time_program

        console = Console(as_json=arguments.json)
        options = {
            "config": arguments.config,
            "view": arguments.view,
            "mode": arguments.mode,
            "softmax_as": arguments.softmax_as,
        }
        figures = []
        for path in (Path(arguments.first), Path(arguments.second)):
            console.progress(f"simulating {path.name}")
            figures.append(program_figures(time_program(path, options), path))
        console.end_progress()
        compared = compare(*figures)
        if arguments.json:
            console.json(
                {
                    "first": arguments.first,
                    "second": arguments.second,
                    "figures": {
                        figure.name: {"first": figure.first, "second": figure.second, "ratio": figure.ratio}
                        for figure in compared
                    },
                }
            )
            return int(ExitCode.OK)
        rows = [
            (figure.name.replace("_", " "), figure.first, figure.second, _ratio(figure.ratio)) for figure in compared
        ]
        console.table(("figure", arguments.first, arguments.second, "ratio"), rows)
        return int(ExitCode.OK)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


COMPARE = CompareCommand()
"""The object that the entry point names."""
