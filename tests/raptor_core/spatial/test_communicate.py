"""Any legal placement computes the same numbers, whatever the cut, the cores and the layouts."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import grid
from raptor_core.spatial.communication import Transfer
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
