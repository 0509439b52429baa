"""The functional simulator as a plugin."""

from __future__ import annotations

from typing import ClassVar

from raptor_core.options import Option
from raptor_core.simulation.contract import SimulationRequest, SimulationResult
from raptor_functional.settings import OPTIONS


class FunctionalSimulator:
    """Executes artifacts numerically: what the chip computes, without time.

    Fulfils raptor_core.simulation.contract.Simulator. Importing it does not load the compiled kernels.
    """

    name: ClassVar[str] = "functional"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "numerical execution, with batches and diagnostics of the execution order"
    options: ClassVar[tuple[Option, ...]] = OPTIONS
    needs_inputs: ClassVar[bool] = True

    def simulate(self, request: SimulationRequest) -> SimulationResult:
        """Runs the artifact on the samples.

        Outputs are named as in the artifact, or ``output_0``, ... (float32, flat) when it names none; host ranges
        asked for come as bytes (uint8) named ``range_0``, .... Raises RaptorError for a bad artifact, bad inputs,
        a program that fails, or a deadlock.
        """
        from raptor_functional.run import simulate

        return simulate(request)


SIMULATOR = FunctionalSimulator()
"""The object that the entry point names."""
