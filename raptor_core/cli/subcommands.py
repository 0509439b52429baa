"""Commands with a second word: ``raptor plugins list``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raptor_core.cli.arguments import CommandParser, add_common
from raptor_core.cli.console import Console
from raptor_core.diagnostics import unknown_name


def split_action(
    prog: str, summary: str, actions: Mapping[str, str], words: Sequence[str], console: Console
) -> tuple[str | None, list[str]]:
    """The second word and the words for it; None when help was shown instead.

    Raises UsageError for a second word that is not one of ``actions`` (names with their summaries).
    """
    rest = list(words)
    action = next((word for word in rest if word in actions), None)
    if action is not None:
        rest.remove(action)
        return action, rest
    parser = CommandParser(prog, summary)
    parser.usage = f"{prog} {{{','.join(actions)}}} [options]"
    add_common(parser)
    names = [word for word in rest if not word.startswith("-")]
    if names and not any(word in ("-h", "--help") for word in rest):
        raise unknown_name("command", f"{prog.removeprefix('raptor ')} {names[-1]}", [_full(prog, a) for a in actions])
    width = max(map(len, actions))
    lines = "\n".join(f"  {name:<{width}}  {text}" for name, text in actions.items())
    head, options, tail = parser.format_help().partition("\noptions:\n")
    console.result(f"{head}\ncommands:\n{lines}\n{options}{tail}".rstrip())
    return None, []


def _full(prog: str, action: str) -> str:
    return f"{prog.removeprefix('raptor ')} {action}"
