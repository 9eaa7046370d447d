"""The board while an op is being done: what is kept as a picture is what would be painted."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.base.assets import SCENARIOS
from simulator.lesson.places import Pointer
from simulator.problem.scenario import load_scenario, parse_scenario, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import Granularity, first_cursor, last_cursor, step
from simulator.run.motion import Motion
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.painted import painted as picture
from tests.helpers.painted import record_texts
from ui.board import scene
from ui.board.board import Marks, board_layout, paint_moving_board, paint_still_board
from ui.board.gestures import paint_gesture
from ui.board.key_state import state_places
from ui.board.layout import BoardLayout, Viewport
from ui.look.theme import DARK, LIGHT, Style
from ui.look.units import number_text

pytestmark = pytest.mark.usefixtures("qapp")
RECT = QRectF(3, 2, 900, 560)
SHARES = (0.2, 0.8)
LARGE = {
    "attention": {"seqlen_q": 4096, "head_dim": 16},
    "mask": {"causal": True},
    "tiling": {"rows": 128, "cols": 128},
}


def ops_of(trace: Trace) -> list[Motion]:
    """Return a motion for each kind of op of each launch, the last one of the first hundred ops."""
    found: dict[tuple[int, str], Motion] = {}
    after, last = first_cursor(), last_cursor(trace.program)
    for _ in range(100):
        if after == last:
            break
        before, after = after, step(trace.program, after, Granularity.OP)
        visit, op = trace.program.visit(after.visit), trace.program.ops(after.visit)[after.op]
        both = (trace.snapshot(each.visit, each.op) for each in (before, after))
        found[visit.launch, op.name] = Motion(*both)
    return list(found.values())


def painted(
    motion: Motion, share: float, style: Style, lay: BoardLayout, marks: Marks, *, afresh: bool
) -> QImage:
    image = QImage(910, 570, QImage.Format.Format_RGB32)
    image.fill(QColor(style.theme.panel))
    with QPainter(image) as painter:
        if afresh:
            paint_still_board(painter, motion.after, lay)
        paint_moving_board(painter, motion, share, lay, marks, ground=not afresh)
    return image


def assert_as_if_painted(trace: Trace, style: Style, view: Viewport, *seen: Marks) -> None:
    lay = board_layout(trace.program.workload, style, RECT, view)
    compared = 0
    for motion in ops_of(trace):
        for share in (*SHARES, *reversed(SHARES)):
            for marks in seen:
                kept, new = (
                    painted(motion, share, style, lay, marks, afresh=each) for each in (False, True)
                )
                assert kept == new, (motion.after.op.name, share, marks)
                compared += 1
    assert compared > 30


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_frame_is_as_if_it_were_painted_whole(algorithm):
    trace = simulate(load_scenario(SCENARIOS / f"{algorithm}.toml"))
    marks = Marks(row=9, hover=Cell("S", 9, 3), selected=Cell("O", 9, 1))
    assert_as_if_painted(trace, Style(DARK), Viewport(), marks, Marks())


@pytest.mark.parametrize("view", [Viewport(), Viewport(24.0, 100.0, 120.0)], ids=["whole", "near"])
def test_so_is_that_of_a_large_problem(view):
    trace = simulate(parse_scenario(LARGE))
    assert_as_if_painted(trace, Style(LIGHT), view, Marks(row=131))


def test_so_is_that_of_a_run_with_a_fault_and_what_a_lesson_points_at():
    scenario = with_values(
        load_scenario(SCENARIOS / "flash2.toml"), {"faults": {"forget_alpha": True}}
    )
    points = Marks(row=9, points=(Pointer(tile=(1, 0)), Pointer(row=9)))
    assert_as_if_painted(simulate(scenario), Style(DARK), Viewport(), points, Marks(row=9))


@pytest.mark.parametrize(
    ("demo", "tables", "said"),
    [
        ("causal", {"scores": {"softcap": 2.0}}, "each score s becomes 2 · tanh(s / 2): "),
        ("causal", {"scores": {"alibi": True}}, "each score loses the bias of its distance: "),
        ("linear", {}, "each row of Q and K becomes its features φ"),
        ("linear", {}, "each row reads the state, feature by feature: 4 of 8"),
        ("linear", {}, "each key adds φ(k)ᵀ [v, 1] to the state: 2 of 4"),
    ],
)
def test_an_op_without_a_gesture_of_its_own_says_what_it_does(demo, tables, said, monkeypatch):
    trace = simulate(with_values(load_scenario(SCENARIOS / f"{demo}.toml"), tables))
    drawn = record_texts(monkeypatch, scene)
    lay = board_layout(trace.workload, Style(DARK), RECT)
    for motion in ops_of(trace):
        picture(lambda p, m=motion: paint_gesture(p, m, 0.5, lay, 2))
    words = " ".join(each.text for each in drawn)  # in lines, where one is too long
    assert said.strip() in words
    places = state_places(trace.snapshot(0), lay)
    assert places is None or not any(places.card.intersects(each.ink) for each in drawn)


def test_the_score_that_changes_most_is_the_engines(monkeypatch):
    trace = simulate(
        with_values(load_scenario(SCENARIOS / "causal.toml"), {"scores": {"softcap": 2.0}})
    )
    motion = next(each for each in ops_of(trace) if each.after.op.says)
    visit = motion.after.visit
    row, q, k = visit.rows.start + 3, motion.after.q, motion.after.k
    s = (q[row] @ k[visit.cols.start : visit.cols.stop].T) * trace.workload.scale
    most = int(np.argmax(np.abs(s - 2 * np.tanh(s / 2))))
    drawn = record_texts(monkeypatch, scene)
    lay = board_layout(trace.workload, Style(DARK), RECT)
    picture(lambda p: paint_gesture(p, motion, 0.5, lay, row))
    pair = f"{number_text(float(s[most]))} → {number_text(float(2 * np.tanh(s[most] / 2)))}"
    said = " ".join(each.text for each in drawn)
    assert said == f"each score s becomes 2 · tanh(s / 2): {pair}"


@pytest.mark.parametrize("demo", ["flash2", "causal", "naive", "split-kv", "flash2-backward"])
def test_words_about_an_op_stand_beside_the_matrices(demo, monkeypatch):
    trace = simulate(load_scenario(SCENARIOS / f"{demo}.toml"))
    drawn, said = record_texts(monkeypatch, scene), 0
    lay = board_layout(trace.workload, Style(DARK), RECT)
    for motion in ops_of(trace):
        picture(lambda p, m=motion: paint_gesture(p, m, 0.5, lay, 2))
        for each in drawn:
            assert not any(box.intersects(each.ink) for box in lay.boxes.values()), each.text
            assert lay.rect.contains(each.ink)
        said += len(drawn) > 0
        drawn.clear()
    assert said > 3
