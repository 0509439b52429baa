"""Chip configurations out again: as files for other simulators, or as part of an artifact folder."""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from raptor_pim.artifacts.chip import ChipConfiguration, chip_to_json
from raptor_pim.artifacts.mesh import Mesh, mesh_to_json, read_mesh

CHIP_FILE = "chip/chip.json"
"""Where an artifact folder holds the chip it was compiled for."""
NETWORK_FILE = "chip/network.json"


def write_chip(
    configuration: ChipConfiguration,
    folder: Path,
    *,
    name: str = "latency_config.json",
    mesh: str = "network_mesh.json",
) -> Path:
    """Write the configuration and its network file, all pairs spelled out, into ``folder``; gives the former's path.

    The two files load in the published simulators. The folder is made if need be. Raises RaptorError when the
    configuration's network file cannot be read.
    """
    network = mesh_to_json(read_mesh(configuration), configuration.host_switch)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / mesh).write_text(json.dumps(network, separators=(",", ":")) + "\n", encoding="utf-8")
    text = json.dumps(chip_to_json(_with_network(configuration, mesh)), indent=2)
    (folder / name).write_text(text + "\n", encoding="utf-8")
    return folder / name


def chip_files(configuration: ChipConfiguration, mesh: Mesh) -> dict[str, bytes]:
    """The files, by path, that let an artifact folder say for itself which chip it is for.

    The network stays a rule where one made it.
    """
    if mesh.rules:
        latency, energy = (attrs.asdict(rule) for rule in mesh.rules)
        network: object = {"rule": {"latency": latency, "energy": energy}}
    else:
        network = mesh_to_json(mesh, configuration.host_switch)
    chip = chip_to_json(_with_network(configuration, Path(NETWORK_FILE).name))
    return {
        CHIP_FILE: (json.dumps(chip, indent=2) + "\n").encode(),
        NETWORK_FILE: (json.dumps(network, separators=(",", ":")) + "\n").encode(),
    }


def _with_network(configuration: ChipConfiguration, path: str) -> ChipConfiguration:
    chip = configuration.chip_config
    network = attrs.evolve(chip.network_config, net_config_file_path=path)
    return attrs.evolve(configuration, chip_config=attrs.evolve(chip, network_config=network))
