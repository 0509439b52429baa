"""List scheduling: any order is legal, none is worse than the one it starts from, and its clock is its own replay's."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_pim.ordering.dependencies import Dependencies
from raptor_pim.ordering.events import LOAD, LOCAL, STORE, TRANSFER, Events
from raptor_pim.ordering.list_schedule import as_it_is, best_order
from raptor_pim.target import TARGET

MACHINE = TARGET.configure({"core_count": 5, "crossbar_count": 4, "crossbar_size": "16"}, None, None).machine


@st.composite
def programs(draw: st.DrawFn) -> tuple[Events, list[tuple[int, int]]]:
    """Random events on five cores, and pairs (before, after) that depend on each other."""
    count = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = rng.integers(LOCAL, STORE + 1, count).astype(np.int8)
    core = rng.integers(0, 5, count)
    peer = np.where(kind == TRANSFER, (core + rng.integers(1, 5, count)) % 5, -1)
    time = np.where(kind == LOCAL, rng.integers(1, 2000, count) / draw(st.sampled_from([1, 3, 7])), 0)
    messages = np.where(kind == LOCAL, 0, rng.integers(1, 4, count))
    elements = np.where(kind == LOCAL, 0, rng.integers(1, 500, count))
    pairs = {tuple(sorted(rng.choice(count, 2, replace=False).tolist())) for _ in range(count) if count > 1}
    return Events(kind, core, peer, time, messages, elements), sorted(pairs)  # type: ignore[arg-type]


def table(count: int, pairs: list[tuple[int, int]]) -> Dependencies:
    before = np.array([pair[0] for pair in pairs], dtype=np.int64)
    after = np.array([pair[1] for pair in pairs], dtype=np.int64)
    return Dependencies(after, np.searchsorted(before, np.arange(count + 1)), np.bincount(after, minlength=count))


def reordered(events: Events, pairs: list[tuple[int, int]], place: np.ndarray) -> tuple[Events, Dependencies]:
    """The same program with its events standing where ``place`` puts them."""
    old = np.argsort(place)
    moved = Events(*(column[old] for column in attrs.astuple(events, recurse=False)))
    return moved, table(events.count, sorted((int(place[a]), int(place[b])) for a, b in pairs))


def test_many_messages_between_two_cores_are_ordered() -> None:
    rng = np.random.default_rng(0)
    count = 3000
    kind = rng.choice(np.array([LOCAL, TRANSFER], dtype=np.int8), count)
    core = rng.integers(0, 2, count)
    peer, zero = np.where(kind == TRANSFER, 1 - core, -1), np.zeros(count, dtype=np.int64)
    time = np.where(kind == LOCAL, rng.integers(1, 9, count) / 7, 0)
    events = Events(kind, core, peer, time, zero + (kind == TRANSFER), zero + 5)
    pairs = sorted({tuple(sorted(rng.choice(count, 2, replace=False).tolist())) for _ in range(2000)})
    order = best_order(events, table(count, pairs), MACHINE)  # type: ignore[arg-type]
    assert sorted(order.place.tolist()) == list(range(count))
    assert all(order.place[a] < order.place[b] for a, b in pairs)


@settings(deadline=None, max_examples=200)
@given(programs())
def test_the_order_is_legal_and_no_worse(program: tuple[Events, list[tuple[int, int]]]) -> None:
    events, pairs = program
    dependencies = table(events.count, pairs)
    order = best_order(events, dependencies, MACHINE)
    assert sorted(order.place.tolist()) == list(range(events.count))
    assert all(order.place[a] < order.place[b] for a, b in pairs)
    assert order.predicted_ns <= as_it_is(events, dependencies, MACHINE).predicted_ns
    assert as_it_is(*reordered(events, pairs, order.place), MACHINE).predicted_ns == pytest.approx(order.predicted_ns)


def test_the_longer_chain_goes_first() -> None:
    """Core 0 has a short task that nobody waits for, and one that core 1 does."""
    nothing = np.zeros(3, dtype=np.int64)
    events = Events(
        kind=np.full(3, LOCAL, np.int8),
        core=np.array([0, 0, 1]),
        peer=np.full(3, -1),
        time_ns=np.array([100.0, 50.0, 500.0]),
        messages=nothing,
        elements=nothing,
    )
    order = best_order(events, table(3, [(1, 2)]), MACHINE)
    assert order.place.tolist()[1] == 0
    assert order.predicted_ns == 550.0


def test_transfers_keep_both_cores() -> None:
    """A message costs its sender and its receiver time, and a second one between other cores none of theirs."""
    nothing = np.zeros(2)
    kind, ones = np.full(2, TRANSFER, np.int8), np.ones(2, dtype=np.int64)
    apart = Events(kind, np.array([0, 2]), np.array([1, 3]), nothing, ones, ones * 64)
    shared = Events(kind, np.array([0, 1]), np.array([1, 2]), nothing, ones, ones * 64)
    free = table(2, [])
    assert as_it_is(shared, free, MACHINE).predicted_ns > 1.5 * as_it_is(apart, free, MACHINE).predicted_ns


def test_host_memory_serves_one_at_a_time() -> None:
    nothing = np.zeros(2)
    kind, ones = np.full(2, LOAD, np.int8), np.ones(2, dtype=np.int64)
    both = Events(kind, np.array([0, 4]), -ones, nothing, ones, ones * 4000)
    one = Events(*(column[:1] for column in attrs.astuple(both, recurse=False)))
    assert as_it_is(both, table(2, []), MACHINE).predicted_ns > 1.5 * as_it_is(one, table(1, []), MACHINE).predicted_ns
