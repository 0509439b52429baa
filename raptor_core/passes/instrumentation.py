"""Observers and reports of pipelines: the module's text after every pass, and a table of times."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from raptor_core.diagnostics import UsageError
from raptor_core.ir.files import write_module
from raptor_core.ir.module import Module
from raptor_core.passes.base import PassResult
from raptor_core.passes.pipeline import PipelineResult

_DUMP_NAME = re.compile(r"\d\d+-.*\.rir(\.npz)?")


@attrs.define
class IrDumper:
    """Writes the first module and the one after each pass to ``folder``: ``00-graph.rir``, ``01-lower.rir``, ...

    Dumps of an earlier run in the folder are removed first; other files stay.
    """

    folder: Path
    _count: int = attrs.field(default=0, init=False)

    def before_pass(self, name: str, module: Module) -> None:
        """Write the module that the first pass gets. Raises UsageError when the folder cannot be written."""
        if self._count == 0:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                for old in self.folder.iterdir():
                    if _DUMP_NAME.fullmatch(old.name):
                        old.unlink()
            except OSError as error:
                raise UsageError(
                    "cannot-dump",
                    "cannot write the IR dumps",
                    where=str(self.folder),
                    reason=error.strerror or str(error),
                ) from error
            self._write(module.stage, module)

    def after_pass(self, name: str, result: PassResult, seconds: float) -> None:
        """Write the module that the pass made."""
        self._write(name, result.module)

    def _write(self, stage: str, module: Module) -> None:
        write_module(module, self.folder / f"{self._count:02d}-{_file_word(stage)}.rir")
        self._count += 1


def timing_table(result: PipelineResult) -> str:
    """One line per pass: milliseconds, share of the whole, and the pass's notes. Ends with a newline."""
    total = sum(result.timings.values())
    width = max([len(name) for name in result.timings] + [len("total")])
    lines = [f"{'pass':<{width}}  {'ms':>10}  {'share':>6}  notes"]
    for name, seconds in result.timings.items():
        share = seconds / total if total else 0.0
        notes = ", ".join(f"{key} {value}" for key, value in result.notes.get(name, {}).items())
        lines.append(f"{name:<{width}}  {seconds * 1e3:>10.1f}  {share:>6.1%}  {notes}")
    lines.append(f"{'total':<{width}}  {total * 1e3:>10.1f}  {'':>6}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _file_word(stage: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", stage)
