"""Users of a value get storages of their own only where that costs less, and the numbers stay the same."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.ir.module import Module
from raptor_core.ir.verifier import verify_module
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.spatial.boxes import grid
from raptor_core.spatial.communication import Copy, Mirror
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.spatial.passes._storage_costs import SharingCosts, read_members
from raptor_core.spatial.passes.communicate import COMMUNICATE
from raptor_core.spatial.passes.mirror import MIRROR
from small_network import SHAPE, expected, network, placements
from spatial_interpreter import execute
from tests.raptor_core.spatial.passes.stand_ins import Machine


def placed(found: Sequence[Placement]) -> Module:
    module = network()
    ops = tuple(attrs.evolve(op, placement=p) for op, p in zip(module.operations, found, strict=True))
    return attrs.evolve(module, operations=ops)


def cut(parts: Sequence[tuple[int, int, int]]) -> Module:
    """Every operation of the network cut into a grid, one lane per core."""
    cuts = [grid(SHAPE, each) for each in parts]
    return placed([Placement(b, np.arange(len(b)), np.full(len(b), step)) for step, b in enumerate(cuts)])


def run(module: Module, **options: bool) -> PassResult:
    return MIRROR.run(module, PassContext(Machine(5), None, options))  # type: ignore[arg-type]


ROWS, CHANNELS = (1, 5, 1), (4, 1, 1)
CROSSWISE = [ROWS, ROWS, ROWS, CHANNELS, CHANNELS, CHANNELS]
"""A sum cut by channels reads values made row by row, all channels of an element side by side."""


def test_a_user_that_would_touch_a_part_of_the_storage_gets_a_mirror() -> None:
    result = run(cut(CROSSWISE))
    verify_module(result.module)
    mirrored = {op.results[0]: op.operands[0] for op in result.module.find(Mirror)}
    assert result.notes == {"mirrors": len(mirrored)}
    add = next(op for op in result.module.find(ComputeOp) if op.name == "d")
    # Most of what it needs of the other operand arrives for the blur anyway.
    assert [mirrored.get(value, value) for value in add.operands] == ["c", "a"]
    assert add.operands[0] in mirrored
    assert add.operands[1] not in mirrored
    blur = next(op for op in result.module.find(ComputeOp) if op.name == "b")
    assert blur.operands == ("a", "z")  # it reads its rows where they are made
    copies = list(COMMUNICATE.run(result.module, PassContext(None, None)).module.find(Copy))  # type: ignore[arg-type]
    assert {op.operands[0] for op in copies} == set(mirrored.values())


def test_users_that_fit_what_is_made_share_its_storage() -> None:
    module = cut([CHANNELS] * 6)
    assert run(module).module.operations == module.operations


def test_the_option_leaves_everything_shared() -> None:
    module = cut(CROSSWISE)
    result = run(module, mirrors=False)
    assert result.notes == {"mirrors": 0}
    assert result.module.operations == module.operations


@settings(deadline=None, max_examples=40)
@given(placements(), st.integers(0, 99))
def test_the_numbers_stay_the_same(found: list[Placement], seed: int) -> None:
    result = run(placed(found)).module
    verify_module(result)
    again = run(placed(found)).module
    assert [op.operands for op in again.operations] == [op.operands for op in result.operations]
    x = np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)
    outputs = execute(COMMUNICATE.run(result, PassContext(None, None)).module, {"x": x})  # type: ignore[arg-type]
    for name, array in expected(x, network().constants["z"]).items():
        np.testing.assert_allclose(outputs[name], array, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(placements(), st.sampled_from([0, 1, 2, 3, 4]))
def test_no_group_is_forgotten_and_none_costs_more_than_one_for_all(found: list[Placement], maker: int) -> None:
    module = placed(found)
    ops = [op for op in module.operations if isinstance(op, ComputeOp)]
    uses = [(op, k) for op in ops for k, value in enumerate(op.operands) if value == ops[maker].results[0]]
    members = read_members(ops[maker], uses, module.types)
    assert sorted(use for member in members for use in member.uses) == list(range(len(uses)))
    costs = SharingCosts(members, module.types, Machine(5))  # type: ignore[arg-type]
    groups = costs.best_groups()
    assert sorted(member for group in groups for member in group) == list(range(len(members)))
    assert 0 in groups[0]
    assert costs.cost_ns(groups) <= costs.cost_ns([tuple(range(len(members)))])


@pytest.mark.parametrize("shared", [True, False])
def test_a_copy_costs_and_a_shared_storage_does_not(shared: bool) -> None:
    module = cut([ROWS] * 6)
    maker, user = (op for op in module.operations if op.name in {"c", "d"})
    assert isinstance(maker, ComputeOp)
    assert isinstance(user, ComputeOp)
    costs = SharingCosts(read_members(maker, [(user, 0)], module.types), module.types, Machine(5))  # type: ignore[arg-type]
    lanes = 5 * (10 + 24) * 2  # the maker's and the user's: one instruction of 24 elements each
    copies = 0 if shared else 5 * (10 + 24)
    assert costs.cost_ns([(0, 1)] if shared else [(0,), (1,)]) == lanes + copies


def test_a_value_of_many_users_is_decided_as_a_whole() -> None:
    """Rows of a value that each of thirty users needs another part of: all share a storage, or nobody does."""
    module = cut([ROWS] * 6)
    maker, user = (op for op in module.operations if op.name in {"c", "d"})
    assert isinstance(maker, ComputeOp)
    assert isinstance(user, ComputeOp)
    assert user.placement is not None
    boxes = grid(SHAPE, (4, 5, 6))
    users = [
        attrs.evolve(user, placement=Placement(boxes[k : k + 4], np.arange(4), np.full(4, 3))) for k in range(0, 120, 4)
    ]
    members = read_members(maker, [(each, 0) for each in users], module.types)
    groups = SharingCosts(members, module.types, Machine(5)).best_groups()  # type: ignore[arg-type]
    assert len(members) == 31
    assert len(groups) in (1, 31)
