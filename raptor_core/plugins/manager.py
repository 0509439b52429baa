"""The plugin manager: names of every kind, found without import, and the plugins behind them, loaded when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from raptor_core.diagnostics import PluginError, UsageError, nearest, unknown_name
from raptor_core.plugins.disabling import DisableRule, check_rules
from raptor_core.plugins.discovery import Discovery, Entry, discover_entries
from raptor_core.plugins.kinds import KINDS, Kind, kind_of
from raptor_core.plugins.loading import WRONG_VERSION, Loaded, disable_word, load_plugin
from raptor_core.plugins.records import PluginRecord, Status
from raptor_core.plugins.static_facts import StaticReader

Key = tuple[str, str]


@attrs.define(eq=False)
class PluginManager:
    """All plugins of one session. What is loaded is remembered here and nowhere else.

    ``get`` imports; ``names``, ``has`` and ``describe`` do not. A plugin that cannot be used is an error only for those
    who ask for it.
    """

    discovery: Discovery
    rules: tuple[DisableRule, ...] = ()
    _by_key: dict[Key, list[Entry]] = attrs.field(init=False, repr=False)
    _loaded: dict[Key, Loaded] = attrs.field(factory=dict, init=False, repr=False)
    _failed: dict[Key, PluginError] = attrs.field(factory=dict, init=False, repr=False)
    _used: set[Key] = attrs.field(factory=set, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._by_key = {}
        for entry in self.discovery.entries:
            if self._rule(entry) is None:
                self._by_key.setdefault((entry.group, entry.name), []).append(entry)

    @classmethod
    def discover(cls, disable: Iterable[str | DisableRule] = ()) -> PluginManager:
        """The plugins of the installed distributions, except the disabled ones.

        ``disable`` holds rules: ``NAME``, ``KIND/NAME``, ``DISTRIBUTION`` or ``DISTRIBUTION:NAME``. Raises UsageError
        for one that matches no plugin.
        """
        rules = tuple(DisableRule(rule) if isinstance(rule, str) else rule for rule in disable)
        discovery = discover_entries()
        check_rules(rules, discovery.entries)
        return cls(discovery, rules)

    def names(self, group: str) -> list[str]:
        """The names published in an entry-point group, sorted, without the disabled ones."""
        return sorted(name for own_group, name in self._by_key if own_group == group)

    def has(self, group: str, name: str) -> bool:
        """Whether the name is published and not disabled; loading it may still fail."""
        return (group, name) in self._by_key

    def get(self, group: str, name: str) -> Any:
        """The plugin, imported now if it was not before.

        Raises UsageError for a name that is unknown or disabled, and PluginError when two distributions publish it, its
        import fails, it was written for another plugin API version, or it does not fulfil its contract.
        """
        key = group, name
        if key in self._loaded:
            self._used.add(key)
            return self._loaded[key].plugin
        if key in self._failed:
            raise self._failed[key]
        kind = self._kind(group)
        entries = self._by_key.get(key, [])
        if not entries:
            raise self._unknown(kind, name)
        try:
            if len(entries) > 1:
                raise _duplicate(kind, entries)
            plugin = load_plugin(entries[0], kind)
        except PluginError as error:
            self._failed[key] = error
            raise
        self._loaded[key] = Loaded(entries[0], plugin)
        self._used.add(key)
        return plugin

    def entry(self, group: str, name: str) -> Entry:
        """Where a name comes from. Raises like :meth:`get` for unknown, disabled and duplicate names."""
        kind = self._kind(group)
        entries = self._by_key.get((group, name), [])
        if not entries:
            raise self._unknown(kind, name)
        if len(entries) > 1:
            raise _duplicate(kind, entries)
        return entries[0]

    def used(self) -> list[Entry]:
        """The entry points whose plugins were got from this manager, sorted."""
        return sorted(self._loaded[key].entry for key in self._used)

    def session(self) -> PluginManager:
        """A manager of the same plugins, none of them used yet; what is loaded by one is loaded for both."""
        other = PluginManager(self.discovery, self.rules)
        other._loaded, other._failed = self._loaded, self._failed
        return other

    def describe(self) -> list[PluginRecord]:
        """Every plugin of every kind, disabled ones too, without importing any.

        A plugin not loaded yet is ``unchecked`` unless its fault can be seen from outside. Texts that the plugin's
        module states literally are read from its source.
        """
        reader = StaticReader()
        records = [self._record(entry, reader) for entry in self.discovery.entries]
        order = {kind.group: k for k, kind in enumerate(KINDS)}
        records.sort(key=lambda r: (order.get(r.group, len(order)), r.group, r.name, r.distribution))
        records.extend(
            PluginRecord(
                kind="distribution",
                group="",
                name=bad.distribution,
                distribution=bad.distribution,
                version=bad.version,
                built_in=False,
                value="",
                status=Status.BROKEN,
                reason=bad.reason,
            )
            for bad in self.discovery.bad
        )
        return records

    def check(self) -> list[PluginRecord]:
        """Like :meth:`describe`, after importing every plugin that is not disabled."""
        for group, name in sorted(self._by_key):
            if kind_of(group) is not None:
                try:
                    self.get(group, name)
                except PluginError:
                    continue
        return self.describe()

    def _rule(self, entry: Entry) -> DisableRule | None:
        return next((rule for rule in self.rules if rule.matches(entry)), None)

    def _kind(self, group: str) -> Kind:
        kind = kind_of(group)
        if kind is None:
            raise unknown_name("entry-point group", group, [kind.group for kind in KINDS])
        return kind

    def _unknown(self, kind: Kind, name: str) -> UsageError:
        for entry in self.discovery.entries:
            rule = self._rule(entry) if (entry.group, entry.name) == (kind.group, name) else None
            if rule is not None:
                return UsageError(
                    "plugin-disabled",
                    f"the {kind.name} '{name}' is disabled",
                    where=f"{entry.value}, from {entry.origin}",
                    reason=f"'{rule.text}' of {rule.source} disables it",
                )
        return unknown_name(kind.name, name, self.names(kind.group))

    def _record(self, entry: Entry, reader: StaticReader) -> PluginRecord:
        kind = kind_of(entry.group)
        status, reason, summary = self._standing(entry, kind, reader)
        return PluginRecord(
            kind=kind.name if kind is not None else entry.group,
            group=entry.group,
            name=entry.name,
            distribution=entry.distribution,
            version=entry.version,
            built_in=entry.built_in,
            value=entry.value,
            status=status,
            summary=summary,
            reason=reason,
        )

    def _standing(self, entry: Entry, kind: Kind | None, reader: StaticReader) -> tuple[Status, str, str]:
        """Status, reason and summary of an entry point."""
        key = entry.group, entry.name
        rule = self._rule(entry)
        if rule is not None:
            return Status.DISABLED, f"'{rule.text}' of {rule.source}", ""
        if kind is None:
            near = nearest(entry.group, [kind.group for kind in KINDS])
            return Status.BROKEN, f"no such group{f'; did the authors mean {near}?' if near else ''}", ""
        if len(self._by_key[key]) > 1:
            return Status.DUPLICATE, _duplicate_reason(self._by_key[key]), ""
        if key in self._loaded:
            return Status.OK, "", str(getattr(self._loaded[key].plugin, "summary", ""))
        if key in self._failed:
            error = self._failed[key]
            status = Status.WRONG_VERSION if error.code == WRONG_VERSION else Status.BROKEN
            return status, error.reason or error.message, ""
        facts = reader.read(entry.value)
        if facts.fault is not None:
            return Status.BROKEN, facts.fault, ""
        return Status.UNCHECKED, "", facts.summary


def _duplicate_reason(entries: Sequence[Entry]) -> str:
    return " and ".join(f"{entry.origin} ({entry.value})" for entry in entries) + " publish it"


def _duplicate(kind: Kind, entries: Sequence[Entry]) -> PluginError:
    words = [disable_word(entry) for entry in entries]
    if len(set(words)) > 1:
        hint = (
            f'disable all but one: --disable-plugin {words[-1]}, or in raptor.toml: disable-plugins = ["{words[-1]}"]'
        )
    else:
        hint = f"only the authors of {entries[0].distribution} can mend this; do without: --disable-plugin {words[0]}"
    return PluginError(
        "duplicate-plugin",
        f"there is more than one {kind.name} '{entries[0].name}'",
        reason=_duplicate_reason(entries),
        hint=hint,
    )
