"""``raptor inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from raptor_core.cli.arguments import CommandParser, add_common, number
from raptor_core.cli.compile_command import figure_names
from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode, UsageError
from raptor_core.driver.programs import program_reader
from raptor_core.options import Option
from raptor_core.plugins.manager import PluginManager

PROG = "raptor inspect"
SUMMARY = "Look into a program folder: figures of the whole, or the instructions of one core."

_CORE = Option("core", int, "core whose instructions to show", minimum=0)
_FROM = Option("from", int, "program counter of the first instruction", default=0, minimum=0)
_COUNT = Option("count", int, "number of instructions", default=20, minimum=1)


def run(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    """See raptor_core.cli.commands.CommandModule."""
    parser = CommandParser(PROG, SUMMARY)
    parser.add_argument("program", metavar="DIR", help="the program folder")
    parser.add_argument("--target", metavar="NAME", help="target of a program whose folder does not say it")
    parser.add_argument("--core", metavar="N", help=_CORE.help)
    parser.add_argument("--from", dest="start", metavar="PC", help=f"{_FROM.help} (default: {_FROM.default})")
    parser.add_argument("--count", metavar="K", help=f"{_COUNT.help} (default: {_COUNT.default})")
    add_common(parser)
    arguments = parser.parse(words)
    core, start, count = (
        number(_CORE, arguments.core),
        number(_FROM, arguments.start),
        number(_COUNT, arguments.count),
    )
    if core is None and (arguments.start is not None or arguments.count is not None):
        raise UsageError(
            "missing-argument", f"{PROG} needs --core N", reason="--from and --count are about one core's instructions"
        )
    folder = Path(arguments.program)
    reader = program_reader(plugins, folder, arguments.target)
    if core is None:
        figures = reader.figures(folder)
        if console.as_json:
            console.json(figures)
        else:
            _show_figures(figures, console)
        return int(ExitCode.OK)
    lines = reader.disassemble(folder, core, start, count)
    if console.as_json:
        console.json({"core": core, "instructions": [{"pc": pc, "text": text} for pc, text in lines]})
    else:
        width = max((len(str(pc)) for pc, _ in lines), default=1)
        for pc, text in lines:
            console.result(f"{pc:>{width}}  {text}")
    return int(ExitCode.OK)


def _show_figures(figures: object, console: Console) -> None:
    """Plain values one a line; lists of tensors as ``name shape``."""
    assert hasattr(figures, "items")
    shown = {}
    for name, value in figures.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = ", ".join(f"{v.get('name')} [{', '.join(map(str, v.get('shape', ())))}]" for v in value)
        shown[name] = value
    console.facts(figure_names(shown))
