"""Where everything on the board lies, and how large its words are."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF

from simulator.base.assets import ASSETS
from simulator.problem.scenario import load_scenario
from simulator.problem.workload import Workload, resolve
from simulator.program.algorithms import TENSORS
from simulator.program.tensors import symbol
from simulator.run.snapshot import Cell
from tests.helpers.runs import scenario
from tests.ui.board.test_board import passage, workload
from ui.board.layout import Viewport, board_layout, clamped, locate, zoomed
from ui.look.draw import text_width
from ui.look.theme import DARK, Style

pytestmark = pytest.mark.usefixtures("qapp")


SIZES = st.integers(1, 600)
RECTS = st.tuples(
    st.integers(420, 3000), st.integers(320, 2000), st.sampled_from([1.0, 1.25, 1.5, 2.0])
)


@given(Nq=SIZES, Nk=SIZES, d=st.integers(1, 300), dv=st.integers(1, 300), rect=RECTS)
def test_everything_is_inside_and_nothing_overlaps(Nq, Nk, d, dv, rect):
    width, height, scale = rect
    _check_apart(workload(Nq, Nk, d, dv), QRectF(7, 5, width, height), Style(DARK, scale))


@given(rect=RECTS, name=st.sampled_from(["flash2", "real-scale", "causal"]))
def test_demos_have_room_for_tokens_legend_and_inset(rect, name):
    width, height, scale = rect
    w = resolve(load_scenario(ASSETS / "scenarios" / f"{name}.toml"))
    _check_apart(w, QRectF(0, 0, width, height), Style(DARK, scale))


def _check_apart(w: Workload, room: QRectF, style: Style, view: Viewport | None = None) -> None:
    lay = board_layout(w, style, room, view)
    parts = {f"box {name}": box for name, box in lay.boxes.items()}
    parts |= {f"title {name}": box for name, box in lay.labels.items()}
    for name in ("row_margin", "key_margin", "header", "caption", "inset", "legend"):
        parts[name] = getattr(lay, name)
    shown = {name: rect for name, rect in parts.items() if not rect.isNull()}
    for name, rect in shown.items():
        assert rect.width() > 0, name
        assert rect.height() > 0, name
        assert room.adjusted(-1, -1, 1, 1).contains(rect), f"{name} {rect} outside {room}"
    for (one, a), (other, b) in itertools.combinations(shown.items(), 2):
        shared = a.intersected(b)
        assert min(shared.width(), shared.height()) <= 1, f"{one} {a} overlaps {other} {b}"
    assert min(lay.boxes["S"].width(), lay.boxes["S"].height()) >= 10 * style.scale
    for name in lay.labels:
        title = f"{name}ᵀ" if "key" in TENSORS[name].axes else symbol(name)
        assert text_width(style.text_font(13 * lay.growth, bold=True), title) <= (
            lay.labels[name].width()
        )


@given(Nq=SIZES, Nk=SIZES, d=st.integers(1, 64), rect=RECTS)
def test_gradients_lie_outside_of_what_they_are_of(Nq, Nk, d, rect):
    """Nothing overlaps, every title fits, and both halves of a strip are of one size."""
    w = resolve(scenario("flash2-backward", nq=Nq, nk=Nk, d=d, rows=16, cols=24))
    style, room = Style(DARK, rect[2]), QRectF(0, 0, *rect[:2])
    _check_apart(w, room, style)
    lay = board_layout(w, style, room)
    boxes = lay.boxes
    if min(rect[0] / 420, rect[1] / 320) < rect[2]:
        assert not {"dQ", "dK", "dV", "dO", "D", "LSE"} & {*boxes}
        assert lay.box_of("dQ_acc") == "Q"
        assert not lay.box_of("D")
        return
    for name, other in (("Q", "dQ"), ("K", "dK"), ("V", "dV"), ("O", "dO")):
        assert boxes[name].size() == boxes[other].size()
        middle = boxes["S"].center()
        near, far = (boxes[each].center() - middle for each in (name, other))
        assert far.manhattanLength() > near.manhattanLength()
    assert boxes["LSE"].right() <= boxes["D"].left() < boxes["O"].left()
    for name in ("dQ", "dK", "dP", "dS", "dQ_acc"):
        box = boxes[lay.box_of(name)]
        assert box == boxes[{"dP": "S", "dS": "S", "dQ_acc": "dQ"}.get(name, name)]


@given(
    Nq=SIZES, Nk=SIZES, rect=RECTS, zoom=st.floats(1, 40),
    at=st.tuples(st.floats(0, 1), st.floats(0, 1)), pick=st.tuples(SIZES, SIZES),
)  # fmt: skip
def test_locate_finds_the_cell_that_is_drawn(Nq, Nk, rect, zoom, at, pick):
    w = workload(Nq, Nk, 8, 5)
    lay = board_layout(
        w, Style(DARK, rect[2]), QRectF(0, 0, *rect[:2]), Viewport(zoom, at[0] * Nk, at[1] * Nq)
    )
    rows, keys = lay.visible_rows(), lay.visible_keys()
    row, key = rows[pick[0] % len(rows)], keys[pick[1] % len(keys)]
    y = (max(lay.row_y(row), lay.row_y(lay.view.y)) + _end(lay.row_y, row, lay.view.y, 0, lay)) / 2
    x = (max(lay.col_x(key), lay.col_x(lay.view.x)) + _end(lay.col_x, key, lay.view.x, 1, lay)) / 2
    assert locate(lay, QPointF(x, y)) == Cell("S", row, key)
    for name in ("Q", "O", "m"):
        box, depth = lay.boxes[name], lay.depth(name)
        col = pick[0] % depth
        across = box.left() + (col + 0.5) * box.width() / depth
        assert locate(lay, QPointF(across, y)) == Cell(name, row, col)
    for name in ("K", "V"):
        box, depth = lay.boxes[name], lay.depth(name)
        col = pick[1] % depth
        down = box.top() + (col + 0.5) * box.height() / depth
        assert locate(lay, QPointF(x, down)) == Cell(name, key, col)


def _end(place: Any, index: int, start: float, axis: int, lay: Any) -> float:
    return float(min(place(index + 1), place(start + lay.visible[axis])))


def test_locate_finds_nothing_beside_the_boxes():
    lay = board_layout(workload(64, 64), Style(DARK), QRectF(0, 0, 900, 700))
    assert locate(lay, QPointF(1, 1)) is None
    assert locate(lay, lay.boxes["S"].topLeft() - QPointF(4, 4)) is None


@given(Nq=SIZES, Nk=SIZES, zoom=st.floats(0.1, 1e6), x=st.floats(-1e6, 1e6), y=st.floats(-1e6, 1e6))
def test_a_view_never_leaves_the_matrix(Nq, Nk, zoom, x, y):
    shape = (Nq, Nk, 8, 8)
    view = clamped(shape, Viewport(zoom, x, y))
    lay = board_layout(workload(Nq, Nk), Style(DARK), QRectF(0, 0, 900, 700), view)
    assert lay.view == view
    assert 0 <= view.y <= Nq - lay.visible[0] + 1e-6
    assert 0 <= view.x <= Nk - lay.visible[1] + 1e-6


def test_zooming_keeps_the_cell_under_the_pointer():
    trace, style, room = passage(), Style(DARK), QRectF(0, 0, 1180, 740)
    view = Viewport()
    lay = board_layout(trace.workload, style, room, view)
    point = lay.boxes["S"].topLeft() + QPointF(
        0.4 * lay.boxes["S"].width(), 0.6 * lay.boxes["S"].height()
    )
    before = locate(lay, point)
    for _ in range(20):  # on the way tokens appear beside the matrices and move the boxes
        view = zoomed(trace.workload, style, room, view, point, 1.2)
    lay = board_layout(trace.workload, style, room, view)
    assert lay.tokens
    assert view.zoom > 20
    assert locate(lay, point) == before


# --- numbers, tokens and the magnifier --------------------------------------------------------


@pytest.mark.parametrize("size", [(408, 721), (584, 706), (1280, 420), (760, 520)])
@pytest.mark.parametrize("scale", [1.0, 1.25, 1.5, 1.75, 2.0])
def test_tokens_are_the_last_thing_to_go(scale, size):
    w = resolve(load_scenario(ASSETS / "scenarios" / "flash2.toml"))
    style = Style(DARK, scale)
    lay = board_layout(w, style, QRectF(0, 0, *size))
    assert lay.tokens
    assert lay.token_step == 1
    assert lay.token_size * scale >= 10
    assert lay.token_size * scale <= min(lay.cell) + 1e-6
    wide = text_width(style.text_font(lay.token_size), "tired")
    assert wide <= min(lay.row_margin.width(), lay.key_margin.height())
    _check_apart(w, QRectF(0, 0, *size), style)
