"""The positions dock in the window: clocks, one vector at all places, scores over distance."""

import cmath
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor

from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.study.positions.choices import FACTOR, SHIFT, TRAINED
from simulator.study.positions.scores import positions_state
from tests.helpers.by_hand import press
from tests.helpers.painted import painted
from ui.kit.shapes import LINE
from ui.look.theme import DARK, Style
from ui.panels.positions.study import Clocks, Dials, Maps, shown_pairs, shown_rows

PANEL, DEMO = "positions", "inspector"


def state_of(row: int = 3, rope: bool = True, hands: str = "angles"):
    from simulator.base.assets import SCENARIOS
    from simulator.problem.scenario import load_scenario

    said = load_scenario(SCENARIOS / "inspector.toml")
    if rope:
        said = with_values(said, {"position": {"kind": "rope", "offset": 2}})
    w = resolve(said)
    state = positions_state(w, read_inputs(w), 1, row, SHIFT, TRAINED, FACTOR)
    return replace(state, hands=hands)


def test_it_is_made_when_it_is_opened_on_the_row_of_the_board(window, panel, qapp):
    assert window.docks["positions"].isVisible()
    assert panel.state.row == window.session.view.report.row
    assert "This run has no rotary positions" in panel.accessibleDescription()
    window.session.choose_row(4)
    window.session.settle()
    assert panel.state.row == 4


def test_each_view_shows_its_part_and_its_choices(window, panel):
    for view, part, choice in (("maps", Maps, "shift"), ("far", None, "trained"),
                               ("clocks", Clocks, "hands")):  # fmt: skip
        press(panel, "view", view)
        assert (panel.plot.isVisible(), panel.picture.isVisible()) == (part is None, bool(part))
        if part is not None:
            assert isinstance(panel.study.picture(panel.state), part)
        assert panel.bar.lists[choice].isVisible()
    press(panel, "view", "dials")
    assert panel.picture.isVisible()
    assert panel.bar.lists["trained"].isVisible()
    panel.take_choices(ChooseTable(positions="far"))
    assert panel.state.view == "far"
    panel.choose("factor", "16")
    window.session.settle()
    assert panel.plot.model.x_range == (0.0, 16 * 2048)
    assert len(panel.plot.model.curves) == 4
    assert "0 of 16 with interpolation" in panel.plot.model.note
    panel.choose("shift", "16")
    window.session.settle()
    press(panel, "view", "maps")
    assert "shift of all places by 16 " in panel.accessibleDescription()


def test_only_angles_that_training_has_not_shown_are_red(qapp):
    wide, high = 600, 200
    rect = QRectF(0, 0, wide, high)
    image = painted(lambda to: Dials(state_of()).paint(to, Style(DARK), rect), wide, high)
    bad, top = QColor(DARK.bad).rgba(), 2 * LINE + 2
    down = (high - top) / 4  # a row for each of RoPE, interpolation, NTK-aware and YaRN
    red = [0, 0, 0, 0]
    for y in range(round(top), high):
        row = min(int((y - top) / down), 3)
        red[row] += sum(image.pixel(x, y) == bad for x in range(wide))
    assert red[0] > red[2] > 20
    assert red[1] == red[3] == 0


def test_hands_are_the_queries_before_and_after_they_are_turned():
    plain, turned = state_of(rope=False), state_of(rope=True, hands="turned")
    before = state_of(rope=True, hands="before")
    own = np.abs(plain.pairs[3]).max()
    for pair in range(16):
        # What was turned when it was read is turned back: float16 rounds it once.
        raw = complex(plain.pairs[3][pair]) / own
        assert before.hand(3, pair) == pytest.approx(raw, abs=2e-3)
        angle = (3 + 2) * 10000 ** (-2 * pair / 32)
        assert turned.hand(3, pair) == pytest.approx(raw * cmath.exp(1j * angle), abs=2e-3)
        angles = state_of(rope=True).hand(3, pair)
        assert angles == pytest.approx(cmath.exp(1j * angle))


def test_rows_and_pairs_that_have_clocks():
    state = state_of(row=17)
    assert shown_rows(state, 5) == [13, 14, 15, 16, 17]
    assert shown_rows(state_of(row=0), 3) == [0, 1, 2]
    assert shown_pairs(state, 99) == list(range(16))
    assert shown_pairs(state, 4) == [0, 5, 10, 15]
