"""The two kernels: what they cost by hand, that they agree, and what does not depend on overlap."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_performance.kernels import constants as k
from raptor_pim.artifacts.chip import ChipConfiguration, SimulationMode, load_chip
from raptor_pim.artifacts.mesh import Mesh, MeshRule, read_mesh, rule_mesh
from raptor_pim.profiles import ARCH_A
from timed_programs import END, WIDTHS, Instruction, finish_ns, programs_of, timed, with_core

BEFORE = 4
"""Edge at which the instruction after one leading bubble starts: the bubble stands at 2 and leaves at 3."""
COMPARED = [k.STATUS, k.PC, k.ROUNDS, k.FINISH, *range(k.LOCAL_READS, k.CORE_COLUMNS)]
CHIP = load_chip(ARCH_A.configuration)
MESH = read_mesh(CHIP)


@pytest.mark.parametrize(
    ("instruction", "ns"),
    [
        ({"op": "mvmul", "rd": 0, "rs1": 1, "mbiw": 8, "group": 0}, 1655 + 1),
        ({"op": "mvmul", "rd": 0, "rs1": 1, "mbiw": 8, "group": 2}, 1685 + 1),
        ({"op": "vvadd", "rd": 0, "rs1": 1, "rs2": 2, "len": 128}, 156),
        ({"op": "vvadd", "rd": 0, "rs1": 1, "rs2": 2, "len": 1024}, 1248),
        ({"op": "vrelu", "rd": 0, "rs1": 1, "len": 128}, 116),
        ({"op": "lmv", "rd": 0, "rs1": 1, "len": 128}, 100),
        ({"op": "lldi", "rd": 0, "imm": 0, "len": 128}, 60),
        ({"op": "ld", "rd": 0, "rs1": 1, "size": 32}, 76),
        ({"op": "ld", "rd": 0, "rs1": 1, "size": 128}, 226),
        ({"op": "ld", "rd": 0, "rs1": 1, "size": 1024}, 1766),
        # A store misses the edge at which the network ends it.
        ({"op": "st", "rd": 0, "rs1": 1, "size": 128}, 264 + 1),
        ({"op": "st", "rd": 0, "rs1": 1, "size": 1024}, 2112 + 1),
        ({"op": "sync", "core": 0, "event_register": 0}, 2),
        ({"op": "wait", "event_register": 0, "wait_value": 0}, 1),
        # An instruction that takes no time still ends one edge after its start.
        ({"op": "lmv", "rd": 0, "rs1": 1, "len": 0}, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("in_step", [False, True])
def test_single_instructions(instruction: Instruction, ns: int, in_step: bool) -> None:
    run = timed(CHIP, MESH, [[WIDTHS, instruction]], in_step=in_step)
    # One more edge until it is freed.
    assert finish_ns(run) == BEFORE + ns + 1


@pytest.mark.parametrize("in_step", [False, True])
@pytest.mark.parametrize(("size", "ns"), [(32, 58), (128, 117), (1024, 901)], ids=lambda value: str(value))
def test_steady_transfers_between_neighbours(size: int, ns: int, in_step: bool) -> None:
    """From one transfer to the next, as measured on the reference."""

    def both(count: int) -> float:
        send = [WIDTHS, *[{"op": "send", "rd": 0, "core": 1, "size": size}] * count]
        recv = [WIDTHS, *[{"op": "recv", "rd": 0, "core": 0, "size": size}] * count]
        return finish_ns(timed(CHIP, MESH, [send, recv], in_step=in_step), 1)

    assert both(12) - both(11) == ns


def test_bubbles_take_one_cycle_and_wait_for_the_buffer() -> None:
    plain = finish_ns(timed(CHIP, MESH, [[WIDTHS, END, END]]))
    loads = [{"op": "sldi", "rd": 0, "imm": 5}] * 7
    assert finish_ns(timed(CHIP, MESH, [[WIDTHS, END, *loads, END]])) == plain + 7


def test_units_overlap_only_with_room_and_without_conflict() -> None:
    product = {"op": "mvmul", "rd": 0, "rs1": 1, "mbiw": 8, "group": 0}
    far = [{"op": "sldi", "rd": 0, "imm": 10000}, {"op": "sldi", "rd": 1, "imm": 20000}]
    vector = {"op": "vrelu", "rd": 4, "rs1": 5, "len": 128}
    touching = {"op": "vrelu", "rd": 1, "rs1": 5, "len": 128}
    one, two = CHIP, with_core(CHIP, rob_size=2)
    alone = finish_ns(timed(one, MESH, [[WIDTHS, *far, product]]))
    assert finish_ns(timed(one, MESH, [[WIDTHS, *far, product, vector]])) > alone + 100
    # Both start at one edge; the vector unit reads the memory first, for 40 ns.
    assert finish_ns(timed(two, MESH, [[WIDTHS, *far, product, vector]])) == alone + 40
    assert finish_ns(timed(two, MESH, [[WIDTHS, *far, product, touching]])) > alone + 100


def test_products_of_different_groups_overlap_and_commit_one_per_cycle() -> None:
    chip = with_core(CHIP, rob_size=4)
    addresses = [{"op": "sldi", "rd": r, "imm": 10000 * r} for r in range(6)]
    of = [{"op": "mvmul", "rd": 2 * g, "rs1": 2 * g + 1, "mbiw": 8, "group": g} for g in range(3)]
    one = finish_ns(timed(chip, MESH, [[WIDTHS, *addresses, of[0]]]))
    three = finish_ns(timed(chip, MESH, [[WIDTHS, *addresses, *of]]))
    assert one < three < one + 2 * 320 + 100
    same = finish_ns(timed(chip, MESH, [[WIDTHS, *addresses, of[0], of[0]]]))
    assert same > one + 1600


def test_widths_of_zero_before_any_setbw() -> None:
    product = {"op": "mvmul", "rd": 0, "rs1": 1, "mbiw": 8, "group": 0}
    run = timed(CHIP, MESH, [[product]])
    assert run.core[0, k.PASSES] == 0
    assert finish_ns(run) < 20


@settings(deadline=None, max_examples=60)
@given(programs_of(4, 40), st.booleans())
def test_both_kernels_agree(programs: list[list[Instruction]], looping: bool) -> None:
    chip = CHIP
    if looping:
        chip = CHIP.with_mode(SimulationMode.THROUGHPUT)
        chip = attrs.evolve(chip, sim_config=attrs.evolve(chip.sim_config, sim_time=0.02))
    one = timed(chip, MESH, programs)
    two = timed(chip, MESH, programs, in_step=True)
    np.testing.assert_array_equal(one.core[:, k.FINISH], two.core[:, k.FINISH])
    if not looping:
        np.testing.assert_array_equal(one.core[:, COMPARED], two.core[:, COMPARED])
        np.testing.assert_allclose(one.network_pj, two.network_pj)
    else:
        np.testing.assert_array_equal(one.core[:, k.ROUNDS], two.core[:, k.ROUNDS])


@settings(deadline=None, max_examples=60)
@given(programs_of(3, 40), st.integers(2, 9))
def test_overlap_changes_times_not_work(programs: list[list[Instruction]], rob_size: int) -> None:
    serial = timed(CHIP, MESH, programs)
    overlapped = timed(with_core(CHIP, rob_size=rob_size), MESH, programs)
    assert (serial.core[:, k.STATUS] == k.FINISHED).all()
    assert (overlapped.core[:, k.STATUS] == k.FINISHED).all()
    work = [*range(k.LOCAL_READS, k.PRODUCTS + 1)]
    np.testing.assert_array_equal(serial.core[:, work], overlapped.core[:, work])
    np.testing.assert_allclose(serial.network_pj, overlapped.network_pj)


@settings(deadline=None, max_examples=30)
@given(programs_of(3, 25), st.sampled_from([0.78125, 1.5, 2.0]), st.integers(0, 3), st.integers(0, 3))
def test_other_clocks_and_networks(programs: list[list[Instruction]], period: float, base: int, host: int) -> None:
    rule = MeshRule(base, 1, host)
    mesh = rule_mesh(rule, rule, (2, 2), 4)
    chip = with_core(CHIP, period=period)
    one = timed(chip, mesh, programs)
    two = timed(chip, mesh, programs, in_step=True)
    assert (one.core[:, k.STATUS] == k.FINISHED).all()
    np.testing.assert_array_equal(one.core[:, k.FINISH], two.core[:, k.FINISH])
    # Everything happens on edges of the clock, in whole ps.
    assert (one.core[:, k.FINISH] % round(period * 1000) == 0).all()


def test_many_tokens_wait_in_the_switch_not_in_the_queue() -> None:
    count = 5000
    rule = MeshRule(50, 0, 6)
    mesh = rule_mesh(rule, rule, (12, 14), 168)
    sync = {"op": "sync", "core": 1, "event_register": 7}
    wait = {"op": "wait", "event_register": 7, "wait_value": count}
    programs = [[WIDTHS, *[sync] * count, END], [WIDTHS, wait, END]]
    for in_step in (False, True):
        run = timed(CHIP, mesh, programs, in_step=in_step)
        assert (run.core[:, k.STATUS] == k.FINISHED).all()
        # A token takes four cycles to issue and 50 ns to travel, one after another.
        assert finish_ns(run, 0) == pytest.approx(4 * count, abs=100)
        assert finish_ns(run, 1) == pytest.approx(50 * count, abs=100)


def test_idle_cores_finish_at_once(arch_a: ChipConfiguration, arch_a_mesh: Mesh) -> None:
    run = timed(arch_a, arch_a_mesh, [[], [WIDTHS, END]])
    assert run.core[0, k.STATUS] == k.FINISHED
    assert finish_ns(run, 0) == 0


def test_the_trace_holds_every_real_instruction(arch_a: ChipConfiguration, arch_a_mesh: Mesh) -> None:
    send = {"op": "send", "rd": 0, "core": 1, "size": 64}
    recv = {"op": "recv", "rd": 0, "core": 0, "size": 64}
    load = {"op": "ld", "rd": 0, "rs1": 0, "size": 64}
    programs = [[WIDTHS, END, send, load, END], [WIDTHS, recv, END]]
    for in_step in (False, True):
        run = timed(arch_a, arch_a_mesh, programs, trace_rows=100, in_step=in_step)
        rows = sorted(map(tuple, run.trace.tolist()))
        assert [(core, pc) for core, pc, _, _ in rows] == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]
        assert all(start <= end for _, _, start, end in rows)
        assert rows[0][2:] == (4000, 4000 + (20 + 4 + 30) * 1000)
    assert timed(arch_a, arch_a_mesh, programs, trace_rows=2).trace.shape == (2, 4)
