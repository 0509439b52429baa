"""The schedule pass holds schedulers to their contract, and names the one that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from raptor_core.diagnostics import PluginError
from raptor_core.ir.module import Module
from raptor_core.options import Option
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import grid
from raptor_core.spatial.compute import ComputeOp, Placement
from raptor_core.spatial.passes.schedule import SCHEDULE
from small_network import network


class Machine:
    core_count = 2


class Plugins:
    def __init__(self, place: Callable[[int, ComputeOp], Placement | None]) -> None:
        self.place = place

    def get(self, group: str, name: str) -> Any:
        assert (group, name) == ("raptor.schedulers", "own")
        return Own(self.place)


class Own:
    name: ClassVar[str] = "own"
    options: ClassVar[tuple[Option, ...]] = ()

    def __init__(self, place: Callable[[int, ComputeOp], Placement | None]) -> None:
        self.place = place

    def schedule(self, module: Module, machine: Any, options: Mapping[str, Any]) -> Module:
        ops = [attrs.evolve(op, placement=self.place(k, op)) for k, op in enumerate(module.operations)]
        return attrs.evolve(module, operations=tuple(ops))


def run(place: Callable[[int, ComputeOp], Placement | None]) -> Any:
    module = attrs.evolve(network(), stage="merge")
    return SCHEDULE.run(module, PassContext(Machine(), Plugins(place), {"scheduler": "own"}))  # type: ignore[arg-type]


def whole(k: int, core: int = 0) -> Placement:
    return Placement(grid((4, 5, 6), (1, 1, 1)), np.array([core]), np.array([k]))


def test_a_legal_schedule_is_counted() -> None:
    assert run(lambda k, op: whole(k)).notes == {"scheduler": "own", "lanes": 6, "steps": 6, "cores_in_use": 1}


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (lambda k, op: None if k == 2 else whole(k), "it has no lanes"),
        (lambda k, op: whole(k, core=2), "the chip has cores 0 to 1"),
        (lambda k, op: whole(5 - k), "."),
        (lambda k, op: Placement(grid((4, 5, 6), (2, 1, 1))[:1], np.array([0]), np.array([k])), "."),
        (lambda k, op: Placement(grid((4, 5, 6), (2, 1, 1)), np.array([0, 0]), np.array([k, k])), "."),
    ],
    ids=["forgotten", "no such core", "against data flow", "not covering", "two lanes at once"],
)
def test_an_illegal_schedule_is_the_schedulers_fault(place: Any, reason: str) -> None:
    with pytest.raises(PluginError, match="the scheduler 'own' broke its contract") as caught:
        run(place)
    assert caught.value.code == "illegal-schedule"
    assert caught.value.reason
    assert reason in caught.value.reason or reason == "."
