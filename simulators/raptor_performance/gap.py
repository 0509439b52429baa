"""From the bound to what a program achieves: where the time between them goes.

All figures are ns of an average core of the chip, so that the parts add up to the program's latency: a core that has
nothing to do counts with the whole of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from raptor_performance.bound import Layer, LayerBound, UnitTimes, network_bound
from raptor_performance.run import Timed
from raptor_pim.artifacts.chip import ChipConfig, ChipConfiguration, load_chip
from raptor_pim.artifacts.config_file import decode_config
from raptor_pim.artifacts.json_fields import INT32_MAXIMUM, Fields, bad_file, parse_json
from raptor_pim.artifacts.mesh import read_mesh
from raptor_pim.artifacts.model import CONFIG_FILE, ELEMENT_BYTES
from raptor_pim.isa.opcodes import Opcode

FACTS_FILE = "reports/products.json"
SCHEDULE_FILE = "reports/schedule.json"
_LARGEST = 1 << 60
_DEFAULT_BITS = 8


@attrs.frozen
class BoundReport:
    """The least time of a network on a chip, what a program for it takes, and the difference by cause.

    ``layers`` is empty when the folder does not say what its network computes: then the bound is the program's own
    products, spread evenly. ``compute_ns`` is that of an average core, ``host_ns`` the time of the host memory for
    the network's inputs and outputs; the longer one is the least interval between two inputs, too.
    ``causes`` maps every cause to ns of an average core; with the bound's share they add up to ``achieved_ns``.
    ``predicted_ns`` is what the compiler expected in the timing view; None when the folder does not say, and where the
    program was timed in another view or on another chip than it is for. ``softmax`` is the instruction that every
    softmax took its time from.
    """

    layers: tuple[LayerBound, ...]
    product_ns: float
    accumulation_ns: float
    host_ns: float
    achieved_ns: float
    causes: Mapping[str, float]
    products: int
    least_products: int
    view: str
    predicted_ns: float | None = None
    softmax: str | None = None

    @property
    def compute_ns(self) -> float:
        """Products and additions of partial sums."""
        return self.product_ns + self.accumulation_ns

    @property
    def bound_ns(self) -> float:
        """The least latency and throughput interval."""
        return max(self.compute_ns, self.host_ns)

    def as_json(self) -> dict[str, Any]:
        """Plain values, times in ms and of layers in microseconds of the whole chip."""
        bound = self.bound_ns
        return {
            "view": self.view,
            "softmax_as": self.softmax,
            "source": "network" if self.layers else "program",
            "bound_ms": bound / 1e6,
            "compute_bound_ms": self.compute_ns / 1e6,
            "product_bound_ms": self.product_ns / 1e6,
            "accumulation_bound_ms": self.accumulation_ns / 1e6,
            "host_bound_ms": self.host_ns / 1e6,
            "least_throughput_interval_ms": bound / 1e6,
            "achieved_ms": self.achieved_ns / 1e6,
            "achieved_over_bound": self.achieved_ns / bound if bound else None,
            "predicted_ms": None if self.predicted_ns is None else self.predicted_ns / 1e6,
            "achieved_over_predicted": self.achieved_ns / self.predicted_ns if self.predicted_ns else None,
            "products": self.products,
            "least_products": self.least_products,
            "gap_ms": {cause: value / 1e6 for cause, value in self.causes.items()},
            "layers": [
                {
                    "layer": layer.layer,
                    "least_products": layer.products,
                    "core_us": layer.total_ns / 1e3,
                    "product_core_us": layer.product_ns / 1e3,
                    "accumulation_core_us": layer.accumulation_ns / 1e3,
                    "vector_core_us": layer.vector_ns / 1e3,
                }
                for layer in self.layers
            ],
        }


def bound_report(timed: Timed, folder: Path) -> BoundReport:
    """The report for a program that ran in latency mode. Raises RaptorError for facts in its folder that are wrong."""
    cores = timed.configuration.core_count
    metrics = timed.metrics()
    achieved = metrics["latency_ms"] * 1e6
    times = _unit_times(timed)
    layers = network_bound(read_facts(folder), times)
    sums = _sums(metrics["cores"])
    products = sum(core["products"] for core in metrics["cores"])
    if layers:
        product_ns = sum(layer.product_ns + layer.vector_ns for layer in layers) / cores
        least_products = sum(layer.products for layer in layers)
    else:
        product_ns, least_products = sums["product_ns"] / cores, products
    accumulation_ns = sum(layer.accumulation_ns for layer in layers) / cores
    host_ns = times.host(*_host_bytes(folder, timed.view))
    causes = _causes(sums, cores, achieved, product_ns, accumulation_ns, len(metrics["cores"]))
    return BoundReport(
        layers,
        product_ns,
        accumulation_ns,
        host_ns,
        achieved,
        causes,
        products,
        least_products,
        timed.view,
        read_prediction(folder) if timed.view == "timing" and _on_its_own_chip(timed) else None,
        timed.softmax,
    )


def _causes(
    sums: Mapping[str, float], cores: int, achieved: float, product_ns: float, accumulation_ns: float, working: int
) -> dict[str, float]:
    """ns of an average core by cause; what the names mean stands in docs/performance.md."""
    beyond = sums["product_ns"] / cores - product_ns
    causes = {
        "padding_waste": max(beyond, 0.0),
        "shared_windows": min(beyond, 0.0),
        "other_vector_work": sums["vector_ns"] / cores - accumulation_ns,
        "copies_and_clears": sums["local_move_ns"] / cores,
        "register_loads_and_dispatch": sums["dispatch_ns"] / cores,
        "transfers": sums["peer_transfer_ns"] / cores,
        "waiting_for_peers": sums["peer_wait_ns"] / cores,
        "waiting_for_tokens": (sums["token_wait_ns"] + sums["sync_ns"]) / cores,
        "host_traffic": sums["host_ns"] / cores,
        "imbalance": sums["idle_ns"] / cores,
        "unused_cores": (cores - working) * achieved / cores,
    }
    rest = achieved - product_ns - accumulation_ns - sum(causes.values())
    if abs(rest) > 1e-6 * max(achieved, 1):
        # Units of a core that work side by side count twice above.
        causes["overlap"] = rest
    return causes


def _sums(cores: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Times of all cores added up."""
    names = {name for core in cores for name in core if name.endswith("_ns")}
    expected = {
        "product_ns", "vector_ns", "local_move_ns", "dispatch_ns", "peer_transfer_ns", "peer_wait_ns",
        "token_wait_ns", "sync_ns", "host_ns", "idle_ns",
    }  # fmt: skip
    return {name: sum(float(core.get(name, 0.0)) for core in cores) for name in sorted(names | expected)}


def _unit_times(timed: Timed) -> UnitTimes:
    """The durations for the widths that the program states first."""
    widths = np.array([_DEFAULT_BITS, _DEFAULT_BITS])
    weight_bits = _DEFAULT_BITS
    found = 0
    for records in timed.program.programs:
        setting, product = records["op"] == Opcode.SETBW, records["op"] == Opcode.MVMUL
        if found & 1 == 0 and setting.any():
            first = records[int(setting.argmax())]
            widths, found = np.array([first["generic1"], first["generic2"]]), found | 1
        if found & 2 == 0 and product.any():
            weight_bits, found = int(records["r2_or_imm"][int(product.argmax())]), found | 2
    return UnitTimes(timed.configuration, int(widths[0]), int(widths[1]), weight_bits)


def _host_bytes(folder: Path, view: str) -> tuple[int, int]:
    """Bytes of the network's inputs and outputs in the view; none for a program that does not state them."""
    file = folder / CONFIG_FILE
    if not file.is_file():
        return 0, 0
    config, _ = decode_config(file.read_bytes())
    scale = ELEMENT_BYTES if view == "timing" else 1
    return sum(config.inputs_sizes) // scale, sum(config.outputs_sizes or ()) // scale


def _on_its_own_chip(timed: Timed) -> bool:
    """Whether the program was timed on the chip that came with it, wherever that was read from."""
    if timed.program.chip_file is None:
        return False
    own = load_chip(timed.program.chip_file)
    if _without_file(own) != _without_file(timed.configuration):
        return False
    here, there = read_mesh(own), read_mesh(timed.configuration)
    return np.array_equal(here.latency, there.latency) and np.array_equal(here.energy, there.energy)


def _without_file(configuration: ChipConfiguration) -> ChipConfig:
    """The chip but for the name of its network file."""
    chip = configuration.chip_config
    return attrs.evolve(chip, network_config=attrs.evolve(chip.network_config, net_config_file_path=""))


def read_prediction(folder: Path) -> float | None:
    """The latency in ns that the compiler predicted; None when the folder does not say."""
    file = folder / SCHEDULE_FILE
    if not file.is_file():
        return None
    fields = Fields.of(parse_json(file.read_bytes(), where=SCHEDULE_FILE), SCHEDULE_FILE, "the schedule")
    return float(fields.whole("predicted_ns", 0, _LARGEST))


def read_facts(folder: Path) -> tuple[Layer, ...]:
    """What the network computes, as the compiler noted it; nothing when the folder does not say."""
    file = folder / FACTS_FILE
    if not file.is_file():
        return ()
    content = parse_json(file.read_bytes(), where=FACTS_FILE)
    if not isinstance(content, list):
        raise bad_file(FACTS_FILE, "the layers are not a list", "it must hold one object per layer")
    return tuple(_layer(entry) for entry in content)


def _layer(entry: object) -> Layer:
    fields = Fields.of(entry, FACTS_FILE, "a layer")
    return Layer(
        fields.text("layer"),
        positions=fields.whole("positions", 0, _LARGEST),
        groups=fields.whole("groups", 1, INT32_MAXIMUM),
        rows=fields.whole("rows", 0, INT32_MAXIMUM),
        columns=fields.whole("columns", 0, INT32_MAXIMUM),
    )
