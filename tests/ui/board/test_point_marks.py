"""What a lesson points at: rings and arrows on the board, and in the margin of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from simulator.lesson.places import Pointer
from simulator.run.snapshot import Cell
from tests.helpers.demos import demo
from tests.helpers.painted import painted_board, pixels
from ui.board.layout import BoardLayout, Viewport, board_layout
from ui.board.panel import BoardPanel
from ui.board.point_marks import PointMark, point_marks
from ui.look.theme import DARK, THEMES, Style

pytestmark = pytest.mark.usefixtures("qapp")

TILE = Pointer(tile=(2, 1))
ROW = Pointer(row=9)
CELL = Pointer(cell=Cell("S", 3, 7))
KINDS = [TILE, ROW, CELL, *(Pointer(cell=Cell(name, 0, 0)) for name in "QKVOml")]
EDGES = [
    Pointer(row=0), Pointer(row=12), Pointer(tile=(0, 0)), Pointer(tile=(3, 4)),
    Pointer(cell=Cell("S", 0, 12)), Pointer(cell=Cell("S", 12, 12)), Pointer(cell=Cell("K", 12, 0)),
    Pointer(cell=Cell("V", 12, 31)), Pointer(cell=Cell("O", 12, 31)), Pointer(cell=Cell("Q", 0, 0)),
]  # fmt: skip


def name_of(pointer: Pointer) -> str:
    return str(pointer.tile or pointer.row or pointer.cell)


def laid(name: str, size: tuple[int, int] = (760, 560), scale: float = 1.0) -> BoardLayout:
    return board_layout(demo(name).workload, Style(DARK, scale), QRectF(0, 0, *size))


def mark(pointer: Pointer, name: str = "flash2", **more: Any) -> PointMark:
    found = point_marks((pointer,), demo(name).workload, laid(name, **more))
    assert len(found) == 1
    return found[0]


# --- where marks stand ------------------------------------------------------------------------


@pytest.mark.sweep(keep=14)
@pytest.mark.parametrize("size", [(420, 320), (760, 560), (1600, 900)], ids=str)
@pytest.mark.parametrize("pointer", [*KINDS, *EDGES], ids=name_of)
def test_marks_are_on_the_board_and_not_over_words(pointer, size) -> None:
    lay, found = laid("flash2", size), mark(pointer, size=size)
    both = found.ring.united(QRectF(found.tip, found.tail).normalized())
    assert lay.rect.contains(both)
    arrow = QRectF((found.tip + found.tail) * 0.5, found.tail).normalized()
    for words in (lay.row_margin, lay.key_margin, lay.legend, lay.header, lay.caption):
        assert not words.intersects(arrow) or words.isNull()


def test_arrows_keep_away_from_other_things_that_are_pointed_at() -> None:
    pair = (Pointer(tile=(1, 2)), Pointer(tile=(2, 1)))
    found = point_marks(pair, demo("flash2").workload, laid("flash2"))
    alone = mark(pair[0])
    assert found[1].ring.contains((alone.tip + alone.tail) * 0.5 + QPointF(-8, 8))
    arrow = QRectF((found[0].tip + found[0].tail) * 0.5, found[0].tail).normalized()
    assert not arrow.intersects(found[1].ring)
    # Of two cells side by side the arrows come from two sides (lesson 5, step 3).
    pair = (Pointer(cell=Cell("l", 8, 0)), Pointer(cell=Cell("O", 8, 0)))
    for scale in (1.0, 1.5):
        lay = laid("flash2", (round(760 * scale), round(560 * scale)), scale)
        boxes = [
            QRectF(one.tip, one.tail).normalized().adjusted(-8, -8, 8, 8)
            for one in point_marks(pair, demo("flash2").workload, lay)
        ]
        assert not boxes[0].intersects(boxes[1])


@pytest.mark.long
@pytest.mark.parametrize(
    "pointer",
    [Pointer(tile=(512, 100)), Pointer(row=131071), Pointer(row=65536),
     Pointer(cell=Cell("S", 131071, 131071)), Pointer(cell=Cell("K", 131071, 127)),
     Pointer(cell=Cell("O", 131071, 127))],
    ids=name_of,
)  # fmt: skip
def test_what_is_smaller_than_a_pixel_can_be_seen(pointer) -> None:
    ring = mark(pointer, "real-scale").ring
    assert min(ring.width(), ring.height()) >= 12


def test_what_is_out_of_sight_has_no_mark() -> None:
    w, style = demo("flash2").workload, Style(DARK)
    lay = board_layout(w, style, QRectF(0, 0, 760, 560), Viewport(3.0, 0, 0))
    away = (Pointer(tile=(3, 4)), Pointer(row=12), Pointer(cell=Cell("S", 12, 12)))
    assert point_marks(away, w, lay) == ()
    assert len(point_marks((Pointer(tile=(0, 0)),), w, lay)) == 1


def test_what_another_run_lacks_has_no_mark() -> None:
    w, lay = demo("flash2").workload, laid("flash2")
    gone = (Pointer(tile=(90, 90)), Pointer(row=900), Pointer(cell=Cell("S", 900, 900)))
    assert point_marks(gone, w, lay) == ()


# --- what is painted --------------------------------------------------------------------------


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize(
    ("name", "visit", "pointer"),
    [("flash2", 5, TILE), ("real-scale", 900, Pointer(tile=(512, 100))), ("flash2", 5, ROW),
     ("causal", 4, CELL), ("naive", 20, TILE)],
)  # fmt: skip
def test_ring_and_arrow_stand_out_from_any_map(theme, name, visit, pointer) -> None:
    snapshot, style, size = demo(name).snapshot(visit), Style(theme), (760, 560)
    plain, marked = (painted_board(snapshot, style, size, points=p) for p in ((), (pointer,)))
    found = mark(pointer, name)
    for at in (found.ring.topLeft() + QPointF(found.ring.width() / 2, 0),
               (found.tip + found.tail) * 0.5):  # fmt: skip
        assert marked.pixelColor(at.toPoint()).name() == theme.text.lower()
    changed = pixels(plain) != pixels(marked)
    # A casing beside it: one of the two is seen on any ground.
    across, top = round(found.ring.center().x()), round(found.ring.top())
    casing, light = QColor(theme.empty), []
    for y in range(top - 4, top - 1):
        colour = marked.pixelColor(across, y)
        light.append(abs(colour.lightness() - casing.lightness()))
    assert min(light) < 12
    around = found.ring.united(QRectF(found.tip, found.tail).normalized())
    box = around.adjusted(-9, -9, 9, 9).toAlignedRect() & marked.rect()
    changed[box.top() : box.bottom() + 1, box.left() : box.right() + 1] = False
    assert not changed.any()


# --- panels -----------------------------------------------------------------------------------


def test_the_board_turns_to_what_is_pointed_at_and_says_it(qtbot: QtBot) -> None:
    panel = BoardPanel()
    qtbot.addWidget(panel)
    panel.resize(900, 700)
    snapshot = demo("causal").snapshot(4)
    panel.show_snapshot(snapshot, 3)
    for _ in range(8):
        panel.zoom_in()
    before = panel.view
    far = Pointer(cell=Cell("S", 60, 2))
    panel.show_snapshot(snapshot, 3, points=(far, Pointer(line=2)))
    assert panel.view != before
    assert (
        panel.board_layout().visible_rows().start <= 60 < panel.board_layout().visible_rows().stop
    )
    assert "pointed at: S[60, 2]" in panel.accessibleDescription()
    panel.zoom_fit()
    panel.show_snapshot(snapshot, 3, points=(far, Pointer(line=2)))
    assert panel.view == Viewport()  # the user's own choice stays while the step does
    panel.show_snapshot(snapshot, 3)
    assert "pointed at" not in panel.accessibleDescription()


def test_the_code_panel_turns_to_the_line_and_forgets_it(open_window, qtbot: QtBot) -> None:
    window = open_window("flash2")
    window.desk.take("algorithm")
    window.session.settle()
    panel = window.docks.panel("code")
    view = replace(window.session.view, points=(Pointer(line=13),))
    panel.show_tab(list(panel.views)[2])
    panel.show_view(view)
    page = panel.paper.page
    assert page.pointed == (13,)
    assert panel.paper.isVisible()
    bar, box = panel.paper.verticalScrollBar(), page.laid.rows[13].box
    assert bar.value() <= box.top()
    assert box.bottom() <= bar.value() + panel.paper.viewport().height()
    panel.show_tab(list(panel.views)[2])
    panel.show_view(view)
    assert not panel.paper.isVisible()  # who turned away from it is let be
    panel.show_view(replace(view, points=(Pointer(line=99),)))  # of another paper
    panel.show_view(replace(view, points=()))
    assert page.pointed == ()
