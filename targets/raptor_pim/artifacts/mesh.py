"""The network file of a chip: time and energy of one flit for every pair of switches.

Two forms are read. The published one spells out every pair::

    {"latency": {"0": {"1": 3, ...}, ...}, "energy": {...}}

with switch numbers as names, the host memory being the configuration's ``global_memory_switch_id``. Ours states a rule
over the layout of the configuration::

    {"rule": {"latency": {"base": 2, "hop": 1, "host": 6}, "energy": {"base": 12, "hop": 3, "host": 24}}}

Core i sits in row i / columns, column i mod columns; two different cores at Manhattan distance h cost base + hop x h,
and a core and the host, either way, cost ``host``. Latency is whole ns, energy pJ.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError
from raptor_pim.artifacts._json_files import bad_chip_file, read_json
from raptor_pim.artifacts.chip import ChipConfiguration

_LATENCY_LIMIT = 2**31 - 1
_SHOWN = 5

CORE_LIMIT = 4096
"""The most cores a chip may have: the network is held as a table of all pairs."""


@attrs.frozen
class MeshRule:
    """Cost of one flit as a function of distance: between cores ``base + hop * h``, to or from the host ``host``."""

    base: float
    hop: float
    host: float

    def table(self, layout: tuple[int, int], cores: int) -> npt.NDArray[np.float64]:
        """The costs, [cores + 1, cores + 1]; 0 from a switch to itself."""
        row, column = np.divmod(np.arange(cores, dtype=np.int64), layout[1])
        distance = abs(row[:, None] - row[None, :]) + abs(column[:, None] - column[None, :])
        table = np.full((cores + 1, cores + 1), float(self.host))
        table[:cores, :cores] = self.base + self.hop * distance
        np.fill_diagonal(table, 0.0)
        return table


@attrs.frozen(eq=False)
class Mesh:
    """One flit between any two switches, [cores + 1, cores + 1], the host last.

    ``latency`` is int64 ns, ``energy`` float64 pJ; row is the source. Pairs that the network file does not name
    cost 0, which in ``stated`` is False. ``rules`` are those of latency and energy, if rules made the mesh.
    """

    latency: npt.NDArray[np.int64]
    energy: npt.NDArray[np.float64]
    stated: npt.NDArray[np.bool_]
    rules: tuple[MeshRule, MeshRule] | None = None

    @property
    def cores(self) -> int:
        """Number of cores."""
        return int(self.latency.shape[0]) - 1


def read_mesh(configuration: ChipConfiguration) -> Mesh:
    """The network of ``configuration``, from its network file.

    Raises RaptorError, naming the file and the place in it, when the file is missing, no JSON, of another form, too
    small (a core or the host stands in no pair), or holds a cost that is no finite number of at least 0.
    """
    path = configuration.network_file
    if configuration.core_count > CORE_LIMIT:
        raise bad_chip_file(
            "$.chip_config.core_cnt", f"{configuration.core_count} cores are more than the {CORE_LIMIT} supported"
        )
    document = read_json(path, "network file")
    if not isinstance(document, dict):
        raise bad_chip_file(f"{path}: $", "the network file must be an object")
    if "rule" in document:
        return _from_rule(document["rule"], configuration, path)
    parts = []
    for name in ("latency", "energy"):
        if name not in document:
            raise bad_chip_file(f"{path}: $.{name}", "the field is missing")
        parts.append(_table(document[name], f"$.{name}", name == "latency", configuration, path))
    (latency, stated), (energy, _) = parts
    _check_size(stated, configuration, path)
    return Mesh(latency.astype(np.int64), energy, stated)


def rule_mesh(latency: MeshRule, energy: MeshRule, layout: tuple[int, int], cores: int) -> Mesh:
    """The mesh that two rules make of a layout with room for ``cores`` cores."""
    stated = ~np.eye(cores + 1, dtype=np.bool_)
    table = latency.table(layout, cores).astype(np.int64)
    return Mesh(table, energy.table(layout, cores), stated, (latency, energy))


def mesh_to_json(mesh: Mesh, host_switch: int) -> dict[str, Any]:
    """The published form of a mesh: every stated pair, switches by number."""
    names = [str(k) for k in range(mesh.cores)] + [str(host_switch)]
    result: dict[str, Any] = {}
    for name, table in (("latency", mesh.latency), ("energy", mesh.energy)):
        rows: dict[str, Any] = {}
        for source, values, stated in zip(names, table.tolist(), mesh.stated.tolist(), strict=True):
            row = {n: _plain(v) for n, v, s in zip(names, values, stated, strict=True) if s}
            if row:
                rows[source] = row
        result[name] = rows
    return result


def _plain(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def _from_rule(rule: Any, configuration: ChipConfiguration, path: Path) -> Mesh:
    rules = []
    for name in ("latency", "energy"):
        given = rule.get(name) if isinstance(rule, dict) else None
        if not isinstance(given, dict) or set(given) != {"base", "hop", "host"}:
            raise bad_chip_file(f"{path}: $.rule.{name}", "it must be an object of 'base', 'hop' and 'host'")
        for part, value in given.items():
            _check_cost(value, name == "latency", f"{path}: $.rule.{name}.{part}")
        rules.append(MeshRule(**given))
    rows, columns = configuration.chip_config.network_config.layout
    cores = configuration.core_count
    if rows * columns < cores:
        raise bad_chip_file(
            f"{path}: $.rule",
            f"the layout {rows} x {columns} ($.chip_config.network_config.layout) has no room for {cores} cores",
        )
    return rule_mesh(rules[0], rules[1], (rows, columns), cores)


def _table(
    table: Any, where: str, whole: bool, configuration: ChipConfiguration, path: Path
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The values of a table of pairs, and which pairs it has. Switches that the chip has not are left out."""
    cores = configuration.core_count
    index = {str(k): k for k in range(cores)}
    index[str(configuration.host_switch)] = cores
    values = np.zeros((cores + 1, cores + 1))
    stated = np.zeros((cores + 1, cores + 1), dtype=np.bool_)
    if not isinstance(table, dict):
        raise bad_chip_file(f"{path}: {where}", "it must be an object of objects")
    for source, row in table.items():
        _check_switch(source, f"{path}: {where}.{source}")
        if not isinstance(row, dict):
            raise bad_chip_file(f"{path}: {where}.{source}", "it must be an object")
        at = index.get(source)
        if at is None:
            continue
        for target, value in row.items():
            to = index.get(target)
            if to is None:
                _check_switch(target, f"{path}: {where}.{source}.{target}")
                continue
            # The common case is checked here, the rest where the message is made.
            if type(value) is not int or not 0 <= value <= _LATENCY_LIMIT:
                _check_cost(value, whole, f"{path}: {where}.{source}.{target}")
            values[at, to] = value
            stated[at, to] = True
    return values, stated


def _check_switch(name: str, where: str) -> None:
    try:
        valid = str(int(name)) == name
    except ValueError:
        valid = False
    if not valid:
        raise bad_chip_file(where, f"'{name}' is not the number of a switch")


def _check_cost(value: Any, whole: bool, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_chip_file(where, f"a cost must be a number, not {value!r:.40}")
    if not (math.isfinite(value) and 0 <= value <= _LATENCY_LIMIT):
        raise bad_chip_file(where, f"a cost must be between 0 and {_LATENCY_LIMIT}, not {value}")
    if whole and value != int(value):
        raise bad_chip_file(where, f"a latency must be whole ns, not {value}")


def _check_size(stated: npt.NDArray[np.bool_], configuration: ChipConfiguration, path: Path) -> None:
    """Every core of a chip of several, and its host, must stand in some pair."""
    cores = configuration.core_count
    if cores == 1 and not stated.any():
        return
    absent = np.flatnonzero(~(stated.any(axis=0) | stated.any(axis=1)))
    if absent.size:
        raise _too_small(absent, configuration, path)


def _too_small(absent: npt.NDArray[np.int64], configuration: ChipConfiguration, path: Path) -> RaptorError:
    cores = configuration.core_count
    names = [f"core {k}" if k < cores else f"the host (switch {configuration.host_switch})" for k in absent.tolist()]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return bad_chip_file(
        f"{path}: $.latency",
        f"the network file is too small for {cores} cores: it has no pair with {shown}",
        hint="give a network file for this chip, or set $.chip_config.core_cnt to its number of cores",
    )
