"""The kinds of plugins: entry-point groups, the words people use for them, and where their contracts are."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import attrs


@attrs.frozen
class Kind:
    """One kind of plugin.

    ``group`` is the entry-point group, ``name`` the words for people (in lists and messages), ``contract`` the place
    of the Protocol or class that plugins of the kind fulfil. ``own_name`` says that a plugin's ``name`` must be that of
    its entry point; ``versioned`` that it states an ``api_version``.
    """

    group: str
    name: str
    contract: str
    own_name: bool = True
    versioned: bool = True

    @property
    def key(self) -> str:
        """The name as one word, for the command line: ``conv-strategy``."""
        return self.name.replace(" ", "-")

    def load_contract(self) -> Any:
        """The Protocol or class. Importing it may import numpy."""
        module, _, attribute = self.contract.partition(":")
        return getattr(importlib.import_module(module), attribute)


KINDS: tuple[Kind, ...] = (
    Kind("raptor.targets", "target", "raptor_core.targets.contract:Target"),
    Kind("raptor.hardware_profiles", "hardware profile", "raptor_core.targets.contract:HardwareProfile"),
    Kind("raptor.simulators", "simulator", "raptor_core.simulation.contract:Simulator"),
    Kind("raptor.schedulers", "scheduler", "raptor_core.plugins.contracts:Scheduler"),
    Kind("raptor.conv_strategies", "conv strategy", "raptor_core.plugins.contracts:ConvStrategy"),
    Kind("raptor.layouts", "layout", "raptor_core.plugins.contracts:LayoutAlternative"),
    Kind(
        "raptor.operator_lowerings",
        "operator lowering",
        "raptor_core.plugins.contracts:OperatorLowering",
        own_name=False,
    ),
    Kind("raptor.passes", "pass", "raptor_core.plugins.extensions:ExtraPass"),
    Kind("raptor.hooks", "hooks", "raptor_core.plugins.extensions:Hooks", own_name=False),
    Kind("raptor.commands", "command", "raptor_core.plugins.extensions:Command"),
    Kind("raptor.dialects", "dialect", "raptor_core.ir.operation:Dialect", versioned=False),
)
"""All kinds, in the order of lists."""

_BY_GROUP = {kind.group: kind for kind in KINDS}


def kind_of(group: str) -> Kind | None:
    """The kind of an entry-point group, or None when Raptor has no such group."""
    return _BY_GROUP.get(group)


def find_kind(word: str, kinds: Iterable[Kind] = KINDS) -> Kind | None:
    """The kind that a person means by ``scheduler``, ``schedulers``, ``conv-strategy`` or ``raptor.schedulers``."""
    plain = word.strip().lower().replace("-", " ").replace("_", " ")
    for kind in kinds:
        group_word = kind.group.removeprefix("raptor.").replace("_", " ")
        if plain in (kind.name, group_word, f"raptor.{group_word}"):
            return kind
    return None
