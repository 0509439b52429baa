"""``raptor export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import ClassVar

from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode
from raptor_performance.plugin import SOFTMAX_STAND_INS


class ExportCommand:
    """``raptor export DIR -o OUT``: a program as a folder for the published performance simulator."""

    name: ClassVar[str] = "export"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "write a program as a folder for the published performance simulator"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """See raptor_core.plugins.extensions.Command."""
        parser.add_argument("program", metavar="DIR", help="the program: a folder, or a single file")
        parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the folder to write")
        parser.add_argument(
            "--view",
            choices=("timing", "float32"),
            default="timing",
            help="8-bit elements of one byte (timing, the default), or the program as it is (float32)",
        )
        parser.add_argument(
            "--softmax-as",
            choices=SOFTMAX_STAND_INS,
            help="write this instruction in place of every softmax, which that simulator refuses",
        )
        parser.add_argument("--config", metavar="FILE", help="chip configuration to put beside; default: its own")

    def run(self, arguments: argparse.Namespace) -> int:
        """See raptor_core.plugins.extensions.Command."""
        from raptor_performance.export import CHIP_FOLDER, export_program
        from raptor_performance.program import read_program
        from raptor_pim.artifacts.chip import load_chip

        source = Path(arguments.program)
        program = read_program(source)
        chip = Path(arguments.config) if arguments.config else program.chip_file
        configuration = load_chip(chip) if chip is not None else None
        written = export_program(
            source,
            Path(arguments.output),
            view=arguments.view,
            configuration=configuration,
            softmax=arguments.softmax_as,
        )
        figures = {
            "path": str(written),
            "view": arguments.view,
            "cores": len(program.programs),
            "instructions": program.instruction_count,
            "chip": str(written / CHIP_FOLDER) if configuration is not None else None,
        }
        console = Console(as_json=arguments.json)
        if program.softmax_count and arguments.softmax_as is None:
            console.message(
                f"warning: the program has {program.softmax_count} vsoftmax, and the published simulator refuses it: "
                "to time it there, export with --softmax-as vsigm"
            )
        if arguments.json:
            console.json(figures)
        else:
            console.facts(figures)
        return int(ExitCode.OK)


EXPORT = ExportCommand()
"""The object that the entry point names."""
