"""``raptor import-pimcomp``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import ClassVar

from raptor_core.cli.console import Console
from raptor_core.diagnostics import ExitCode


class ImportCommand:
    """``raptor import-pimcomp FILE --model MODEL -o DIR``: a checked PIMCOMP-NN program as a program folder."""

    name: ClassVar[str] = "import-pimcomp"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "make a program folder of a checked program of PIMCOMP-NN"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """See raptor_core.plugins.extensions.Command."""
        parser.add_argument("stream", metavar="FILE", help="VerificationInfo.json of PIMCOMP-NN, plain or gzip")
        parser.add_argument("--model", required=True, metavar="MODEL", help="the ONNX model it was compiled from")
        parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the program folder to write")
        parser.add_argument("--config", metavar="FILE", help="configuration of the chip it was compiled for")
        parser.add_argument("--force", action="store_true", help="overwrite a program folder")

    def run(self, arguments: argparse.Namespace) -> int:
        """See raptor_core.plugins.extensions.Command."""
        from raptor_core import __version__
        from raptor_pim.artifacts import write_artifact
        from raptor_pim.artifacts.chip import load_chip
        from raptor_pim.artifacts.export_chip import chip_files
        from raptor_pim.artifacts.mesh import read_mesh
        from raptor_pimcomp.importer import import_stream
        from raptor_pimcomp.stream import read_stream

        configuration = load_chip(Path(arguments.config)) if arguments.config else None
        artifact = import_stream(read_stream(Path(arguments.stream)), arguments.model, configuration)
        written = write_artifact(
            Path(arguments.output),
            artifact,
            manifest_fields={
                "raptor_version": __version__,
                "target": "pim",
                "imported_from": "PIMCOMP-NN",
                "model": {"file": Path(arguments.model).name},
            },
            overwrite=arguments.force,
            extra_files=chip_files(configuration, read_mesh(configuration)) if configuration is not None else {},
        )
        figures = {
            "path": str(written),
            "instructions": artifact.instruction_count,
            "cores in use": sum(1 for records in artifact.programs if records.size),
            "crossbars": sum(map(sum, artifact.config.array_group_map)),
        }
        console = Console(as_json=arguments.json)
        if arguments.json:
            console.json({name.replace(" ", "_"): value for name, value in figures.items()})
        else:
            console.facts(figures)
        return int(ExitCode.OK)


IMPORT = ImportCommand()
"""The object that the entry point names."""
