"""``raptor compile``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raptor_core.cli.compile_arguments import CompileArguments, compile_options, compile_parser, finish
from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode, UsageError
from raptor_core.driver.compiling import CompileResult, compile, prepare
from raptor_core.passes.instrumentation import timing_table
from raptor_core.plugins.manager import PluginManager

PROG = "raptor compile"
SUMMARY = "Compile an ONNX model, or the text of a stage, into a program folder."


def run(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    """See raptor_core.cli.commands.CommandModule."""
    parser = compile_parser(PROG, SUMMARY, words, plugins)
    parser.add_argument("-o", "--output", metavar="DIR", help="program folder; with --stop-after the file of the text")
    parser.add_argument("--stop-after", metavar="STAGE", help="stop after a pass and write its module as text")
    parser.add_argument("--print-pipeline", action="store_true", help="print the passes in order, and compile nothing")
    arguments = finish(parser, words)
    given = CompileArguments(arguments).driver_arguments()
    options = compile_options(arguments)
    if arguments.print_pipeline:
        return _print_pipeline(given, options, plugins, console)
    if arguments.model is None:
        raise UsageError("missing-argument", f"{PROG} needs MODEL", hint=f"'{PROG} --help' shows all options")
    if arguments.output is None and arguments.stop_after is None:
        raise UsageError("missing-argument", f"{PROG} needs -o DIR", reason="it says where the program folder goes")
    if arguments.json and arguments.stop_after is not None and arguments.output is None:
        raise UsageError(
            "missing-argument",
            f"{PROG} --json --stop-after needs -o FILE",
            reason="standard output holds the JSON, so the text has to go elsewhere",
        )
    result = compile(
        arguments.model,
        output=arguments.output,
        stop_after=arguments.stop_after,
        options=options,
        plugins=plugins,
        progress=console.progress,
        **given,
    )
    show_warnings(result, console)
    if arguments.json:
        console.json(as_json(result, arguments.output))
    else:
        _show(result, arguments, console)
    return int(ExitCode.OK)


def show_warnings(result: CompileResult, console: Console) -> None:
    """Warnings of a compilation, on standard error."""
    console.end_progress()
    for warning in result.warnings:
        console.message(f"warning: {warning}")


def as_json(result: CompileResult, output: str | None) -> dict[str, Any]:
    """A compilation for machines."""
    return {
        "output": output,
        "stage": result.module.stage,
        "figures": result.figures,
        "passes": [
            {"name": name, "seconds": seconds, "notes": result.passes.notes.get(name, {})}
            for name, seconds in result.passes.timings.items()
        ],
        "manifest": result.manifest,
        "warnings": result.warnings,
    }


def _show(result: CompileResult, arguments: argparse.Namespace, console: Console) -> None:
    if result.path is not None:
        console.facts({"program": result.path, **figure_names(result.figures)})
    elif arguments.output is not None:
        console.facts({"stage": result.module.stage, "text": Path(arguments.output)})
    else:
        from raptor_core.ir.printer import print_module

        text, arrays = print_module(result.module)
        console.result(text.rstrip("\n"))
        if arrays:
            console.message(f"note: {len(arrays)} large constants are not in this text; -o FILE writes them beside it")
    if arguments.time_passes:
        show = console.message if result.path is None and arguments.output is None else console.result
        show(timing_table(result.passes).rstrip("\n"))


def figure_names(figures: Any) -> dict[str, Any]:
    """Figures with their names as words."""
    return {name.replace("_", " "): value for name, value in figures.items()}


def _print_pipeline(given: dict[str, Any], options: dict[str, Any], plugins: PluginManager, console: Console) -> int:
    ready = prepare(
        plugins, given["target"], profile_file=given["profile_file"], options=options, passes=given["passes"]
    )
    if console.as_json:
        console.json({"stages": ready.pipeline.stages})
    else:
        console.result(str(ready.pipeline))
    return int(ExitCode.OK)
