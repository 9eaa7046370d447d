"""The rescale is seen: what was summed before shrinks by the trace's alpha, and stays so."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.lesson.course import find_lesson
from simulator.lesson.reader import load_lesson
from simulator.problem.scenario import Scenario
from simulator.program.op import Gesture
from simulator.program.playback import (
    MOVING,
    SECONDS_OF_NOTHING,
    SECONDS_PER_RESCALE,
    Rescaling,
    in_two_states,
    moved,
    played,
    rescaling,
    stood,
)
from simulator.run.final_weights import with_weights_so_far
from simulator.run.motion import Motion
from simulator.run.rescales import rescale_seconds, row_at_hand
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.demos import demo
from tests.helpers.painted import record_texts
from tests.helpers.runs import scenario, trace_of
from ui.board import gestures, scene
from ui.board.board import Marks, board_layout, paint_board, paint_moving_board
from ui.board.camera import at_row
from ui.board.layout import BoardLayout, Viewport, visible_count
from ui.export.frames import new_image, paint_frame
from ui.export.lesson_frames import LessonFrames
from ui.export.storyboard import make_storyboard
from ui.look.draw import mixed
from ui.look.formula import formula
from ui.look.heat import colour_map
from ui.look.lit import alpha_boxes
from ui.look.theme import DARK, LIGHT, Style
from ui.panels.softmax.model import sum_by_now
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
            paint_moving_board(painter, motion, share, lay, Marks(row))
        else:
            paint_board(painter, motion.at(share), STYLE, RECT, row=row)
    return image


# --- in time -----------------------------------------------------------------------------------


def test_the_parts_of_a_rescale_follow_one_another_in_three_seconds():
    def at(ms: float) -> Rescaling:
        return rescaling((ms + 250) / (1000 * SECONDS_PER_RESCALE * MOVING))

    assert (at(-250).near, at(0).near, at(3000).near) == (0, 1, 1)
    assert at(-125).near == pytest.approx(0.5)
    assert (at(0).passed, at(250).passed, at(600).named) == (0, 1, 0)
    assert at(700).named > 1, "it swings"
    assert at(800).named == pytest.approx(1)
    assert (at(900).risen, at(1600).risen, at(2300).risen) == pytest.approx((0, 0.5, 1))
    assert [at(ms).lit for ms in (599, 601, 2399, 2401)] == [False, True, True, False]
    assert (at(2400).joined, at(3000).joined) == pytest.approx((0, 1))
    assert stood(3, at(2400 + 160).joined) == pytest.approx([1, 0, 0])
    assert stood(3, at(2400 + 480).joined) == pytest.approx([1, 1, 1])
    assert (at(2400).gone, at(2700).gone) == (0, 1)


@pytest.mark.parametrize(
    ("speed", "lasts", "first", "last"),
    [(1, 3.9, -250, None), (4, 3.9, -250, None), (5, 1.4, 900, 2300), (10, 1.4, 900, 2300)],
)
def test_of_a_fast_rescale_the_press_alone_is_played(speed, lasts, first, last):
    now = rescale(demo("flash2"), 13).after
    assert rescale_seconds(now, speed) == lasts
    ends = (played(share, lasts / speed) for share in (0.0, 0.999999))
    begin, end = (1000 * SECONDS_PER_RESCALE * share - 250 for share in ends)
    assert begin == pytest.approx(first)
    assert last is None or end == pytest.approx(last, abs=0.01)
    assert rescale_seconds(now, 20) == SECONDS_OF_NOTHING
    assert played(0.0, SECONDS_OF_NOTHING / 20) == 1


def test_without_motion_two_states_are_shown_and_then_the_end():
    def ms(share: float) -> float:
        return 1000 * SECONDS_PER_RESCALE * in_two_states(share) - 250

    assert {round(ms(share / 20)) for share in range(20)} == {600, 2350}
    assert in_two_states(1.0) == 1


def test_the_camera_is_at_the_row_and_comes_back():
    motion, view = rescale(demo("flash2"), 13), Viewport(3.0, 8.0, 0.0)
    assert at_row(motion, 0.0, view, 8) == at_row(motion, 1.0, view, 8) == view
    seen = at_row(motion, 0.5, view, 8)
    w = motion.after.program.workload
    rows, keys = (visible_count(count, seen.zoom) for count in (w.seqlen_q, w.seqlen_k))
    assert seen.y <= 8 <= seen.y + rows - 1
    assert seen.x <= 1e-9, "all that was summed is in sight"
    assert seen.x + keys >= motion.after.visit.cols.stop - 1e-9
    way = [at_row(motion, n / 200, view, 8).zoom for n in range(20)]
    assert way == sorted(way, reverse=True)
    assert way[0] > way[-1]


def test_the_row_of_least_alpha_is_shown_unless_one_is_chosen_that_shrinks():
    now = rescale(demo("flash2"), 13).after
    alpha, rows = now.tile.alpha, now.visit.rows
    least = rows.start + int(np.argmin(alpha))
    assert row_at_hand(now, None) == row_at_hand(now, 0) == least
    for r, factor in enumerate(alpha):
        assert row_at_hand(now, rows.start + r) == (rows.start + r if factor < 1 else least)


def test_sixty_frames_of_the_three_seconds_differ():
    motion, row = rescale(demo("flash2"), 13), 8
    report, lay = row_report(motion.after, row), board_layout(demo("flash2").workload, STYLE, RECT)
    rect, seen = QRectF(0, 0, 560, 480), set[bytes]()
    for k in range(90):
        share = (k / 30 + 0.25) / (SECONDS_PER_RESCALE * MOVING)
        panel = QImage(rect.size().toSize(), QImage.Format.Format_RGB32)
        panel.fill(QColor(STYLE.theme.panel))
        with QPainter(panel) as painter:
            paint_softmax(painter, motion.after, report, STYLE, rect, motion=motion, share=share)
        seen.add(bytes(board(motion, share, lay, row).constBits()) + bytes(panel.constBits()))
        if len(seen) == 60:
            break
    assert len(seen) == 60


def test_the_sum_shrinks_by_alpha_and_then_the_new_weights_are_added():
    motion, row = rescale(demo("flash2"), 13), 8
    now, report = motion.after, row_report(motion.after, 8)
    r = row - now.visit.rows.start
    alpha, shares = float(now.tile.alpha[r]), [n / 50 for n in range(1, 50)]
    for share in shares:
        summed = sum_by_now(motion, share, report)
        moments = rescaling(share)
        old = float(now.tile.l_prev[r]) * alpha**moments.risen
        assert summed.parts[:-1].sum() == pytest.approx(old, rel=1e-4)
        assert (summed.parts[-1] > 0) == (moments.joined > 0)
    assert summed.parts.sum() == pytest.approx(float(now.l[r]), rel=1e-4)


@pytest.mark.parametrize("latex", [r"\alpha \leftarrow \exp(m_{\mathrm{old}} - m)",
                                   r"\ell \leftarrow \alpha\,\ell + \Sigma P",
                                   r"O \leftarrow \alpha\,O + P V"])  # fmt: skip
def test_alpha_is_lit_where_it_stands(latex):
    (box,) = alpha_boxes(latex, 40, 100, 200, STYLE)
    before, _, after = latex.partition(r"\alpha")
    assert box.left() == pytest.approx(100 + formula(latex, 40).width - formula(
        r"\alpha" + after, 40).width, abs=8) or not before  # fmt: skip
    assert box.top() < 200 <= box.bottom()
    assert box.width() < 2 * formula(r"\alpha", 40).width


# --- cells -------------------------------------------------------------------------------------


def test_in_frames_of_lesson_5_earlier_cells_shrink_by_the_alpha_of_the_trace():
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
    before = float(np.exp(after.head.s[row, 0] - after.tile.m_prev[row - visit.rows.start]))
    assert found[-1][1] == pytest.approx(alpha * before, abs=0.016)
    between = found[:-1]
    assert len(between) > 8
    for share, value in between:
        assert alpha * before * 0.99 < value < before * 1.01
        assert value == pytest.approx(before * alpha ** rescaling(share).risen, abs=0.016)
    assert all(one[1] >= two[1] for one, two in pairwise(between))


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ["flash1", "split-kv", "mla", "paged", "flash2"])
def test_cells_of_every_row_shrink_and_stay_so(name):
    """Alpha is that of the trace; the colours are read from the painted board."""
    trace, words, tried = demo(name), colour_map(DARK, "P", dim=True), 0
    lay = board_layout(trace.workload, STYLE, RECT)
    for visit in range(len(trace.program)):
        ops = trace.program.ops(visit)
        if not any(op.gesture is Gesture.SHRINK for op in ops):
            continue
        motion = rescale(trace, visit)
        now = motion.after
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
    """Return what is seen of the current rows in S, m, l and O, inside of what is lit."""
    rows = motion.after.visit.rows
    places = (lay.row_band(name, rows) for name in ("S", "m", "l", "O"))
    return [image.copy(place.adjusted(4, 4, -4, -4).toAlignedRect()) for place in places]


FIRST: list[tuple[str, Scenario | str, int]] = [
    ("flash2", "flash2", 0),
    ("flash2, a later row block", "flash2", 10),
    ("flash1", "flash1", 2),
    ("a split", "split-kv", 3),
    ("with a sink", scenario("flash2", nq=8, rows=4, cols=4, scores={"sink_logits": [0.5]}), 0),
]


@pytest.mark.parametrize(("what", "run", "visit"), FIRST, ids=[each[0] for each in FIRST])
def test_on_a_first_tile_nothing_moves(what, run, visit, monkeypatch):
    trace = demo(run) if isinstance(run, str) else trace_of(run)
    motion, row = rescale(trace, visit), trace.program.visit(visit).rows.start
    lay = board_layout(trace.workload, STYLE, RECT)
    begin, end = (bands(board(motion, share, lay, row), motion, lay) for share in (0.0, 1.0))
    drawn, factors = record_texts(monkeypatch, scene), record_texts(monkeypatch, gestures)
    for share in (0.1, 0.5, 0.9):
        assert bands(board(motion, share, lay, row), motion, lay) == begin == end
    assert {each.text for each in drawn} == {"first tile: nothing to rescale yet"}
    assert not factors


def test_where_alpha_is_1_in_every_row_nothing_moves(monkeypatch):
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


def test_the_factor_that_is_written_is_that_of_the_trace(monkeypatch):
    motion = rescale(demo("flash2"), 13)
    lay = board_layout(motion.after.program.workload, STYLE, RECT)
    drawn = record_texts(monkeypatch, gestures)
    alpha, shares = float(motion.after.tile.alpha[0]), (0.4, 0.5, 0.7, 0.77)
    for share in (0.05, 0.2, *shares):
        board(motion, share, lay, 8)
    by_now = [f"× {alpha ** rescaling(share).risen:.3f}" for share in shares]
    lit = [each for each in drawn if each.text == "α"]
    drawn = [each for each in drawn if each.text != "α"]
    assert [each.text for each in drawn] == by_now, "of the explained row alone, once it is named"
    assert len(lit) == len(shares), "α is lit as long as it is named and does something"
    assert not any(lay.boxes["O"].intersects(each.ink) for each in lit)
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
def test_o_shrinks_by_alpha_and_stays_so(run, visit):
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
def test_bars_of_the_weights_shrink_by_alpha_and_stay_so(name):
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
    for share in (0.0, 0.45, 0.53, 0.8, 1.0):
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
    assert heights[0][tall] > heights[1][tall] > heights[2][tall] > heights[3][tall]


def test_weights_divided_by_the_sum_so_far_shrink_with_o_as_well():
    motion = rescale(demo("flash2"), 13)
    motion = Motion(*(with_weights_so_far(each) for each in (motion.before, motion.after)))
    begin, end = motion.before.so_far, motion.after.so_far
    rows, keys = slice(8, 12), slice(0, 9)
    assert (end[8, keys] < 0.5 * begin[8, keys]).all()
    half = motion.used_weights(0.6)
    assert half is not None
    risen = rescaling(0.6).risen
    expected = begin[rows, keys] ** (1 - risen) * end[rows, keys] ** risen
    np.testing.assert_allclose(half, expected, rtol=1e-4)
