"""Paging through a lesson faster than it is computed, going back, leaving a step and returning."""

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QColor, QImage, QPaintEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.lesson.course import lesson_after
from tests.helpers.paging import Judge
from tests.helpers.waiting import wait_until
from ui.session.calm import Calm
from ui.widgets.fade import SIGN, Fade
from ui.window.main_window import MainWindow

SIZE = (1200, 760)
Key = Qt.Key
ONLINE, CACHE = (LESSONS / f"{name}.md" for name in ("05-online-softmax", "09-kv-cache"))
_following = lesson_after(CACHE)
assert _following
FOLLOWING = _following.path


def show(window: MainWindow, path: Path, number: int) -> None:
    """Open a lesson at a step, and wait for it."""
    window.lessons.player.open(path, number)
    window.session.settle()


def type_key(window: MainWindow, key: Key) -> None:
    """Press a key, and let it do what it does, but not wait for anything."""
    QTest.keyClick(window.windowHandle(), key)
    QApplication.processEvents()


def press(window: MainWindow, key: Key) -> None:
    type_key(window, key)
    window.session.settle()


# --- faster than it is computed -------------------------------------------------------------


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("number", "presses", "expected"),
    [(1, 3, (CACHE, 3, False)), (6, 2, (CACHE, 6, True)), (6, 3, (FOLLOWING, 0, False))],
    ids=["another run", "the end", "the next lesson"],
)
def test_pages_turned_fast_never_mix_steps(talk, number, presses, expected) -> None:
    show(talk, CACHE, number)
    player, session = talk.lessons.player, talk.session
    judge = Judge(talk, lambda: talk.grab().toImage())
    for _ in range(presses):
        type_key(talk, Key.Key_PageDown)
        judge.look()
    calm = Calm(session)

    def whole() -> bool:
        QApplication.processEvents()
        return judge.rested() and calm.turn() and player.whole

    wait_until(whole)  # and until the last picture has been painted
    assert judge.faults == []
    assert (player.path, player.step_number, player.ended) == expected


def test_what_takes_long_is_said_over_the_last_picture(qtbot) -> None:
    below = QWidget()
    qtbot.addWidget(below)
    below.resize(400, 200)
    below.setStyleSheet("background: green")
    fade = Fade(below)
    below.show()
    fade.take()
    below.setStyleSheet("background: red")
    raised = QWidget(below)
    raised.resize(below.size())
    raised.show()
    raised.raise_()
    fade.take()  # the picture stays that from before
    assert below.grab().toImage().pixelColor(200, 100) == QColor("green")
    plain = below.grab().toImage()
    fade.say(below.rect().toRectF())
    said = below.grab().toImage()
    assert said != plain
    assert words_of(said, plain).right() > 380, "at the upper right"
    below.resize(500, 200)
    wider = plain.scaled(500, 200)
    assert words_of(below.grab().toImage(), wider).right() > 480, "and there in any size"
    assert SIGN == "computing…"
    fade.end()
    assert below.grab().toImage().pixelColor(200, 100) == QColor("red")


def test_what_rises_just_before_a_window_is_painted_stays_under_the_last_picture(qtbot) -> None:
    below = QWidget()
    qtbot.addWidget(below)
    below.resize(400, 200)
    fade = Fade(below)
    painted = []

    class Child(QWidget):
        def paintEvent(self, event: QPaintEvent) -> None:
            painted.append(event.rect())

    child = Child(below)
    child.resize(below.size())
    below.show()
    fade.take()
    QApplication.processEvents()
    painted.clear()
    QTimer.singleShot(0, child, child.raise_)
    below.update()
    QApplication.processEvents()
    assert painted == []


def words_of(one: QImage, other: QImage) -> QRect:
    """Return where two pictures differ."""
    points = [
        QPoint(x, y)
        for y in range(0, one.height(), 2)
        for x in range(one.width())
        if one.pixel(x, y) != other.pixel(x, y)
    ]
    xs, ys = [p.x() for p in points], [p.y() for p in points]
    return QRect(QPoint(min(xs), min(ys)), QPoint(max(xs), max(ys)))


@pytest.mark.long
def test_a_window_that_is_black_stays_black_while_a_step_comes(talk) -> None:
    show(talk, CACHE, 2)
    QTest.keyClick(talk.windowHandle(), Key.Key_PageDown)
    type_key(talk, Key.Key_B)
    assert talk.lessons.fade.isVisible()
    assert talk.grab().toImage().pixelColor(300, 300) == QColor("black")


SHORT = """\
+++
title = "Short"
+++

## One

```toml step
scenario = "flash2"
```

First.

## Two

Second.

## Three

```toml step
scenario = "translation.toml"
```

Third.
"""


def test_a_step_whose_run_is_refused_leaves_the_one_before(talk, tmp_path) -> None:
    path = tmp_path / "short.md"
    path.write_text(SHORT, encoding="utf-8")
    for name in ("translation.toml", "translation.safetensors"):
        shutil.copy(SCENARIOS / name, tmp_path)
    show(talk, path, 0)
    before = talk.session.scenario
    (tmp_path / "translation.safetensors").unlink()
    talk.lessons.player.go(2)
    talk.session.settle()
    assert talk.lessons.bar.caption.shown.title == "One"
    assert talk.session.scenario == before
    assert "translation.safetensors" in talk.messages.text()
    assert not talk.lessons.fade.isVisible()


# --- back -----------------------------------------------------------------------------------


@pytest.mark.long
def test_page_up_goes_back_over_the_border_of_lessons(talk) -> None:
    show(talk, FOLLOWING, 0)
    player = talk.lessons.player
    press(talk, Key.Key_PageUp)
    assert player.path == CACHE
    assert (player.step_number, player.ended) == (6, False)
    assert talk.lessons.bar.caption.shown.title == player.step.title
    assert player.revealed or not player.step.answer, "going back, the answer is known"
    press(talk, Key.Key_PageDown)
    assert player.ended
    press(talk, Key.Key_PageDown)
    assert (player.path, player.step_number) == (FOLLOWING, 0)
    press(talk, Key.Key_PageUp)
    assert (player.path, player.step_number) == (CACHE, 6)


def test_before_the_first_lesson_there_is_none(talk) -> None:
    first = min(LESSONS.glob("*.md"))
    show(talk, first, 0)
    press(talk, Key.Key_PageUp)
    assert (talk.lessons.player.path, talk.lessons.player.step_number) == (first, 0)
    assert not talk.lessons.bar.buttons["back"].isEnabled()


# --- elsewhere ------------------------------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("leave", [Key.Key_Home, Key.Key_Left, "row"])
def test_what_does_not_hold_fades_and_one_key_returns(talk, leave) -> None:
    show(talk, ONLINE, 1)
    session, caption = talk.session, talk.lessons.bar.caption
    place, points = (session.cursor, session.row), session.view.points
    assert points
    bright = caption.grab().toImage()
    if leave == "row":
        session.choose_row(session.row - 1)
        session.settle()
    else:
        press(talk, leave)
    assert session.view.points == ()
    assert caption.grab().toImage() != bright
    press(talk, Key.Key_Backspace)
    assert (session.cursor, session.row) == place
    assert session.view.points == points
    assert caption.grab().toImage() == bright


def test_the_list_of_keys_says_how_to_return(talk) -> None:
    action = talk.actions_by_name["restore"]
    assert action in talk.menus["Edit"].actions()
    assert action.shortcut().toString() == "Backspace"


# --- keys and pointer -----------------------------------------------------------------------


def test_letters_that_are_no_command_of_a_talk_do_nothing(talk) -> None:
    show(talk, ONLINE, 0)
    before = {dock.objectName() for _, dock in talk.docks if dock.isVisible()}
    theme = talk.style_now.theme
    for letter in set("CDFHIJKLNOPQUVYZ"):
        press(talk, Key[f"Key_{letter}"])
    assert {dock.objectName() for _, dock in talk.docks if dock.isVisible()} == before
    press(talk, Key.Key_T)
    assert talk.style_now.theme != theme, "T is a command of a talk"


def type_text(window: MainWindow, keys: str) -> None:
    for letter in keys:
        type_key(window, Key.Key_Return if letter == "\n" else Key(ord(letter)))
    window.session.settle()


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "number"), [("G5\n", 4), ("3\n", 2), ("G12\n", 7), ("2", 0), ("G\n", 0), ("\n", 0)]
)
def test_a_number_and_enter_go_to_a_step(talk, keys, number) -> None:
    show(talk, ONLINE, 0)
    type_text(talk, keys)
    assert talk.lessons.player.step_number == number
    assert ("Enter goes there" in talk.stage.band.words) is (keys == "2")
    step = talk.lessons.player.step
    assert talk.desk.lent == (step.layout, step.panel), "no digit has opened a panel"
    if keys == "2":
        type_key(talk, Key.Key_Escape)  # forgets the number, and does not end the talk
        assert talk.stage.band.words == ""
    type_text(talk, "1\n")
    assert talk.lessons.player.step_number == 0


@pytest.mark.long
@pytest.mark.parametrize("what", ["toggle_spotlight", "toggle_pen"])
def test_the_transport_does_not_come_while_something_is_pointed_at(talk, what) -> None:
    stage = talk.stage
    press(talk, Key.Key_R)
    assert stage.transport.isVisible()
    getattr(talk.presenter, what)()
    assert not stage.transport.isVisible()
    press(talk, Key.Key_R)
    assert not stage.transport.isVisible()
    getattr(talk.presenter, what)()
    press(talk, Key.Key_R)
    assert stage.transport.isVisible()
