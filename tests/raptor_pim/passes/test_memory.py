"""Local memory planning: live buffers never overlap, dead ones are reused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_core.passes.base import PassContext
from raptor_pim.dialect import Buffers
from raptor_pim.passes._intervals import place_by_lifetime
from raptor_pim.passes.plan_memory import PLAN_MEMORY, memory_report, peak_bytes
from raptor_pim.passes.verify import check_live_ranges


def table(rows: list[tuple[int, int, int, int]]) -> Buffers:
    cores, elements, first, last = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    owner = np.arange(len(rows))
    return Buffers(
        name="buffers",
        cores=cores,
        elements=elements,
        first=first,
        last=last,
        owner=owner,
        owners=tuple(f"v{k}" for k in owner),
    )


def planned(rows: list[tuple[int, int, int, int]]) -> Buffers:
    module = Module(name="m", operations=(table(rows),))
    (result,) = PLAN_MEMORY.run(module, PassContext(None, None)).module.find(Buffers)  # type: ignore[arg-type]
    return result


ROWS = st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9), st.integers(0, 9)).map(
    lambda row: (row[0], row[1], min(row[2:]), max(row[2:]))
)


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=20))
def test_no_live_buffers_overlap(rows: list[tuple[int, int, int, int]]) -> None:
    result = planned(rows)
    check_live_ranges(result)
    used: dict[tuple[int, int, int], int] = {}
    for k, (core, elements, first, last) in enumerate(rows):
        start = int(result.addresses[k])
        assert start % 4 == 0
        for time in range(first, last + 1):
            for byte in range(start, start + 4 * elements, 4):
                assert used.setdefault((core, time, byte), k) == k


def test_memory_is_reused_when_lifetimes_do_not_meet() -> None:
    assert place_by_lifetime(np.array([0, 2, 4]), np.array([1, 3, 5]), np.array([64, 64, 64])).tolist() == [0, 0, 0]
    # The least possible here is the greatest sum of sizes alive at once.
    assert peak_bytes(planned([(0, 10, 0, 3), (0, 6, 2, 5), (0, 10, 4, 6)])) == {0: 64}


def test_the_verifier_sees_an_overlap() -> None:
    result = planned([(0, 10, 0, 3), (0, 6, 2, 5)])
    broken = Buffers(**{**vars_of(result), "addresses": np.array([0, 36])})
    with pytest.raises(InternalError, match="'v0' and 'v1' overlap"):
        check_live_ranges(broken)


def vars_of(op: Buffers) -> dict[str, object]:
    return {name: getattr(op, name) for name in ("name", "cores", "elements", "first", "last", "owner", "owners")}


def test_too_much_memory_is_refused_with_the_largest_tenants() -> None:
    with pytest.raises(Exception, match="needs 2147483652 bytes") as caught:
        planned([(3, 2**29, 0, 3), (3, 1, 0, 3)])
    assert "v0: 2147483648 bytes" in str(caught.value)


def test_the_figures_as_data() -> None:
    module = Module(name="m", operations=(table([(2, 16, 0, 1), (0, 4, 0, 3), (0, 6, 2, 5)]),))
    report = PLAN_MEMORY.run(module, PassContext(None, None)).reports["memory.json"]  # type: ignore[arg-type]
    assert json.loads(report) == {"peak_bytes": 64, "cores": {"0": 40, "2": 64}}


def test_report_folds_equal_cores() -> None:
    text = memory_report(planned([(core, 16, 0, 1) for core in (0, 1, 2, 5)]))
    assert "0-2, 5" in text
    assert "cores in use: 4; greatest peak: 64 bytes" in text
