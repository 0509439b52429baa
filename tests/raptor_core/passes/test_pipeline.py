"""Pipelines: order, stages, verification, blame, observers and dumps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from raptor_core.diagnostics import ExitCode, InternalError, PluginError, RaptorError, UsageError
from raptor_core.ir.equality import modules_equal
from raptor_core.ir.files import read_module
from raptor_core.ir.module import Module
from raptor_core.passes.base import Pass, PassContext, PassResult
from raptor_core.passes.instrumentation import IrDumper, timing_table
from raptor_core.passes.pipeline import Pipeline, PipelineResult
from text_ir import DIALECTS, module_from

CONTEXT = cast(PassContext, None)
START = module_from("""
    module "t" stage "graph"
    input %x : f32[2]
    output %y
    %y = test.any(%x) : f32[2] loc("n")
""")


@attrs.frozen
class Step:
    """A pass that counts in the module's properties, or does what ``action`` does."""

    name: str
    action: Callable[[Module], Any] | None = None
    reports: Mapping[str, str] = {}

    def run(self, module: Module, context: PassContext) -> PassResult:
        if self.action is not None:
            return cast(PassResult, self.action(module))
        order = (*module.properties.get("test.order", ()), self.name)
        return PassResult(attrs.evolve(module, properties={"test.order": order}), {"length": len(order)}, self.reports)


class CoreStep(Step):
    __module__ = "raptor_core.somewhere"


def pipeline(*passes: Step) -> Pipeline:
    return Pipeline(cast("tuple[Pass, ...]", passes))


ABC = pipeline(Step("a"), Step("b"), Step("c", reports={"c.txt": "done"}))


def order(result: PipelineResult) -> tuple[str, ...]:
    return cast("tuple[str, ...]", result.module.properties.get("test.order", ()))


def test_passes_run_in_order_and_say_what_they_did() -> None:
    result = ABC.run(START, CONTEXT)
    assert str(ABC) == "a, b, c"
    assert order(result) == ("a", "b", "c")
    assert result.module.stage == "c"
    assert list(result.timings) == ["a", "b", "c"]
    assert result.notes == {"a": {"length": 1}, "b": {"length": 2}, "c": {"length": 3}}
    assert result.reports == {"c.txt": "done"}
    assert START.properties == {}


@pytest.mark.parametrize(
    ("start", "stop", "ran"),
    [
        (None, "b", ("a", "b")),
        ("a", None, ("b", "c")),
        ("a", "b", ("b",)),
        ("graph", "graph", ()),
        ("graph", "a", ("a",)),
        ("c", None, ()),
    ],
)
def test_a_part_of_the_pipeline(start: str | None, stop: str | None, ran: tuple[str, ...]) -> None:
    assert order(ABC.run(START, CONTEXT, start_after=start, stop_after=stop)) == ran


def test_stages_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError) as unknown:
        ABC.run(START, CONTEXT, stop_after="grahp")
    assert unknown.value.render() == (
        "error[unknown-stage]: unknown stage 'grahp'\n  help     did you mean 'graph'? known: a, b, c, graph"
    )
    with pytest.raises(UsageError) as backwards:
        ABC.run(START, CONTEXT, start_after="b", stop_after="a")
    assert backwards.value.render() == (
        "error[stages-out-of-order]: cannot stop after stage 'a': the module is already past it\n"
        "  where    the module's stage is 'b'\n"
        "  reason   the pipeline is: a, b, c"
    )


@pytest.mark.parametrize("names", [("a", "b", "a"), ("graph",)])
def test_two_stages_of_one_name_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="no place for a second pass") as caught:
        pipeline(*map(Step, names))
    assert caught.value.code == "duplicate-pass"


# ---- blame -----------------------------------------------------------------------------------------------------
def crash(module: Module) -> PassResult:
    raise ValueError("oh")


def refuse(module: Module) -> PassResult:
    raise RaptorError("too-large", "it does not fit")


def spoil(module: Module) -> PassResult:
    return PassResult(attrs.evolve(module, outputs=("z",)))


def test_a_crash_names_the_pass_and_those_before_it() -> None:
    with pytest.raises(InternalError) as core:
        pipeline(Step("a"), Step("b"), CoreStep("bad", crash)).run(START, CONTEXT)
    assert core.value.render() == (
        "error[pass-failed]: pass 'bad' failed\n"
        "  where    raptor_core.somewhere.CoreStep, after: a, b\n"
        "  reason   ValueError: oh\n"
        "  help     this is a bug in Raptor; please report it with the --dump-ir folder"
    )
    assert isinstance(core.value.__cause__, ValueError)
    with pytest.raises(PluginError) as plugin:
        pipeline(Step("bad", crash)).run(START, CONTEXT)
    assert plugin.value.render() == (
        "error[pass-failed]: pass 'bad' failed\n"
        f"  where    {__name__}.Step, after: no other pass\n"
        "  reason   ValueError: oh\n"
        f"  help     this is a bug in the package {__name__.partition('.')[0]}; "
        "report it there with the --dump-ir folder"
    )


def test_a_refusal_passes_as_it_is() -> None:
    with pytest.raises(RaptorError) as caught:
        pipeline(Step("bad", refuse)).run(START, CONTEXT)
    assert caught.value.render() == "error[too-large]: it does not fit"


def test_too_little_memory_is_no_bug() -> None:
    def ask(module: Module) -> PassResult:
        raise MemoryError("unable to allocate 3 GiB")

    with pytest.raises(RaptorError) as caught:
        pipeline(Step("bad", ask)).run(START, CONTEXT)
    assert caught.value.exit_code is ExitCode.INPUT
    assert caught.value.render() == (
        "error[out-of-memory]: there is not enough memory\n"
        "  where    network 't', pass 'bad'\n"
        "  reason   unable to allocate 3 GiB\n"
        "  help     use a smaller network, batch or image, or a machine with more memory"
    )


def test_the_pass_that_made_an_invalid_module_is_named() -> None:
    with pytest.raises(InternalError) as caught:
        pipeline(Step("a"), CoreStep("bad", spoil), Step("c")).run(START, CONTEXT)
    assert caught.value.render() == (
        "error[invalid-ir]: pass 'bad' made a module that is not valid\n"
        "  where    raptor_core.somewhere.CoreStep, after: a\n"
        "  reason   module 't' is not valid: the network output 'z' is not defined (stage bad)\n"
        "  help     this is a bug in Raptor; please report it with the --dump-ir folder"
    )
    assert pipeline(Step("bad", spoil)).run(START, CONTEXT, verify=False).module.outputs == ("z",)


def test_the_first_pass_is_not_blamed_for_the_module_it_got() -> None:
    with pytest.raises(InternalError) as caught:
        ABC.run(attrs.evolve(START, outputs=("z",)), CONTEXT)
    assert caught.value.message == "module 't' is not valid"


def test_broken_contracts_are_refused() -> None:
    with pytest.raises(PluginError) as nothing:
        pipeline(Step("bad", lambda module: module)).run(START, CONTEXT)
    assert nothing.value.reason == "it returned Module, not PassResult"
    with pytest.raises(PluginError) as twice:
        pipeline(Step("a", reports={"r": ""}), Step("b", reports={"r": ""})).run(START, CONTEXT)
    assert twice.value.reason == "an earlier pass wrote the report 'r' already"


# ---- instrumentation -------------------------------------------------------------------------------------------
def test_observers_see_every_pass() -> None:
    seen: list[tuple[str, str, str]] = []

    class Observer:
        def before_pass(self, name: str, module: Module) -> None:
            seen.append(("before", name, module.stage))

        def after_pass(self, name: str, result: PassResult, seconds: float) -> None:
            assert seconds >= 0
            seen.append(("after", name, result.module.stage))

    ABC.run(START, CONTEXT, observers=[Observer()], stop_after="b")
    assert seen == [("before", "a", "graph"), ("after", "a", "a"), ("before", "b", "a"), ("after", "b", "b")]


def test_dumps_are_numbered_and_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "dumps"
    result = ABC.run(START, CONTEXT, observers=[IrDumper(folder)])
    assert sorted(p.name for p in folder.iterdir()) == ["00-graph.rir", "01-a.rir", "02-b.rir", "03-c.rir"]
    assert modules_equal(read_module(folder / "00-graph.rir", DIALECTS), START)
    assert modules_equal(read_module(folder / "03-c.rir", DIALECTS), result.module)
    (folder / "notes.txt").write_text("mine")
    middle = read_module(folder / "01-a.rir", DIALECTS)
    ABC.run(middle, CONTEXT, observers=[IrDumper(folder)], start_after="a", stop_after="b")
    assert sorted(p.name for p in folder.iterdir()) == ["00-a.rir", "01-b.rir", "notes.txt"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        ABC.run(START, CONTEXT, observers=[IrDumper(tmp_path / "file")])
    assert caught.value.render() == (
        f"error[cannot-dump]: cannot write the IR dumps\n  where    {tmp_path / 'file'}\n  reason   File exists"
    )


def test_the_timing_table() -> None:
    result = PipelineResult(START, {"lower": 0.0025, "plan-layouts": 0.0075}, {"lower": {"nodes": 3, "operations": 4}})
    assert timing_table(result) == (
        "pass                  ms   share  notes\n"
        "lower                2.5   25.0%  nodes 3, operations 4\n"
        "plan-layouts         7.5   75.0%\n"
        "total               10.0\n"
    )
    assert re.search(r"^total +0\.0$", timing_table(PipelineResult(START)), re.MULTILINE)
