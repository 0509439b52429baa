"""Any legal placement computes the same numbers, whatever the cut, the cores and the layouts."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_core.ir.verifier import verify_module
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import grid
from raptor_core.spatial.communication import Copy, Mirror, Transfer
from raptor_core.spatial.compute import Placement
from raptor_core.spatial.passes.communicate import COMMUNICATE
from small_network import SHAPE, expected, network, placements
from spatial_interpreter import execute


def communicate(module: Module) -> Module:
    return COMMUNICATE.run(module, PassContext(None, None)).module  # type: ignore[arg-type]


@settings(deadline=None, max_examples=40)
@given(placements(), st.integers(0, 99))
def test_any_placement_computes_the_same(found: list[Placement], seed: int) -> None:
    module = network()
    ops = tuple(attrs.evolve(op, placement=p) for op, p in zip(module.operations, found, strict=True))
    x = np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)
    outputs = execute(communicate(attrs.evolve(module, operations=ops)), {"x": x})
    for name, array in expected(x, module.constants["z"]).items():
        np.testing.assert_allclose(outputs[name], array, atol=1e-5)


def mirrored(module: Module, uses: list[tuple[int, int]]) -> Module:
    """The module with a mirror for each of ``uses`` (number of the operation, operand)."""
    operations, types = list(module.operations), dict(module.types)
    makers = module.producer_of()
    mirrors = []
    for number, k in uses:
        value = operations[number].operands[k]
        name = f"{value}.mirror{len(mirrors)}"
        types[name] = types[value]
        mirrors.append((makers[value], Mirror(name=value, operands=(value,), results=(name,))))
        operands = tuple(name if i == k else v for i, v in enumerate(operations[number].operands))
        operations[number] = attrs.evolve(operations[number], operands=operands)
    placed = []
    for op, before in zip(operations, module.operations, strict=True):
        placed += [op, *(mirror for maker, mirror in mirrors if maker is before)]
    return attrs.evolve(module, stage="mirror", operations=tuple(placed), types=types)


USES = [(1, 0), (2, 0), (3, 0), (3, 1), (4, 0), (5, 0)]


@settings(deadline=None, max_examples=40)
@given(placements(), st.sets(st.sampled_from(USES)), st.integers(0, 99))
def test_mirrors_hold_what_their_users_need(found: list[Placement], uses: set[tuple[int, int]], seed: int) -> None:
    module = network()
    ops = tuple(attrs.evolve(op, placement=p) for op, p in zip(module.operations, found, strict=True))
    result = communicate(mirrored(attrs.evolve(module, operations=ops), sorted(uses)))
    verify_module(result)
    x = np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)
    outputs = execute(result, {"x": x})
    for name, array in expected(x, module.constants["z"]).items():
        np.testing.assert_allclose(outputs[name], array, atol=1e-5)


def test_a_mirror_on_the_core_that_makes_the_value_gets_a_copy() -> None:
    module = network()
    ops = tuple(
        attrs.evolve(op, placement=Placement(grid(SHAPE, (1, 1, 1)), np.zeros(1, np.int64), np.array([k])))
        for k, op in enumerate(module.operations)
    )
    result = communicate(mirrored(attrs.evolve(module, operations=ops), [(4, 0)]))
    (copy,) = result.find(Copy)
    assert copy.operands == ("d", "d.mirror0")
    assert copy.boxes.tolist() == [[[0, 0, 0], list(SHAPE)]]
    assert not list(result.find(Transfer))


def test_on_one_core_nothing_is_sent() -> None:
    module = network()
    ops = []
    for k, op in enumerate(module.operations):
        boxes = grid(SHAPE, (2, 1, 1))
        ops.append(attrs.evolve(op, placement=Placement(boxes, np.zeros(2, np.int64), 2 * k + np.arange(2))))
    result = communicate(attrs.evolve(module, operations=tuple(ops)))
    assert not list(result.find(Transfer))


def test_an_unplaced_compute_is_an_error() -> None:
    with pytest.raises(InternalError, match="'a' has no placement"):
        communicate(network())
