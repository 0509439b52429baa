"""From a model to a program folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from raptor_core.diagnostics import PluginError, RaptorError, UsageError, unknown_name
from raptor_core.driver.choices import TargetChoice, choose_target
from raptor_core.driver.compile_options import SCHEDULERS, CompileOptions, resolve_compile_options
from raptor_core.driver.manifest import manifest_fields
from raptor_core.driver.search import SearchResult, check_stage, predicted_ms, search
from raptor_core.driver.source import read_source, with_machine
from raptor_core.ir.module import Module
from raptor_core.logging import get_logger
from raptor_core.passes.base import Pass, PassContext, PassResult
from raptor_core.passes.pipeline import FIRST_STAGE, Pipeline, PipelineResult
from raptor_core.plugins.hooks import HookCaller, load_hooks
from raptor_core.plugins.manager import PluginManager
from raptor_core.targets.contract import TargetConfiguration

if TYPE_CHECKING:
    import onnx

PASSES = "raptor.passes"
SCHEDULE_STAGE = "schedule"
Progress = Callable[[str], None]
"""Told what is being done: ``reading the model``, the names of passes, ``writing the program``."""


@attrs.frozen
class CompileResult:
    """What a compilation made.

    ``path`` is the program folder (None when the compilation stopped at a stage); ``module`` the last module;
    ``figures`` the target's about the program; ``manifest`` the driver's fields of the folder's manifest; ``passes``
    seconds and figures by pass; ``warnings`` what the user should know.
    """

    path: Path | None
    module: Module
    figures: Mapping[str, Any]
    manifest: Mapping[str, Any]
    passes: PipelineResult
    warnings: tuple[str, ...] = ()


@attrs.frozen(eq=False)
class Preparation:
    """Everything settled before the model is read."""

    plugins: PluginManager
    choice: TargetChoice
    profile_file: Path | None
    options: CompileOptions
    configuration: TargetConfiguration
    pipeline: Pipeline
    extra_passes: tuple[str, ...]


def prepare(
    plugins: PluginManager,
    target: str,
    *,
    profile_file: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    passes: Sequence[str] = (),
) -> Preparation:
    """Choose target and chip, resolve the options, and build the pipeline with the extra passes asked for.

    Raises UsageError for anything wrong with them.
    """
    choice = choose_target(plugins, target)
    resolved = resolve_compile_options(plugins, choice.target, options or {})
    file = Path(profile_file) if profile_file is not None else None
    configuration = choice.target.configure(resolved.target, choice.profile, file)
    pipeline = Pipeline(with_extra_passes(choice.target.pipeline(configuration), passes, plugins))  # type: ignore[arg-type]
    return Preparation(plugins, choice, file, resolved, configuration, pipeline, tuple(passes))


def with_extra_passes(built_in: Sequence[Pass], names: Sequence[str], plugins: PluginManager) -> tuple[Pass, ...]:
    """The pipeline's passes with the named extra ones put in, each after the pass it follows; in the order given."""
    passes = list(built_in)
    follows: dict[str, str] = {}
    for name in names:
        extra = plugins.get(PASSES, name)
        known = [FIRST_STAGE, *(p.name for p in passes)]
        if extra.after not in known:
            entry = plugins.entry(PASSES, name)
            raise PluginError(
                "pass-without-place",
                f"the pass '{name}' has no place in this pipeline",
                where=f"{entry.value}, from {entry.origin}",
                reason=f"it follows '{extra.after}', which is not in it",
                hint=f"the pipeline is: {', '.join(known)}",
            )
        at = known.index(extra.after)
        while at < len(passes) and follows.get(passes[at].name) == extra.after:
            at += 1
        passes.insert(at, extra)
        follows[extra.name] = extra.after
    return tuple(passes)


def compile(
    model: str | Path | onnx.ModelProto,
    *,
    target: str,
    output: str | Path | None = None,
    profile_file: str | Path | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    options: Mapping[str, Any] | None = None,
    passes: Sequence[str] = (),
    emit_json: bool = False,
    overwrite: bool = False,
    dump_ir: str | Path | None = None,
    stop_after: str | None = None,
    hooks: Iterable[str] = (),
    disable_plugins: Iterable[str] = (),
    plugins: PluginManager | None = None,
    progress: Progress | None = None,
) -> CompileResult:
    """Compile ``model`` into the program folder ``output``, which appears whole or not at all.

    ``model`` is the path of an ONNX model, a ModelProto, or the path of a stage's text (``.rir``), from which the
    compilation goes on. ``target`` names a hardware profile or a target; ``profile_file`` is a chip configuration of
    your own. ``shapes`` gives whole shapes of inputs that the model leaves open. ``options`` are the core's, the
    target's, the scheduler's and the strategies', by name in snake case. ``passes`` names extra passes to put in,
    ``hooks`` hook plugins that must load. ``stop_after`` names the stage to stop at; ``output`` is then the file for
    its text (None: nothing is written). ``dump_ir`` is a folder for the text of every stage. ``disable_plugins`` as
    in PluginManager.discover, or give a manager as ``plugins``.

    Raises RaptorError: UsageError for wrong arguments, PluginError for a plugin at fault, else for what is wrong with
    the model or does not fit the chip.
    """
    report = progress or (lambda step: None)
    plugins = (plugins if plugins is not None else PluginManager.discover(disable_plugins)).session()
    if emit_json:
        options = {**(options or {}), "emit_json": True}
    ready = prepare(plugins, target, profile_file=profile_file, options=options, passes=passes)
    path = Path(output) if output is not None else None
    _check_output(path, stop_after, ready.pipeline, overwrite)
    callers = load_hooks(plugins, hooks)
    report("reading the model")
    module = read_source(model, shapes or {}, plugins)
    log = get_logger("compile", network=module.name, target=target)
    log.info("model read", stage=module.stage, operations=len(module.operations))
    module = with_machine(module, ready.choice.target.name, ready.configuration.facts)
    found = None
    if ready.options.shared["optimize"]:
        check_stage(module, ready.pipeline.stages, SCHEDULE_STAGE, stop_after)
        found = _search(module, ready, options or {}, report)
        given = {**(options or {}), **found.values}
        ready = prepare(plugins, target, profile_file=profile_file, options=given, passes=passes)
        log.info("search done", **found.as_json())
    done = _run_passes(module, ready, stop_after, dump_ir, [_Reporter(report, log), callers])
    manifest = manifest_fields(
        module,
        ready.choice,
        profile_file=ready.profile_file,
        machine=ready.configuration.facts,
        options=ready.options,
        passes=ready.extra_passes,
        plugins=plugins,
        search=found.as_json() if found is not None else None,
    )
    figures: Mapping[str, Any] = {}
    if stop_after is not None:
        _write_text(done.module, path)
        path = None
    else:
        assert path is not None
        report("writing the program")
        figures = _emit(done, ready, path, manifest, overwrite)
        callers.after_emit(path, manifest)
        log.info("program written", path=str(path), **figures)
    warnings = _warnings(callers, log)
    return CompileResult(path, done.module, figures, manifest, done, warnings)


def _run_passes(
    module: Module, ready: Preparation, stop_after: str | None, dump_ir: str | Path | None, observers: list[Any]
) -> PipelineResult:
    from raptor_core.passes.instrumentation import IrDumper

    if dump_ir is not None:
        observers = [IrDumper(Path(dump_ir)), *observers]
    context = PassContext(ready.configuration.machine, ready.plugins, ready.options.shared)
    return ready.pipeline.run(module, context, observers=observers, start_after=module.stage, stop_after=stop_after)


def _search(module: Module, ready: Preparation, given: Mapping[str, Any], report: Progress) -> SearchResult:
    """What raptor_core.driver.search finds for the scheduler's options; passes before it run once."""
    shared = ready.options.shared
    stages = ready.pipeline.stages
    before = stages[stages.index(SCHEDULE_STAGE) - 1]
    if stages.index(module.stage) < stages.index(before):
        module = _run_passes(module, ready, before, None, []).module

    def evaluate(values: Mapping[str, Any]) -> float:
        context = PassContext(ready.configuration.machine, ready.plugins, {**shared, **values})
        return predicted_ms(ready.pipeline.run(module, context, verify=False, start_after=before))

    scheduler = ready.plugins.get(SCHEDULERS, shared["scheduler"])
    fixed = {name: value for name, value in given.items() if value is not None}
    return search(scheduler.options, fixed, evaluate, seconds=shared["optimize"], seed=shared["seed"], progress=report)


def _emit(
    done: PipelineResult, ready: Preparation, path: Path, manifest: Mapping[str, Any], overwrite: bool
) -> Mapping[str, Any]:
    target = ready.choice.target
    return target.emit(
        done.module,
        ready.configuration,
        path,
        manifest=manifest,
        reports=done.reports,
        options=ready.options.shared,
        overwrite=overwrite,
    )


def _check_output(path: Path | None, stop_after: str | None, pipeline: Pipeline, overwrite: bool) -> None:
    """Refuse at once what would be refused after minutes."""
    if stop_after is not None:
        stages = pipeline.stages
        if stop_after not in stages:
            raise unknown_name("stage", stop_after, stages)
        if path is not None and path.is_dir():
            raise RaptorError("output-is-a-folder", "the text of a stage goes into a file", where=str(path))
    elif path is None:
        raise UsageError("no-output", "no folder was given for the program", hint="give output, or stop_after")
    elif path.exists() and not path.is_dir():
        raise RaptorError(
            "output-not-a-folder", "the output path is taken by a file", where=str(path), hint="choose another name"
        )
    if path is None or overwrite or not path.exists():
        return
    if path.is_file() or any(path.iterdir()):
        raise RaptorError(
            "output-exists",
            "the output is there already",
            where=str(path),
            hint="choose another name, or overwrite it: --force (overwrite=True)",
        )


def _write_text(module: Module, path: Path | None) -> None:
    from raptor_core.ir.files import write_module

    if path is not None:
        write_module(module, path)


def _warnings(callers: HookCaller, log: Any) -> tuple[str, ...]:
    warnings = []
    for error in (fault.error for fault in callers.skipped):
        log.warning("hooks left out", reason=error.reason, where=error.where)
        warnings.append(f"{error.message} and is left out: {error.reason} ({error.where})")
    return tuple(warnings)


@attrs.frozen
class _Reporter:
    """Tells the caller and the log of every pass."""

    report: Progress
    log: Any

    def before_pass(self, name: str, module: Module) -> None:
        self.report(name)

    def after_pass(self, name: str, result: PassResult, seconds: float) -> None:
        self.log.info("pass done", name=name, seconds=round(seconds, 6), notes=dict(result.notes))
