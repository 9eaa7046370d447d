"""The rescale is seen: what was summed before shrinks by the trace's alpha, and stays so."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.base.assets import SCENARIOS
from simulator.lesson.reader import find_lesson, load_lesson
from simulator.problem.scenario import Scenario, load_scenario
from simulator.program.op import Gesture
from simulator.program.playback import moved, rescaling
from simulator.run.final_weights import with_weights_so_far
from simulator.run.motion import Motion
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.runs import scenario, trace_of
from tests.ui.panels.test_memory import record_texts
from ui.board import gestures, scene
from ui.board.board import Marks, board_layout, paint_board, paint_moving_board
from ui.board.layout import BoardLayout
from ui.export.frames import new_image, paint_frame
from ui.export.lesson_frames import LessonFrames
from ui.export.storyboard import make_storyboard
from ui.look.draw import mixed
from ui.look.heat import colour_map
from ui.look.theme import DARK, LIGHT, Style
from ui.panels.softmax.painter import key_names, paint_softmax
from ui.panels.softmax.places import softmax_layout
from ui.panels.update_lines import softmax_lines
from ui.window.main_window import MainWindow

pytestmark = pytest.mark.usefixtures("qapp")
RECT = QRectF(0, 0, 900, 620)
STYLE = Style(DARK)


def rescale(trace: Trace, visit: int) -> Motion:
    """Return the rescale of a visit."""
    ops = trace.program.ops(visit)
    op = next(n for n, each in enumerate(ops) if each.gesture is Gesture.SHRINK)
    return Motion(trace.snapshot(visit, op - 1), trace.snapshot(visit, op))


def demo(name: str) -> Trace:
    return simulate(load_scenario(SCENARIOS / f"{name}.toml"))


def shown(image: QImage, at: QPointF, words: np.ndarray) -> float:
    """Return the number whose colour a pixel has, as a share of the map."""
    pixel = np.array(QColor(image.pixel(at.toPoint())).getRgb()[:3])
    shades = np.stack([words[:256] >> shift & 255 for shift in (16, 8, 0)], axis=1).astype(int)
    off = np.abs(shades - pixel).sum(axis=1)
    assert off.min() <= 6, f"no colour of the map: {pixel}"
    return float(off.argmin()) / 255


def board(motion: Motion, share: float, lay: BoardLayout, row: int) -> QImage:
    """Return a frame of the board."""
    image = QImage(RECT.size().toSize(), QImage.Format.Format_RGB32)
    image.fill(QColor(STYLE.theme.panel))
    with QPainter(image) as painter:
        if 0 < share < 1:
            paint_moving_board(painter, motion, share, STYLE, lay, Marks(row))
        else:
            paint_board(painter, motion.at(share), STYLE, RECT, row=row)
    return image


# --- cells -------------------------------------------------------------------------------------


def test_in_frames_of_lesson_5_earlier_cells_shrink_by_the_alpha_of_the_trace() -> None:
    lesson = load_lesson(find_lesson("online-softmax"))
    frames = make_storyboard(lesson, range(5, 6), fps=10)
    step = lesson.steps[5]
    trace, row = simulate(step.scenario), step.row
    assert row is not None
    after = trace.snapshot(step.cursor.visit, step.cursor.op)
    visit = after.visit
    alpha = float(after.tile.alpha[row - visit.rows.start])
    assert alpha == pytest.approx(np.exp(after.tile.m_prev - after.tile.m)[row - visit.rows.start])
    assert 0.1 < alpha < 0.5
    words, found, windows = colour_map(DARK, "P", dim=True), [], []

    def new_window(*args: Any) -> MainWindow:
        windows.append(MainWindow(*args))
        return windows[-1]

    source = LessonFrames(lesson, frames, "dark", (1280, 720), new_window, "numpy")
    try:
        image = new_image(source)
        for k in range(frames.frames):
            moment = frames.moment(k)
            moves = moment.shot.cursor == step.cursor and moment.shot.before is not None
            share = moved(moment.phase) if moves else 1.0
            if k + 1 < frames.frames and not (moves and share < 0.7):  # then light is on the cell
                continue
            paint_frame(source, k, image)
            (window,) = windows
            assert window.size() == image.size()
            cell = window.board.board_layout().place(Cell("S", row, 0))
            place = cell.topLeft() + QPointF(cell.width(), cell.height()) * 0.3
            corner = window.board.mapTo(window, QPoint())
            found.append((share, shown(image, place + corner, words)))
    finally:
        source.close()
    assert after.head is not None
    before = float(np.exp(after.head.s[row, 0] - after.tile.m_prev[row - visit.rows.start]))
    assert found[-1][1] == pytest.approx(alpha * before, abs=0.016)
    between = found[:-1]
    assert len(between) > 8
    for share, value in between:
        assert alpha * before * 0.99 < value < before * 1.01
        assert value == pytest.approx(before * alpha ** rescaling(share).risen, abs=0.016)
    assert all(one[1] >= two[1] for one, two in pairwise(between))


@pytest.mark.parametrize("name", ["flash1", "flash2", "split-kv", "mla", "paged"])
def test_cells_of_every_row_shrink_and_stay_so(name: str) -> None:
    """Alpha is that of the trace; the colours are read from the painted board."""
    trace, words, tried = demo(name), colour_map(DARK, "P", dim=True), 0
    lay = board_layout(trace.workload, STYLE, RECT)
    for visit in range(len(trace.program)):
        ops = trace.program.ops(visit)
        if not any(op.gesture is Gesture.SHRINK for op in ops):
            continue
        motion = rescale(trace, visit)
        now = motion.after
        assert now.head is not None
        for r in np.flatnonzero(now.tile.alpha < 0.9):
            row, keys = now.visit.rows.start + int(r), range(now.visit.cols.start)
            # The row that is explained is not dimmed.
            frames = {share: board(motion, share, lay, row) for share in (0.0, 0.6, 1.0)}
            for key in keys[now.begun_at * trace.workload.cols :]:
                cell = lay.place(Cell("S", row, key))
                at = cell.topLeft() + QPointF(cell.width(), cell.height()) * 0.3
                begin, half, end = (shown(image, at, words) for image in frames.values())
                alpha = float(now.tile.alpha[r])
                exact = float(np.exp(now.head.s[row, key] - now.tile.m_prev[r]))
                assert begin == pytest.approx(exact, abs=0.016)
                assert half == pytest.approx(exact * alpha ** rescaling(0.6).risen, abs=0.016)
                assert end == pytest.approx(exact * alpha, abs=0.016)
                tried += exact > 0.3
    assert tried > 3


def bands(image: QImage, motion: Motion, lay: BoardLayout) -> list[QImage]:
    """Return what is seen of the current rows in S, m, l and O."""
    rows = motion.after.visit.rows
    places = (lay.row_band(name, rows) for name in ("S", "m", "l", "O"))
    return [image.copy(place.toAlignedRect()) for place in places]


FIRST: list[tuple[str, Scenario | str, int]] = [
    ("flash2", "flash2", 0),
    ("flash2, a later row block", "flash2", 10),
    ("flash1", "flash1", 2),
    ("a split", "split-kv", 3),
    ("with a sink", scenario("flash2", nq=8, rows=4, cols=4, scores={"sink_logits": [0.5]}), 0),
]


@pytest.mark.parametrize(("what", "run", "visit"), FIRST, ids=[each[0] for each in FIRST])
def test_on_a_first_tile_nothing_moves(
    what: str, run: Scenario | str, visit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = demo(run) if isinstance(run, str) else trace_of(run)
    motion, row = rescale(trace, visit), trace.program.visit(visit).rows.start
    lay = board_layout(trace.workload, STYLE, RECT)
    begin, end = (bands(board(motion, share, lay, row), motion, lay) for share in (0.0, 1.0))
    drawn, factors = record_texts(monkeypatch, scene), record_texts(monkeypatch, gestures)
    for share in (0.1, 0.5, 0.9):
        assert bands(board(motion, share, lay, row), motion, lay) == begin == end
    assert {each.text for each in drawn} == {"first tile: nothing to rescale yet"}
    assert not factors


def test_where_alpha_is_1_in_every_row_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = demo("flash2")
    still = [
        visit for visit in range(len(trace.program))
        if not trace.program.visit(visit).first and (trace.snapshot(visit).tile.alpha == 1).all()
    ]  # fmt: skip
    assert still
    motion, row = rescale(trace, still[0]), trace.program.visit(still[0]).rows.start
    lay = board_layout(trace.workload, STYLE, RECT)
    begin, end = (bands(board(motion, share, lay, row), motion, lay) for share in (0.0, 1.0))
    drawn, factors = record_texts(monkeypatch, scene), record_texts(monkeypatch, gestures)
    assert bands(board(motion, 0.5, lay, row), motion, lay) == begin == end
    assert {each.text for each in drawn} == {"α = 1 in every row: nothing shrinks"}
    assert not factors


def test_the_factor_that_is_written_is_that_of_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    motion = rescale(demo("flash2"), 13)
    lay = board_layout(motion.after.program.workload, STYLE, RECT)
    drawn = record_texts(monkeypatch, gestures)
    alpha, shares = float(motion.after.tile.alpha[0]), (0.4, 0.5, 0.7, 0.97)
    for share in (0.05, 0.2, *shares):
        board(motion, share, lay, 8)
    by_now = [f"× {alpha ** rescaling(share).risen:.3f}" for share in shares]
    assert [each.text for each in drawn] == by_now, "of the explained row alone, once it is named"
    assert by_now[-1] == f"× {alpha:.3f}"
    box = lay.boxes["S"].united(lay.boxes["m"])
    used = lay.tile(motion.after.visit.rows, range(motion.after.visit.cols.start))
    for each in drawn:
        assert box.contains(each.ink)
        assert not used.intersects(each.ink), "it lies on cells that shrink"


# --- O, and the panel --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "visit"), [("flash2", 13), (scenario("flash2", nq=1, nk=8, cols=2, seed=3), 1)]
)
def test_o_shrinks_by_alpha_and_stays_so(run: Scenario | str, visit: int) -> None:
    trace = demo(run) if isinstance(run, str) else trace_of(run)
    motion, r = rescale(trace, visit), 0
    assert motion.after.tile.alpha[r] < 0.9
    lay = board_layout(trace.workload, STYLE, RECT)
    o, alpha = motion.before.o[r], float(motion.after.tile.alpha[r])
    scale = float(np.abs(motion.before.o).max())
    col = int(np.argmax(np.where(np.abs(o) < 0.75 * scale, np.abs(o), 0)))
    cell = lay.place(Cell("O", motion.after.visit.rows.start + r, col))
    words = colour_map(DARK, "O")
    for share in (0.0, 0.6, 0.8, 1.0):
        found = 1.6 * shown(board(motion, share, lay, -1), cell.center(), words) - 0.8
        assert found == pytest.approx(o[col] / scale * alpha ** rescaling(share).risen, abs=0.02)


@pytest.mark.parametrize("name", ["flash2", "flash1"])
def test_bars_of_the_weights_shrink_by_alpha_and_stay_so(name: str) -> None:
    trace, visit = demo(name), {"flash2": 13, "flash1": 14}[name]
    motion, row = rescale(trace, visit), 8
    now = motion.after
    r = row - now.visit.rows.start
    alpha, rect, style = float(now.tile.alpha[r]), QRectF(0, 0, 560, 480), Style(LIGHT)
    assert 0.1 < alpha < 0.9
    report = row_report(now, row)
    place = softmax_layout(
        rect, style, softmax_lines(now, report), weights=True, names=key_names(now)
    ).weights
    exact = np.exp(report.scores[: now.visit.cols.start] - now.tile.m_prev[r])
    slot = place.width() / len(report.scores)
    heights: list[list[int]] = []
    for share in (0.0, 0.5, 0.65, 0.8, 1.0):
        image = QImage(rect.size().toSize(), QImage.Format.Format_RGB32)
        image.fill(QColor(style.theme.panel))
        state = motion.before if share == 0 else now
        with QPainter(image) as painter:
            paint_softmax(painter, state, report, style, rect, motion=motion, share=share)
        heights.append([])
        for key in range(len(exact)):
            x = round(place.x() + (key + 0.4) * slot)
            rows = range(round(place.top()), round(place.bottom()))
            bar = mixed(style.theme.panel, style.theme.tensor("P"), 0.55).rgb()
            heights[-1].append(sum(image.pixel(x, y) == bar for y in rows))
        expected = exact * alpha ** rescaling(share).risen * place.height()
        np.testing.assert_allclose(heights[-1], expected, atol=1.01)
    tall = np.argmax(exact)
    assert [each[tall] for each in heights] == sorted((h[tall] for h in heights), reverse=True)
    assert heights[0][tall] > heights[1][tall] > heights[3][tall] > heights[4][tall]


def test_weights_divided_by_the_sum_so_far_shrink_with_o_as_well() -> None:
    motion = rescale(demo("flash2"), 13)
    motion = Motion(*(with_weights_so_far(each) for each in (motion.before, motion.after)))
    begin, end = motion.before.so_far, motion.after.so_far
    assert begin is not None
    assert end is not None
    rows, keys = slice(8, 12), slice(0, 9)
    assert (end[8, keys] < 0.5 * begin[8, keys]).all()
    half = motion.used_weights(0.6)
    assert half is not None
    risen = rescaling(0.6).risen
    expected = begin[rows, keys] ** (1 - risen) * end[rows, keys] ** risen
    np.testing.assert_allclose(half, expected, rtol=1e-4)
