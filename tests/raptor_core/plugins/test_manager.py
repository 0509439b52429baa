"""The plugin manager, with distributions made by hand beside the built-in ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fake_distributions import scheduler_source, write_distribution
from raptor_core.diagnostics import ExitCode, PluginError, UsageError
from raptor_core.plugins.kinds import KINDS
from raptor_core.plugins.manager import PluginManager
from raptor_core.plugins.records import PluginRecord, Status

SCHEDULERS = "raptor.schedulers"


def record(manager: PluginManager, name: str, kind: str = "scheduler") -> PluginRecord:
    (found,) = [r for r in manager.describe() if (r.kind, r.name) == (kind, name)]
    return found


def test_every_built_in_plugin_is_found_and_fulfils_its_contract() -> None:
    manager = PluginManager.discover()
    records = manager.check()
    mine = [r for r in records if r.built_in]
    assert {r.kind for r in mine} >= {
        "target",
        "hardware profile",
        "simulator",
        "scheduler",
        "conv strategy",
        "dialect",
    }
    assert [(r.kind, r.name, r.reason) for r in mine if r.status is not Status.OK] == []
    assert all(r.summary for r in mine if r.kind != "dialect")


def test_names_and_lists_import_nothing() -> None:
    script = """
import sys
from raptor_core.plugins.manager import PluginManager
manager = PluginManager.discover()
assert "pim" in manager.names("raptor.targets") and manager.has("raptor.schedulers", "peft")
assert len(manager.describe()) > 20
heavy = {"numpy", "onnx", "numba", "pluggy", "structlog", "rich", "raptor_pim", "raptor_schedulers", "raptor_conv"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_plugin_of_another_distribution(site: Path) -> None:
    write_distribution(
        site, "acme-sched", {SCHEDULERS: {"one": "acme_one:PLUGIN"}}, {"acme_one": scheduler_source("one")}
    )
    manager = PluginManager.discover()
    assert {"one", "peft"} <= set(manager.names(SCHEDULERS))
    before = record(manager, "one")
    assert (before.status, before.summary) == (Status.UNCHECKED, "puts everything on one core")
    assert (before.distribution, before.version, before.built_in) == ("acme-sched", "1.0", False)
    assert "acme_one" not in sys.modules
    plugin = manager.get(SCHEDULERS, "one")
    assert plugin.name == "one"
    assert manager.get(SCHEDULERS, "one") is plugin
    assert record(manager, "one").status is Status.OK


def test_used_plugins_are_those_of_the_session(site: Path) -> None:
    manager = PluginManager.discover()
    manager.get(SCHEDULERS, "peft")
    session = manager.session()
    assert session.used() == []
    assert session.get(SCHEDULERS, "peft") is manager.get(SCHEDULERS, "peft")
    assert [entry.name for entry in session.used()] == ["peft"]


def test_unknown_names() -> None:
    manager = PluginManager.discover()
    with pytest.raises(UsageError) as caught:
        manager.get(SCHEDULERS, "pefft")
    assert caught.value.render() == (
        "error[unknown-scheduler]: unknown scheduler 'pefft'\n"
        f"  help     did you mean 'peft'? known: {', '.join(manager.names(SCHEDULERS))}"
    )
    with pytest.raises(UsageError, match=r"did you mean 'raptor\.schedulers'"):
        manager.get("raptor.scheduler", "peft")
    assert not manager.has(SCHEDULERS, "pefft")


def test_a_broken_plugin_hurts_only_who_asks_for_it(site: Path) -> None:
    write_distribution(
        site,
        "acme-broken",
        {SCHEDULERS: {"bad": "acme_bad:PLUGIN"}},
        {"acme_bad": "if True:\n    raise RuntimeError('no licence')\nPLUGIN = None\n"},
    )
    manager = PluginManager.discover()
    assert manager.get(SCHEDULERS, "peft").name == "peft"
    assert record(manager, "bad").status is Status.UNCHECKED
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            manager.get(SCHEDULERS, "bad")
        assert caught.value.render() == (
            "error[broken-plugin]: the scheduler 'bad' cannot be used\n"
            "  where    acme_bad:PLUGIN, from acme-broken 1.0\n"
            "  reason   its import failed with RuntimeError: no licence\n"
            "  help     tell the authors of acme-broken, or do without: --disable-plugin acme-broken:bad"
        )
        assert caught.value.exit_code is ExitCode.INTERNAL
    listed = record(manager, "bad")
    assert (listed.status, listed.reason) == (Status.BROKEN, "its import failed with RuntimeError: no licence")


def test_a_module_that_leaves_the_program_is_broken(site: Path) -> None:
    write_distribution(
        site, "acme-exit", {SCHEDULERS: {"exit": "acme_exit:PLUGIN"}}, {"acme_exit": "import sys\nsys.exit(4)\n"}
    )
    with pytest.raises(PluginError, match="SystemExit: 4"):
        PluginManager.discover().get(SCHEDULERS, "exit")


@pytest.mark.parametrize(
    ("value", "source", "reason"),
    [
        ("acme_gone:PLUGIN", None, "there is no module 'acme_gone'"),
        ("raptor_pim.gone:PLUGIN", None, "there is no module 'raptor_pim.gone'"),
        ("acme_x:PLUGIN", "import acme_not_there\nPLUGIN = 1\n", "it imports 'acme_not_there', which is not installed"),
        (
            "acme_x:PLUGIN",
            "from acme_not.there import a\nPLUGIN = 1\n",
            "it imports 'acme_not', which is not installed",
        ),
        ("acme_x:PLUGIN", "def f(:\n", "SyntaxError in acme_x, line 1: invalid syntax"),
        ("acme_x:PLUGIN", "OTHER = 1\n", "acme_x has no 'PLUGIN'"),
        ("acme x", None, "the entry point's value 'acme x' is not of the form module:attribute"),
    ],
)
def test_faults_that_are_seen_without_import(site: Path, value: str, source: str | None, reason: str) -> None:
    modules = {"acme_x": source} if source is not None else {}
    write_distribution(site, "acme-x", {SCHEDULERS: {"x": value}}, modules)
    manager = PluginManager.discover()
    listed = record(manager, "x")
    assert (listed.status, listed.reason) == (Status.BROKEN, reason)
    assert "acme_x" not in sys.modules
    with pytest.raises(PluginError):
        manager.get(SCHEDULERS, "x")


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import acme_not_there\nexcept ImportError:\n    pass\nPLUGIN = 1\n",
        "def __getattr__(name):\n    return 1\n",
        "globals()['PLUGIN'] = 1\n",
        "for PLUGIN in range(3):\n    pass\n",
        "import json as PLUGIN\n",
    ],
)
def test_what_is_not_certain_is_left_open(site: Path, source: str) -> None:
    write_distribution(site, "acme-x", {SCHEDULERS: {"x": "acme_x:PLUGIN"}}, {"acme_x": source})
    assert record(PluginManager.discover(), "x").status is Status.UNCHECKED


def test_two_plugins_of_one_name(site: Path) -> None:
    for name in ("acme-a", "acme-b"):
        module = name.replace("-", "_")
        write_distribution(site, name, {SCHEDULERS: {"twin": f"{module}:PLUGIN"}}, {module: scheduler_source("twin")})
    manager = PluginManager.discover()
    assert manager.get(SCHEDULERS, "peft").name == "peft"
    listed = [r for r in manager.describe() if r.name == "twin"]
    assert [(r.distribution, r.status) for r in listed] == [("acme-a", Status.DUPLICATE), ("acme-b", Status.DUPLICATE)]
    with pytest.raises(PluginError) as caught:
        manager.get(SCHEDULERS, "twin")
    assert caught.value.render() == (
        "error[duplicate-plugin]: there is more than one scheduler 'twin'\n"
        "  reason   acme-a 1.0 (acme_a:PLUGIN) and acme-b 1.0 (acme_b:PLUGIN) publish it\n"
        "  help     disable all but one: --disable-plugin acme-b:twin, or in raptor.toml: "
        'disable-plugins = ["acme-b:twin"]'
    )
    with pytest.raises(PluginError, match="more than one"):
        manager.entry(SCHEDULERS, "twin")
    mended = PluginManager.discover(["acme-b:twin"])
    assert mended.get(SCHEDULERS, "twin").__class__.__module__ == "acme_a"
    assert mended.entry(SCHEDULERS, "twin").distribution == "acme-a"


def test_a_plugin_with_the_name_of_a_built_in_one(site: Path) -> None:
    write_distribution(site, "acme-p", {SCHEDULERS: {"peft": "acme_p:PLUGIN"}}, {"acme_p": scheduler_source("peft")})
    with pytest.raises(PluginError, match=r"acme-p 1\.0 .* and raptor-pim"):
        PluginManager.discover().get(SCHEDULERS, "peft")
    assert type(PluginManager.discover(["raptor-pim:peft"]).get(SCHEDULERS, "peft")).__module__ == "acme_p"


def test_the_first_of_two_installations_of_one_distribution_counts(tmp_path: Path, monkeypatch) -> None:
    for folder, version in (("late", "1.0"), ("early", "2.0")):
        write_distribution(tmp_path / folder, "Acme_Dist", {SCHEDULERS: {"x": "acme_x:PLUGIN"}}, version=version)
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert PluginManager.discover().entry(SCHEDULERS, "x").version == "2.0"


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_plugin_api_version(site: Path, version: object) -> None:
    source = scheduler_source("old", api_version=version)
    write_distribution(site, "acme-old", {SCHEDULERS: {"old": "acme_old:PLUGIN"}}, {"acme_old": source})
    manager = PluginManager.discover()
    with pytest.raises(PluginError) as caught:
        manager.get(SCHEDULERS, "old")
    if version is None:
        assert caught.value.reason == "it states no api_version"
        return
    assert caught.value.render() == (
        "error[plugin-api-version]: the scheduler 'old' was written for another plugin API version\n"
        "  where    acme_old:PLUGIN, from acme-old 1.0\n"
        f"  reason   it states version {version!r}, this Raptor has 1\n"
        "  help     install a release of acme-old for plugin API version 1, or do without: "
        "--disable-plugin acme-old:old"
    )
    assert record(manager, "old").status is Status.WRONG_VERSION


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "class P:\n    name = 'x'\n    api_version = 1\nPLUGIN = P()\n",
            "it does not fulfil the contract of a scheduler: missing: options, schedule, summary",
        ),
        ("class P:\n    api_version = 1\nPLUGIN = P\n", "acme_x:PLUGIN is a class"),
        (
            scheduler_source("x").replace("options = (", "options = list("),
            "its import failed with TypeError: 'Option' object is not iterable",
        ),
        (
            scheduler_source("x").replace("    options = ", "    options = 5 or "),
            "it does not fulfil the contract of a scheduler: options is not a tuple of Option",
        ),
        (scheduler_source("y"), "it calls itself 'y', and its entry point 'x'"),
        (
            scheduler_source("x") + "PLUGIN.schedule = 3\n",
            "it does not fulfil the contract of a scheduler: schedule is not a method",
        ),
    ],
)
def test_a_plugin_that_breaks_its_contract(site: Path, source: str, reason: str) -> None:
    write_distribution(site, "acme-x", {SCHEDULERS: {"x": "acme_x:PLUGIN"}}, {"acme_x": source})
    manager = PluginManager.discover()
    with pytest.raises(PluginError) as caught:
        manager.get(SCHEDULERS, "x")
    assert caught.value.reason == reason
    assert record(manager, "x").status is Status.BROKEN


def test_a_profile_and_a_dialect_must_be_of_their_classes(site: Path) -> None:
    groups = {"raptor.hardware_profiles": {"p": "acme_x:P"}, "raptor.dialects": {"d": "acme_x:P"}}
    write_distribution(site, "acme-x", groups, {"acme_x": "class C:\n    api_version = 1\nP = C()\n"})
    manager = PluginManager.discover()
    with pytest.raises(PluginError, match="it is a C, not a HardwareProfile"):
        manager.get("raptor.hardware_profiles", "p")
    with pytest.raises(PluginError, match="it is a C, not a Dialect"):
        manager.get("raptor.dialects", "d")


def test_groups_and_files_that_make_no_sense(site: Path) -> None:
    write_distribution(site, "acme-typo", {"raptor.scheduler": {"x": "acme_x:PLUGIN"}})
    write_distribution(site, "acme-bad", "[raptor.schedulers]\nno equals sign\n")
    manager = PluginManager.discover()
    by_name = {r.distribution: r for r in manager.check() if not r.built_in}
    assert by_name["acme-typo"].reason == "no such group; did the authors mean raptor.schedulers?"
    assert by_name["acme-typo"].status is Status.BROKEN
    assert by_name["acme-bad"].status is Status.BROKEN
    assert by_name["acme-bad"].reason.startswith("its entry_points.txt cannot be read")


@pytest.mark.parametrize(
    "rule", ["one", "scheduler/one", "schedulers/one", "raptor.schedulers/one", "Acme_One", "acme-one:one"]
)
def test_disabling(site: Path, rule: str) -> None:
    write_distribution(
        site, "acme-one", {SCHEDULERS: {"one": "acme_one:PLUGIN"}}, {"acme_one": scheduler_source("one")}
    )
    manager = PluginManager.discover([rule])
    assert "one" not in manager.names(SCHEDULERS)
    assert not manager.has(SCHEDULERS, "one")
    assert record(manager, "one").status is Status.DISABLED
    with pytest.raises(UsageError) as caught:
        manager.get(SCHEDULERS, "one")
    assert caught.value.render() == (
        "error[plugin-disabled]: the scheduler 'one' is disabled\n"
        "  where    acme_one:PLUGIN, from acme-one 1.0\n"
        f"  reason   '{rule}' of --disable-plugin disables it"
    )


def test_disabling_one_kind_leaves_the_other(site: Path) -> None:
    groups = {SCHEDULERS: {"one": "acme_one:PLUGIN"}, "raptor.layouts": {"one": "acme_one:PLUGIN"}}
    write_distribution(site, "acme-one", groups)
    manager = PluginManager.discover(["scheduler/one"])
    assert (manager.has(SCHEDULERS, "one"), manager.has("raptor.layouts", "one")) == (False, True)


def test_a_name_with_colons_can_be_disabled(site: Path) -> None:
    write_distribution(site, "acme-op", {"raptor.operator_lowerings": {"com.acme::Swish": "acme_op:PLUGIN"}})
    for rule in ("com.acme::Swish", "acme-op:com.acme::Swish", "operator-lowering/com.acme::Swish"):
        assert not PluginManager.discover([rule]).has("raptor.operator_lowerings", "com.acme::Swish")


@pytest.mark.parametrize("rule", ["pefft", "layout/peft", "raptor-pim:pefft", ""])
def test_disabling_what_is_not_there(rule: str) -> None:
    with pytest.raises(UsageError) as caught:
        PluginManager.discover([rule])
    assert caught.value.code == "unknown-plugin"
    assert caught.value.message == f"there is no plugin '{rule}' to disable"


def test_every_kind_has_a_contract_that_can_be_loaded() -> None:
    assert all(isinstance(kind.load_contract(), type) for kind in KINDS)
