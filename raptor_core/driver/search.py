"""Search for the scheduler options with the least predicted latency, within a number of seconds.

Options name values worth trying (``Option.trials``). The search starts from the values given or their defaults, tries
one change of the best so far after another, in seeded random order, and goes on with changes of two and more options
when no single one helps. What the user has given stays. A pass that predicts the latency notes it as ``predicted_ms``.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from raptor_core.diagnostics import InternalError, PluginError, RaptorError, UsageError
from raptor_core.ir.module import Module
from raptor_core.options import Option
from raptor_core.passes.pipeline import PipelineResult

PREDICTION = "predicted_ms"
Values = Mapping[str, Any]


@attrs.frozen
class SearchResult:
    """``values`` is what to change, ``first_ms`` the prediction without it and ``best_ms`` the one with it.

    ``trials`` ran in up to ``seconds``, in the order that ``seed`` gave.
    """

    values: Values
    first_ms: float
    best_ms: float
    trials: int
    seed: int
    seconds: int

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**attrs.asdict(self, recurse=False), "values": dict(self.values)}


def search(
    options: Sequence[Option],
    given: Values,
    evaluate: Callable[[Values], float],
    *,
    seconds: int,
    seed: int,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """The best values of ``options`` found in ``seconds``; those in ``given`` are left as they are.

    ``evaluate`` gives the predicted ms for changed values, or raises RaptorError when they do not do; without changes
    an error is the caller's, and so is any InternalError or PluginError, which is a fault and not a bad choice. No
    trial begins that would likely end too late. The order of trials depends on the seed alone, so more seconds never
    give a worse result.
    """
    free = [option for option in options if option.trials and option.name not in given]
    begin = clock()
    progress("search: the first prediction")
    first = evaluate({})
    best: dict[str, Any] = {}
    best_ms, longest, trials = first, clock() - begin, 1
    seen = {_key(free, best)}
    rng = random.Random(seed)
    changes = 1
    while changes <= len(free):
        improved = False
        for values in _changed(free, best, changes, rng):
            if _key(free, values) in seen:
                continue
            if clock() - begin + longest > seconds:
                return SearchResult(best, first, best_ms, trials, seed, seconds)
            seen.add(_key(free, values))
            progress(f"search: trial {trials}, best {best_ms:.6g} ms, {clock() - begin:.0f} of {seconds} s")
            started = clock()
            trials += 1
            try:
                found = evaluate(values)
            except (InternalError, PluginError):
                raise
            except RaptorError:
                found = float("inf")
            longest = max(longest, clock() - started)
            if found < best_ms:
                best, best_ms, improved = values, found, True
                break
        changes = 1 if improved else changes + 1
    return SearchResult(best, first, best_ms, trials, seed, seconds)


def predicted_ms(result: PipelineResult) -> float:
    """The last prediction that a pass noted. Raises UsageError when none did."""
    found = [notes[PREDICTION] for notes in result.notes.values() if PREDICTION in notes]
    if not found:
        raise UsageError(
            "nothing-to-search",
            "--optimize has nothing to go by",
            reason=f"no pass of this target notes '{PREDICTION}'",
            hint="leave --optimize out",
        )
    return float(found[-1])


def check_stage(module: Module, stages: Sequence[str], scheduled: str, stop_after: str | None) -> None:
    """Raise UsageError unless the passes from ``module`` to stage ``stop_after`` (None: the last) schedule."""
    at = stages.index(scheduled) if scheduled in stages else len(stages)
    if stages.index(module.stage) < at <= (len(stages) - 1 if stop_after is None else stages.index(stop_after)):
        return
    raise UsageError(
        "nothing-to-search",
        "--optimize searches the options of the scheduler",
        reason=f"nothing is scheduled between the stages '{module.stage}' and '{stop_after or stages[-1]}'",
        hint="compile the model as a whole, or leave --optimize out",
    )


def _changed(free: Sequence[Option], base: Values, changes: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """All values that differ from ``base`` in ``changes`` options, in random order."""
    found = []
    for chosen in itertools.combinations(free, changes):
        offered = [
            [value for value in dict.fromkeys((option.default, *option.trials)) if value != _value(option, base)]
            for option in chosen
        ]
        for combination in itertools.product(*offered):
            changed = {**base, **{option.name: value for option, value in zip(chosen, combination, strict=True)}}
            found.append({o.name: changed[o.name] for o in free if _value(o, changed) != o.default})
    rng.shuffle(found)
    yield from found


def _value(option: Option, values: Values) -> Any:
    return values.get(option.name, option.default)


def _key(free: Sequence[Option], values: Values) -> tuple[Any, ...]:
    return tuple(_value(option, values) for option in free)
