"""``raptor report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import ClassVar

from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode
from raptor_performance.plugin import SOFTMAX_HELP, SOFTMAX_STAND_INS


class ReportCommand:
    """``raptor report bound DIR``: the least time of the network, what the program takes, and why."""

    name: ClassVar[str] = "report"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "the least time of a program's network on its chip, and where the rest goes"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """See raptor_core.plugins.extensions.Command."""
        parser.add_argument("kind", metavar="KIND", choices=("bound",), help="what to report: bound")
        parser.add_argument("program", metavar="DIR", help="the program folder")
        parser.add_argument("--config", metavar="FILE", help="chip configuration; default: the program's own")
        parser.add_argument("--view", choices=("timing", "float32"), help="default: timing for folders made by Raptor")
        parser.add_argument("--softmax-as", choices=SOFTMAX_STAND_INS, help=SOFTMAX_HELP)

    def run(self, arguments: argparse.Namespace) -> int:
        """See raptor_core.plugins.extensions.Command."""
        from raptor_performance.gap import bound_report
        from raptor_performance.run import time_program

        console = Console(as_json=arguments.json)
        folder = Path(arguments.program)
        options = {
            "config": arguments.config,
            "view": arguments.view,
            "mode": "latency",
            "softmax_as": arguments.softmax_as,
        }
        console.progress("simulating")
        report = bound_report(time_program(folder, options), folder)
        console.end_progress()
        figures = report.as_json()
        if arguments.json:
            console.json(figures)
            return int(ExitCode.OK)
        achieved = report.achieved_ns or 1.0
        parts = {
            "products (bound)": report.product_ns,
            "accumulation (bound)": report.accumulation_ns,
            **{cause.replace("_", " "): value for cause, value in report.causes.items()},
            "achieved": report.achieved_ns,
        }
        rows = [(name, f"{value / 1e6:.6f}", f"{value / achieved:.1%}") for name, value in parts.items()]
        console.table(("time of an average core", "ms", "share"), rows)
        console.facts(
            {
                "bound ms": figures["bound_ms"],
                "host bound ms": figures["host_bound_ms"],
                "throughput interval": figures["least_throughput_interval_ms"],
                "achieved ms": figures["achieved_ms"],
                "achieved / bound": figures["achieved_over_bound"],
                "softmax timed as": report.softmax or "there is none",
                "predicted ms": figures["predicted_ms"],
                "achieved / predicted": figures["achieved_over_predicted"],
                "products": f"{report.products} ({report.least_products} needed)",
                "counted from": f"the {figures['source']}",
            }
        )
        return int(ExitCode.OK)


REPORT = ReportCommand()
"""The object that the entry point names."""
