"""Importing one plugin and holding it to its contract."""

from __future__ import annotations

import importlib
import re
from typing import Any

import attrs

from raptor_core.diagnostics import PluginError
from raptor_core.options import Option
from raptor_core.plugins.discovery import Entry
from raptor_core.plugins.kinds import Kind

VALUE_FORM = re.compile(r"(?P<module>[A-Za-z_][\w.]*)\s*(:\s*(?P<attribute>[A-Za-z_][\w.]*)\s*)?(\[.*\]\s*)?")
"""The form of an entry point's value: a module, or ``module:attribute``."""

BROKEN, WRONG_VERSION = "broken-plugin", "plugin-api-version"


def load_plugin(entry: Entry, kind: Kind) -> Any:
    """The object that the entry point names.

    Raises PluginError when it cannot be imported, was written for another plugin API version, or does not fulfil the
    contract of its kind.
    """
    plugin = _import(entry, kind)
    if isinstance(plugin, type):
        raise broken(
            entry, kind, f"{entry.value} is a class", f"let the entry point name an object: {plugin.__name__}()"
        )
    if kind.versioned:
        _check_version(plugin, entry, kind)
    _check_contract(plugin, entry, kind)
    return plugin


def broken(entry: Entry, kind: Kind, reason: str, hint: str | None = None) -> PluginError:
    """The error for a plugin that cannot be used."""
    return PluginError(
        BROKEN,
        f"the {kind.name} '{entry.name}' cannot be used",
        where=f"{entry.value}, from {entry.origin}",
        reason=reason,
        hint=hint or f"tell the authors of {entry.distribution}, or do without: --disable-plugin {disable_word(entry)}",
    )


def disable_word(entry: Entry) -> str:
    """What to give to ``--disable-plugin`` to disable just this entry point's name in its distribution."""
    return f"{entry.distribution}:{entry.name}"


def _import(entry: Entry, kind: Kind) -> Any:
    form = VALUE_FORM.fullmatch(entry.value)
    if form is None:
        raise broken(entry, kind, f"the entry point's value '{entry.value}' is not of the form module:attribute")
    try:
        found: Any = importlib.import_module(form["module"])
        for part in (form["attribute"] or "").split("."):
            found = getattr(found, part) if part else found
    except (Exception, SystemExit) as error:
        raise broken(entry, kind, f"its import failed with {type(error).__name__}: {error}") from error
    return found


def _check_version(plugin: Any, entry: Entry, kind: Kind) -> None:
    from raptor_core.plugins.contracts import API_VERSION

    version = _attribute(plugin, "api_version")
    if version is None:
        raise broken(entry, kind, "it states no api_version", f"the plugin API version of this Raptor is {API_VERSION}")
    if version != API_VERSION:
        raise PluginError(
            WRONG_VERSION,
            f"the {kind.name} '{entry.name}' was written for another plugin API version",
            where=f"{entry.value}, from {entry.origin}",
            reason=f"it states version {version!r}, this Raptor has {API_VERSION}",
            hint=f"install a release of {entry.distribution} for plugin API version {API_VERSION}, "
            f"or do without: --disable-plugin {disable_word(entry)}",
        )


def _check_contract(plugin: Any, entry: Entry, kind: Kind) -> None:
    contract = kind.load_contract()
    faults = protocol_faults(plugin, contract)
    if faults:
        hint = f"the contract is {kind.contract.replace(':', '.')}"
        raise broken(entry, kind, f"it does not fulfil the contract of a {kind.name}: {'; '.join(faults)}", hint)
    if kind.own_name and plugin.name != entry.name:
        raise broken(entry, kind, f"it calls itself '{plugin.name}', and its entry point '{entry.name}'")


def protocol_faults(plugin: Any, contract: Any) -> list[str]:
    """What ``plugin`` lacks of a Protocol, or of being an instance of a class; empty when nothing."""
    if not getattr(contract, "_is_protocol", False):
        return [] if isinstance(plugin, contract) else [f"it is a {type(plugin).__name__}, not a {contract.__name__}"]
    members = _members(contract)
    missing = sorted(name for name in members if _attribute(plugin, name) is None)
    faults = [f"missing: {', '.join(missing)}"] if missing else []
    for name, is_method in sorted(members.items()):
        if name in missing:
            continue
        fault = _value_fault(name, _attribute(plugin, name), is_method)
        if fault:
            faults.append(fault)
    return faults


def _members(contract: Any) -> dict[str, bool]:
    """The names a Protocol asks for, and whether each is a method."""
    members: dict[str, bool] = {}
    for base in contract.__mro__:
        if not getattr(base, "_is_protocol", False) or base.__module__ == "typing":
            continue
        for name in vars(base).get("__annotations__", {}):
            members.setdefault(name, False)
        for name, value in vars(base).items():
            if not name.startswith("_") and callable(value):
                members.setdefault(name, True)
    return members


def _value_fault(name: str, value: Any, is_method: bool) -> str | None:
    if is_method:
        return None if callable(value) else f"{name} is not a method"
    if name in ("name", "summary", "after"):
        return None if isinstance(value, str) else f"{name} is not a text"
    if name == "options":
        good = isinstance(value, tuple) and all(isinstance(option, Option) for option in value)
        return None if good else "options is not a tuple of Option"
    return None


def _attribute(plugin: Any, name: str) -> Any:
    """The attribute, or None when there is none or looking at it fails."""
    try:
        return getattr(plugin, name, None)
    except Exception:
        return None


@attrs.frozen
class Loaded:
    """A plugin in use: the object and its entry point."""

    entry: Entry
    plugin: Any
