"""``raptor plugins``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raptor_core.cli.arguments import CommandParser, add_common
from raptor_core.cli.console import Console
from raptor_core.cli.subcommands import split_action
from raptor_core.diagnostics import ExitCode, RaptorError, UsageError, nearest, unknown_name
from raptor_core.plugins.kinds import KINDS, find_kind
from raptor_core.plugins.manager import PluginManager
from raptor_core.plugins.records import PluginRecord, Status

PROG = "raptor plugins"
SUMMARY = "Show what is installed, from whom, and whether it can be used."
ACTIONS = {
    "list": "list plugins, without importing any",
    "info": "describe one plugin, with its options",
    "check": "import every plugin and check it against its contract",
}
_COLUMNS = ("kind", "name", "status", "from", "summary")


def run(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    """See raptor_core.cli.commands.CommandModule."""
    action, rest = split_action(PROG, SUMMARY, ACTIONS, words, console)
    if action is None:
        return int(ExitCode.OK)
    return {"list": _list, "info": _info, "check": _check}[action](rest, plugins, console)


def _list(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    parser = CommandParser(f"{PROG} list", "List plugins, without importing any.")
    _add_kind(parser)
    add_common(parser)
    arguments = parser.parse(words)
    _show(_of_kind(plugins.describe(), arguments.kind), console)
    return int(ExitCode.OK)


def _check(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    """The exit code is INTERNAL when a plugin cannot be used."""
    parser = CommandParser(f"{PROG} check", "Import every plugin and check it against its contract.")
    _add_kind(parser)
    add_common(parser)
    arguments = parser.parse(words)
    records = _of_kind(_with_hooks(plugins.check(), plugins), arguments.kind)
    _show(records, console)
    return int(ExitCode.INTERNAL if any(record.status.is_fault for record in records) else ExitCode.OK)


def _info(words: Sequence[str], plugins: PluginManager, console: Console) -> int:
    parser = CommandParser(f"{PROG} info", "Describe plugins of a name: where they come from, and their options.")
    parser.add_argument("name", metavar="NAME", help="the plugin's name, or KIND/NAME")
    add_common(parser)
    arguments = parser.parse(words)
    records = _named(plugins.describe(), arguments.name)
    descriptions = [_description(record, plugins) for record in records]
    if console.as_json:
        console.json(descriptions)
        return int(ExitCode.OK)
    for k, description in enumerate(descriptions):
        if k:
            console.result("")
        options = description.pop("options")
        console.facts({name: value for name, value in description.items() if value not in ("", None)})
        if options:
            console.table(
                ("option", "type", "default", "meaning"),
                [(o["flag"], o["type"], o["default"], o["help"]) for o in options],
            )
    return int(ExitCode.OK)


def _add_kind(parser: CommandParser) -> None:
    parser.add_argument("--kind", metavar="KIND", help=f"only one kind: {', '.join(kind.key for kind in KINDS)}")


def _of_kind(records: Sequence[PluginRecord], word: str | None) -> list[PluginRecord]:
    if word is None:
        return list(records)
    kind = find_kind(word)
    if kind is None:
        raise unknown_name("plugin kind", word, [kind.key for kind in KINDS])
    return [record for record in records if record.group == kind.group]


def _show(records: Sequence[PluginRecord], console: Console) -> None:
    if console.as_json:
        console.json([record.as_json() for record in records])
        return
    rows = [
        (
            record.kind,
            record.name,
            str(record.status),
            f"{record.distribution} {record.version}" + (" (built-in)" if record.built_in else ""),
            record.reason or record.summary,
        )
        for record in records
    ]
    console.table(_COLUMNS, rows)


def _named(records: Sequence[PluginRecord], word: str) -> list[PluginRecord]:
    group, slash, name = word.partition("/")
    kind = find_kind(group) if slash else None
    found = [
        record
        for record in records
        if (record.name == name and record.group == kind.group if kind is not None else record.name == word)
    ]
    if not found:
        near = nearest(word, [record.name for record in records])
        hint = (f"did you mean '{near}'? " if near else "") + "'raptor plugins list' shows all"
        raise UsageError("unknown-plugin", f"no plugin is named '{word}'", hint=hint)
    return found


def _description(record: PluginRecord, plugins: PluginManager) -> dict[str, Any]:
    """All about one plugin, imported for this when it can be."""
    options: list[dict[str, Any]] = []
    status, reason, summary = str(record.status), record.reason, record.summary
    if record.status not in (Status.DISABLED, Status.DUPLICATE) and plugins.has(record.group, record.name):
        try:
            plugin = plugins.get(record.group, record.name)
            status, reason, summary = str(Status.OK), "", str(getattr(plugin, "summary", ""))
            options = [_option(option) for option in getattr(plugin, "options", ())]
        except RaptorError as error:
            status = str(Status.WRONG_VERSION if error.code == "plugin-api-version" else Status.BROKEN)
            reason = error.reason or error.message
    return {
        "name": record.name,
        "kind": record.kind,
        "summary": summary,
        "status": status,
        "reason": reason,
        "from": f"{record.distribution} {record.version}",
        "built_in": record.built_in,
        "entry_point": f"{record.group}: {record.name} = {record.value}",
        "disable_with": f"--disable-plugin {record.distribution}:{record.name}",
        "options": options,
    }


def _option(option: Any) -> dict[str, Any]:
    return {
        "name": option.name,
        "flag": option.flag,
        "type": " | ".join(option.choices) if option.choices else option.type.__name__,
        "default": option.default,
        "minimum": option.minimum,
        "maximum": option.maximum,
        "help": option.help,
    }


def _with_hooks(records: Sequence[PluginRecord], plugins: PluginManager) -> list[PluginRecord]:
    """The records, after hook plugins were held to the hook specifications as well."""
    import attrs

    from raptor_core.plugins.hooks import GROUP, HookFault, load_hooks

    faults: dict[str, HookFault] = {fault.plugin: fault for fault in load_hooks(plugins).skipped}
    return [
        attrs.evolve(record, status=Status.BROKEN, reason=faults[record.name].error.reason or "")
        if record.group == GROUP and record.status is Status.OK and record.name in faults
        else record
        for record in records
    ]
