"""The instructions of a run as arrays, with their times, units and layers: for tables, traces and pictures."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from raptor_performance.program import Program
from raptor_pim.artifacts.mesh import Mesh
from raptor_pim.artifacts.source_map import SourceMap
from raptor_pim.isa import Records
from raptor_pim.isa.opcodes import Opcode

Numbers = npt.NDArray[np.int64]

UNITS = ("crossbar", "vector", "local move", "host", "send", "receive", "token")
"""What an instruction occupies, by number in :attr:`Traced.unit`."""

_PICOSECONDS = 1000.0
_UNIT_OF: dict[Opcode, int] = {
    Opcode.MVMUL: 0,
    Opcode.LMV: 2,
    Opcode.LLDI: 2,
    Opcode.LD: 3,
    Opcode.ST: 3,
    Opcode.SEND: 4,
    Opcode.RECV: 5,
    Opcode.WAIT: 6,
    Opcode.SYNC: 6,
}
_VECTOR = 1


@attrs.frozen(eq=False)
class Traced:
    """Timed instructions in order of core and start; register loads and width changes take no time and are left out.

    All arrays have one entry per instruction: ``core``, ``pc``, ``start`` and ``end`` in ns, ``unit`` (see UNITS),
    ``source`` its number in ``layers`` (-1 where the program has no source map), ``activations`` the crossbars that a
    product uses, ``network_pj`` the energy of the messages that an instruction sends.
    """

    core: Numbers
    pc: Numbers
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    unit: Numbers
    source: Numbers
    activations: Numbers
    network_pj: npt.NDArray[np.float64]
    layers: tuple[str, ...]

    @property
    def duration(self) -> npt.NDArray[np.float64]:
        """ns of each instruction, waiting for peers included."""
        return self.end - self.start


def traced_instructions(
    trace: Numbers, program: Program, source_map: SourceMap | None, mesh: Mesh, bus_width: int
) -> Traced:
    """The rows of a run's trace with their units and layers. ``bus_width`` is the bytes of a flit."""
    rows = trace[np.lexsort((trace[:, 1], trace[:, 2], trace[:, 0]))]
    core, pc = rows[:, 0], rows[:, 1]
    op = np.zeros(core.size, dtype=np.int64)
    source = np.full(core.size, -1, dtype=np.int64)
    activations = np.zeros(core.size, dtype=np.int64)
    network = np.zeros(core.size, dtype=np.float64)
    for number in np.unique(core).tolist():
        own = core == number
        records = program.programs[number][pc[own]]
        op[own] = records["op"]
        network[own] = _network_pj(number, records, mesh, bus_width)
        widths = np.array([*program.groups[number], 0], dtype=np.int64)
        products = records["op"] == int(Opcode.MVMUL)
        activations[own] = np.where(products, widths[np.where(products, records["generic2"], -1)], 0)
        if source_map is not None:
            source[own] = source_map.of(number, pc[own])
    unit = np.full(256, _VECTOR, dtype=np.int64)
    for opcode, value in _UNIT_OF.items():
        unit[int(opcode)] = value
    names: tuple[str, ...] = ()
    if source_map is not None:
        names = tuple(dict.fromkeys(found.layer for found in source_map.sources))
        source = np.array([names.index(found.layer) for found in source_map.sources], dtype=np.int64)[source]
    return Traced(
        core, pc, rows[:, 2] / _PICOSECONDS, rows[:, 3] / _PICOSECONDS, unit[op], source, activations, network, names
    )


def _network_pj(core: int, records: Records, mesh: Mesh, bus_width: int) -> npt.NDArray[np.float64]:
    """Energy of the messages of each instruction: requests, grants and data (performance model, section 5.3)."""
    op = records["op"]
    flits = -(-records["generic3"].astype(np.int64) // bus_width)
    host = op_in(op, Opcode.LD, Opcode.ST)
    peer = np.where(op_in(op, Opcode.SEND, Opcode.RECV, Opcode.SYNC), records["r2_or_imm"], core)
    energy = np.where(host, mesh.energy[core, -1], mesh.energy[core, peer])
    messages = np.select(
        [op_in(op, Opcode.SEND), op_in(op, Opcode.ST), op_in(op, Opcode.RECV, Opcode.LD, Opcode.SYNC)],
        [flits + 1, flits, np.ones_like(flits)],
        0,
    )
    return np.asarray(messages * energy, dtype=np.float64)


def op_in(op: npt.NDArray[np.uint8], *opcodes: Opcode) -> npt.NDArray[np.bool_]:
    """Which instructions have one of ``opcodes``."""
    return np.isin(op, [int(opcode) for opcode in opcodes])


def layer_table(traced: Traced, activation_pj: float) -> list[dict[str, float | str | int]]:
    """One row per layer in order of first start: when it ran, busy core time by unit, dynamic energy.

    Times are in microseconds; ``send`` and ``receive`` contain the wait for the peer. ``activation_pj`` is the energy
    of one crossbar in one product.
    """
    rows: list[dict[str, float | str | int]] = []
    for number, name in enumerate(traced.layers):
        own = traced.source == number
        if not own.any():
            continue
        busy = np.bincount(traced.unit[own], weights=traced.duration[own], minlength=len(UNITS)) / 1000
        rows.append(
            {
                "layer": name,
                "start_us": round(float(traced.start[own].min()) / 1000, 3),
                "end_us": round(float(traced.end[own].max()) / 1000, 3),
                "cores": int(np.unique(traced.core[own]).size),
                "instructions": int(own.sum()),
                "products_uj": round(float(traced.activations[own].sum()) * activation_pj / 1e6, 4),
                "network_uj": round(float(traced.network_pj[own].sum()) / 1e6, 6),
                **{
                    f"{unit.replace(' ', '_')}_us": round(float(value), 3)
                    for unit, value in zip(UNITS, busy, strict=True)
                },
            }
        )
    return sorted(rows, key=lambda row: (row["start_us"], row["layer"]))
