"""Boxes in storages as runs, against plain address arrays."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.spatial.kernel import packed_strides
from raptor_pim.passes.runs import box_runs


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray], tuple[int, ...]]:
    rank = draw(st.integers(1, 4))
    count = draw(st.integers(0, 4))
    storages = draw(st.integers(1, 2))
    numbers = st.lists(st.integers(0, 2), min_size=count * rank, max_size=count * rank)

    def block() -> np.ndarray:
        return np.array(draw(numbers), dtype=np.int64).reshape(count, rank)

    lo = block() - 1
    boxes = np.stack([lo, lo + 1 + block()], axis=1)
    held = [np.stack([boxes[:, 0] - block(), boxes[:, 1] + block()], axis=1) for _ in range(storages)]
    return boxes, held, tuple(draw(st.permutations(range(rank))))


@settings(deadline=None)
@given(cases())
def test_runs_cover_every_element_in_both_storages(case: tuple) -> None:
    boxes, storages, order = case
    runs = box_runs(boxes, storages, order)
    assert (np.diff(runs.box) >= 0).all()
    for k, box in enumerate(boxes):
        expected = []
        for index in itertools.product(*(range(low, high) for low, high in zip(*box, strict=True))):
            expected.append(
                tuple(
                    sum(
                        (i - low) * stride
                        for i, low, stride in zip(index, s[k, 0], packed_strides(s[k, 1] - s[k, 0], order), strict=True)
                    )
                    for s in storages
                )
            )
        mine = np.flatnonzero(runs.box == k)
        found = [
            tuple(offset + j for offset in runs.offsets[r].tolist()) for r in mine for j in range(int(runs.elements[r]))
        ]
        assert sorted(found) == sorted(expected)


def test_a_full_storage_is_one_run() -> None:
    boxes = np.array([[[0, 0, 0], [4, 5, 6]]])
    runs = box_runs(boxes, [boxes, boxes], (0, 2, 1))
    assert runs.elements.tolist() == [120]


def test_rows_of_a_wider_storage() -> None:
    boxes = np.array([[[0, 1, 0], [4, 3, 6]]])
    wide = np.array([[[0, 0, 0], [4, 5, 6]]])
    runs = box_runs(boxes, [boxes, wide], (0, 1, 2))
    assert runs.elements.tolist() == [12, 12, 12, 12]
    assert runs.offsets.tolist() == [[0, 6], [12, 36], [24, 66], [36, 96]]
