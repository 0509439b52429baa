"""Chips that the tests time programs on, and a program of the trained example."""

from __future__ import annotations

from pathlib import Path

import pytest

import raptor_core
from raptor_pim.artifacts.chip import ChipConfiguration, load_chip
from raptor_pim.artifacts.export_chip import write_chip
from raptor_pim.artifacts.mesh import Mesh, read_mesh
from raptor_pim.profiles import ARCH_A

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_cnn.onnx"


@pytest.fixture(scope="session")
def digits_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained example compiled for a small chip; not to be changed."""
    folder = tmp_path_factory.mktemp("digits") / "program"
    options = {"core_count": 12, "crossbar_count": 40, "crossbar_size": "64"}
    raptor_core.compile(DIGITS, target="pim", output=folder, options=options)
    return folder


@pytest.fixture(scope="session")
def arch_a() -> ChipConfiguration:
    """The reference chip."""
    return load_chip(ARCH_A.configuration)


@pytest.fixture(scope="session")
def arch_a_mesh(arch_a: ChipConfiguration) -> Mesh:
    """Its network."""
    return read_mesh(arch_a)


@pytest.fixture(scope="session")
def chip_folder(arch_a: ChipConfiguration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reference chip's files as other simulators read them."""
    folder = tmp_path_factory.mktemp("arch-a")
    write_chip(arch_a, folder)
    return folder
