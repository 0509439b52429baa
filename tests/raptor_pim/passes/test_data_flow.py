"""What is read was written before: footprints by brute force, sound programs, and programs put out of order."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType
from raptor_core.passes.base import PassContext
from raptor_core.spatial.compute import Placement
from raptor_core.spatial.kernel import Affine, KernelBuilder, View
from raptor_core.spatial.passes.communicate import COMMUNICATE
from raptor_pim import dialect as pim
from raptor_pim.codegen.footprint import kernel_footprint
from raptor_pim.codegen.template import expand_kernel
from raptor_pim.ordering import dependencies
from raptor_pim.passes.data_flow import check_data_flow
from raptor_pim.passes.order_events import ORDER_EVENTS
from raptor_pim.passes.plan_memory import PLAN_MEMORY
from raptor_pim.passes.to_pim import TO_PIM
from raptor_pim.passes.verify import VERIFY
from raptor_pim.target import TARGET
from small_network import network, placements

MACHINE = TARGET.configure({"core_count": 5, "crossbar_count": 4, "crossbar_size": "16"}, None, None).machine
OPERATIONS = ("copy", "gather", "fill", "odd fill", "add", "dot", "mean", "relu", "product")
SHAPES = np.array([[3, 2], [6, 4]])

Elements = set[tuple[int, int]]


def packed(slot: int) -> View:
    return View.packed(slot, (64,), (0,))


@st.composite
def instructions(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]], int, int]:
    """Name; slot and offset of destination and sources; count; stride or weight."""
    places = [(draw(st.integers(0, 3)), draw(st.integers(0, 20))) for _ in range(3)]
    return draw(st.sampled_from(OPERATIONS)), places, draw(st.integers(1, 6)), draw(st.integers(0, 3))


def emit(k: KernelBuilder, found: tuple[str, list[tuple[int, int]], int, int], shift: Affine | int) -> None:
    op, places, count, step = found
    to, x, y = (packed(slot).at(shift + at) for slot, at in places)
    {
        "copy": lambda: k.copy(to, x, count),
        "gather": lambda: k.gather(to, x, step, count),
        "fill": lambda: k.fill(to, 0.0, count),
        "odd fill": lambda: k.fill(to, 2.5, count),
        "add": lambda: k.binary("add", to, x, y, count),
        "dot": lambda: k.dot(to, x, y, count),
        "mean": lambda: k.mean(to, x, step, count),
        "relu": lambda: k.unary("relu", to, x, count),
        "product": lambda: k.product(to, x, step % 2, int(SHAPES[step % 2, 1])),
    }[op]()


def touched(found: tuple[str, list[tuple[int, int]], int, int], shift: int) -> tuple[Elements, Elements]:
    """Slots and elements that the instruction reads, and those that it writes."""
    op, places, count, step = found
    sources = {"fill": 0, "odd fill": 0, "add": 2, "dot": 2}.get(op, 1)
    rows, columns = SHAPES[step % 2].tolist()
    length = {"product": rows}.get(op, count)
    stride = step if op in ("gather", "mean") else 1
    read = {(slot, shift + at + j * stride) for slot, at in places[1 : 1 + sources] for j in range(length)}
    (slot, at), *_ = places
    return read, {(slot, shift + at + j) for j in range({"dot": 1, "mean": 1, "product": columns}.get(op, count))}


@settings(deadline=None, max_examples=200)
@given(st.lists(instructions(), max_size=8), st.integers(1, 3))
def test_footprints_are_what_one_instruction_after_another_touches(found: list[Any], turns: int) -> None:
    k = KernelBuilder(2)
    k.scratch(64)
    with k.loop(turns) as turn:
        for instruction in found:
            emit(k, instruction, turn * 5)
    needed: Elements = set()
    written: Elements = set()
    for turn_number in range(turns):
        for instruction in found:
            read, write = touched(instruction, 5 * turn_number)
            needed |= read - written
            written |= write
    footprint = kernel_footprint(expand_kernel(k.build()), 4, SHAPES)
    for side, expected in ((footprint.needed, needed), (footprint.written, written)):
        assert {
            (s, e) for s, runs in enumerate(side) for low, high in runs.tolist() for e in range(low, high)
        } == expected


def ordered(found: list[Placement]) -> Module:
    """The small network so placed, with its events in the order that list scheduling finds."""
    module = network()
    placed = [attrs.evolve(op, placement=p) for op, p in zip(module.operations, found, strict=True)]
    module = attrs.evolve(module, operations=tuple(placed))
    context = PassContext(MACHINE, None)  # type: ignore[arg-type]
    for pass_ in (COMMUNICATE, TO_PIM, ORDER_EVENTS, PLAN_MEMORY):
        module = pass_.run(module, context).module
    return module


@settings(deadline=None, max_examples=25)
@given(placements())
def test_an_order_that_keeps_dependencies_is_sound(found: list[Placement]) -> None:
    check_data_flow(ordered(found))


def spread() -> list[Placement]:
    """Every operation cut by rows of the map, over all cores."""
    boxes = np.array([[[0, row, 0], [4, row + 1, 6]] for row in range(5)])
    return [Placement(boxes, (np.arange(5) + k) % 5, np.full(5, k)) for k in range(6)]


def test_an_order_without_dependencies_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    VERIFY.run(ordered(spread()), PassContext(MACHINE, None))  # type: ignore[arg-type]

    def none(module: Module, events: Any, rows: int) -> dependencies.Dependencies:
        empty = np.zeros(events.count, dtype=np.int64)
        return dependencies.Dependencies(empty[:0], np.zeros(events.count + 1, dtype=np.int64), empty)

    monkeypatch.setattr(dependencies, "read_dependencies", none)
    with pytest.raises(InternalError, match="the flow of data between events is broken") as caught:
        VERIFY.run(ordered(spread()), PassContext(MACHINE, None))  # type: ignore[arg-type]
    assert "it is written at place" in caught.value.render()


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def program(*events: pim.Clear | pim.Store | pim.Launch, rows: int = 4) -> Module:
    """Two buffers of 8 elements on core 0, and a matrix of that many rows in its only group."""
    buffers = pim.Buffers(
        name="buffers",
        cores=ints(0, 0),
        elements=ints(8, 8),
        first=ints(0, 0),
        last=ints(9, 9),
        owner=ints(0, 1),
        owners=("conv1", "conv2"),
    )
    groups = pim.Groups(
        name="groups", operands=("w",), cores=ints(0), numbers=ints(0), matrices=ints(0), crossbars=ints(1)
    )
    return Module(name="m", types={"w": TensorType((rows, 2))}, operations=(buffers, groups, *events))


def clear(order: int, offset: int, elements: int) -> pim.Clear:
    return pim.Clear(
        name="clear",
        cores=ints(0),
        order=ints(order),
        buffers=ints(0),
        offsets=ints(offset),
        elements=ints(elements),
    )


def store(order: int) -> pim.Store:
    """Elements 2 to 6 of the first buffer."""
    return pim.Store(
        name="store",
        cores=ints(0),
        order=ints(order),
        buffers=ints(0),
        offsets=ints(2),
        host=ints(0),
        elements=ints(4),
    )


def test_the_first_element_that_is_missing_is_named() -> None:
    check_data_flow(program(clear(0, 0, 4), clear(1, 4, 4), store(2)))
    check_data_flow(program(clear(0, 2, 4), store(1), clear(2, 0, 2)))
    for events, text in (
        ((clear(0, 0, 4), store(1), clear(2, 4, 4)), "element 4 of 'conv1'.*it is written at place 2 only"),
        ((clear(0, 0, 5), store(1)), "element 5 of 'conv1'.*nobody writes it"),
        ((clear(1, 0, 8), store(1)), "element 2 of 'conv1'.*it is written at place 1 only"),
        ((clear(0, 0, 8), clear(1, 7, 1), store(2)), "element 7 of 'conv1'.*after it was written at place 0"),
        ((clear(0, 4, 5), store(2)), "touches elements 4 to 9"),
    ):
        with pytest.raises(InternalError) as caught:
            check_data_flow(program(*events))
        assert "core 0" in str(caught.value.where)
        assert re.search(text, f"{caught.value.where} {caught.value.reason}"), caught.value.render()


@pytest.mark.parametrize(("rows", "sound"), [(4, True), (5, False)])
def test_a_product_needs_as_many_rows_as_its_matrix_has(rows: int, sound: bool) -> None:
    k = KernelBuilder(1)
    k.product(packed(1).at(0), packed(0).at(0), 0, 2)
    launch = pim.Launch(
        name="product",
        kernel=k.build(),
        cores=ints(0),
        order=ints(1),
        buffers=ints(0, 1)[None],
        offsets=ints(0, 0)[None],
        groups=ints(0)[None],
    )
    module = program(clear(0, 0, 4), launch, rows=rows)
    if sound:
        check_data_flow(module)
        return
    with pytest.raises(InternalError, match="broken") as caught:
        check_data_flow(module)
    assert "element 4 of 'conv1'" in str(caught.value.where)
