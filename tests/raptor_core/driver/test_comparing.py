"""The comparison of outputs with the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from raptor_core.driver.comparing import compare_output

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("got", "expected", "max_abs", "max_rel", "failing"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0, 0, 0),
        ([1.0, 2.5], [1.0, 2.0], 0.5, 0.25, 1),
        ([0.0005], [0.0], 0.0005, INF, 0),
        ([NAN, INF, -INF], [NAN, INF, -INF], 0, 0, 0),
        ([NAN], [1.0], INF, INF, 1),
        ([1.0], [NAN], INF, INF, 1),
        ([INF], [-INF], INF, INF, 1),
        ([1.0], [INF], INF, INF, 1),
        ([], [], 0, 0, 0),
    ],
)
def test_cases(got, expected, max_abs: float, max_rel: float, failing: int) -> None:
    result = compare_output("y", np.array(got), np.array(expected), atol=1e-3, rtol=1e-5)
    assert (result.max_abs, result.max_rel, result.failing) == (max_abs, max_rel, failing)
    assert result.passed == (failing == 0)
    assert result.elements == len(got)


@given(hnp.arrays(np.float32, (2, 7), elements=st.floats(width=32)), st.data())
def test_it_agrees_with_numpy(expected, data) -> None:
    got = data.draw(hnp.arrays(np.float32, (2, 7), elements=st.floats(width=32)))
    result = compare_output("y", got, expected, atol=1e-3, rtol=1e-5)
    with np.errstate(all="ignore"):
        good = np.isclose(got.astype(float), expected.astype(float), atol=1e-3, rtol=1e-5, equal_nan=True)
    assert result.failing == np.count_nonzero(~good)
