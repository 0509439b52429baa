"""Which plugins are disabled: rules of the forms ``NAME``, ``KIND/NAME``, ``DISTRIBUTION``, ``DISTRIBUTION:NAME``."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from raptor_core.diagnostics import UsageError, nearest
from raptor_core.plugins.discovery import Entry, normalised
from raptor_core.plugins.kinds import Kind, find_kind


@attrs.frozen
class DisableRule:
    """One rule. ``text`` is as given; ``source`` says where (an option, a file)."""

    text: str
    source: str = "--disable-plugin"

    def matches(self, entry: Entry) -> bool:
        """Whether the rule disables the entry point."""
        group, slash, name = self.text.partition("/")
        kind = find_kind(group) if slash else None
        if kind is not None:
            return kind.group == entry.group and name == entry.name
        if self.text == entry.name or normalised(self.text) == normalised(entry.distribution):
            return True
        # Names may hold colons themselves (com.acme::Swish), so the distribution is tried, not cut off.
        distribution, colon, name = self.text.partition(":")
        return bool(colon) and normalised(distribution) == normalised(entry.distribution) and name == entry.name


def check_rules(rules: Iterable[DisableRule], entries: Iterable[Entry]) -> None:
    """Raise UsageError for a rule that matches nothing."""
    known = list(entries)
    for rule in rules:
        if any(rule.matches(entry) for entry in known):
            continue
        words = {entry.name for entry in known} | {entry.distribution for entry in known}
        near = nearest(rule.text.rpartition("/")[2], words)
        raise UsageError(
            "unknown-plugin",
            f"there is no plugin '{rule.text}' to disable",
            where=rule.source,
            hint=(f"did you mean '{near}'? " if near else "")
            + "give NAME, KIND/NAME, DISTRIBUTION or DISTRIBUTION:NAME (raptor plugins list)",
        )


def kind_word(kind: Kind | None, group: str) -> str:
    """How lists call the kind of a group, known to Raptor or not."""
    return kind.name if kind is not None else group
