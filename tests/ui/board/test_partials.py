"""What splits leave, drawn below their keys, and what a pointer reads there."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from simulator.base.assets import SCENARIOS
from simulator.run.motion import Motion
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.painted import channels, painted_board
from tests.ui.board.test_board_panel import LEFT, mouse
from ui.board.board import Marks, paint_moving_board
from ui.board.layout import board_layout
from ui.board.panel import BoardPanel
from ui.board.partials import partial_at, split_places
from ui.board.words import describe
from ui.look.theme import DARK, THEMES, Style, load_fonts

SIZES = [(420, 320), (690, 560), (1180, 740), (1800, 1000)]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulate(SCENARIOS / "split-kv.toml")


@pytest.fixture
def panel(qtbot: QtBot, trace: Trace) -> BoardPanel:
    load_fonts()
    panel = BoardPanel()
    qtbot.addWidget(panel)
    panel.resize(900, 700)
    panel.show_snapshot(trace.snapshot(18, 4), 2)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


@pytest.mark.parametrize("size", SIZES)
def test_each_split_stands_below_its_keys_and_inside_the_board(qapp, trace, size):
    now, style = trace.snapshot(18, 4), Style(THEMES["dark"])
    lay = board_layout(trace.workload, style, QRectF(0, 0, *size))
    places = split_places(now, lay)
    assert list(places) == [0, 1, 2]
    boxes = [*lay.boxes.values(), lay.caption, lay.legend, lay.split_names]
    for split, place in places.items():
        keys = lay.col_band("V", trace.workload.split_keys(split))
        assert keys.left() <= place.left() < place.right() <= keys.right()
        assert lay.rect.contains(place)
        assert not any(place.intersects(box) for box in boxes)
    assert lay.rect.contains(lay.split_names)


def test_a_part_appears_with_its_store(qapp, trace):
    size, style = (900, 700), Style(THEMES["dark"])
    lay = board_layout(trace.workload, style, QRectF(0, 0, *size))
    last = len(trace.program.ops(2)) - 1
    before, after = (
        channels(painted_board(trace.snapshot(2, op), style, size)) for op in (last - 1, last)
    )
    for split, place in split_places(trace.snapshot(2), lay).items():
        part = np.s_[int(place.top()) : int(place.bottom()), int(place.left()) : int(place.right())]
        assert (before[part] != after[part]).any() == (split == 0)


def test_the_pointer_reads_what_a_split_left(panel, trace):
    lay, now = panel.board_layout(), trace.snapshot(18, 4)
    place = split_places(now, lay)[1]
    for x, cell in ((0.05, Cell("LSE_partial", 2, 0, 1)), (0.99, Cell("O_partial", 2, 7, 1))):
        at = QPointF(place.left() + x * place.width(), place.top() + 0.6 * place.height())
        assert partial_at(now, lay, at) == cell
        with_move = at.toPoint()
        mouse(panel, mouse_move(), with_move, LEFT.NoButton)
        assert panel.hit == cell
        assert describe(now, cell).startswith(f"{cell.tensor}[1, 2")
        assert not panel.grab().isNull()


def mouse_move():
    from PySide6.QtCore import QEvent

    return QEvent.Type.MouseMove


def test_a_press_on_a_part_chooses_its_row_and_cell(panel, qtbot):
    from PySide6.QtCore import QEvent

    lay = panel.board_layout()
    snapshot = simulate(SCENARIOS / "split-kv.toml").snapshot(18, 4)
    place = split_places(snapshot, lay)[2]
    at = QPointF(place.right() - 3, place.top() + 3).toPoint()
    rows, cells = [], []
    panel.row_chosen.connect(rows.append)
    panel.cell_chosen.connect(cells.append)
    mouse(panel, QEvent.Type.MouseButtonPress, at, LEFT)
    mouse(panel, QEvent.Type.MouseButtonRelease, at, LEFT.NoButton)
    assert rows == [0]
    assert cells == [Cell("O_partial", 0, 7, 2)]
    panel.show_snapshot(snapshot, 0, cells[0])
    assert not panel.grab().isNull()


def test_what_is_joined_leaves_the_splits_and_what_is_divided_stays_in_o(qapp, trace):
    first = next(k for k in range(len(trace.program)) if trace.program.visit(k).launch)
    lay = board_layout(trace.workload, Style(DARK), QRectF(0, 0, 1200, 760))
    box = lay.partials.united(lay.boxes["V"]).toRect()
    moved = {}
    for n, op in enumerate(trace.program.ops(first)):
        if n == 0 or op.moves:
            continue
        motion = Motion(trace.snapshot(first, n - 1), trace.snapshot(first, n))
        pictures = []
        for share in (0.3, 0.55):
            image = QImage(1200, 760, QImage.Format.Format_RGB32)
            image.fill(QColor(DARK.panel))
            with QPainter(image) as painter:
                paint_moving_board(painter, motion, share, lay, Marks(row=0))
            pictures.append(image.copy(box))
        moved[op.name] = pictures[0] != pictures[1]
    assert moved.pop("normalise") is False
    assert moved
    assert all(moved.values())
