"""``raptor compare``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import ClassVar

from raptor_core.cli.arguments import WordsAction
from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode
from raptor_performance.plugin import SOFTMAX_HELP, SOFTMAX_STAND_INS


class CompareCommand:
    """``raptor compare A B``: latency, energy, instructions, transfers, memory of two programs, with ratios.

    A model in place of a program is compiled first, so that two sets of options can be compared.
    """

    name: ClassVar[str] = "compare"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "two programs side by side: latency, energy, instructions, transfers, memory"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """See raptor_core.plugins.extensions.Command."""
        parser.add_argument(
            "first", metavar="A", help="a program (a folder, or a single file), or a model to compile (.onnx, .rir)"
        )
        parser.add_argument(
            "second", metavar="B", nargs="?", help="the one to compare with it; default: A, with other options"
        )
        parser.add_argument("--target", metavar="NAME", help="hardware profile or target to compile models for")
        for side, letter in (("first", "A"), ("second", "B")):
            parser.add_argument(
                f"--{side}-options",
                action=WordsAction,
                metavar="TEXT",
                help=f"options of 'raptor compile' for {letter} alone, in one text: \"--no-mirrors --seed 3\"",
            )
        parser.add_argument("--config", metavar="FILE", help="chip to time both on; default: each on its own")
        parser.add_argument("--mode", choices=("latency", "throughput"), default="latency", help="default: latency")
        parser.add_argument("--view", choices=("timing", "float32"), help="default: timing for folders made by Raptor")
        parser.add_argument("--softmax-as", choices=SOFTMAX_STAND_INS, help=SOFTMAX_HELP)

    def run(self, arguments: argparse.Namespace) -> int:
        """See raptor_core.plugins.extensions.Command."""
        from raptor_performance.commands.compared_sides import read_sides
        from raptor_performance.comparison import compare, program_figures
        from raptor_performance.run import time_program

        console = Console(as_json=arguments.json)
        options = {
            "config": arguments.config,
            "view": arguments.view,
            "mode": arguments.mode,
            "softmax_as": arguments.softmax_as,
        }
        first, second, plugins = read_sides(arguments)
        figures, assumed = [], None
        with tempfile.TemporaryDirectory(prefix="raptor-") as folder:
            programs = [
                side.program(Path(folder) / name, plugins, console) for side, name in ((first, "A"), (second, "B"))
            ]
            for program in programs:
                console.progress(f"simulating {program.name}")
                timed = time_program(program, options)
                figures.append(program_figures(timed, program))
                assumed = assumed or timed.softmax
        console.end_progress()
        compared = compare(*figures)
        if arguments.json:
            console.json(
                {
                    "first": first.name,
                    "second": second.name,
                    "softmax_as": assumed,
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
        console.table(("figure", first.name, second.name, "ratio"), rows)
        if arguments.softmax_as:
            console.facts({"softmax timed as": assumed or "there is none"})
        return int(ExitCode.OK)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


COMPARE = CompareCommand()
"""The object that the entry point names."""
