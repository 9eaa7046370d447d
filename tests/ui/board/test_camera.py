"""The camera: it eases from view to view, never jumps, and ends where it was sent."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtTest import QTest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from tests.helpers.runs import trace_of
from tests.helpers.waiting import wait_until
from ui.board.camera import between
from ui.board.layout import Viewport, board_layout, clamped, visible_count, zoomed
from ui.board.panel import BoardPanel
from ui.look.theme import DARK, Style

SHAPE = (131_072, 131_072, 128, 128)


@st.composite
def views(draw: st.DrawFn) -> Viewport:
    zoom = 2 ** draw(st.floats(0, 12))
    x, y = (draw(st.floats(0, SHAPE[0])) for _ in range(2))
    return clamped(SHAPE, Viewport(zoom, x, y))


@given(views(), views())
def test_it_passes_from_one_end_to_the_other_without_a_jump(start: Viewport, end: Viewport) -> None:
    way = [between(SHAPE, start, end, n / 200) for n in range(201)]
    assert way[0] == start
    assert way[-1] == end
    ratio = (end.zoom / start.zoom) ** (1 / 200)
    for one, two in pairwise(way):
        assert np.isclose(two.zoom / one.zoom, ratio)
        # Nothing moves by more than a small part of what is seen, on the whole way in or out.
        wide = visible_count(SHAPE[1], min(one.zoom, two.zoom))
        far = max(abs(end.x - start.x), abs(end.y - start.y))
        most = 0.05 * (wide + far)
        assert abs(two.x - one.x) <= most
        assert abs(two.y - one.y) <= most
    for view in way:
        assert clamped(SHAPE, view) == view


@pytest.mark.long
def test_what_is_zoomed_about_stays_where_it_is() -> None:
    w = trace_of(load_scenario(SCENARIOS / "real-scale.toml")).workload
    rect, style = QRectF(0, 0, 1180, 740), Style(DARK)
    start = Viewport()
    box = board_layout(w, style, rect, start).boxes["S"]
    point = QPointF(box.left() + 0.3 * box.width(), box.top() + 0.6 * box.height())
    end = zoomed(w, style, rect, start, point, 40)
    row = 0.6 * SHAPE[0]
    for share in (0.25, 0.5, 0.75):
        view = between(SHAPE, start, end, share)
        seen = (row - view.y) / visible_count(SHAPE[0], view.zoom)
        assert abs(seen - 0.6) < 0.02


@pytest.mark.long
def test_keys_let_it_glide_and_the_wheel_does_not_wait(qapp: object) -> None:
    trace = trace_of(load_scenario(SCENARIOS / "real-scale.toml"))
    panel = BoardPanel()
    panel.resize(1180, 740)
    panel.camera.glides = True
    panel.show()
    panel.show_snapshot(trace.snapshot(7), 0)
    panel.zoom_in()
    panel.zoom_in()
    assert panel.camera.gliding
    assert panel.board_layout().view.zoom == 1
    assert panel.view.zoom == 1.25**2, "two presses are two steps"
    wait_until(lambda: not panel.camera.gliding, QTest.qWait)
    assert panel.board_layout().view == panel.view
    panel.camera.glides = False
    panel.zoom_fit()
    assert panel.board_layout().view == Viewport()
    panel.close()
    panel.deleteLater()
