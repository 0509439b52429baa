"""Runs passes one after another, verifying the module between them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from raptor_core.diagnostics import InternalError, PluginError, RaptorError, UsageError, unknown_name
from raptor_core.ir.module import Module
from raptor_core.ir.verifier import verify_module
from raptor_core.passes.base import Pass, PassContext, PassResult

FIRST_STAGE = "graph"
"""The stage of the frontend's module, before any pass."""


class PassObserver(Protocol):
    """Told of every pass while a pipeline runs. Observers do not change modules."""

    def before_pass(self, name: str, module: Module) -> None:
        """The pass ``name`` is about to run on ``module``."""
        ...

    def after_pass(self, name: str, result: PassResult, seconds: float) -> None:
        """The pass ``name`` made ``result``, which was found valid, in ``seconds`` (verification not counted)."""
        ...


@attrs.frozen
class PipelineResult:
    """The last module; seconds and figures by pass name, in order; report texts by file name."""

    module: Module
    timings: Mapping[str, float] = attrs.field(factory=dict)
    notes: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    reports: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Pipeline:
    """Passes in order, all of different names. ``str()`` gives the names joined by ``", "``."""

    passes: tuple[Pass, ...] = attrs.field(converter=tuple)

    def __attrs_post_init__(self) -> None:
        seen: set[str] = set()
        for name in (*self.names, FIRST_STAGE):
            if name in seen:
                raise UsageError(
                    "duplicate-pass",
                    f"the pipeline has no place for a second pass named '{name}'",
                    where=f"pipeline: {self}",
                    reason="passes make the stage of their name, and stages are told apart by name",
                )
            seen.add(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the passes, in order."""
        return tuple(pass_.name for pass_ in self.passes)

    @property
    def stages(self) -> tuple[str, ...]:
        """What a module goes through: ``graph``, then the names of the passes."""
        return (FIRST_STAGE, *self.names)

    def __str__(self) -> str:
        return ", ".join(self.names)

    def run(
        self,
        module: Module,
        context: PassContext,
        *,
        observers: Sequence[PassObserver] = (),
        verify: bool = True,
        stop_after: str | None = None,
        start_after: str | None = None,
    ) -> PipelineResult:
        """Run the passes after stage ``start_after`` (default: all) up to and with ``stop_after`` (default: the last).

        A stage is the name of a pass, or ``graph``, where the frontend leaves off. With ``verify``, the module is
        checked before the first pass and after each. Raises UsageError for stages that are unknown or in the wrong
        order, the passes' own RaptorErrors as they are, and InternalError or PluginError (for a pass of the core or of
        another package) when a pass fails in another way or makes a module that is not valid.
        """
        done: list[str] = []
        timings: dict[str, float] = {}
        notes: dict[str, Mapping[str, Any]] = {}
        reports: dict[str, str] = {}
        selected = self._selected(start_after, stop_after)
        if verify:
            verify_module(module)
        for pass_ in selected:
            for observer in observers:
                observer.before_pass(pass_.name, module)
            started = time.perf_counter()
            result = _run_pass(pass_, module, context, done)
            seconds = time.perf_counter() - started
            if verify:
                _verify_result(pass_, result, done)
            for observer in observers:
                observer.after_pass(pass_.name, result, seconds)
            _add_reports(reports, pass_, result)
            module = result.module
            timings[pass_.name] = seconds
            notes[pass_.name] = result.notes
            done.append(pass_.name)
        return PipelineResult(module, timings, notes, reports)

    def _selected(self, start_after: str | None, stop_after: str | None) -> tuple[Pass, ...]:
        stages = self.stages
        for stage in (start_after, stop_after):
            if stage is not None and stage not in stages:
                raise unknown_name("stage", stage, stages)
        begin = stages.index(start_after) if start_after is not None else 0
        end = stages.index(stop_after) if stop_after is not None else len(self.passes)
        if end < begin:
            raise UsageError(
                "stages-out-of-order",
                f"cannot stop after stage '{stop_after}': the module is already past it",
                where=f"the module's stage is '{start_after}'",
                reason=f"the pipeline is: {self}",
            )
        return self.passes[begin:end]


def _run_pass(pass_: Pass, module: Module, context: PassContext, done: Sequence[str]) -> PassResult:
    """The pass's result; its module bears the pass's name as its stage."""
    try:
        result = pass_.run(module, context)
    except RaptorError:
        raise
    except MemoryError as error:
        raise RaptorError(
            "out-of-memory",
            "there is not enough memory",
            where=f"network '{module.name}', pass '{pass_.name}'",
            reason=str(error) or None,
            hint="use a smaller network, batch or image, or a machine with more memory",
        ) from error
    except Exception as error:
        raise _at_fault(
            pass_, "pass-failed", f"pass '{pass_.name}' failed", f"{type(error).__name__}: {error}", done
        ) from error
    if not isinstance(result, PassResult):
        reason = f"it returned {type(result).__name__}, not PassResult"
        raise _at_fault(pass_, "pass-failed", f"pass '{pass_.name}' broke its contract", reason, done)
    return attrs.evolve(result, module=attrs.evolve(result.module, stage=pass_.name))


def _verify_result(pass_: Pass, result: PassResult, done: Sequence[str]) -> None:
    try:
        verify_module(result.module)
    except InternalError as error:
        reason = f"{error.message}: {error.reason}" + (f" ({error.where})" if error.where else "")
        message = f"pass '{pass_.name}' made a module that is not valid"
        raise _at_fault(pass_, "invalid-ir", message, reason, done) from error


def _add_reports(reports: dict[str, str], pass_: Pass, result: PassResult) -> None:
    for name, text in result.reports.items():
        if name in reports:
            reason = f"an earlier pass wrote the report '{name}' already"
            raise _at_fault(pass_, "pass-failed", f"pass '{pass_.name}' broke its contract", reason, ())
        reports[name] = text


def _at_fault(pass_: Pass, code: str, message: str, reason: str, done: Sequence[str]) -> RaptorError:
    """The error that blames a pass: a bug in Raptor when it is of the core, else in the package it comes from."""
    owner = type(pass_).__module__
    is_core = owner.partition(".")[0] == "raptor_core"
    return (InternalError if is_core else PluginError)(
        code,
        message,
        where=f"{owner}.{type(pass_).__qualname__}, after: {', '.join(done) or 'no other pass'}",
        reason=reason,
        hint="this is a bug in Raptor; please report it with the --dump-ir folder"
        if is_core
        else f"this is a bug in the package {owner.partition('.')[0]}; report it there with the --dump-ir folder",
    )
