"""The state of linear attention on the board: its place, and no word of a softmax."""

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QRectF

from simulator.problem.scenario import Scenario
from simulator.program.state_ops import with_ones
from simulator.run.linear_state import added_to_state
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from tests.helpers.painted import painted
from tests.helpers.runs import scenario, trace_of
from ui.board.board import board_layout, paint_board
from ui.board.key_state import state_places
from ui.board.layout import Viewport
from ui.look.theme import DARK, Style

pytestmark = pytest.mark.usefixtures("qapp")

SIZES = ((420, 320), (640, 480), (1280, 720), (1920, 1080))


def kinds() -> list[Scenario]:
    causal = {"causal": True}
    return [
        scenario("linear", nq=13, d=4, heads=4, kv_heads=2, rows=3, cols=4, mask=causal),
        scenario("linear", nq=9, nk=14, d=4, dv=3, heads=2, kv_heads=1, rows=3, cols=4),
        scenario("linear", nq=5, d=3, rows=1, cols=1, mask=causal, features=6),
        scenario("linear", nq=2048, d=8, rows=128, cols=128, mask=causal),
    ]


def every_op(trace: Trace) -> Iterator[Snapshot]:
    for visit in sorted({0, 1, len(trace) // 2, len(trace) - 1}):
        for op in range(len(trace.program.ops(visit))):
            yield trace.snapshot(visit, op)


@pytest.mark.parametrize("number", range(4))
def test_it_lies_in_the_place_of_tiles_that_are_never_formed(number: int) -> None:
    trace = trace_of(kinds()[number])
    for now in every_op(trace):
        for width, height in SIZES:
            lay = board_layout(trace.workload, Style(DARK), QRectF(0, 0, width, height))
            assert "m" not in lay.boxes
            assert "m" not in lay.labels
            places = state_places(now, lay)
            assert lay.boxes["S"].contains(places.card)
            for part in (places.state, places.added, places.title, *places.names):
                assert part.isNull() or places.card.contains(part)
            if trace.workload.chunked:
                for i in range(trace.workload.grid.Tr):
                    tile = lay.tile(*(trace.workload.grid.row_range(i),) * 2)
                    over = tile.intersected(places.card)
                    assert min(over.width(), over.height()) <= 1


def test_a_magnified_tile_is_not_covered() -> None:
    trace = trace_of(kinds()[0])
    for index in range(4):
        now = trace.snapshot(index)
        lay = board_layout(trace.workload, Style(DARK), QRectF(0, 0, 900, 700), Viewport(3.0, 4, 6))
        places = state_places(now, lay)
        tile = lay.tile(now.visit.rows, now.visit.cols)
        assert places is None or not places.card.intersects(tile)


def test_what_the_keys_add_is_the_sum_of_their_outer_products() -> None:
    trace = trace_of(kinds()[0])
    now = trace.snapshot(1)
    added = added_to_state(now)
    assert added is not None
    before, after = now.tile.states[0]["state"], now.state["state"]
    np.testing.assert_allclose(after - before, added, atol=1e-5)
    cols = now.visit.cols
    plain = sum(
        np.outer(k, v)
        for k, v in zip(now.state["phi_K"], with_ones(now.v[cols.start : cols.stop]), strict=True)
    )
    np.testing.assert_allclose(added, plain, rtol=1e-5)


def test_the_state_changes_its_picture_when_it_is_updated() -> None:
    trace = trace_of(kinds()[0])
    names = [op.name for op in trace.program.ops(1)]
    update = names.index("update state")
    style, rect = Style(DARK), QRectF(0, 0, 900, 700)
    states = [trace.snapshot(1, op) for op in (update - 1, update)]
    before, after = (
        painted(lambda p, now=now: paint_board(p, now, style, rect), 900, 700) for now in states
    )
    lay = board_layout(trace.workload, style, rect)
    places = state_places(trace.snapshot(1), lay)
    card = places.state.toRect()
    assert before.copy(card) != after.copy(card)
