"""Tokens on the stage: each is written, as large as the last row needs, with a line to its cell."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF

from simulator.base.assets import SCENARIOS
from simulator.run.trace import simulate
from ui.board.beside import LINE, apart
from ui.board.layout import board_layout
from ui.look.theme import DARK, STAGE_LABEL, Style, stage_label, stage_scale


@given(
    count=st.integers(1, 40),
    start=st.floats(-100, 100),
    cell=st.floats(1, 60),
    line=st.floats(5, 40),
    spare=st.floats(0, 300),
)
def test_tokens_do_not_overlap_and_stay_as_near_as_they_can(count, start, cell, line, spare):
    assume(abs(cell - line) > 1e-3)
    middles = [start + n * cell for n in range(count)]
    low = start - spare
    high = low + count * max(line, cell) + spare
    places = apart(middles, line, low, high)
    assert len(places) == count
    assert all(after - before >= min(line, cell) - 1e-6 for before, after in pairwise(places))
    if cell >= line:
        assert places == middles
    else:
        assert all(after - before == pytest.approx(line) for before, after in pairwise(places))
        if count > 1:
            assert low - 1e-6 <= places[0] - line / 2
            assert places[-1] + line / 2 <= high + 1e-6


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (3840, 2160)], ids=str)
def test_every_token_is_written_where_cells_are_low(qapp, size) -> None:
    trace = simulate(SCENARIOS / "inspector.toml")
    w = trace.workload
    scale = stage_scale(*size) * max(1.0, int(4 * min(size[0] / 1920, size[1] / 1080)) / 4)
    place = QRectF(0, 0, 0.39 * size[0], 0.72 * size[1])
    stage = Style(DARK, scale, stage_label(*size))
    lay = board_layout(w, stage, place)
    assert lay.tokens
    assert lay.token_step == 1
    assert lay.cell[1] < LINE * lay.token_size * scale  # or nothing would be apart
    assert lay.token_size * scale >= STAGE_LABEL * size[1] - 1
    assert lay.token_room.height() >= w.seqlen_q * LINE * lay.token_size * scale
    desk = board_layout(w, Style(DARK, scale), place)
    assert desk.token_room.isNull()
    assert desk.token_size < lay.token_size
