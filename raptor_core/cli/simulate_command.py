"""``raptor simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raptor_core.cli.arguments import SIMULATE, CommandParser, OptionFlags, add_common, given_options, peek
from raptor_core.cli.arrays import check_output, read_samples, write_arrays
from raptor_core.cli.compile_command import figure_names
from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode, RaptorError
from raptor_core.driver.programs import program_reader
from raptor_core.driver.samples import stacked
from raptor_core.driver.simulating import DEFAULT_SIMULATOR, SIMULATORS, simulate
from raptor_core.plugins.manager import PluginManager
from raptor_core.simulation.contract import SimulationResult

PROG = "raptor simulate"
SUMMARY = "Run a program folder in a simulator."


def run(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    """See raptor_core.cli.commands.CommandModule."""
    parser = CommandParser(PROG, SUMMARY)
    parser.add_argument("program", metavar="DIR", help="the program folder")
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the outputs (.npz)")
    add_input(parser)
    parser.add_argument("--force", action="store_true", help="overwrite the output file")
    add_simulator(parser, words, plugins)
    add_common(parser)
    arguments = parser.parse(words)
    check_output(arguments.output, arguments.force)
    folder = Path(arguments.program)
    samples: list[Any] | None = None
    if arguments.input:
        samples = read_samples(arguments.input, program_reader(plugins, folder).signature(folder).inputs)
    console.progress("simulating")
    result = simulate(
        folder, samples, simulator=arguments.simulator, options=given_options(arguments, SIMULATE), plugins=plugins
    )
    console.end_progress()
    outputs = stacked(result.outputs)
    if arguments.output is not None:
        write_arrays(arguments.output, outputs)
    if arguments.json:
        console.json(simulation_json(result, arguments.output))
        return int(ExitCode.OK)
    if outputs:
        console.table(("output", "shape", "type"), output_rows(result))
    console.facts(figure_names(short_metrics(result.metrics)))
    for rows in result.tables.values():
        if rows:
            console.table([name.upper() for name in rows[0]], [list(row.values()) for row in rows])
    if arguments.output is not None:
        console.facts({"outputs": arguments.output})
    return int(ExitCode.OK)


def add_input(parser: CommandParser) -> None:
    """The option for input files."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help="arrays by input name (.npz), or one array for a single input (.npy); one more axis in front makes a "
        "batch; given again, it adds samples",
    )


def add_simulator(parser: CommandParser, words: Sequence[str], plugins: PluginManager) -> None:
    """The option for the simulator, and the simulator's own."""
    names = ", ".join(plugins.names(SIMULATORS))
    parser.add_argument(
        "--simulator",
        metavar="NAME",
        default=DEFAULT_SIMULATOR,
        help=f"what runs the program (default: {DEFAULT_SIMULATOR}); installed: {names or 'none'}",
    )
    name = peek(words, ("--simulator",)).simulator or DEFAULT_SIMULATOR
    OptionFlags(plugins.get(SIMULATORS, name).options, SIMULATE).add_to(parser, f"options of simulator '{name}'")
    parser.find_owner = lambda flag: _other_simulator(flag, plugins)


def _other_simulator(flag: str, plugins: PluginManager) -> tuple[str, str] | None:
    """The installed simulator that declares a flag, and how to choose it."""
    for name in plugins.names(SIMULATORS):
        try:
            declared = OptionFlags(plugins.get(SIMULATORS, name).options, SIMULATE)
        except RaptorError:  # a broken plugin is not what the user asked for
            continue
        if declared.has(flag):
            return f"simulator '{name}'", f"choose that simulator with --simulator {name}"
    return None


def output_rows(result: SimulationResult) -> list[tuple[object, ...]]:
    """Name, shape and type of every output, with the number of samples when there are several."""
    return [
        (name, "x".join(map(str, array.shape)) or "scalar", str(array.dtype))
        for name, array in stacked(result.outputs).items()
    ]


def simulation_json(result: SimulationResult, output: str | None) -> dict[str, Any]:
    """A simulation for machines. Arrays stand in the output file, here only what they are."""
    return {
        "output": output,
        "samples": len(result.outputs),
        "outputs": [
            {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)}
            for name, array in stacked(result.outputs).items()
        ],
        "metrics": result.metrics,
        "tables": result.tables,
    }


def short_metrics(metrics: Any) -> dict[str, Any]:
    """The metrics that fit on a line; JSON has all of them."""
    return {name: value for name, value in metrics.items() if isinstance(value, bool | int | float | str)}
