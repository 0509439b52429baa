"""What a simulator plugin is: artifacts and inputs in, outputs and figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import attrs
import numpy.typing as npt

from raptor_core.options import Option

Sample = Mapping[str, npt.NDArray[Any]]
"""One network input (or output): arrays by tensor name."""


@attrs.frozen
class SimulationRequest:
    """What to run.

    ``artifact`` is the program folder. ``samples`` holds one mapping of input name to array per sample; a batch of B
    samples makes B iterations in throughput mode. ``options`` are the simulator's own options, already resolved
    against :attr:`Simulator.options`.
    """

    artifact: Path
    samples: Sequence[Sample] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class SimulationResult:
    """What came out.

    ``outputs`` holds one mapping of output name to array per sample (empty for simulators without numbers).
    ``metrics`` are plain JSON values (numbers, strings, lists, dicts) with the unit in the key, for example
    ``instructions``, ``wall_seconds``, ``latency_ms``. ``tables`` are further figures in rows of equal keys, by the
    table's name, shown whole to people.
    """

    outputs: tuple[Sample, ...] = ()
    metrics: Mapping[str, Any] = attrs.field(factory=dict)
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)


@runtime_checkable
class Simulator(Protocol):
    """A simulator plugin, registered in the entry-point group ``raptor.simulators``.

    The entry point names an object with these attributes (not a class). ``api_version`` is the plugin API version it
    was written for. ``needs_inputs`` says whether :meth:`simulate` wants samples.
    """

    name: ClassVar[str]
    api_version: ClassVar[int]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]
    needs_inputs: ClassVar[bool]

    def simulate(self, request: SimulationRequest) -> SimulationResult:
        """Run the artifact. Raises RaptorError for anything wrong with the artifact, the inputs or the program."""
        ...
