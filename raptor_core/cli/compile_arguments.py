"""The arguments that ``raptor compile`` and ``raptor run`` share, plugins' options among them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

import attrs

from raptor_core.cli.arguments import COMPILE, CommandParser, OptionFlags, add_common, given_options, peek
from raptor_core.diagnostics import UsageError
from raptor_core.driver.choices import PROFILES, TARGETS, choose_target
from raptor_core.driver.compile_options import (
    AUTO,
    CORE_OPTIONS,
    SCHEDULERS,
    STRATEGIES,
    declared_options,
)
from raptor_core.plugins.manager import PluginManager

_SHAPE = re.compile(r"(?P<name>.+)=(?P<extents>\d{1,18}(x\d{1,18})*)?")
_DEFAULTS = {option.name: str(option.default) for option in CORE_OPTIONS}


@attrs.frozen
class CompileArguments:
    """The parsed words, and what the driver needs of them."""

    arguments: argparse.Namespace

    def driver_arguments(self) -> dict[str, Any]:
        """Keyword arguments for raptor_core.driver.compile, without output and plugins.

        Raises UsageError for a bad shape.
        """
        given = self.arguments
        return {
            "target": given.target,
            "profile_file": given.profile_file,
            "shapes": parse_shapes(given.shape),
            "passes": given.passes,
            "hooks": given.hooks,
            "dump_ir": given.dump_ir,
            "overwrite": given.force,
        }


def compile_parser(prog: str, summary: str, words: Sequence[str], plugins: PluginManager) -> CommandParser:
    """A parser with the shared arguments; the options of target, scheduler and strategies as the words choose them."""
    parser = CommandParser(prog, summary)
    chips = [*plugins.names(PROFILES), *plugins.names(TARGETS)]
    parser.add_argument("model", metavar="MODEL", nargs="?", help="an ONNX model, or the text of a stage (.rir)")
    parser.add_argument(
        "--target", metavar="NAME", required=True, help=f"hardware profile or target: {', '.join(chips) or 'none'}"
    )
    parser.add_argument("--profile-file", metavar="FILE", help="chip configuration (JSON) of your own")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="shape of an input that the model leaves open (repeatable)",
    )
    parser.add_argument(
        "--pass", dest="passes", action="append", default=[], metavar="NAME", help=_names("an extra pass", plugins)
    )
    parser.add_argument(
        "--hook", dest="hooks", action="append", default=[], metavar="NAME", help="a hook plugin that must load"
    )
    parser.add_argument("--dump-ir", metavar="DIR", help="write the text of every stage into a folder")
    parser.add_argument("--force", action="store_true", help="overwrite the output of an earlier compilation")
    parser.add_argument("--time-passes", action="store_true", help="show the time of every pass")
    _add_declared(parser, words, plugins)
    return parser


def finish(parser: CommandParser, words: Sequence[str]) -> argparse.Namespace:
    """Add the common options and parse. Raises UsageError."""
    add_common(parser)
    return parser.parse(words)


def compile_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The values typed for declared options."""
    return given_options(arguments, COMPILE)


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes by input name. Raises UsageError for a text that is not NAME=AxBxC with positive extents."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        match = _SHAPE.fullmatch(text)
        extents = tuple(map(int, match["extents"].split("x"))) if match and match["extents"] else ()
        if match is None or 0 in extents:
            raise UsageError(
                "bad-option-value",
                f"bad value {text!r} for --shape",
                reason="it must be an input's name, =, and positive whole numbers with x between them",
                hint="for example --shape image=1x3x224x224",
            )
        if match["name"] in shapes:
            raise UsageError("bad-option-value", f"two values for --shape {match['name']}", hint="give one shape")
        shapes[match["name"]] = extents
    return shapes


def _add_declared(parser: CommandParser, words: Sequence[str], plugins: PluginManager) -> None:
    chosen = peek(words, ("--target", "--scheduler", "--conv-strategy"))
    declared = declared_options(plugins, None, scheduler=None, strategy=None)
    if chosen.target is not None:
        declared = declared_options(
            plugins,
            choose_target(plugins, chosen.target).target,
            scheduler=chosen.scheduler or _DEFAULTS["scheduler"],
            strategy=chosen.conv_strategy or AUTO,
        )
    titles = {"the core": "compilation options"}
    for owner in declared.owners:
        options = owner.options
        if owner.name == "the core":
            options = tuple(_with_names(option, plugins) for option in options)
        if options:
            OptionFlags(options, COMPILE).add_to(parser, titles.get(owner.name, f"options of {owner.name}"))
    if chosen.target is None:
        parser.epilog = "With --target NAME, --help also shows the options of the target and of its plugins."


def _with_names(option: Any, plugins: PluginManager) -> Any:
    """The option, its help followed by the installed names when it names a plugin."""
    group = {"conv_strategy": STRATEGIES, "scheduler": SCHEDULERS}.get(option.name)
    if group is None:
        return option
    return attrs.evolve(option, help=f"{option.help}; installed: {', '.join(plugins.names(group)) or 'none'}")


def _names(text: str, plugins: PluginManager) -> str:
    names = ", ".join(plugins.names("raptor.passes"))
    return f"{text} (repeatable); installed: {names or 'none'}"
