"""Every member of a public contract is described on its page."""

from __future__ import annotations

import inspect
import re
from typing import Any

import attrs
import pytest

from doc_pages import DOCS
from raptor_core.ir.types import Layout
from raptor_core.options import Option
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.plugins import hookspecs
from raptor_core.plugins.contracts import API_VERSION
from raptor_core.plugins.kinds import KINDS
from raptor_core.plugins.records import Status
from raptor_core.simulation.contract import SimulationRequest, SimulationResult
from raptor_core.spatial.compute import ComputeOp, Placement, PointwiseFunction
from raptor_core.spatial.kernel import KernelBuilder
from raptor_core.spatial.plans import ConvPlan
from raptor_core.targets.contract import TargetConfiguration
from raptor_core.targets.inspection import ProgramReader
from raptor_core.targets.machine import Machine

PAGES = {
    "raptor.operator_lowerings": "operator-lowerings",
    "raptor.conv_strategies": "conv-strategies",
    "raptor.layouts": "layouts",
    "raptor.schedulers": "schedulers",
    "raptor.targets": "targets",
    "raptor.hardware_profiles": "targets",
    "raptor.simulators": "simulators",
    "raptor.passes": "passes-and-hooks",
    "raptor.hooks": "passes-and-hooks",
    "raptor.commands": "passes-and-hooks",
    "raptor.dialects": "passes-and-hooks",
}
"""The page of every group of entry points."""

OTHERS = {
    "operator-lowerings": (ComputeOp, KernelBuilder, PointwiseFunction),
    "conv-strategies": (ConvPlan,),
    "layouts": (Layout,),
    "schedulers": (Placement,),
    "targets": (TargetConfiguration, Machine, ProgramReader),
    "simulators": (SimulationRequest, SimulationResult),
    "passes-and-hooks": (PassContext, PassResult),
}
"""What else an author of the page's kinds has to know."""

LEFT_OUT = {
    ComputeOp: {"name", "operands", "results", "epilogue", "placement"},  # set by Raptor, or known from nodes
    ConvPlan: {"name", "operands", "results", "verify", "fail", "region", "input_channels", "layout_choices"},
    Layout: {"dense", "is_dense"},
}


def members(contract: Any) -> set[str]:
    """The public names that a contract has: fields, class attributes and methods."""
    bases = [base for base in contract.__mro__ if base.__module__.startswith("raptor_core")]
    named = {field.name for field in attrs.fields(contract)} if attrs.has(contract) else set()
    for base in bases:
        named |= {*vars(base), *inspect.get_annotations(base)}
    return {name for name in named if not name.startswith("_")} - LEFT_OUT.get(contract, set()) - {"kind"}


def described(name: str, text: str) -> bool:
    """Whether a page has the name in code, as it stands or called."""
    return re.search(rf"`{re.escape(name)}[`(]", text) is not None


def page(name: str) -> str:
    return (DOCS / "plugins" / f"{name}.md").read_text()


def test_every_group_has_a_page() -> None:
    assert set(PAGES) == {kind.group for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.key)
def test_contract_of_a_kind(kind: Any) -> None:
    text = page(PAGES[kind.group])
    assert f"`{kind.group}`" in text
    assert f"`{kind.contract.replace(':', '.')}`" in text
    contract = kind.load_contract()
    assert [name for name in sorted(members(contract)) if not described(name, text)] == []
    if kind.versioned:
        assert f"written for: {API_VERSION} " in text


@pytest.mark.parametrize(("name", "contract"), [(n, c) for n, group in OTHERS.items() for c in group])
def test_other_contracts(name: str, contract: Any) -> None:
    text = page(name)
    assert members(contract)
    assert [member for member in sorted(members(contract)) if not described(member, text)] == []


def test_hooks() -> None:
    text = page("passes-and-hooks")
    hooks = {name: f for name, f in vars(hookspecs).items() if hasattr(f, f"{hookspecs.PROJECT}_spec")}
    assert hooks
    for name, function in hooks.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"| `{name}`")]
        assert [argument for argument in inspect.signature(function).parameters if f"`{argument}`" not in line] == []


def test_index_has_options_and_statuses() -> None:
    text = (DOCS / "plugins.md").read_text()
    assert [f.name for f in attrs.fields(Option) if not described(f.name, text)] == []
    assert [str(status) for status in Status if not described(str(status), text)] == []


def test_a_member_that_is_not_described_is_found() -> None:
    assert "schedule" in members(next(kind for kind in KINDS if kind.key == "scheduler").load_contract())
    assert not described("schedule", "the scheduler has `schedules(module)` and schedule")
    assert described("schedule", "it has `schedule(module)`")
