"""The geometry of one value: everything needed arrives, from where it is held, and only once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.spatial._rounds import transfer_rounds
from raptor_core.spatial.boxes import grid
from raptor_core.spatial.edges import Needs, fragment_pieces, host_pieces, padding_boxes, storage_boxes

SHAPE = (6, 7)


@st.composite
def needs(draw: st.DrawFn) -> Needs:
    count = draw(st.integers(1, 6))
    lo = np.array(draw(st.lists(st.tuples(st.integers(-2, 5), st.integers(-2, 6)), min_size=count, max_size=count)))
    size = np.array(draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=count, max_size=count)))
    cores = np.array(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
    steps = np.array(draw(st.lists(st.integers(10, 14), min_size=count, max_size=count)))
    return Needs(np.stack([lo, lo + size], axis=1), cores, steps)


def paint(box: np.ndarray, target: np.ndarray, amount: int) -> None:
    lo, hi = np.clip(box, 0, SHAPE)
    target[lo[0] : hi[0], lo[1] : hi[1]] += amount


@settings(deadline=None)
@given(needs(), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(0, 9))
def test_every_need_is_met_exactly_once(need: Needs, parts: tuple[int, int], seed: int) -> None:
    fragments = grid(SHAPE, parts)
    owner = np.random.default_rng(seed).integers(0, 4, fragments.shape[0])
    away, own = fragment_pieces(need, fragments, owner, SHAPE)
    home = np.full(SHAPE, -1)
    for box, core in zip(fragments, owner, strict=True):
        home[box[0, 0] : box[1, 0], box[0, 1] : box[1, 1]] = core
    for core in range(4):
        wanted = np.zeros(SHAPE, int)
        for box in need.boxes[need.cores == core]:
            paint(box, wanted, 1)
        for pieces, here in ((away, home != core), (own, home == core)):
            brought = np.zeros(SHAPE, int)
            mine = pieces.destinations == core
            for box, source in zip(pieces.boxes[mine], pieces.sources[mine], strict=True):
                assert (home[box[0, 0] : box[1, 0], box[0, 1] : box[1, 1]] == source).all()
                paint(box, brought, 1)
            assert np.array_equal(brought, ((wanted > 0) & here).astype(int))
    for pieces in (away, own):
        assert set(pieces.steps.tolist()) <= set(need.steps.tolist())


@settings(deadline=None)
@given(needs())
def test_pieces_come_before_their_first_use(need: Needs) -> None:
    fragments = grid(SHAPE, (2, 2))
    pieces, own = fragment_pieces(need, fragments, np.array([7, 8, 9, 10]), SHAPE)
    assert own.steps.size == 0
    for core in set(need.cores.tolist()):
        first = np.full(SHAPE, 10**6)
        for box, step in zip(need.boxes[need.cores == core], need.steps[need.cores == core], strict=True):
            lo, hi = np.clip(box, 0, SHAPE)
            part = first[lo[0] : hi[0], lo[1] : hi[1]]
            np.minimum(part, step, out=part)
        for box, step in zip(
            pieces.boxes[pieces.destinations == core], pieces.steps[pieces.destinations == core], strict=True
        ):
            assert (first[box[0, 0] : box[1, 0], box[0, 1] : box[1, 1]] >= step).all()


@settings(deadline=None)
@given(needs())
def test_host_pieces_load_once(need: Needs) -> None:
    pieces = host_pieces(need, SHAPE)
    for core in range(4):
        wanted, loaded = np.zeros(SHAPE, int), np.zeros(SHAPE, int)
        for box in need.boxes[need.cores == core]:
            paint(box, wanted, 1)
        for box in pieces.boxes[pieces.destinations == core]:
            paint(box, loaded, 1)
        assert np.array_equal(loaded, (wanted > 0).astype(int))


@settings(deadline=None)
@given(needs())
def test_storages_and_padding(need: Needs) -> None:
    cores, bounds = storage_boxes(need.boxes, need.cores)
    assert cores.tolist() == sorted(set(need.cores.tolist()))
    padding, owners = padding_boxes(bounds, cores, SHAPE)
    for core, bound in zip(cores.tolist(), bounds, strict=True):
        own = need.boxes[need.cores == core]
        assert np.array_equal(bound[0], own[:, 0].min(axis=0))
        assert np.array_equal(bound[1], own[:, 1].max(axis=0))
        inside = np.prod(np.maximum(np.clip(bound, 0, SHAPE)[1] - np.clip(bound, 0, SHAPE)[0], 0))
        outside = sum(np.prod(box[1] - box[0]) for box in padding[owners == core])
        assert outside == np.prod(bound[1] - bound[0]) - inside


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_rounds_are_matchings(found: list[tuple[int, int, int]]) -> None:
    rows = sorted((step, a, b) for step, a, b in found if a != b)
    step, source, destination = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(3))
    rounds = transfer_rounds(step, source, destination)
    seen: set[tuple[int, int, int]] = set()
    for s, r, a, b in zip(step.tolist(), rounds.tolist(), source.tolist(), destination.tolist(), strict=True):
        assert (s, r, a) not in seen
        seen.add((s, r, a))
        assert (s, r, b) not in seen
        seen.add((s, r, b))
