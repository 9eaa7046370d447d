"""The stage: one scene without frames, letters for the last row, costs at the end, a camera."""

import re

import numpy as np
import pytest
from PySide6.QtCore import QBuffer, QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QSlider,
    QTabBar,
    QWidget,
)

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.lesson.reader import load_lesson
from simulator.problem.scenario import load_scenario
from simulator.program.playback import last_cursor
from simulator.run.trace import simulate
from simulator.study.compare import comparison_of
from tests.helpers.painted import pixels
from tests.helpers.runs import program_of
from tests.helpers.shown_lessons import shipped_lessons, some_steps
from tests.helpers.waiting import wait_until
from tests.ui.look.test_theme import contrast
from ui.app.windows import new_window
from ui.export.lesson_frames import LessonFrames
from ui.export.storyboard import handout
from ui.look.layouts import LAYOUT_PANELS
from ui.look.slide import CAPTION, unit
from ui.look.theme import DARK, STAGE_LABEL, THEMES, Style, on_stage
from ui.look.units import bytes_text
from ui.panels.compare.costs import costs_of, paint_costs
from ui.talk.caption import Caption
from ui.talk.slide import paint_slide, slide_body, slide_style
from ui.widgets.application import application
from ui.window.main_window import MainWindow
from ui.window.stage import StageTop

TELLING = ("01-soft-lookup", "05-online-softmax", "09-kv-cache")
"""Lessons with tokens, tiles and plots, read at all sizes; others show what these lack."""
SIZE = (1200, 760)
SIZES = ((1280, 720), (1920, 1080), (3840, 2160))


def press(window: MainWindow, key: Qt.Key) -> None:
    QTest.keyClick(window.windowHandle(), key)
    QApplication.processEvents()
    window.session.settle()


def test_the_caption_belongs_to_the_size_of_the_window_whatever_the_screen(talk, qapp):
    talk.lessons.open(LESSONS / "05-online-softmax.md")
    talk.session.settle()
    for size in SIZES:
        talk.resize(*size)
        qapp.processEvents()
        talk.lessons.bar.fit()  # as with the next step
        assert talk.lessons.bar.height() == round(CAPTION * unit(talk.size()))


# --- letters ----------------------------------------------------------------------------------


def letters(frames: LessonFrames, k: int) -> dict[float, set[str]]:
    """Return the sizes of letters in a picture, each with what is written in it."""
    size, data = QSize(*frames.size), QByteArray()
    buffer = QBuffer(data)
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    drawing = QSvgGenerator()
    drawing.setOutputDevice(buffer)
    drawing.setSize(size)
    drawing.setViewBox(QRect(0, 0, size.width(), size.height()))
    with QPainter(drawing) as painter:
        frames.paint(painter, k)
    found: dict[float, set[str]] = {}
    written = re.finditer(r'<text[^>]*font-size="([\d.]+)"[^>]*>([^<]+)<', bytes(data).decode())
    for letter in written:
        found.setdefault(float(letter[1]), set()).add(letter[2].strip())
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "steps", "size"),
    [
        *(
            (name, range(0, len(shipped_lessons()[name].steps), 2), size)
            for size in SIZES
            for name in TELLING
        ),
        *((name, steps, SIZES[0]) for name, steps in some_steps(*TELLING, each=2).items()),
    ],
    ids=str,
)
def test_the_last_row_reads_every_label(name, steps, size):
    application()
    lesson = shipped_lessons()[name]
    frames = LessonFrames(lesson, handout(lesson, steps), "dark", size, new_window)
    try:
        for k in range(len(frames)):
            found = letters(frames, k)
            assert sum(map(len, found.values())) > 20
            assert {
                of: words for of, words in found.items() if of < STAGE_LABEL * size[1] - 1
            } == {}
    finally:
        frames.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["02-why-sqrt-d", "05-online-softmax", "09-kv-cache", "07-flash-attention-2"]
)
def test_a_film_shows_no_control_that_nobody_can_use(name):
    application()
    made: list[MainWindow] = []

    def window(*made_of: object) -> MainWindow:
        made.append(new_window(*made_of))
        return made[-1]

    lesson = load_lesson(LESSONS / f"{name}.md", LAYOUT_PANELS)
    steps = handout(lesson, range(len(lesson.steps)))
    frames = LessonFrames(lesson, steps, "dark", (1280, 720), window)
    kinds = (QAbstractButton, QAbstractSpinBox, QComboBox, QSlider)
    try:
        for k in range(len(frames)):
            letters(frames, k)
            seen = [
                control.objectName()
                for kind in kinds
                for control in made[-1].findChildren(kind)
                if not control.visibleRegion().isEmpty()
            ]
            assert seen == []
    finally:
        frames.close()


# --- one scene --------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_steps_that_were_seen_look_other_than_those_to_come(qapp, theme):
    window, top = QWidget(), StageTop()
    window.resize(1280, 720)
    top.setParent(window)
    top.set_style(Style(on_stage(theme)))
    top.show_place("", 1, 3)
    top.resize(1280, 44)
    picture = top.grab().toImage()
    seen, now, to_come = (picture.pixelColor(each.center().toPoint()) for each in top.segments())
    assert contrast(seen, to_come) > 2.5
    assert now == QColor(theme.current)


def test_nothing_is_left_of_frames_and_all_of_it_comes_back(talk, qapp):
    def frames() -> list[int]:
        # Qt puts the bar of a place with one dock far outside.
        bars = [bar for bar in talk.findChildren(QTabBar) if bar.parent() is talk and bar.x() >= 0]
        docks = [dock for _, dock in talk.docks if not dock.visibleRegion().isEmpty()]
        return [bar.height() for bar in bars if bar.isVisible()] + [
            dock.titleBarWidget().height() for dock in docks
        ]

    wait_until(lambda: set(frames()) == {0}, QTest.qWait)
    assert talk.stage.title.isVisible()
    assert not talk.header.isVisible()
    assert talk.stage.title.accessibleName() == talk.session.scenario.title
    assert talk.stage.title.segments() == []
    talk.presenter.end()
    wait_until(lambda: min(frames(), default=0) > 10, QTest.qWait)
    assert talk.header.isVisible()
    assert not talk.stage.title.isVisible()
    assert talk.transport.isVisible()


def test_a_talk_that_ends_as_it_begins_leaves_nothing_hidden(talk, qapp):
    # Before the text has the size of the stage.
    talk.presenter.end()
    QTest.qWait(300)
    talk.presenter.start()
    talk.presenter.end()
    wait_until(lambda: talk.header.isVisible() and talk.transport.isVisible(), QTest.qWait)
    QTest.qWait(100)  # for what is late
    assert talk.header.isVisible()
    assert talk.transport.isVisible()
    assert not talk.stage.title.isVisible()


def test_controls_come_in_the_empty_band_alone_and_leave(talk, qapp):
    stage = talk.stage
    assert not talk.transport.isVisible()
    QTest.mouseMove(talk.windowHandle(), QPoint(300, 200))  # to point at the board
    qapp.processEvents()
    assert not stage.transport.isVisible()
    assert not stage.what_if.here
    QTest.mouseMove(talk.windowHandle(), QPoint(300, talk.height() - 9))
    qapp.processEvents()
    assert stage.what_if.here
    assert stage.what_if.band.top() >= stage.band.mapTo(talk, QPoint()).y()
    press(talk, Qt.Key.Key_R)
    assert stage.transport.isVisible()
    assert not stage.what_if.here
    assert stage.transport.geometry() == QRect(stage.band.mapTo(talk, QPoint()), stage.band.size())
    assert stage.transport.height() >= stage.transport.minimumSizeHint().height()
    talk.session.step()
    talk.session.settle()
    assert stage.transport.scrubber.snapshot.cursor == talk.session.cursor
    wait_until(lambda: not stage.transport.isVisible(), QTest.qWait)


@pytest.mark.parametrize("source", ["Xiao et al.", "e.g."])
def test_a_slide_ends_with_a_sentence(qapp, source):
    first = "The keys of a window are few, and a sink beside it keeps the rest of the weight."
    long = f"Models that stream keep the first few tokens for this ({source} 2023, who have tried"
    body = f"{first} {long} windows with them and without them, in many models of any length)."
    assert slide_body(Caption("Sinks", body, 0, 3)) == first


def test_nothing_of_a_slides_caption_is_cut_below(qapp):
    first = "Softmax divides each exponential by the sum of all, $p_j = e^{s_j} / \\sum_k e^{s_k}$."
    body = f"{first} No weight is negative, and they sum to one. The word “tired” gets most of it."
    size = QSize(1920, 1080)
    image = QImage(1840, 160, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    with QPainter(image) as painter:
        style = slide_style(Style(DARK), size)
        paint_slide(painter, Caption("", body, 2, 3), style, QRectF(0, 0, 1840, CAPTION))
    lit = np.flatnonzero(pixels(image).any(axis=1))
    assert 80 < lit[-1] < CAPTION


# --- what it cost -----------------------------------------------------------------------------


def test_costs_are_those_of_the_comparison(qapp):
    program = simulate(SCENARIOS / "flash2.toml").program
    costs = costs_of(program)
    totals = comparison_of(program).totals
    assert [row.asked for row in costs.rows] == [bytes_text(t.counters.bytes) for t in totals]
    assert max(row.share for row in costs.rows) == 1
    (own,) = (row for row in costs.rows if row.shown)
    assert own.name == program.algorithm.title
    assert costs.factor
    base = costs_of(comparison_of(program).programs[totals[0].algorithm])
    assert base.factor == ""
    for each in (costs, base):
        image = QImage(1280, 520, QImage.Format.Format_RGB32)
        image.fill(0)
        with QPainter(image) as painter:
            paint_costs(painter, each, Style(DARK, 1.6), image.rect().toRectF())
        assert len({image.pixel(x, y) for x in range(0, 1280, 7) for y in range(0, 520, 7)}) > 3


@pytest.mark.long
def test_what_it_cost_says_what_of_it_is_the_mask():
    """Naive attention computes hidden scores, too, so a causal run has half of its factor so."""
    costs = costs_of(program_of(load_scenario(SCENARIOS / "real-scale.toml")))
    assert costs.factor == "5.98×"
    assert costs.mask == "3.00× by tiles on chip, and 2.00× because hidden tiles are skipped"
    assert costs_of(simulate(SCENARIOS / "flash2.toml").program).mask == ""


def test_at_the_end_of_a_run_a_key_shows_what_it_cost(talk):
    session, stage = talk.session, talk.stage
    session.last()
    session.settle()
    assert not stage.slide.isVisible()
    press(talk, Qt.Key.Key_PageDown)
    assert stage.slide.isVisible()
    assert stage.slide.state == costs_of(session.trace.program)
    press(talk, Qt.Key.Key_PageUp)
    assert not stage.slide.isVisible()
    assert session.cursor == last_cursor(session.trace.program)
    press(talk, Qt.Key.Key_PageDown)
    press(talk, Qt.Key.Key_Home)
    assert not stage.slide.isVisible()  # the run goes on elsewhere


@pytest.mark.long
def test_the_end_of_a_lesson_shows_it_and_the_next_lesson_does_not(talk):
    path = LESSONS / "07-flash-attention-2.md"
    talk.lessons.player.open(path, len(load_lesson(path).steps) - 1)
    talk.session.settle()
    assert not talk.stage.slide.isVisible()
    press(talk, Qt.Key.Key_PageDown)
    assert talk.lessons.player.ended
    assert talk.stage.slide.isVisible()
    press(talk, Qt.Key.Key_PageDown)
    assert talk.lessons.player.path != path
    assert not talk.stage.slide.isVisible()


# --- camera -----------------------------------------------------------------------------------

FRAMED = """\
+++
title = "Framed"
+++

## All

```toml step
scenario = "real-scale"
at = { tile = [512, 100] }
```

Half a million tiles.

## Near

```toml step
camera = { tile = [512, 100], tiles = 4 }
```

One of them.

## Back

```toml step
camera = "all"
```

All again.
"""


@pytest.mark.long
def test_a_step_moves_the_camera_and_the_next_moves_it_back(open_window, tmp_path):
    path = tmp_path / "framed.md"
    path.write_text(FRAMED, encoding="utf-8")
    window = open_window(size=(1200, 760))
    window.lessons.player.open(path)
    window.session.settle()
    board = window.board
    assert board.view.zoom == 1
    seen = []
    for _ in range(2):
        window.lessons.player.next()
        window.session.settle()
        seen.append(board.view)
    near, back = seen
    assert near.zoom == pytest.approx(256)
    assert near.y < 512.5 * 128 < near.y + 131_072 / near.zoom
    assert near.x < 100.5 * 128 < near.x + 131_072 / near.zoom
    assert back.zoom == 1


def test_a_tab_that_is_dragged_as_a_talk_begins_can_be_let_go(open_window, monkeypatch, qapp):
    """Qt ends the process where a tab without a width is let go: it divides by the width."""
    monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
    window = open_window(size=(1280, 720))
    window.desk.take("memory")
    QTest.qWait(100)
    bars = [bar for bar in window.findChildren(QTabBar) if bar.parent() is window and bar.x() >= 0]
    bar = next(bar for bar in bars if bar.isVisible() and bar.count() > 1)
    place = bar.tabRect(1).center()
    QTest.mousePress(bar, Qt.MouseButton.LeftButton, pos=place)
    for moved in (15, 30):
        QTest.mouseMove(bar, place + QPoint(moved, 0))
    window.presenter.start()
    QTest.qWait(300)
    widths = [bar.tabRect(n).width() for n in range(bar.count())]
    assert min(widths) > 0
    QTest.mouseRelease(bar, Qt.MouseButton.LeftButton, pos=place + QPoint(30, 0))
    window.presenter.end()
    wait_until(window.header.isVisible, QTest.qWait)
