"""The pass plan-layouts: which layouts are chosen, and the conversions between them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pytest

from raptor_core.diagnostics import PluginError
from raptor_core.ir.module import Module
from raptor_core.ir.types import Layout, TensorType
from raptor_core.ir.verifier import verify_module
from raptor_core.spatial.compute import ConvertLayout
from raptor_core.spatial.passes.plan_layouts import PLAN_LAYOUTS
from tests.raptor_core.spatial.passes.stand_ins import Order, Strategy, Work, broken, context, convolutions

SHAPE = (1, 4, 6, 6)
LAST = Order("last", (0, 2, 3, 1))
LAYOUTS = {"last": LAST}


def network(*operations: Work, outputs: Sequence[str], constants: Sequence[str] = ()) -> Module:
    values = {value for op in operations for value in (*op.operands, *op.results)}
    return Module(
        name="net",
        stage="lower",
        inputs=("x",),
        outputs=tuple(outputs),
        types=dict.fromkeys(sorted(values | {"x"}), TensorType(SHAPE)),
        constants={name: np.zeros(SHAPE, np.float32) for name in constants},
        operations=operations,
    )


def work(operands: str, result: str, cost: int = 1, dear: str = "") -> Work:
    return Work(name=result, operands=tuple(operands.split()), results=(result,), cost=cost, dear=dear)


def planned(module: Module, layouts=None, **options) -> Module:
    result = PLAN_LAYOUTS.run(
        module, context({"one": Strategy("one")}, LAYOUTS if layouts is None else layouts, **options)
    )
    verify_module(result.module)
    assert all(type_.layout is not None for type_ in result.module.types.values())
    assert result.notes["conversions"] == sum(1 for _ in result.module.find(ConvertLayout))
    return result.module


def layouts_of(module: Module) -> dict[str, str]:
    return {name: type_.layout.name for name, type_ in module.types.items() if type_.layout is not None}


def edges(module: Module) -> list[str]:
    return [f"{' '.join(op.operands)} -> {op.results[0]}" for op in module.operations]


def test_without_a_reason_everything_is_dense() -> None:
    module = planned(network(work("x", "a"), work("a", "y"), outputs=["y"]))
    assert layouts_of(module) == {"x": "dense", "a": "dense", "y": "dense"}
    assert edges(module) == ["x -> a", "a -> y"]


def test_a_chain_that_gains_is_converted_at_both_ends() -> None:
    """No operation of the chain gains alone what two conversions cost, all together do."""
    module = planned(
        network(*(work(a, b, dear="dense") for a, b in ("xa", "ab", "by")), outputs=["y"]),
    )
    assert edges(module) == ["x -> x.last", "x.last -> a", "a -> b", "b -> y.last", "y.last -> y"]
    assert layouts_of(module) == {
        "x": "dense", "x.last": "last", "a": "last", "b": "last", "y.last": "last", "y": "dense"
    }  # fmt: skip


def test_users_share_one_conversion() -> None:
    module = planned(
        network(
            work("x", "a", cost=50, dear="last"),
            work("a", "b", dear="dense"),
            work("a", "c", dear="dense"),
            work("a", "d", dear="last"),
            work("b c", "e", dear="dense"),
            work("e", "y", dear="dense"),
            outputs=["y", "d"],
        )
    )
    assert edges(module).count("a -> a.last") == 1
    assert "a.last -> b" in edges(module)
    assert "a.last -> c" in edges(module)
    assert "a -> d" in edges(module)


def test_an_output_that_is_also_used_inside_is_converted_for_the_host_only() -> None:
    module = planned(network(work("x", "a", dear="dense"), work("a", "y", dear="dense"), outputs=["a", "y"]))
    assert "x.last -> a.last" in edges(module)
    assert "a.last -> a" in edges(module)
    assert "a.last -> y.last" in edges(module)
    assert module.outputs == ("a", "y")


def test_constants_take_any_layout_and_are_copied_where_users_disagree() -> None:
    module = planned(
        network(
            work("x k", "a", cost=3, dear="last"),
            work("a k", "y", cost=900, dear="dense"),
            outputs=["y"],
            constants=["k"],
        )
    )
    assert edges(module) == ["x k -> a", "a -> a.last", "a.last k.last -> y.last", "y.last -> y"]
    assert layouts_of(module)["k"] == "dense"
    assert layouts_of(module)["k.last"] == "last"
    assert module.constants["k.last"] is module.constants["k"]


def test_without_planning_everything_is_dense() -> None:
    module = planned(network(work("x", "a", dear="dense"), work("a", "y"), outputs=["y"]), layout_planning=False)
    assert set(layouts_of(module).values()) == {"dense"}


def test_an_operation_that_has_no_dense_form_gets_its_first_choice() -> None:
    class OnlyLast(Work):
        kind = "test.only_last"

        def layout_choices(self, types, candidates):
            return [((c,), c) for c in candidates[-1] if c.name == "last"]

    op = OnlyLast(name="a", operands=("x",), results=("a",))
    for planning in (True, False):
        module = planned(network(op, work("a", "y"), outputs=["y"]), layout_planning=planning)
        assert layouts_of(module)["a"] == "last"
        assert edges(module)[:2] == ["x -> x.last", "x.last -> a"]


def test_convolutions_are_weighed_by_their_cheapest_strategy() -> None:
    class LastOnly(Strategy):
        def applies(self, plan, types, machine):
            layout = types[plan.operands[0]].layout
            return None if layout is not None and layout.name == "last" else "it wants channels last"

    strategies = {"last": LastOnly("last", 1), "slow": Strategy("slow", 10_000)}
    result = PLAN_LAYOUTS.run(convolutions("a", "b"), context(strategies, LAYOUTS))
    assert layouts_of(result.module)["a.y"] == "last"
    assert edges(result.module)[0] == "x -> x.last"
    result = PLAN_LAYOUTS.run(convolutions("a", "b"), context({"slow": Strategy("slow", 10_000)}, LAYOUTS))
    assert edges(result.module)[0] == "x a.w -> a.y"


def test_layouts_with_one_order_are_one_layout() -> None:
    same = {"copy": Order("copy", (0, 1, 2, 3)), **LAYOUTS}
    assert set(layouts_of(planned(network(work("x", "y"), outputs=["y"]), same)).values()) == {"dense"}


def test_third_party_layouts_take_part() -> None:
    module = planned(
        network(work("x", "a", 900, "dense"), work("a", "y", 900, "dense"), outputs=["y"]),
        {"acme": Order("acme", (3, 2, 1, 0))},
    )
    assert layouts_of(module)["a"] == "acme"
    assert module.types["a"].order == (3, 2, 1, 0)


def test_a_broken_layout_is_left_out_and_noted() -> None:
    result = PLAN_LAYOUTS.run(network(work("x", "y"), outputs=["y"]), context({}, {"acme": broken("acme"), **LAYOUTS}))
    assert result.notes["left_out"] == {"acme": "no module named acme"}


def test_choices_that_are_not_on_offer_are_refused() -> None:
    class Stubborn(Work):
        def layout_choices(self, types, candidates):
            return [((Layout("mine", (1, 0, 2, 3)),), candidates[-1][0])]

    with pytest.raises(PluginError, match="chooses layouts that are not on offer"):
        planned(network(Stubborn(name="y", operands=("x",), results=("y",)), outputs=["y"]))


def test_an_operation_without_a_choice_is_refused() -> None:
    class None_(Work):  # noqa: N801
        def layout_choices(self, types, candidates):
            return []

    with pytest.raises(PluginError, match="works with none of the layouts on offer"):
        planned(network(None_(name="y", operands=("x",), results=("y",)), outputs=["y"]))


def test_an_operation_whose_body_fails_is_named() -> None:
    class Failing(Work):
        def build(self, *_: object) -> None:
            raise ZeroDivisionError("by zero")

    with pytest.raises(PluginError) as caught:
        planned(network(Failing(name="y", operands=("x",), results=("y",)), outputs=["y"]))
    assert caught.value.reason == "ZeroDivisionError: by zero"


def test_values_keep_their_types_but_for_the_layout() -> None:
    module = network(work("x", "a", dear="dense"), work("a", "y"), outputs=["y"])
    for name, type_ in planned(module).types.items():
        assert attrs.evolve(type_, layout=None) == module.types[name.partition(".")[0]]
