"""The command ``raptor``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import attrs

from raptor_core.cli.arguments import CommandParser, add_common
from raptor_core.cli.commands import BUILT_INS, GROUP, extra_summaries, find_built_in
from raptor_core.cli.console import Console, use_color
from raptor_core.cli.output import checked_output, discard_output
from raptor_core.diagnostics import ExitCode, RaptorError, UsageError, unknown_name
from raptor_core.plugins.configuration import enabled_plugins
from raptor_core.plugins.manager import PluginManager

INTERRUPTED, BROKEN_PIPE = 130, 141
_SUMMARY = "Compile ONNX networks into programs for processing-in-memory chips, and simulate them."


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line (default: the process's) and give the exit code. Prints every error itself."""
    words = list(sys.argv[1:] if words is None else words)
    line = _split(words)
    console = Console(as_json="--json" in line.words)
    debug = "--debug" in line.words
    try:
        with checked_output():
            return _run(line, console)
    except RaptorError as error:
        return _report(error, console, debug)
    except KeyboardInterrupt:
        console.message("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return BROKEN_PIPE
    except SystemExit as leaving:  # argparse after --help
        return leaving.code if isinstance(leaving.code, int) else int(ExitCode.OK)
    except MemoryError as error:
        full = RaptorError(
            "out-of-memory", "there is not enough memory", hint="use a smaller model or a machine with more memory"
        )
        full.__cause__ = error
        return _report(full, console, debug)
    except Exception as error:
        return _report(_bug(error), console, debug)


@attrs.frozen
class _Line:
    """A command line: the command (None: none was given) and the words for it, common options in front included."""

    command: str | None
    words: tuple[str, ...]


def _split(words: Sequence[str]) -> _Line:
    """The command is the first word that is no option. Common options before it go to it."""
    k = 0
    while k < len(words) and words[k].startswith("-") and words[k] != "--":
        k += 2 if words[k] == "--disable-plugin" else 1
    if k >= len(words):
        return _Line(None, tuple(words))
    return _Line(words[k], (*words[:k], *words[k + 1 :]))


def _run(line: _Line, console: Console) -> int:
    if line.command is None:
        return _without_command(line.words)
    end_logs = _begin_logs(line.words)
    try:
        command = find_built_in(line.command)
        plugins = _plugins(line.words)
        if command is not None:
            return command.load().run(line.words, plugins, console)
        if not plugins.has(GROUP, line.command):
            raise _unknown_command(line.command, plugins)
        return _run_extra(line.command, line.words, plugins)
    finally:
        console.end_progress()
        if end_logs is not None:
            end_logs()


def _without_command(words: Sequence[str]) -> int:
    parser = CommandParser("raptor", _SUMMARY)
    parser.usage = "raptor COMMAND [options]"
    parser.add_argument("--version", action="store_true", help="show the versions of Raptor and of its plugin API")
    add_common(parser)
    wants_help = not words or any(word in ("-h", "--help") for word in words)
    if wants_help:
        parser.epilog = "'raptor COMMAND --help' shows the options of a command."
        print(_with_commands(parser.format_help(), _extra_commands(words)))
        return int(ExitCode.OK)
    arguments = parser.parse(words)
    if arguments.version:
        print(_versions())
        return int(ExitCode.OK)
    raise UsageError(
        "no-command", "no command was given", hint=f"commands: {', '.join(command.name for command in BUILT_INS)}"
    )


def _extra_commands(words: Sequence[str]) -> dict[str, str]:
    """The commands of plugins; none when the configuration is at fault, since help must always be there."""
    try:
        return extra_summaries(_plugins(words))
    except RaptorError:
        return {}


def _with_commands(text: str, extra: dict[str, str]) -> str:
    """The help text with the list of commands before the options."""
    commands = {command.name: command.summary for command in BUILT_INS} | extra
    width = max(map(len, commands))
    lines = "\n".join(f"  {name:<{width}}  {summary}".rstrip() for name, summary in commands.items())
    head, options, tail = text.partition("\noptions:\n")
    return f"{head}\ncommands:\n{lines}\n{options}{tail}".rstrip()


def _versions() -> str:
    import raptor_core
    from raptor_core.plugins.contracts import API_VERSION

    return f"raptor {raptor_core.__version__} (plugin API {API_VERSION})"


def _plugins(words: Sequence[str]) -> PluginManager:
    """The plugins, without those that the command line and the configuration file disable."""
    disabled = [words[k + 1] for k, word in enumerate(words[:-1]) if word == "--disable-plugin"]
    disabled += [word.partition("=")[2] for word in words if word.startswith("--disable-plugin=")]
    return enabled_plugins(disabled)


def _run_extra(name: str, words: Sequence[str], plugins: PluginManager) -> int:
    command = plugins.get(GROUP, name)
    parser = CommandParser(f"raptor {name}", command.summary)
    add_common(parser)
    command.configure(parser)
    return int(command.run(parser.parse(words)))


def _unknown_command(name: str, plugins: PluginManager) -> UsageError:
    return unknown_name("command", name, [*(command.name for command in BUILT_INS), *plugins.names(GROUP)])


def _begin_logs(words: Sequence[str]) -> Callable[[], None] | None:
    verbosity = sum(
        word.count("v") if set(word) == {"-", "v"} and word[1:2] == "v" else word == "--verbose" for word in words
    )
    if verbosity == 0 and "--log-json" not in words:
        return None
    from raptor_core.logging import show_logs

    return show_logs(sys.stderr, verbosity=verbosity, as_json="--log-json" in words, color=use_color(sys.stderr))


def _report(error: RaptorError, console: Console, debug: bool) -> int:
    console.message(error.render())
    if debug:
        import traceback

        traceback.print_exception(error)
    return int(error.exit_code)


def _bug(error: Exception) -> RaptorError:
    from raptor_core.diagnostics import InternalError

    bug = InternalError(
        "internal-error",
        "Raptor failed in a way that it should not",
        reason=" ".join(f"{type(error).__name__}: {error}".split())[:500],
        hint="this is a bug in Raptor or in a plugin: please report it with what --debug shows",
    )
    bug.__cause__ = error
    return bug


if __name__ == "__main__":
    sys.exit(main())
