"""Pieces that many cores need are passed on: everybody gets what it needs, from somebody who has it by then."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.ir.operation import Types
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import Box, grid
from raptor_core.spatial.communication import Transfer
from raptor_core.spatial.compute import Placement
from raptor_core.spatial.edges import Pieces
from raptor_core.spatial.multicast import forwarded
from raptor_core.spatial.passes.communicate import COMMUNICATE
from small_network import SHAPE, Add, network


def pieces(sources: list[int], boxes: list[int], destinations: list[int], steps: list[int]) -> Pieces:
    corners = np.array([[[k, 0], [k + 1, 4]] for k in boxes], dtype=np.int64).reshape(len(boxes), 2, 2)
    return Pieces(corners, *(np.array(column, dtype=np.int64) for column in (sources, destinations, steps)))


@st.composite
def broadcasts(draw: st.DrawFn) -> Pieces:
    """Boxes of cores 0 to 2, each needed once by some of the cores 3 to 40."""
    rows = []
    for box in range(draw(st.integers(1, 4))):
        receivers = draw(st.sets(st.integers(3, 40), min_size=1, max_size=38))
        rows += [(box % 3, box, core, draw(st.integers(0, 3))) for core in sorted(receivers)]
    return pieces(*([row[k] for row in rows] for k in range(4)))


@attrs.frozen(kw_only=True)
class Everything(Add):
    """A sum that says it needs all of its operands, whatever the box."""

    kind = "test.everything"

    def region(self, operand: int, out: Box, types: Types) -> Box:
        return Box.whole(SHAPE)


@settings(deadline=None)
@given(broadcasts())
def test_every_sender_has_what_it_sends(wanted: Pieces) -> None:
    found = forwarded(wanted)
    for name in ("boxes", "destinations", "steps"):
        assert np.array_equal(getattr(found.pieces, name), getattr(wanted, name))
    arrived = {
        (int(core), int(box[0, 0])): (int(step), int(depth))
        for core, box, step, depth in zip(wanted.destinations, wanted.boxes, wanted.steps, found.depth, strict=True)
    }
    for k, sender in enumerate(found.pieces.sources.tolist()):
        if sender == wanted.sources[k]:
            continue
        step, depth = arrived[sender, int(wanted.boxes[k, 0, 0])]
        assert step <= wanted.steps[k]
        assert depth < found.depth[k]


@pytest.mark.parametrize(("receivers", "most"), [(2, 2), (4, 4), (15, 4), (40, 6)])
def test_one_piece_for_many_goes_along_a_tree(receivers: int, most: int) -> None:
    found = forwarded(pieces([0] * receivers, [0] * receivers, list(range(1, receivers + 1)), [0] * receivers))
    assert np.bincount(found.pieces.sources).max() == most
    assert found.depth.max() <= max(1, receivers.bit_length())


def test_where_all_send_alike_everybody_sends_its_own() -> None:
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    wanted = pieces([a for a, _ in pairs], [a for a, _ in pairs], [b for _, b in pairs], [0] * len(pairs))
    assert np.array_equal(forwarded(wanted).pieces.sources, wanted.sources)


def test_cores_pass_on_what_they_received() -> None:
    """A value of one core that ten others need whole: no core sends it more than four times."""
    module = network()
    placements = [Placement(grid(SHAPE, (1, 1, 1)), np.array([0]), np.array([k])) for k in range(6)]
    ops = [attrs.evolve(op, placement=p) for op, p in zip(module.operations, placements, strict=True)]

    wide = grid(SHAPE, (1, 5, 2))
    everything = Everything(
        name="d",
        operands=("c", "a"),
        results=("d",),
        placement=Placement(wide, 1 + np.arange(len(wide)), np.full(len(wide), 3)),
    )
    module = attrs.evolve(module, operations=(*ops[:3], everything, *ops[4:]))
    result = COMMUNICATE.run(module, PassContext(None, None)).module  # type: ignore[arg-type]
    sends = [op for op in result.find(Transfer) if op.operands == ("c",)]
    sources = np.concatenate([op.sources for op in sends])
    assert sources.size == len(wide)
    assert np.bincount(sources).max() == len(wide).bit_length()
    first = {int(core): int(order) for op in sends for core, order in zip(op.destinations, op.order, strict=True)}
    for op in sends:
        for source, order in zip(op.sources.tolist(), op.order.tolist(), strict=True):
            assert source == 0 or first[source] < order


def test_the_option_sends_all_from_the_source() -> None:
    module = network()
    placements = [Placement(grid(SHAPE, (1, 1, 1)), np.array([0]), np.array([k])) for k in range(3)]
    wide = grid(SHAPE, (1, 5, 2))
    placements += [Placement(wide, 1 + np.arange(len(wide)), np.full(len(wide), k)) for k in range(3, 6)]
    ops = [attrs.evolve(op, placement=p) for op, p in zip(module.operations, placements, strict=True)]
    everything = Everything(name="d", operands=("c", "a"), results=("d",), placement=placements[3])
    module = attrs.evolve(module, operations=(*ops[:3], everything, *ops[4:]))
    for multicast in (True, False):
        context = PassContext(None, None, {"multicast": multicast})  # type: ignore[arg-type]
        sends = [op for op in COMMUNICATE.run(module, context).module.find(Transfer) if op.operands == ("c",)]
        sources = np.concatenate([op.sources for op in sends])
        assert (np.bincount(sources).max() == len(wide)) is not multicast
