"""What the machine says work costs, against figures measured on the reference simulator."""

from __future__ import annotations

import numpy as np
import pytest

from raptor_core.spatial.kernel import Address, KernelBuilder
from raptor_core.targets.machine import Machine
from raptor_pim.machine import PimMachine
from raptor_pim.options import configure
from raptor_pim.profiles import ARCH_A, ARCH_C


@pytest.fixture(scope="module")
def machine() -> PimMachine:
    found = configure({}, ARCH_A, None).machine
    assert isinstance(found, PimMachine)
    return found


def test_it_is_a_machine(machine: PimMachine) -> None:
    typed: Machine = machine
    assert typed.core_count == 168


@pytest.mark.parametrize(
    ("op", "count", "ns"),
    [
        ("add", 128, 158),
        ("add", 1024, 1250),
        ("sub", 128, 158),
        ("mul", 128, 158),
        ("max", 128, 158),
        ("dot", 128, 158),
        ("relu", 128, 118),
        ("sigmoid", 128, 118),
        ("mean", 128, 118),
        ("gather", 128, 118),
        ("clamp_max", 128, 118),
        ("copy", 128, 102),
        ("fill", 128, 62),
    ],
)
def test_whole_instructions(machine: PimMachine, op: str, count: int, ns: float) -> None:
    assert machine.instruction_ns(op, count) == ns


def test_products(machine: PimMachine) -> None:
    # 320 to read, 1305 to compute, 30 per 64 output bytes, 3 to dispatch; 32 outputs of 8 bits per crossbar.
    assert machine.instruction_ns("product", columns=128) == 320 + 1305 + 30 + 3
    assert machine.instruction_ns("product", columns=1) == machine.instruction_ns("product", columns=128)
    assert machine.instruction_ns("product", columns=512) == 1688
    assert machine.instruction_ns("product", columns=2048) == 1868


def test_a_kernel_pays_for_instructions_and_register_loads(machine: PimMachine) -> None:
    k = KernelBuilder(2)
    with k.loop(10) as i:
        k.binary("add", Address(2) + i * 128, Address(0) + i * 128, Address(1) + i * 128, 128)
        k.unary("relu", Address(2) + i * 128, Address(2) + i * 128, 128)
    assert machine.kernel_ns(k.build()) == 10 * (158 + 118 + 3)
    k = KernelBuilder(1)
    k.product(Address(1), Address(0), 0, 128)
    assert machine.kernel_ns(k.build()) == 1658 + 2


def test_moves_cost_what_their_instructions_cost(machine: PimMachine) -> None:
    k = KernelBuilder(1)
    k.moves(1, 0, [*range(128), *range(200, 210)], [*range(128), *range(0, 20, 2)])
    expected = machine.instruction_ns("copy", 128) + machine.instruction_ns("gather", 10) + 2 * 2
    assert machine.kernel_ns(k.build()) == expected


def test_an_empty_kernel_costs_nothing(machine: PimMachine) -> None:
    assert machine.kernel_ns(KernelBuilder(1).build()) == 0


def test_unknown_instructions_are_not_priced(machine: PimMachine) -> None:
    with pytest.raises(ValueError, match="cosine"):
        machine.instruction_ns("cosine", 3)


def test_transfers_between_neighbours_and_across() -> None:
    """Measured pairs: 32 B 58, 128 B 117, 1 KiB 901 at 3 ns per flit; 104, 232, 1660 at 26."""
    chip = configure({"core_count": 2, "crossbar_count": 1, "crossbar_size": "128"}, None, None).machine
    assert [chip.transfer_ns(n) for n in (32, 128, 1024)] == [58, 117, 901]
    assert chip.transfer_ns(256, 2) == 2 * 117
    assert chip.transfer_ns(0) == 0
    assert chip.transfer_ns(64, 0) == 0


def test_distance_is_relative_to_the_mean(machine: PimMachine) -> None:
    distance = machine.distance_ns()
    assert distance.shape == (168, 168)
    off = ~np.eye(168, dtype=bool)
    assert abs(distance[off].mean()) < 1e-9
    assert distance[0, 167] - distance[0, 1] == 2 * 23
    np.testing.assert_array_equal(distance, distance.T)


def test_the_host_memory_is_slow(machine: PimMachine) -> None:
    # 32 bytes per access, 40 ns to read and 50 to write.
    assert machine.host_ns(128) == 4 * 45
    assert machine.host_ns(128, 4) == 4 * 45
    assert machine.host_ns(4, 4) == 4 * 45
    assert machine.host_ns(0) == 0


def test_crossbars_of_matrices(machine: PimMachine) -> None:
    assert machine.crossbars([(128, 128), (1, 129), (5, 1)]) == 1 + 2 + 1
    assert machine.crossbars([]) == 0
    wide = configure({}, ARCH_C, None).machine
    assert wide.crossbars([(512, 1000), (512, 1025)]) == 1 + 2
