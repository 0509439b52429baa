"""Several cores: transfers, events, batches, and deadlocks."""

from __future__ import annotations

import numpy as np
import pytest
from functional_runs import artifact, dumps, final_host, floats, op, same_numbers, simulate
from reference_interpreter import Chip, Instruction

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_pim.artifacts import TensorInfo

ORDERS: list[dict[str, object]] = [
    {},
    *({"schedule_policy": "randomized", "schedule_seed": seed} for seed in (0, 1, 2**64 - 1)),
    {"core_stall": "0:5,1:2"},
    {"target_stall": "0:1:3,1:0:0:4"},
    {"global_barrier": True},
]


def load(register: int, address: int, size: int) -> list[Instruction]:
    """Loads host bytes at ``address`` to local address 0, its address register being ``register``."""
    return [op("sldi", rd=register, imm=address), op("ld", rd=0, rs1=register, size=size)]


def store(address: int, size: int) -> list[Instruction]:
    """Stores the bytes at local address 0 to the host."""
    return [op("sldi", rd=20, imm=address), op("st", rd=20, rs1=0, size=size)]


@pytest.mark.parametrize("order", ORDERS)
def test_a_transfer_in_each_direction(order: dict[str, object]) -> None:
    send = op("send", rd=1, core=1, size=8, select=1, value=3)
    receive = op("recv", rd=2, core=0, size=8, select=1, value=-2)
    back = [op("send", rd=0, core=0, size=16), op("recv", rd=0, core=1, size=16)]
    first = [*load(1, 8, 24), op("sldi", rd=1, imm=1), send, back[1], *store(40, 16)]
    second = [op("sldi", rd=2, imm=5), receive, back[0], op("nop")]
    final_host([first, second], host=bytes(range(64)), **order)


@pytest.mark.parametrize("order", ORDERS)
def test_events_order_the_use_of_host_memory(order: dict[str, object]) -> None:
    writer = [
        *load(1, 0, 4),
        *store(8, 4),
        op("sync", core=1, event_register=31),
        op("wait", event_register=2, wait_value=0),
    ]
    reader = [op("wait", event_register=31, wait_value=1), *load(1, 8, 4), *store(16, 4)]
    out = final_host([writer, reader], host=bytes(range(1, 33)), **order)
    assert out[16:20] == bytes([1, 2, 3, 4])


def test_waiting_counts_and_subtracts() -> None:
    signal = op("sync", core=1, event_register=5)
    counter = [op("wait", event_register=5, wait_value=2), op("wait", event_register=5, wait_value=1), *store(0, 4)]
    final_host([[signal] * 3, counter])
    with pytest.raises(RaptorError, match="event 5 is 0, needs 1; nobody could still signal it"):
        simulate(artifact([[signal] * 2, counter]))


def test_a_core_may_signal_itself() -> None:
    final_host([[op("sync", core=0, event_register=0), op("wait", event_register=0, wait_value=1)]])


def test_sizes_of_a_transfer_must_agree() -> None:
    programs = [[op("send", rd=0, core=1, size=8)], [op("nop"), op("recv", rd=0, core=0, size=4)]]
    with pytest.raises(RaptorError) as caught:
        simulate(artifact(programs))
    text = str(caught.value)
    assert "core 1 pc 1: recv r0, core=0, size=4" in text
    assert "it moves 4 bytes, and its counterpart 8 (core 0 pc 0: send r0, core=1, size=8)" in text


def test_a_bad_address_of_the_peer_names_the_peer() -> None:
    programs = [
        [op("sldi", rd=0, imm=-8), op("send", rd=0, core=1, size=8)],
        [op("nop"), op("recv", rd=0, core=0, size=8)],
    ]
    with pytest.raises(RaptorError, match="core 0 pc 1: send"):
        simulate(artifact(programs))


@pytest.mark.parametrize("order", ORDERS)
def test_a_ring_of_senders_is_a_deadlock(order: dict[str, object]) -> None:
    programs = [
        [op("nop"), op("send", rd=0, core=(n + 1) % 3, size=4), op("recv", rd=0, core=(n + 2) % 3, size=4)]
        for n in range(3)
    ]
    with pytest.raises(RaptorError) as caught:
        simulate(artifact(programs), **order)
    error = caught.value
    assert error.code == "deadlock"
    assert error.reason == "these cores wait for each other: core 0 -> core 1 -> core 2 -> core 0"
    assert error.details[1] == "core 1 pc 1: send r0, core=2, size=4 (iteration 0): waits for core 2 to receive"


def test_waiting_for_a_core_that_has_finished() -> None:
    with pytest.raises(RaptorError, match="waits for core 1 to send, which has finished"):
        simulate(artifact([[op("recv", rd=0, core=1, size=4)], [op("nop")]]))


def test_receivers_that_face_each_other() -> None:
    programs = [[op("recv", rd=0, core=1, size=4)], [op("recv", rd=0, core=0, size=4)]]
    with pytest.raises(RaptorError, match="core 0 -> core 1 -> core 0"):
        simulate(artifact(programs))


def test_a_cycle_through_an_event() -> None:
    programs = [
        [op("wait", event_register=1, wait_value=1), op("sync", core=1, event_register=2)],
        [op("wait", event_register=2, wait_value=1), op("sync", core=0, event_register=1)],
    ]
    with pytest.raises(RaptorError, match="core 0 -> core 1 -> core 0") as caught:
        simulate(artifact(programs))
    assert "event 1 is 0, needs 1; core 1 could still signal it" in caught.value.details[0]


PIPELINE = [
    [*load(1, 0, 8), op("send", rd=0, core=1, size=8)],
    [op("recv", rd=0, core=0, size=8), op("vvadd", rd=0, rs1=0, rs2=0, len=2), *store(8, 8)],
    [],
]


@pytest.mark.parametrize(
    "order", [{}, {"global_barrier": True}, {"target_stall": "1:0:3:4", "schedule_policy": "randomized"}]
)
def test_a_batch_runs_through(order: dict[str, object]) -> None:
    made = artifact(
        PIPELINE,
        inputs_addresses=(0,),
        inputs_sizes=(8,),
        outputs_addresses=(8,),
        outputs_sizes=(8,),
        inputs=(TensorInfo("x", (1, 2)),),
        outputs=(TensorInfo("y", (2, 1)),),
    )
    samples = [{"x": np.array([[k, 10 * k]], np.float32)} for k in range(7)]
    result = simulate(made, samples, mode="throughput", **order)
    assert [out["y"].ravel().tolist() for out in result.outputs] == [[2 * k, 20 * k] for k in range(7)]
    assert result.outputs[0]["y"].shape == (2, 1)
    assert result.metrics["executed_instructions"] == 7 * result.metrics["instructions"] == 7 * 7
    assert (result.metrics["samples"], result.metrics["cores"], result.metrics["active_cores"]) == (7, 3, 2)
    assert result.metrics["peak_local_memory_bytes"] == 8


def test_state_persists_between_iterations_and_outputs_start_from_the_initial_content() -> None:
    counting = [op("saddi", rd=1, rs1=1, imm=3), op("lldi", rd=1, imm=1, len=1), *store(0, 12)]
    partial = [op("setbw", ibiw=8, obiw=8), op("sync", core=1, event_register=0), *load(1, 20, 4), *store(20, 2)]
    host = bytes(range(100, 132))
    images = dumps(artifact([counting, partial], host=host), mode="throughput", samples=[{}] * 3)
    chip = Chip([counting, partial], host=host, iterations=3, ranges=[(0, 32)]).run()
    assert images == [bytes(out[0]) for out in chip.outputs]
    assert images[2][:12] == bytes([0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0])


def test_each_iteration_begins_with_the_initial_widths() -> None:
    program = [*load(1, 0, 8), op("vvadd", rd=0, rs1=0, rs2=0, len=1), op("setbw", ibiw=8, obiw=8), *store(8, 4)]
    images = dumps(artifact([program], host=floats(1.5, 9, 0, 0)), mode="throughput", samples=[{}] * 2)
    assert [np.frombuffer(image, "<f4")[2] for image in images] == [3.0, 3.0]


def test_a_sample_is_stored_when_the_first_core_begins_its_iteration() -> None:
    """The core without a reader's discipline runs ahead: later loads of the others see the later sample."""
    fast = [*load(1, 0, 4), op("saddi", rd=0, rs1=0, imm=0)]
    slow = [*load(1, 0, 4), *store(8, 4)]
    made = artifact([fast, slow], inputs_addresses=(0,), inputs_sizes=(4,), outputs_addresses=(8,), outputs_sizes=(4,))
    samples = [{"input_0": np.array([k], np.float32)} for k in range(3)]
    free = simulate(made, samples, mode="throughput")
    assert [float(out["output_0"][0]) for out in free.outputs] == [2.0, 2.0, 2.0]
    ordered = simulate(made, samples, mode="throughput", global_barrier=True)
    assert [float(out["output_0"][0]) for out in ordered.outputs] == [0.0, 1.0, 2.0]


def test_overlapping_ranges_are_recorded_each() -> None:
    made = artifact([[op("lldi", rd=0, imm=7, len=8), *store(4, 8)]], host=bytes(16))
    (out,) = simulate(made, dump_ranges="0,6,0x4,4,0,16,8,0").outputs
    assert [out[f"range_{k}"].tolist() for k in range(4)] == [
        [0] * 4 + [7] * 2,
        [7] * 4,
        [0] * 4 + [7] * 8 + [0] * 4,
        [],
    ]


@pytest.mark.parametrize("policy", ["greedy", "randomized"])
def test_many_cores_pass_a_value_around(policy: str) -> None:
    count = 40
    programs = [
        [*load(1, 0, 4), op("send", rd=0, core=1, size=4), op("recv", rd=0, core=count - 1, size=4), *store(4, 4)]
    ]
    for n in range(1, count):
        body = [op("recv", rd=0, core=n - 1, size=4), op("vvadd", rd=0, rs1=0, rs2=0, len=1)]
        programs.append([*body, op("send", rd=0, core=(n + 1) % count, size=4)])
    out = final_host(programs, host=floats(1, 0, 0, 0), schedule_policy=policy)
    assert same_numbers(out[4:8], floats(2.0 ** (count - 1)))


def test_bad_range_texts() -> None:
    for text in ("1", "1,2,3", "a,b", "-1,4", "1,,2"):
        with pytest.raises(UsageError, match="--dump-ranges"):
            simulate(artifact([[]]), dump_ranges=text)
    with pytest.raises(UsageError, match="outside the host memory"):
        simulate(artifact([[]]), dump_ranges="60,5")
