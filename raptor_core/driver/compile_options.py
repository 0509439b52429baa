"""The options of a compilation: the core's, and those that target, scheduler and strategies declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from raptor_core.diagnostics import PluginError, UsageError, unknown_name
from raptor_core.options import Option, resolve_options
from raptor_core.plugins.manager import PluginManager
from raptor_core.targets.contract import Target

STRATEGIES, SCHEDULERS = "raptor.conv_strategies", "raptor.schedulers"
AUTO = "auto"

CORE_OPTIONS: tuple[Option, ...] = (
    Option("conv_strategy", str, "how convolutions form their products: a strategy's name, or auto", default=AUTO),
    Option("scheduler", str, "what places the work on cores", default="peft"),
    Option("layout_planning", bool, "choice of element orders by cost: row-major wherever it can be", default=True),
    Option(
        "input_staging",
        bool,
        "copies of network inputs and constants on the cores where lanes share them",
        default=True,
    ),
    Option("mirrors", bool, "storages of their own for users of a value that a shared one slows down", default=True),
    Option("multicast", bool, "cores that have a piece pass it on where many need it", default=True),
    Option("pipeline", int, "number of throughput stages; 1 schedules for latency", default=1, minimum=1),
    Option(
        "optimize",
        int,
        "seconds of search for the scheduler's options with the least predicted latency; 0: none, at most 86400",
        default=0,
        minimum=0,
        maximum=86_400,
    ),
    Option("seed", int, "seed of random choices, for plugins that make any", default=0, minimum=0, maximum=2**63 - 1),
)
"""Options of every compilation."""

_WITHOUT_EFFECT_ON_OUTPUT = frozenset({"verify_communication", "optimize"})
"""What was searched for stands in a manifest field of its own, and the values found among the options."""
_SEED = "seed"


@attrs.frozen
class Owner:
    """Somebody who declares options: ``name`` for messages, for example ``scheduler 'peft'``."""

    name: str
    options: tuple[Option, ...]


@attrs.frozen
class DeclaredOptions:
    """All options that may be given to one compilation, by owner; the core and the target come first."""

    owners: tuple[Owner, ...]

    def by_name(self) -> dict[str, Option]:
        """The options; of several with one name the first."""
        found: dict[str, Option] = {}
        for owner in self.owners:
            for option in owner.options:
                found.setdefault(option.name, option)
        return found

    def check_shared(self, name: str) -> None:
        """Raise PluginError when owners understand an option differently."""
        sharing = [(owner.name, o) for owner in self.owners for o in owner.options if o.name == name]
        (first, option), *others = sharing
        for other, theirs in others:
            if (theirs.type, theirs.choices) != (option.type, option.choices):
                raise PluginError(
                    "option-conflict",
                    f"{first} and {other} do not mean the same by {option.flag}",
                    reason=f"the first takes {_form(option)}, the second {_form(theirs)}",
                    hint="choose a strategy by name, or disable one of them",
                )


def declared_options(
    manager: PluginManager, target: Target | None, *, scheduler: str | None, strategy: str | None
) -> DeclaredOptions:
    """The core's options and those of the plugins named. ``auto`` stands for all strategies that can be loaded.

    Raises UsageError for unknown names, PluginError for named plugins that cannot be used.
    """
    owners = [Owner("the core", CORE_OPTIONS)]
    if target is not None:
        owners.append(Owner(f"target '{target.name}'", target.options))
    if scheduler is not None:
        owners.append(Owner(f"scheduler '{scheduler}'", manager.get(SCHEDULERS, scheduler).options))
    if strategy == AUTO:
        for name in manager.names(STRATEGIES):
            try:
                owners.append(Owner(f"conv strategy '{name}'", manager.get(STRATEGIES, name).options))
            except PluginError:  # it takes no part in the choice, which the report says
                continue
    elif strategy is not None:
        if not manager.has(STRATEGIES, strategy) and not _is_disabled(manager, strategy):
            raise unknown_name("conv strategy", strategy, [AUTO, *manager.names(STRATEGIES)])
        owners.append(Owner(f"conv strategy '{strategy}'", manager.get(STRATEGIES, strategy).options))
    return DeclaredOptions(tuple(owners))


@attrs.frozen
class CompileOptions:
    """Resolved options. ``shared`` is what passes see; ``target`` the target's own; ``recorded`` for the manifest."""

    shared: Mapping[str, Any]
    target: Mapping[str, Any]
    recorded: Mapping[str, Any]


def resolve_compile_options(manager: PluginManager, target: Target, given: Mapping[str, Any]) -> CompileOptions:
    """The values of all options, ``given`` by name in snake case (None: not given).

    Raises UsageError for an unknown option or bad value, and for a pipeline of more than one stage.
    """
    given = {name: value for name, value in given.items() if value is not None}
    core = resolve_options(
        CORE_OPTIONS, {k: v for k, v in given.items() if k in {o.name for o in CORE_OPTIONS}}, owner="the core"
    )
    if core["pipeline"] > 1:
        raise UsageError(
            "pipeline-not-available",
            f"--pipeline {core['pipeline']} cannot be compiled",
            reason="this release schedules for latency: every network is one stage over all cores",
            hint="leave --pipeline out, or give 1",
        )
    declared = declared_options(manager, target, scheduler=core["scheduler"], strategy=core["conv_strategy"])
    known = declared.by_name()
    for name in given:
        if name not in known:
            raise unknown_name("option", name, known)
        declared.check_shared(name)
    values = {name: known[name].parse(value) for name, value in given.items()}
    own = {option.name for option in target.options}
    of_target = resolve_options(
        target.options, {k: v for k, v in values.items() if k in own}, owner=f"target '{target.name}'"
    )
    shared = {**of_target, **core, **values}
    return CompileOptions(shared, of_target, _recorded(declared, core, of_target, values))


def _recorded(
    declared: DeclaredOptions, core: Mapping[str, Any], of_target: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """What has an effect on the output: equal for an option left out and one given its default."""
    known = declared.by_name()
    of_plugins = {n: v for n, v in values.items() if n not in core and n not in of_target and v != known[n].default}
    seeded = any(o.name == _SEED for owner in declared.owners[1:] for o in owner.options)
    recorded = {**of_target, **core, **of_plugins}
    left_out = _WITHOUT_EFFECT_ON_OUTPUT if seeded else _WITHOUT_EFFECT_ON_OUTPUT | {_SEED}
    return {name: value for name, value in sorted(recorded.items()) if value is not None and name not in left_out}


def _is_disabled(manager: PluginManager, strategy: str) -> bool:
    return any(entry.group == STRATEGIES and entry.name == strategy for entry in manager.discovery.entries)


def _form(option: Option) -> str:
    return f"one of {', '.join(option.choices)}" if option.choices else f"values of type {option.type.__name__}"
