"""Spans of kernels by brute force, and dependencies against what the kernels of a program touch."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.ir.module import Module
from raptor_core.spatial.kernel import Address, Affine, KernelBuilder
from raptor_pim import dialect as pim
from raptor_pim.ordering.dependencies import kernel_spans, read_dependencies
from raptor_pim.ordering.events import one_by_one, read_events, with_lifetimes, with_places
from raptor_pim.target import TARGET

MACHINE = TARGET.configure({"core_count": 4, "crossbar_count": 4, "crossbar_size": "16"}, None, None).machine
ROWS = MACHINE.crossbar_rows


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(0, 30), min_size=3, max_size=3),
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.integers(1, 8),
)
def test_spans_cover_exactly_what_loops_touch(
    extents: list[int], starts: list[int], steps: list[int], count: int
) -> None:
    k = KernelBuilder(1)
    touched: list[int] = []
    with k.loops(extents) as variables:
        source = Affine(starts[0])
        for variable, step in zip(variables, steps, strict=False):
            source = source + variable * step
        k.copy(Address(1, Affine(starts[1])), Address(0, source), count)
    for turn in np.ndindex(*extents):
        first = starts[0] + sum(t * s for t, s in zip(turn, steps, strict=False))
        touched.extend(range(first, first + count))
    spans = kernel_spans(k.build(), ROWS)
    assert spans[0] == (min(touched), max(touched) + 1)
    assert spans[1] == (starts[1], starts[1] + count)


def test_a_product_reads_the_height_of_a_crossbar() -> None:
    k = KernelBuilder(1)
    k.product(Address(1, Affine(5)), Address(0, Affine(3)), 0, 7)
    assert kernel_spans(k.build(), ROWS) == {0: (3, 3 + ROWS), 1: (5, 12)}


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def buffer_table() -> pim.Buffers:
    """Two buffers of core 0, one of core 1, two of core 2."""
    return pim.Buffers(
        name="buffers",
        cores=ints(0, 0, 1, 2, 2),
        elements=ints(8, 8, 4, 8, 8),
        first=ints(0, 0, 0, 0, 0),
        last=ints(9, 9, 9, 9, 9),
        owner=ints(0, 0, 0, 0, 0),
        owners=("v",),
    )


def message(order: int, source_offset: int) -> pim.Transfer:
    """Four elements of core 0's first buffer to core 1."""
    return pim.Transfer(
        name="t",
        sources=ints(0),
        destinations=ints(1),
        order=ints(order),
        source_buffers=ints(0),
        source_offsets=ints(source_offset),
        destination_buffers=ints(2),
        destination_offsets=ints(0),
        elements=ints(4),
    )


def test_lifetimes_follow_the_events() -> None:
    buffers = buffer_table()
    clear = pim.Clear(
        name="c", cores=ints(0, 1), order=ints(3, 7), buffers=ints(0, 2), offsets=ints(0, 0), elements=ints(8, 4)
    )
    send = message(order=5, source_offset=0)
    live = with_lifetimes(buffers, [clear, send])
    assert live.first.tolist() == [3, 0, 5, 0, 0]
    assert live.last.tolist() == [5, 0, 7, 0, 0]


def test_a_reader_waits_for_those_that_write_what_it_reads() -> None:
    """Two clears fill the two halves of a buffer; a message takes the second half away."""
    buffers = buffer_table()
    clear = pim.Clear(
        name="c", cores=ints(0, 0), order=ints(0, 0), buffers=ints(0, 0), offsets=ints(0, 4), elements=ints(4, 4)
    )
    send = message(order=1, source_offset=4)
    module = one_by_one(Module(name="m", operations=(buffers, clear, send)))
    events = read_events(module, MACHINE)
    assert events.count == 3
    found = read_dependencies(module, events, ROWS)
    assert found.counts.tolist() == [0, 0, 1]
    assert found.successors.tolist() == [2]
    assert found.first.tolist() == [0, 0, 1, 1]
    moved = with_places(module, np.array([2, 0, 1]))
    (cleared,), (sends,) = moved.find(pim.Clear), moved.find(pim.Transfer)
    assert cleared.order.tolist() == [2, 0]
    assert sends.order.tolist() == [1]
