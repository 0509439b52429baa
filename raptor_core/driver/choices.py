"""Which target and which chip a name stands for."""

from __future__ import annotations

import attrs

from raptor_core.diagnostics import UsageError, nearest
from raptor_core.plugins.manager import PluginManager
from raptor_core.targets.contract import HardwareProfile, Target

TARGETS, PROFILES = "raptor.targets", "raptor.hardware_profiles"


@attrs.frozen
class TargetChoice:
    """A target, and the chip when it was named by a profile."""

    target: Target
    profile: HardwareProfile | None = None


def choose_target(manager: PluginManager, name: str) -> TargetChoice:
    """The target of a hardware profile's name, or the target of that name.

    Raises UsageError for an unknown name (with the nearest of both kinds) and for one that is of both kinds.
    """
    is_profile, is_target = manager.has(PROFILES, name), manager.has(TARGETS, name)
    if is_profile and is_target:
        raise UsageError(
            "ambiguous-target",
            f"'{name}' is both a target and a hardware profile",
            reason=f"target of {manager.entry(TARGETS, name).origin}, "
            f"profile of {manager.entry(PROFILES, name).origin}",
            hint=f"disable one: --disable-plugin target/{name}, or --disable-plugin hardware-profile/{name}",
        )
    if is_profile:
        profile: HardwareProfile = manager.get(PROFILES, name)
        return TargetChoice(manager.get(TARGETS, profile.target), profile)
    if is_target:
        return TargetChoice(manager.get(TARGETS, name))
    _refuse_disabled(manager, name)
    raise unknown_target(manager, name)


def unknown_target(manager: PluginManager, name: str) -> UsageError:
    """The error for a name that is neither a target nor a hardware profile."""
    targets, profiles = manager.names(TARGETS), manager.names(PROFILES)
    near = nearest(name, [*profiles, *targets])
    known = "; ".join(
        f"{kind}: {', '.join(names) or 'none is installed'}"
        for kind, names in (("hardware profiles", profiles), ("targets", targets))
    )
    hint = (f"did you mean '{near}'? " if near else "") + known
    return UsageError("unknown-target", f"unknown target '{name}'", hint=hint)


def _refuse_disabled(manager: PluginManager, name: str) -> None:
    """Raises the manager's error when the name is known and disabled."""
    for group in (PROFILES, TARGETS):
        if any(entry.group == group and entry.name == name for entry in manager.discovery.entries):
            manager.get(group, name)
