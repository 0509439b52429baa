"""``raptor run``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs

from raptor_core.cli.arguments import SIMULATE, given_options, number
from raptor_core.cli.arrays import check_output, read_samples, write_arrays
from raptor_core.cli.compile_arguments import CompileArguments, compile_options, compile_parser, finish
from raptor_core.cli.compile_command import as_json, figure_names, show_warnings
from raptor_core.cli.console import Console
from raptor_core.cli.simulate_command import add_input, add_simulator, short_metrics, simulation_json
from raptor_core.diagnostics import ExitCode, UsageError
from raptor_core.driver.comparing import ATOL, RTOL, OutputComparison
from raptor_core.driver.compile_options import CORE_OPTIONS
from raptor_core.driver.running import RunResult
from raptor_core.driver.running import run as run_model
from raptor_core.driver.samples import stacked
from raptor_core.options import Option
from raptor_core.passes.instrumentation import timing_table
from raptor_core.plugins.manager import PluginManager

PROG = "raptor run"
SUMMARY = "Compile a model, simulate it, and compare the outputs with onnxruntime when it is installed."

_ATOL = Option("atol", float, "absolute tolerance of the comparison", default=ATOL, minimum=0)
_RTOL = Option("rtol", float, "relative tolerance of the comparison", default=RTOL, minimum=0)
_SEED = next(option for option in CORE_OPTIONS if option.name == "seed")


def run(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    """See raptor_core.cli.commands.CommandModule. The exit code is INPUT when the outputs differ too much."""
    parser = compile_parser(PROG, SUMMARY, words, plugins)
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the outputs (.npz)")
    parser.add_argument("--program", metavar="DIR", help="keep the program folder (default: a temporary one)")
    add_input(parser)
    for option in (_ATOL, _RTOL):
        parser.add_argument(option.flag, metavar="X", help=f"{option.help} (default: {option.default:g})")
    add_simulator(parser, words, plugins)
    parser.epilog = "Without --input, one sample of random numbers (--seed) is run."
    arguments = finish(parser, words)
    if arguments.model is None:
        raise UsageError("missing-argument", f"{PROG} needs MODEL", hint=f"'{PROG} --help' shows all options")
    atol, rtol = number(_ATOL, arguments.atol), number(_RTOL, arguments.rtol)
    options = compile_options(arguments)
    check_output(arguments.output, arguments.force)
    result = run_model(
        arguments.model,
        partial(read_samples, arguments.input) if arguments.input else None,
        output=arguments.program,
        simulator=arguments.simulator,
        simulator_options=given_options(arguments, SIMULATE),
        seed=number(_SEED, options.get("seed")),
        atol=atol,
        rtol=rtol,
        options=options,
        plugins=plugins,
        progress=console.progress,
        **CompileArguments(arguments).driver_arguments(),
    )
    show_warnings(result.compilation, console)
    if arguments.output is not None:
        write_arrays(arguments.output, stacked(result.simulation.outputs))
    if arguments.json:
        console.json(_as_json(result, arguments.program, arguments.output))
    else:
        _show(result, console)
        if arguments.time_passes:
            console.result(timing_table(result.compilation.passes).rstrip("\n"))
    return int(ExitCode.INPUT if result.comparison.passed is False else ExitCode.OK)


def _show(result: RunResult, console: Console) -> None:
    console.facts(figure_names({**result.compilation.figures, **short_metrics(result.simulation.metrics)}))
    comparison = result.comparison
    if comparison.not_compared is not None:
        console.result(f"not compared: {comparison.not_compared}")
        return
    rows = [
        (o.name, f"{o.max_abs:.3e}", f"{o.max_rel:.3e}", _within(o), "pass" if o.passed else "FAIL")
        for o in comparison.outputs
    ]
    console.table(("output", "max abs difference", "max rel difference", "within tolerance", "verdict"), rows)


def _within(output: OutputComparison) -> str:
    return f"{output.elements - output.failing} of {output.elements}"


def _as_json(result: RunResult, program: str | None, output: str | None) -> dict[str, Any]:
    comparison = result.comparison
    return {
        "compilation": as_json(result.compilation, program),
        "simulation": simulation_json(result.simulation, output),
        "comparison": {
            "passed": comparison.passed,
            "not_compared": comparison.not_compared,
            "outputs": [attrs.asdict(o) for o in comparison.outputs],
        },
    }
