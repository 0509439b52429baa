"""The layout alternatives."""

from __future__ import annotations

import pytest

from raptor_core.ir.types import TensorType
from raptor_core.plugins.contracts import LayoutAlternative
from raptor_layouts.dense import DENSE
from raptor_layouts.nhwc_row_strip import NHWC_ROW_STRIP


@pytest.mark.parametrize("plugin", [DENSE, NHWC_ROW_STRIP])
def test_they_fulfil_the_contract(plugin: LayoutAlternative) -> None:
    assert isinstance(plugin, LayoutAlternative)
    layout = plugin.layout(TensorType((1, 2, 3, 4)))
    assert layout is not None
    assert layout.name == plugin.name


@pytest.mark.parametrize("rank", range(6))
def test_dense_is_row_major_for_any_rank(rank: int) -> None:
    layout = DENSE.layout(TensorType((2,) * rank))
    assert layout is not None
    assert layout.is_dense


@pytest.mark.parametrize(
    ("shape", "order"),
    [((4, 5, 6), (0, 2, 1)), ((1, 8, 5, 6), (0, 2, 3, 1)), ((1, 8, 5, 6, 7), (0, 2, 3, 4, 1))],
)
def test_row_strips_have_channels_innermost(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    layout = NHWC_ROW_STRIP.layout(TensorType(shape))
    assert layout is not None
    assert layout.order == order


@pytest.mark.parametrize("shape", [(), (4,), (4, 5)])
def test_row_strips_need_three_axes(shape: tuple[int, ...]) -> None:
    assert NHWC_ROW_STRIP.layout(TensorType(shape)) is None
