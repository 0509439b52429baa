"""Calling the installed hooks, each kept from harming those who did not ask for it."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pluggy

from raptor_core.diagnostics import PluginError, RaptorError
from raptor_core.ir.module import Module
from raptor_core.passes.base import PassResult
from raptor_core.plugins import hookspecs
from raptor_core.plugins.manager import PluginManager

GROUP = "raptor.hooks"


@attrs.frozen
class HookFault:
    """A hook plugin that was left out, and why."""

    plugin: str
    error: PluginError


@attrs.frozen(eq=False)
class HookCaller:
    """Calls hooks; an observer of pipelines. ``skipped`` says which hook plugins were left out."""

    relay: pluggy.PluginManager
    skipped: tuple[HookFault, ...] = ()

    def before_pass(self, name: str, module: Module) -> None:
        """See raptor_core.plugins.hookspecs."""
        self._call("before_pass", name=name, module=module)

    def after_pass(self, name: str, result: PassResult, seconds: float) -> None:
        """See raptor_core.plugins.hookspecs."""
        self._call("after_pass", name=name, module=result.module, seconds=seconds)

    def after_emit(self, path: Path, manifest: Mapping[str, Any]) -> None:
        """See raptor_core.plugins.hookspecs."""
        self._call("after_emit", path=path, manifest=manifest)

    def _call(self, hook: str, **arguments: Any) -> None:
        """Raises PluginError, naming the plugin, when an implementation fails."""
        caller = getattr(self.relay.hook, hook)
        try:
            caller(**arguments)
        except RaptorError:
            raise
        except Exception as error:
            frames = _code_in(error.__traceback__)
            names = [i.plugin_name for i in caller.get_hookimpls() if getattr(i.function, "__code__", None) in frames]
            plugin = names[-1] if names else "unknown"
            raise PluginError(
                "hook-failed",
                f"the hook {hook} of '{plugin}' failed",
                reason=f"{type(error).__name__}: {error}",
                hint=f"tell its authors, or do without: --disable-plugin hooks/{plugin}",
            ) from error


def load_hooks(manager: PluginManager, required: Iterable[str] = ()) -> HookCaller:
    """All hook plugins that can be used. Those that cannot are in ``skipped``.

    Raises UsageError or PluginError for a plugin named in ``required`` that is unknown or cannot be used.
    """
    relay = pluggy.PluginManager(hookspecs.PROJECT)
    relay.add_hookspecs(hookspecs)
    needed = list(required)
    for name in needed:
        manager.entry(GROUP, name)
    skipped: list[HookFault] = []
    for name in manager.names(GROUP):
        try:
            _register(relay, name, manager)
        except PluginError as error:
            if name in needed:
                raise
            skipped.append(HookFault(name, error))
    return HookCaller(relay, tuple(skipped))


def _register(relay: pluggy.PluginManager, name: str, manager: PluginManager) -> None:
    plugin = manager.get(GROUP, name)
    try:
        relay.register(plugin, name)
        relay.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        if relay.has_plugin(name):
            relay.unregister(name=name)
        entry = manager.entry(GROUP, name)
        hooks = sorted(n for n, value in vars(hookspecs).items() if getattr(value, f"{hookspecs.PROJECT}_spec", None))
        raise PluginError(
            "broken-plugin",
            f"the hooks '{name}' cannot be used",
            where=f"{entry.value}, from {entry.origin}",
            reason=" ".join(str(error).split()),
            hint=f"hooks: {', '.join(hooks)} (raptor_core.plugins.hookspecs)",
        ) from error


def _code_in(traceback: types.TracebackType | None) -> set[types.CodeType]:
    found = set()
    while traceback is not None:
        found.add(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    return found
