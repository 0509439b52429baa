"""The two sides of ``raptor compare``: programs as they are, and models to compile first."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from raptor_core.cli.arguments import peek
from raptor_core.cli.compile_arguments import CompileArguments, compile_options, compile_parser
from raptor_core.cli.compile_command import show_warnings
from raptor_core.cli.console import Console
from raptor_core.diagnostics import UsageError
from raptor_core.driver.compiling import compile, prepare
from raptor_core.plugins.configuration import enabled_plugins
from raptor_core.plugins.hooks import load_hooks
from raptor_core.plugins.manager import PluginManager

FIRST_OPTIONS, SECOND_OPTIONS = "--first-options", "--second-options"
_MODELS = (".onnx", ".rir")
_SIGHTS = ("-h", "--help", "--dump-ir", "--time-passes")


@attrs.frozen
class Side:
    """A program at ``path``, or a model there with the arguments (raptor_core.driver.compile) to compile it with.

    ``name`` is what stands over its column: the path, with the options that it alone is compiled with.
    """

    name: str
    path: Path
    compilation: dict[str, Any] | None = None

    def program(self, folder: Path, plugins: PluginManager, console: Console) -> Path:
        """The program, compiled into ``folder`` where that has to be done. Raises RaptorError as compile does."""
        if self.compilation is None:
            return self.path
        result = compile(
            self.path,
            output=folder,
            plugins=plugins,
            progress=lambda step: console.progress(f"compiling {self.name}: {step}"),
            **self.compilation,
        )
        show_warnings(result, console)
        return folder


def read_sides(arguments: argparse.Namespace) -> tuple[Side, Side, PluginManager]:
    """Both sides, all options read, and the plugins to compile with.

    B is A when A is a model and an option set for either side is given. Raises UsageError for options that cannot be
    used, naming the side.
    """
    plugins = enabled_plugins(arguments.disable_plugin)
    first, second = Path(arguments.first), Path(arguments.second or arguments.first)
    if arguments.second is None and not (
        _is_model(first) and (arguments.first_options is not None or arguments.second_options is not None)
    ):
        raise UsageError(
            "missing-argument",
            "raptor compare needs B",
            hint=f"give a second program; or a model as A, and {SECOND_OPTIONS} to compile it with once more",
        )
    if arguments.target is not None and not (_is_model(first) or _is_model(second)):
        raise UsageError(
            "options-of-a-program",
            "--target is given, but neither A nor B is a model to compile",
            where=f"{first}, {second}",
            hint=f"models are files named {' or '.join(f'*{suffix}' for suffix in _MODELS)}",
        )
    return (
        _side("A", first, FIRST_OPTIONS, arguments.first_options, arguments.target, plugins),
        _side("B", second, SECOND_OPTIONS, arguments.second_options, arguments.target, plugins),
        plugins,
    )


def _is_model(path: Path) -> bool:
    return path.suffix in _MODELS and not path.is_dir()


def _side(letter: str, path: Path, flag: str, text: str | None, target: str | None, plugins: PluginManager) -> Side:
    if not _is_model(path):
        if text is not None:
            raise UsageError(
                "options-of-a-program",
                f"{flag} is given, but {letter} is compiled already",
                where=str(path),
                hint=f"leave it out, or give the model, a file named {' or '.join(f'*{suffix}' for suffix in _MODELS)}",
            )
        return Side(str(path), path)
    try:
        own = shlex.split(text or "")
    except ValueError as cause:
        raise UsageError(
            "bad-option-value", f"{flag} is no list of options", where=repr(text), reason=str(cause).lower()
        ) from cause
    words = [*(["--target", target] if target is not None else []), *own]
    if peek(words, ["--target"]).target is None:
        raise UsageError(
            "missing-argument",
            f"{letter} is a model, and raptor compare needs a target to compile it for",
            where=str(path),
            hint=f"give --target NAME for both, or in {flag} for {letter} alone",
        )
    place = f"the options of {letter} (--target, {flag})"
    return Side(f"{path} {text or ''}".strip(), path, _compilation(path, words, place, plugins))


def _refuse_sights(words: Sequence[str], place: str) -> None:
    """Raise UsageError for options that show something of a compilation: here only its program is looked at."""
    shown = [word for word in words if word.partition("=")[0] in _SIGHTS]
    if shown:
        raise UsageError(
            "option-without-effect",
            f"{shown[0]} has no effect on a program that is compared",
            where=place,
            hint="leave it out, or give it to raptor compile",
        )


def _compilation(model: Path, words: Sequence[str], place: str, plugins: PluginManager) -> dict[str, Any]:
    """What the words, read as those of ``raptor compile``, ask for. Raises UsageError, with ``place`` as its place."""
    _refuse_sights(words, place)
    try:
        parser = compile_parser("raptor compile", "", words, plugins)
        arguments = parser.parse([str(model), *words])
        given = CompileArguments(arguments).driver_arguments()
        options = compile_options(arguments)
        chosen = {name: given[name] for name in ("profile_file", "passes")}
        session = plugins.session()
        prepare(session, given["target"], options=options, **chosen)  # refuses what compile would refuse
        load_hooks(session, given["hooks"])
    except UsageError as error:
        raise UsageError(
            error.code,
            error.message,
            where=place + (f": {error.where}" if error.where else ""),
            reason=error.reason,
            hint=error.hint,
            details=error.details,
        ) from error
    return {**given, "options": options}
