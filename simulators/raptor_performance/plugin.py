"""The performance simulator as a plugin."""

from __future__ import annotations

from typing import ClassVar

from raptor_core.options import Option
from raptor_core.simulation.contract import SimulationRequest, SimulationResult

SOFTMAX_STAND_INS = ("vrelu", "vtanh", "vsigm")
"""What a softmax may be timed as: the model has times for these, and their fields are the same."""

SOFTMAX_HELP = (
    "take the time of a softmax from this instruction of its length; default: refuse, the model has no time for it"
)

OPTIONS: tuple[Option, ...] = (
    Option("config", str, "chip configuration (JSON); default: the chip that the program was compiled for"),
    Option(
        "mode",
        str,
        "one run to the end, or repeated runs for a time; default: what the configuration says",
        choices=("latency", "throughput"),
    ),
    Option(
        "view",
        str,
        "time the 8-bit view of the program, or the program as it is; default: timing for folders made by Raptor",
        choices=("timing", "float32"),
    ),
    Option(
        "softmax_as",
        str,
        SOFTMAX_HELP,
        choices=SOFTMAX_STAND_INS,
    ),
    Option("sim_time_ms", float, "simulated time in throughput mode; default: what the configuration says"),
    Option("layers", bool, "time of every layer of the network, by unit", default=False),
    Option("trace", str, "file for a Chrome trace (chrome://tracing, Perfetto): what every core did when"),
    Option("trace_window", str, "BEGIN:END of the trace in microseconds", default="0:"),
    Option("trace_limit", int, "most instructions in the trace file", default=500_000, minimum=1),
    Option("plot", str, "file for a picture of cores over time and of the energy (.png or .html)"),
    Option("report", str, "file for a report as text, with the fields of the published simulator's"),
)


class PerformanceSimulator:
    """Times programs: latency, throughput, power and energy under the published performance model.

    Fulfils raptor_core.simulation.contract.Simulator. Importing it does not load the compiled kernels.
    """

    name: ClassVar[str] = "performance"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "latency, throughput, power and energy, equal to the published performance simulator"
    options: ClassVar[tuple[Option, ...]] = OPTIONS
    needs_inputs: ClassVar[bool] = False

    def simulate(self, request: SimulationRequest) -> SimulationResult:
        """Times the program at ``request.artifact``: our folder, somebody's, or a single file.

        There are no outputs; see raptor_performance.metrics.run_metrics for the figures. Raises RaptorError for a bad
        program or configuration, a deadlock or a time-out.
        """
        from raptor_performance.run import simulate

        return simulate(request)


SIMULATOR = PerformanceSimulator()
"""The object that the entry point names."""
