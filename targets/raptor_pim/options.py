"""The target's options, and the machine that they or a profile describe."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.options import Option
from raptor_core.targets.contract import HardwareProfile, TargetConfiguration
from raptor_pim.artifacts.chip import ChipConfiguration, load_chip
from raptor_pim.artifacts.mesh import CORE_LIMIT
from raptor_pim.machine import PimMachine
from raptor_pim.profiles import ARCH_A

_LIMIT = 2**31 - 1

OPTIONS: tuple[Option, ...] = (
    Option("core_count", int, "number of cores of the chip", minimum=1, maximum=CORE_LIMIT),
    Option("crossbar_count", int, "number of crossbars of one core", minimum=1, maximum=_LIMIT),
    Option("crossbar_size", str, "rows and columns of a crossbar: 128, or 128x256"),
    Option("event_ordering", bool, "order of messages and work by list scheduling on the chip's costs", default=True),
    Option("emit_json", bool, "also write every program as JSON (core_N.json)", default=False),
    Option(
        "verify_communication", bool, "replay all sends and receives of the emitted programs once more", default=False
    ),
)
"""The first three describe the chip: all are needed without a profile, and none may disagree with one."""

_SIZE = re.compile(r"(\d{1,10})(?:x(\d{1,10}))?")


def configure(
    options: Mapping[str, Any], profile: HardwareProfile | None, profile_file: Path | None
) -> TargetConfiguration:
    """The machine for the chip that ``profile``, ``profile_file`` or the options describe.

    Without a profile, ``core_count``, ``crossbar_count`` and ``crossbar_size`` must be given; timing, energy and cell
    precision are then those of the profile ``pim-arch-a``, its mesh rule on a layout as square as the count allows.
    Raises UsageError for missing, bad or conflicting values, RaptorError for a profile file that cannot be used.
    """
    size = _parse_size(options.get("crossbar_size"))
    given = {"core_count": options.get("core_count"), "crossbar_count": options.get("crossbar_count")}
    if profile is not None and profile_file is not None:
        raise UsageError("two-profiles", "a named profile and --profile-file were both given", hint="give one of them")
    if profile is not None:
        machine = PimMachine(load_chip(profile.configuration), profile.name)
        _check_agreement({**given, "crossbar_size": size}, machine.configuration, f"profile '{profile.name}'")
    elif profile_file is not None:
        machine = PimMachine(load_chip(profile_file), profile_file.stem)
        _check_agreement({**given, "crossbar_size": size}, machine.configuration, f"profile file '{profile_file}'")
    else:
        machine = PimMachine(_bare(given, size))
    _check_capacity(machine.configuration)
    _ = machine.mesh  # a network file that cannot be used is refused now, not in the middle of a compilation
    return TargetConfiguration(machine, _facts(machine), data=machine)


def _parse_size(given: str | None) -> tuple[int, int] | None:
    """(rows, columns) of "128" or "128x256"."""
    if given is None:
        return None
    match = _SIZE.fullmatch(given.strip().lower())
    rows = int(match[1]) if match else 0
    columns = int(match[2] or match[1]) if match else 0
    if not (0 < rows <= _LIMIT and 0 < columns <= _LIMIT):
        raise UsageError(
            "bad-option-value",
            f"bad value {given!r} for --crossbar-size",
            reason="it must be a positive number (a square) or rows x columns, as in 128x256",
            hint="the size of one crossbar: rows take inputs, columns give outputs",
        )
    return rows, columns


def _check_agreement(given: Mapping[str, Any], configuration: ChipConfiguration, source: str) -> None:
    """Options may repeat what the profile says, not contradict it."""
    stated = {
        "core_count": configuration.core_count,
        "crossbar_count": configuration.crossbars_per_core,
        "crossbar_size": configuration.crossbar_shape,
    }
    conflicts = [
        f"{_flag(name)} is {_shown(value)}, the {source.split(' ')[0]} says {_shown(stated[name])}"
        for name, value in given.items()
        if value is not None and value != stated[name]
    ]
    if conflicts:
        raise UsageError(
            "profile-conflict",
            f"options contradict the {source}",
            reason=conflicts[0],
            details=conflicts[1:],
            hint="leave these options out, or choose a profile that fits them (raptor targets list)",
        )


def _bare(given: Mapping[str, Any], size: tuple[int, int] | None) -> ChipConfiguration:
    """The configuration of a chip that only the options describe."""
    missing = [_flag(name) for name, value in {**given, "crossbar_size": size}.items() if value is None]
    if missing or size is None:
        raise UsageError(
            "missing-option",
            f"the target 'pim' needs {', '.join(missing)}",
            reason="no profile says what chip to compile for",
            hint="give the missing options, or a profile (raptor targets list) or --profile-file",
        )
    cores, crossbars = given["core_count"], given["crossbar_count"]
    rows = math.isqrt(cores)
    base = load_chip(ARCH_A.configuration)
    chip = base.chip_config
    matrix = attrs.evolve(chip.core_config.matrix_config, xbar_array_count=crossbars, xbar_size=size)
    return attrs.evolve(
        base,
        chip_config=attrs.evolve(
            chip,
            core_cnt=cores,
            core_config=attrs.evolve(chip.core_config, matrix_config=matrix),
            network_config=attrs.evolve(chip.network_config, layout=(rows, -(-cores // rows))),
        ),
    )


def _check_capacity(configuration: ChipConfiguration) -> None:
    """Sizes that programs, weights and addresses must be able to say in 32 bits."""
    rows, columns = configuration.crossbar_shape
    crossbars = configuration.crossbars_per_core
    for what, value in (
        ("cells of one core (crossbars x rows x columns)", crossbars * rows * columns),
        ("crossbars of the chip (cores x crossbars)", configuration.core_count * crossbars),
    ):
        if value > _LIMIT:
            raise UsageError(
                "chip-too-large",
                "the chip is too large",
                where=f"{configuration.core_count} cores x {crossbars} crossbars of {rows} x {columns}",
                reason=f"{value} {what} are more than {_LIMIT}",
                hint="choose fewer or smaller crossbars",
            )
    if configuration.core_count > CORE_LIMIT:
        raise RaptorError(
            "chip-too-large", "the chip is too large", reason=f"more than {CORE_LIMIT} cores are not supported"
        )


def _facts(machine: PimMachine) -> dict[str, Any]:
    rows, columns = machine.configuration.crossbar_shape
    return {
        "chip": machine.name,
        "core_count": machine.core_count,
        "crossbar_count": machine.crossbars_per_core,
        "crossbar_size": [rows, columns],
        "layout": list(machine.configuration.chip_config.network_config.layout),
    }


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _shown(value: Any) -> str:
    return f"{value[0]}x{value[1]}" if isinstance(value, tuple) else str(value)
