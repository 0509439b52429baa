"""``raptor report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, ClassVar

from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode
from raptor_performance.plugin import SOFTMAX_HELP, SOFTMAX_STAND_INS

_MOST_LAYERS = 40


class ReportCommand:
    """``raptor report bound DIR``: the least time of the network, what the program takes, and why.

    ``raptor report critical-path DIR``: the chain of work and messages that the latency consists of.
    """

    name: ClassVar[str] = "report"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "where a program's time goes, against its network's least time or along its critical path"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """See raptor_core.plugins.extensions.Command."""
        kinds = ("bound", "critical-path")
        parser.add_argument("kind", metavar="KIND", choices=kinds, help="what to report: bound or critical-path")
        parser.add_argument("program", metavar="DIR", help="the program folder")
        parser.add_argument("--config", metavar="FILE", help="chip configuration; default: the program's own")
        parser.add_argument("--view", choices=("timing", "float32"), help="default: timing for folders made by Raptor")
        parser.add_argument("--softmax-as", choices=SOFTMAX_STAND_INS, help=SOFTMAX_HELP)

    def run(self, arguments: argparse.Namespace) -> int:
        """See raptor_core.plugins.extensions.Command."""
        from raptor_performance.critical_path import critical_path
        from raptor_performance.gap import bound_report
        from raptor_performance.run import time_program, trace_of

        console = Console(as_json=arguments.json)
        folder = Path(arguments.program)
        path_wanted = arguments.kind == "critical-path"
        options = {
            "config": arguments.config,
            "view": arguments.view,
            "mode": "latency",
            "softmax_as": arguments.softmax_as,
            "layers": path_wanted,
        }
        console.progress("simulating")
        timed = time_program(folder, options)
        report = critical_path(timed, trace_of(timed, folder)) if path_wanted else bound_report(timed, folder)
        console.end_progress()
        figures = report.as_json()
        if arguments.json:
            console.json(figures)
        elif path_wanted:
            _show_path(console, figures)
        else:
            _show_bound(console, figures)
        return int(ExitCode.OK)


def _show_bound(console: Console, figures: dict[str, Any]) -> None:
    achieved = figures["achieved_ms"]
    parts = {
        "products (bound)": figures["product_bound_ms"],
        "accumulation (bound)": figures["accumulation_bound_ms"],
        **{cause.replace("_", " "): value for cause, value in figures["gap_ms"].items()},
        "achieved": achieved,
    }
    console.table(("time of an average core", "ms", "share"), _shares(parts, achieved))
    console.facts(
        {
            "bound ms": figures["bound_ms"],
            "host bound ms": figures["host_bound_ms"],
            "throughput interval": figures["least_throughput_interval_ms"],
            "achieved ms": achieved,
            "achieved / bound": figures["achieved_over_bound"],
            "softmax timed as": figures["softmax_as"] or "there is none",
            "predicted ms": figures["predicted_ms"],
            "achieved / predicted": figures["achieved_over_predicted"],
            "products": f"{figures['products']} ({figures['least_products']} needed)",
            "counted from": f"the {figures['source']}",
        }
    )


def _show_path(console: Console, figures: dict[str, Any]) -> None:
    latency = figures["latency_ms"]
    parts = {**figures["kinds_ms"], "latency": latency}
    console.table(("time on the critical path", "ms", "share"), _shares(parts, latency))
    facts = {name: figures[name] for name in ("instructions", "messages", "hops", "cores")}
    console.facts({**facts, "softmax timed as": figures["softmax_as"] or "there is none"})
    layers = sorted(figures["layers"], key=lambda row: -row["path_us"])[:_MOST_LAYERS]
    if layers:
        print()
        console.table(
            tuple(name.replace("_us", " us") for name in layers[0]), [tuple(layer.values()) for layer in layers]
        )


def _shares(parts: dict[str, float], whole: float) -> list[tuple[str, str, str]]:
    return [(name, f"{value:.6f}", f"{value / (whole or 1.0):.1%}") for name, value in parts.items()]


REPORT = ReportCommand()
"""The object that the entry point names."""
