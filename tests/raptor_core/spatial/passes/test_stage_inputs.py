"""Inputs and constants that lanes share are loaded once; others, and chips of one core, are left alone."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from raptor_core.ir.module import Module
from raptor_core.ir.verifier import verify_module
from raptor_core.passes.base import PassContext
from raptor_core.spatial.compute import ConvertLayout
from raptor_core.spatial.passes.stage_inputs import STAGE_INPUTS
from small_network import Blur, network
from tests.raptor_core.spatial.passes.stand_ins import Machine


def blurred() -> Module:
    """The little network without its first conversion: the blur reads the input itself."""
    module = network()
    _, blur, *rest = module.operations
    blur = attrs.evolve(blur, operands=("x", "z"))
    rest = [attrs.evolve(op, operands=tuple("x" if v == "a" else v for v in op.operands)) for op in rest]
    types = {**{k: v for k, v in module.types.items() if k != "a"}, "x": module.types["a"]}
    return attrs.evolve(module, operations=(blur, *rest), types=types)


def run(module: Module, cores: int = 8, **options: Any) -> Any:
    return STAGE_INPUTS.run(module, PassContext(Machine(cores), None, options))  # type: ignore[arg-type]


def test_an_input_with_halos_is_staged_for_those_who_share_it() -> None:
    result = run(blurred())
    assert result.notes == {"staged": ["x", "z"]}
    verify_module(result.module)
    staged, bias, blur, _, add, *_ = result.module.operations
    assert isinstance(staged, ConvertLayout)
    assert isinstance(blur, Blur)
    assert isinstance(bias, ConvertLayout)
    assert blur.operands == ("x.staged", "z.staged")
    assert add.operands[1] == "x"  # each lane of the sum reads its own box: nothing is read twice
    assert result.module.types["x.staged"] == result.module.types["x"]


@pytest.mark.parametrize(("cores", "options"), [(1, {}), (8, {"input_staging": False})])
def test_nothing_is_staged(cores: int, options: dict[str, Any]) -> None:
    module = blurred()
    result = run(module, cores, **options)
    assert result.notes == {"staged": []}
    assert result.module.operations == module.operations


def test_an_input_that_every_element_is_read_of_once_is_left_alone() -> None:
    result = run(network())
    assert result.notes == {"staged": ["z"]}  # the bias, which every lane adds
    assert result.module.operations[1] == network().operations[0]
