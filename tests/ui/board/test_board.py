"""The board: geometry, what is painted where, and what it says."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.base.assets import ASSETS
from simulator.problem.scenario import load_scenario, parse_scenario
from simulator.problem.workload import Workload, resolve
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.demos import demo
from tests.helpers.painted import painted_board
from tests.helpers.tile_states import tile_states
from ui.board.board import paint_board
from ui.board.layout import Viewport, board_layout
from ui.board.middle import middle_at
from ui.look.heat import colour_map, pooled, prefers_white
from ui.look.theme import DARK, THEMES, Style

pytestmark = pytest.mark.usefixtures("qapp")


@cache
def passage() -> Trace:
    tables: dict[str, Any] = {
        "tiling": {"rows": 64, "cols": 64},
        "input": {"source": "capture", "name": "passage-layer1", "head": [3]},
    }
    return simulate(parse_scenario(tables))


@cache
def blocks_of_4096(algorithm: str = "flash2") -> Trace:
    tables: dict[str, Any] = {
        "attention": {"algorithm": algorithm, "seqlen_q": 4096, "head_dim": 16},
        "mask": {"causal": True},
        "tiling": {"rows": 128, "cols": 128},
    }
    return simulate(parse_scenario(tables))


def workload(Nq: int, Nk: int, d: int = 32, dv: int = 32, tile: int = 16) -> Workload:
    tables: dict[str, Any] = {
        "attention": {"seqlen_q": Nq, "seqlen_k": Nk, "head_dim": d, "value_dim": dv},
        "tiling": {"rows": tile, "cols": tile},
    }
    return resolve(parse_scenario(tables))


def colours(image: QImage, rect: QRectF) -> set[str]:
    part = image.copy(rect.toRect())
    words = np.frombuffer(part.constBits(), dtype=np.uint32)  # RGB32 has no padding
    return {QColor(int(word) & 0xFFFFFF).name() for word in np.unique(words)}


# --- what is shown ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["flash1", "flash2", "naive", "causal", "window-sinks"])
def test_past_areas_cover_exactly_the_used_tiles(name: str) -> None:
    trace = demo(name)
    grid = trace.workload.grid
    for visit in range(0, len(trace), 3):
        snapshot = trace.snapshot(visit, 0)
        used = tile_states(snapshot.program, snapshot.visit) == 3
        if snapshot.stores_scores and snapshot.visit.launch == 2:
            used[snapshot.visit.i, snapshot.visit.j] = True  # its P lies in HBM as well
        kinds = grid.kinds()
        for i, j in itertools.product(range(grid.Tr), range(grid.Tc)):
            rows, cols = grid.row_range(i), grid.col_range(j)
            covering = [
                area
                for area in middle_at(snapshot).areas(snapshot.program, snapshot.visit)
                if rows.start in area.rows and cols.start in area.cols
            ]
            assert len(covering) <= 1
            worked_on = bool(covering) and (snapshot.stores_scores or kinds[i, j] > 0)
            assert worked_on == bool(used[i, j]), (visit, i, j)


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_tiles_look_like_their_states(theme: Any) -> None:
    trace, style = demo("causal"), Style(theme)
    snapshot = trace.snapshot(4, 4)  # tile (2, 1)
    w, room = trace.workload, QRectF(0, 0, 1180, 740)
    image = painted_board(snapshot, style, (1180, 740))
    lay = board_layout(w, style, room)

    def tile(i: int, j: int) -> QRectF:
        return lay.tile(w.grid.row_range(i), w.grid.col_range(j))

    current = tile(2, 1)
    middle_of_edge = image.pixelColor(round(current.center().x()), round(current.top()))
    assert middle_of_edge == QColor(theme.current)
    assert colours(image, tile(3, 0).adjusted(3, 3, -3, -3)) == {QColor(theme.empty).name()}
    hatched = colours(image, tile(0, 2).adjusted(3, 3, -3, -3))
    assert QColor(theme.empty).name() in hatched
    assert len(hatched) > 1  # the lines
    dim = {QColor(int(word) & 0xFFFFFF).name() for word in colour_map(theme, "P", dim=True)[:256]}
    assert colours(image, tile(2, 0).adjusted(3, 3, -3, -3)) <= dim
    bright = {QColor(int(word) & 0xFFFFFF).name() for word in colour_map(theme, "P")[:256]}
    assert colours(image, current.adjusted(6, 6, -6, -6)) <= bright
    assert not bright & dim


def test_current_cells_have_the_colours_of_their_numbers() -> None:
    trace, style = demo("flash2"), Style(DARK)
    snapshot = trace.snapshot(7)
    image = painted_board(snapshot, style, (1180, 740))
    lay = board_layout(trace.workload, style, QRectF(0, 0, 1180, 740))
    words, weights = colour_map(DARK, "P"), snapshot.weights
    assert weights is not None
    for (r, c), value in np.ndenumerate(weights):
        row, key = snapshot.visit.rows[r], snapshot.visit.cols[c]
        x, y = lay.col_x(key + 0.5), lay.row_y(row + 0.5)
        seen = image.pixelColor(round(x), round(y))
        expected = QColor(int(words[int(value * 255)]) & 0xFFFFFF)
        assert seen == expected, (row, key)


def test_a_number_that_the_edge_would_cut_is_left_out() -> None:
    trace, style, room = demo("flash2"), Style(DARK), QRectF(0, 0, 1180, 740)
    view = Viewport(3, 4.6, 5)
    lay = board_layout(trace.workload, style, room, view)
    image = QImage(1180, 740, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        paint_board(painter, trace.snapshot(len(trace) - 1), style, room, view=view)
    box, width = lay.boxes["S"], lay.cell[0]

    def cell(row: int, key: int) -> set[str]:
        left = max(lay.col_x(key), box.left())
        rect = QRectF(left, lay.row_y(row), lay.col_x(key) + width - left, lay.cell[1])
        return colours(image, rect.adjusted(3, 3, -3, -3))

    assert len(cell(7, 4)) == 1
    assert len(cell(7, 5)) > 1


def test_what_does_not_exist_yet_is_empty() -> None:
    trace, style = demo("causal"), Style(DARK)
    image = painted_board(trace.snapshot(0, 0), style, (1180, 740))
    lay = board_layout(trace.workload, style, QRectF(0, 0, 1180, 740))
    below = range(16, 64)
    for name in ("m", "l", "O"):
        inner = lay.row_band(name, below).adjusted(2, 4, -2, -2)
        assert colours(image, inner) == {QColor(DARK.empty).name()}


@pytest.mark.parametrize("algorithm", ["flash2", "flash1", "naive"])
def test_large_problems_colour_tiles_by_state(algorithm: str) -> None:
    trace, style = blocks_of_4096(algorithm), Style(DARK)
    index = trace.program.index(0, 20, 10)
    assert index is not None
    snapshot = trace.snapshot(index, 2)
    assert snapshot.head is None
    image = painted_board(snapshot, style, (1180, 740))
    lay = board_layout(trace.workload, style, QRectF(0, 0, 1180, 740))
    grid = trace.workload.grid

    def ground(i: int, j: int) -> set[str]:
        return colours(image, lay.tile(grid.row_range(i), grid.col_range(j)).adjusted(3, 3, -3, -3))

    used, pending = ground(18, 4), ground(30, 22)
    assert len(used) == 1
    assert pending == {QColor(DARK.empty).name()}
    assert used != pending
    if algorithm == "naive":
        assert len(ground(4, 18)) == 1
    else:
        assert len(ground(4, 25) | ground(5, 26)) > 1  # hatched
    middle = lay.inset.adjusted(8, 8, -8, -40)
    assert len(colours(image, middle)) > 20  # the tile's own numbers


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ["flash2", "naive", "flash1", "large-logits", "window-sinks"])
def test_every_op_paints_inside_its_room(name: str) -> None:
    trace = demo(name)
    style = Style(DARK, 1.5)
    room = QRectF(20, 30, 640, 520)
    for visit in {0, len(trace) // 2, len(trace) - 1}:
        for op in range(len(trace.program.ops(visit))):
            image = QImage(680, 580, QImage.Format.Format_RGB32)
            image.fill(QColor("#123456"))
            painter = QPainter(image)
            paint_board(
                painter, trace.snapshot(visit, op), style, room,
                view=Viewport(1.7, 3, 2), row=4, hover=Cell("S", 2, 2),
            )  # fmt: skip
            painter.end()
            for outside in (QRectF(0, 0, 680, 30), QRectF(0, 0, 20, 580), QRectF(660, 0, 20, 580)):
                assert colours(image, outside) == {"#123456"}


def test_a_tile_of_less_than_a_pixel_is_still_marked() -> None:
    w = resolve(load_scenario(ASSETS / "scenarios" / "real-scale.toml"))
    lay = board_layout(w, Style(DARK), QRectF(0, 0, 620, 480))
    tile = lay.tile(w.grid.row_range(700), w.grid.col_range(600))
    assert (tile.width(), tile.height()) == (1, 1)


# --- colours ----------------------------------------------------------------------------------


def test_numbers_are_written_in_the_ink_that_can_be_read() -> None:
    words = np.array([[0xFF440154, 0xFFFDE725, 0xFFFFFFFF, 0xFF000000]], dtype=np.uint32)
    assert prefers_white(words).tolist() == [[True, False, False, True]]


@pytest.mark.parametrize("rows", [5, 64, 1000, 4099])
def test_pooled_rows_are_means(rows: int) -> None:
    values = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    out = pooled(values, 64)
    run = max(rows // 64, 1)
    assert len(out) == -(-rows // run)
    np.testing.assert_allclose(out[0], values[:run].mean(axis=0))
    np.testing.assert_allclose(out[-1], values[(len(out) - 1) * run :].mean(axis=0), rtol=1e-5)
