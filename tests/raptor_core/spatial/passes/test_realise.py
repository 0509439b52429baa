"""The pass realise: which strategy is taken, what is reported, and every refusal."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from raptor_core.diagnostics import PluginError, RaptorError, UsageError
from raptor_core.ir.verifier import verify_module
from raptor_core.options import Option
from raptor_core.spatial.compute import Pointwise, PointwiseFunction
from raptor_core.spatial.passes.realise import REALISE
from tests.raptor_core.spatial.passes.stand_ins import Strategy, broken, context, convolutions


def taken(result) -> list[str]:
    return [op.name for op in result.module.operations]


def test_auto_takes_the_cheapest() -> None:
    result = REALISE.run(convolutions("a", "b"), context({"slow": Strategy("slow", 9), "fast": Strategy("fast", 2)}))
    assert taken(result) == ["a by fast", "b by fast"]
    assert result.module.stage == "realise"
    assert result.notes == {"convolutions": 2, "strategies": {"fast": 2}}
    verify_module(result.module)


@pytest.mark.parametrize("names", [("zeta", "alpha"), ("alpha", "zeta")])
def test_ties_go_by_name_whatever_the_order_of_installation(names: tuple[str, str]) -> None:
    strategies = {name: Strategy(name) for name in names}
    assert taken(REALISE.run(convolutions("a"), context(strategies))) == ["a by alpha"]


def test_a_strategy_is_taken_only_where_it_applies() -> None:
    strategies = {"fast": Strategy("fast", 1, refused=(3,)), "slow": Strategy("slow", 5)}
    assert taken(REALISE.run(convolutions("a", "b"), context(strategies))) == ["a by fast", "b by slow"]


def test_a_named_strategy_is_taken_wherever_it_applies() -> None:
    strategies = {"slow": Strategy("slow", 5, refused=(3,)), "fast": Strategy("fast", 1), "mid": Strategy("mid", 3)}
    result = REALISE.run(convolutions("a", "b"), context(strategies, conv_strategy="slow"))
    assert taken(result) == ["a by slow", "b by fast"]
    assert "slow: it does not take kernels of 3" in result.reports["conv_lowering.md"]


def test_a_named_strategy_that_applies_nowhere_is_refused() -> None:
    strategies = {"slow": Strategy("slow", 5, refused=(1,)), "fast": Strategy("fast"), "mid": Strategy("mid")}
    with pytest.raises(RaptorError) as caught:
        REALISE.run(convolutions("conv1", "conv2"), context(strategies, conv_strategy="slow"))
    assert str(caught.value) == (
        "error[conv-strategy-does-not-apply]: conv strategy 'slow' applies to none of the network's 2 convolutions\n"
        "  where    'conv1' (f32[1,4,6,6] -> f32[1,4,6,6], kernel 1x1), for example\n"
        "  reason   it does not take kernels of 1\n"
        "  help     strategies that apply there: auto, fast, mid"
    )


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        REALISE.run(convolutions("a"), context({"streamed": Strategy("streamed")}, conv_strategy="streamd"))
    assert "unknown conv strategy 'streamd'" in str(caught.value)
    assert "did you mean 'streamed'? known: auto, streamed" in str(caught.value)


def test_plans_that_nobody_takes_are_listed_together() -> None:
    strategies = {"one": Strategy("one", refused=(3,)), "two": Strategy("two", refused=(3,))}
    with pytest.raises(RaptorError) as caught:
        REALISE.run(convolutions("a", "b1", "b2"), context(strategies))
    assert caught.value.code == "no-conv-strategy"
    reasons = "one: it does not take kernels of 3; two: it does not take kernels of 3"
    assert caught.value.details == (
        f"'b1' (f32[1,4,6,6] -> f32[1,4,6,6], kernel 3x3): {reasons}",
        f"'b2' (f32[1,4,6,6] -> f32[1,4,6,6], kernel 3x3): {reasons}",
    )


def test_without_strategies_the_error_says_so() -> None:
    with pytest.raises(RaptorError, match="no strategy is installed"):
        REALISE.run(convolutions("a"), context({}))


def test_a_module_without_convolutions_needs_no_strategy() -> None:
    module = attrs.evolve(convolutions(), outputs=("x",))
    assert REALISE.run(module, context({}, conv_strategy="auto")).notes == {"convolutions": 0}


class TestBrokenStrategies:
    def test_auto_leaves_out_one_that_cannot_be_loaded(self) -> None:
        result = REALISE.run(convolutions("a"), context({"acme": broken("acme"), "good": Strategy("good")}))
        assert taken(result) == ["a by good"]
        assert "acme: broken: 'acme' cannot be loaded: no module named acme" in result.reports["conv_lowering.md"]

    def test_one_that_cannot_be_loaded_is_fatal_by_name(self) -> None:
        with pytest.raises(PluginError, match="'acme' cannot be loaded"):
            REALISE.run(
                convolutions("a"), context({"acme": broken("acme"), "good": Strategy("good")}, conv_strategy="acme")
            )

    @staticmethod
    def raising(*_: Any) -> None:
        raise ZeroDivisionError("by zero")

    @staticmethod
    def appending_nothing(*_: Any) -> None:
        return None

    @staticmethod
    def appending_plans(plan: Any, rewriter: Any, *_: Any) -> None:
        rewriter.append(plan)

    @staticmethod
    def another_result(plan: Any, rewriter: Any, *_: Any) -> None:
        other = rewriter.new_value("other", rewriter.types[plan.results[0]])
        rewriter.append(Pointwise(name="p", operands=plan.operands[:1], results=(other,), function=PointwiseFunction()))

    @staticmethod
    def bad_body(plan: Any, rewriter: Any, *_: Any) -> None:
        rewriter.append(
            Pointwise(name="p", operands=plan.operands[:1], results=plan.results, function=PointwiseFunction())
        )

    @pytest.mark.parametrize(
        ("method", "function", "reason"),
        [
            ("applies", raising, "applies stopped with ZeroDivisionError: by zero"),
            ("applies", lambda *_: False, "applies gave bool, neither a reason nor None"),
            ("realise", raising, "realise stopped with ZeroDivisionError: by zero"),
            ("realise", appending_nothing, "its last operation does not define 'a.y'"),
            ("realise", appending_plans, "it appended spatial.conv, which are not compute operations"),
            ("realise", another_result, "its last operation does not define 'a.y'"),
            ("realise", bad_body, "its computes stopped with TypeError: PointwiseFunction does not implement emit"),
        ],
    )
    def test_broken_contracts(self, method: str, function: Any, reason: str) -> None:
        function = getattr(function, "__func__", function)
        cls = type("Acme", (Strategy,), {method: lambda self, *a: function(*a)})
        strategies = {"acme": cls("acme"), "good": Strategy("good", 50)}
        result = REALISE.run(convolutions("a"), context(strategies))
        assert taken(result) == ["a by good"]
        assert f"acme: broken: {reason}" in result.reports["conv_lowering.md"]
        with pytest.raises(PluginError) as caught:
            REALISE.run(convolutions("a"), context(strategies, conv_strategy="acme"))
        assert caught.value.reason == reason


def test_options_reach_the_strategy_that_declares_them() -> None:
    seen = []

    class WithOption(Strategy):
        def realise(self, plan: Any, rewriter: Any, machine: Any, options: Any) -> None:
            seen.append(dict(options))
            super().realise(plan, rewriter, machine, options)

    strategy = WithOption("own", options=(Option("own_chunk", int, "a number", default=4, minimum=1),))
    REALISE.run(convolutions("a"), context({"own": strategy}, own_chunk=7, other=1))
    REALISE.run(convolutions("a"), context({"own": strategy}))
    assert seen[0] == {"own_chunk": 7}
    assert seen[-1] == {"own_chunk": 4}
    with pytest.raises(UsageError, match="own-chunk"):
        REALISE.run(convolutions("a"), context({"own": strategy}, own_chunk=0))


def test_plans_of_one_geometry_are_judged_once() -> None:
    asked = []

    class Counting(Strategy):
        def applies(self, plan: Any, types: Any, machine: Any) -> str | None:
            asked.append(plan.name)
            return None

    REALISE.run(convolutions("a", "b", "c"), context({"own": Counting("own")}))
    assert asked == ["a", "b"]


def test_the_report_has_at_most_512_rows() -> None:
    names = [f"n{k}" for k in range(520)]
    report = REALISE.run(convolutions(*names), context({"one": Strategy("one")})).reports["conv_lowering.md"]
    lines = report.splitlines()
    assert lines[4] == "| node | shapes | chosen | candidates |"
    assert lines[6].startswith("| n0 | f32[1,4,6,6] -> f32[1,4,6,6], kernel 1x1 | one | one ")
    assert sum(line.startswith("| n") for line in lines) == 513
    assert lines[-1] == "8 more convolutions are not shown."
