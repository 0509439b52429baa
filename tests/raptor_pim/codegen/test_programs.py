"""The whole back end: placed computes become programs that compute the same numbers on the simulated machine."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raptor_core.ir.module import Module
from raptor_core.passes.base import PassContext
from raptor_core.simulation.contract import SimulationRequest
from raptor_core.spatial.compute import Placement
from raptor_core.spatial.passes.communicate import COMMUNICATE
from raptor_functional.plugin import SIMULATOR
from raptor_pim.codegen.program import generate_programs
from raptor_pim.codegen.replay import replay_communication
from raptor_pim.isa import Opcode, validate_programs
from raptor_pim.passes.plan_memory import PLAN_MEMORY
from raptor_pim.passes.to_pim import TO_PIM
from raptor_pim.passes.verify import VERIFY
from raptor_pim.target import TARGET
from small_network import SHAPE, expected, network, placements

CONFIGURATION = TARGET.configure({"core_count": 5, "crossbar_count": 4, "crossbar_size": "16"}, None, None)
OPTIONS = {"verify_communication": True}


def lowered(found: list[Placement]) -> Module:
    module = network()
    placed = [attrs.evolve(op, placement=p) for op, p in zip(module.operations, found, strict=True)]
    module = attrs.evolve(module, operations=tuple(placed))
    context = PassContext(CONFIGURATION.machine, None)  # type: ignore[arg-type]
    for pass_ in (COMMUNICATE, TO_PIM, PLAN_MEMORY, VERIFY):
        module = pass_.run(module, context).module
    return module


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(placements(), st.integers(0, 99))
def test_any_placement_runs_right_on_the_machine(tmp_path: Path, found: list[Placement], seed: int) -> None:
    folder = tmp_path / "program"
    TARGET.emit(lowered(found), CONFIGURATION, folder, manifest={}, reports={}, options=OPTIONS, overwrite=True)
    x = np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)
    result = SIMULATOR.simulate(SimulationRequest(folder, [{"x": x}], {}))
    for name, array in expected(x, network().constants["z"]).items():
        np.testing.assert_allclose(result.outputs[0][name], array, atol=1e-5)


@settings(deadline=None, max_examples=15)
@given(placements())
def test_programs_are_valid_and_economical(found: list[Placement]) -> None:
    programs = generate_programs(lowered(found), 5).records
    validate_programs(programs, group_counts=[0] * 5)
    assert replay_communication(programs) == sum(int((p["op"] == Opcode.SEND).sum()) for p in programs)
    for program in programs:
        held: dict[int, int] = {}
        for record in program[program["op"] == Opcode.SLDI]:
            # A value that a register holds already is never loaded again.
            assert int(record["r2_or_imm"]) not in held.values()
            held[int(record["rd"])] = int(record["r2_or_imm"])


@given(st.data())
@settings(deadline=None, max_examples=5)
def test_the_same_module_gives_the_same_bytes(data: st.DataObject) -> None:
    found = data.draw(placements())
    first, second = (generate_programs(lowered(found), 5).records for _ in range(2))
    assert [p.tobytes() for p in first] == [p.tobytes() for p in second]


def messages(*rows: tuple[Opcode, int, int]) -> np.ndarray:
    from raptor_pim.isa import RECORD

    program = np.zeros(len(rows), dtype=RECORD)
    for record, (op, peer, size) in zip(program, rows, strict=True):
        record["op"], record["r2_or_imm"], record["generic3"] = int(op), peer, size
    return program


def test_replay_finds_the_cycle() -> None:
    programs = [messages((Opcode.SEND, (k + 1) % 3, 8), (Opcode.RECV, (k - 1) % 3, 8)) for k in range(3)]
    with pytest.raises(Exception, match="3 cores wait for messages that never come") as caught:
        replay_communication(programs)
    assert "core 0 pc 0 sends to core 1" in str(caught.value)
    assert "core 2 pc 0 sends to core 0" in str(caught.value)


def test_replay_finds_unequal_sizes() -> None:
    with pytest.raises(Exception, match="exchange a message of two sizes"):
        replay_communication([messages((Opcode.SEND, 1, 8)), messages((Opcode.RECV, 0, 4))])


def test_replay_counts_messages() -> None:
    ping = [messages((Opcode.SEND, 1, 8), (Opcode.RECV, 1, 4)), messages((Opcode.RECV, 0, 8), (Opcode.SEND, 0, 4))]
    assert replay_communication(ping) == 2
