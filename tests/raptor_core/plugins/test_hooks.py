"""Hooks: loaded when they can be, called with what they ask for, blamed when they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_distributions import write_distribution
from raptor_core.diagnostics import PluginError, RaptorError, UsageError
from raptor_core.ir.module import Module
from raptor_core.passes.base import PassResult
from raptor_core.plugins.hooks import load_hooks
from raptor_core.plugins.manager import PluginManager

HEAD = "from raptor_core.plugins.hookspecs import hookimpl\napi_version = 1\ncalls = []\n"
GOOD = (
    HEAD
    + """
@hookimpl
def before_pass(name, module):
    calls.append(("before", name, module.name))

@hookimpl
def after_pass(seconds, name):
    calls.append(("after", name, seconds))

@hookimpl
def after_emit(path, manifest):
    calls.append(("emit", path, manifest["target"]))
"""
)
FAILING = (
    HEAD + "@hookimpl\ndef after_pass(name):\n    return helper()\n\ndef helper():\n    raise OSError('disk full')\n"
)


def install(site: Path, name: str, source: str) -> None:
    write_distribution(site, f"acme-{name}", {"raptor.hooks": {name: f"acme_{name}"}}, {f"acme_{name}": source})


def test_every_hook_is_called_with_what_it_asks_for(site: Path) -> None:
    install(site, "good", GOOD)
    manager = PluginManager.discover()
    hooks = load_hooks(manager)
    module = Module(name="net")
    hooks.before_pass("lower", module)
    hooks.after_pass("lower", PassResult(module), 0.5)
    hooks.after_emit(Path("prog"), {"target": "pim"})
    calls = manager.get("raptor.hooks", "good").calls
    assert calls == [("before", "lower", "net"), ("after", "lower", 0.5), ("emit", Path("prog"), "pim")]
    assert hooks.skipped == ()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ImportError('no such thing')\n", "its import failed with ImportError: no such thing"),
        (HEAD.replace("api_version = 1", "api_version = 7"), "it states version 7, this Raptor has 1"),
        (HEAD.replace("api_version = 1", ""), "it states no api_version"),
        (HEAD + "@hookimpl\ndef before_passs(name):\n    pass\n", "unknown hook 'before_passs'"),
        (HEAD + "@hookimpl\ndef after_pass(nam):\n    pass\n", "nam"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_skipped_unless_asked_for(site: Path, source: str, reason: str) -> None:
    install(site, "bad", source)
    install(site, "good", GOOD)
    manager = PluginManager.discover()
    hooks = load_hooks(manager)
    (fault,) = hooks.skipped
    assert fault.plugin == "bad"
    assert reason in fault.error.reason
    hooks.before_pass("lower", Module(name="net"))
    assert len(manager.get("raptor.hooks", "good").calls) == 1
    with pytest.raises(PluginError):
        load_hooks(manager, ["bad"])
    assert len(load_hooks(manager, ["good"]).skipped) == 1


def test_an_unknown_plugin_cannot_be_asked_for(site: Path) -> None:
    install(site, "good", GOOD)
    with pytest.raises(UsageError, match="did you mean 'good'"):
        load_hooks(PluginManager.discover(), ["goood"])


def test_a_failing_hook_is_named(site: Path) -> None:
    install(site, "good", GOOD)
    install(site, "failing", FAILING)
    with pytest.raises(PluginError) as caught:
        load_hooks(PluginManager.discover()).after_pass("lower", PassResult(Module(name="net")), 0.1)
    assert caught.value.render() == (
        "error[hook-failed]: the hook after_pass of 'failing' failed\n"
        "  reason   OSError: disk full\n"
        "  help     tell its authors, or do without: --disable-plugin hooks/failing"
    )


def test_a_refusal_of_a_hook_is_passed_on_as_it_is(site: Path) -> None:
    source = HEAD + (
        "from raptor_core.diagnostics import RaptorError\n"
        "@hookimpl\ndef before_pass(name):\n    raise RaptorError('policy', 'not on a Friday')\n"
    )
    install(site, "policy", source)
    with pytest.raises(RaptorError, match=r"error\[policy\]: not on a Friday"):
        load_hooks(PluginManager.discover()).before_pass("lower", Module(name="net"))
