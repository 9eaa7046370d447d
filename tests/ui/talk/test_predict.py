"""A step that asks first: in the window, in a talk, in films and in handouts."""

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.lesson.predict import outcome
from simulator.lesson.reader import load_lesson
from simulator.run.snapshot import Cell
from ui.app.start import make_window
from ui.export.storyboard import THINKING, handout, make_storyboard
from ui.look.layouts import LAYOUT_PANELS
from ui.talk.lessons import Lessons
from ui.talk.prediction import printed, scale_of, verdict
from ui.window.main_window import MainWindow

TEXT = """\
+++
title = "Asks"
+++

## One

```toml step
scenario = "flash2"
at = { tile = [2, 3], op = "row max" }
row = 8
```

First.

## Two

```toml step
play = [{ tile = [2, 3], op = "row max" }, { tile = [2, 3], op = "rescale" }]
predict.ask = "By what factor?"
predict.answer = "{{ alpha(8) }}"
predict.within = 0.05
predict.span = [0, 1]
predict.cover = ["softmax"]
predict.hint = "Less than one."
```

It is {{ alpha(8) }}.

## Three

```toml step
at = { tile = [2, 4] }
predict.ask = "Which one?"
predict.answer = "{{ token(10) }}"
predict.choices = ["{{ token(2) }}", "{{ token(10) }}"]
```

Third.

## Four

```toml step
at = "last"
predict = { ask = "Whom does it read?", answer = "{{ strongest(8) }}", click = ["S", 8] }
```

Fourth.
"""


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    path = tmp_path / "asks.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def lessons(lesson, qtbot) -> Lessons:
    window = make_window(None, "numpy")
    qtbot.addWidget(window)
    window.settings.motion = window.session.motion = False
    window.resize(1280, 720)
    window.show()
    window.files.open_path(lesson)
    window.session.settle()
    window.lessons.player.go(1)
    window.session.settle()
    return window.lessons


def _window(lessons: Lessons) -> MainWindow:
    window = lessons.bar.window()
    assert isinstance(window, MainWindow)
    return window


def test_caption_and_run_wait_until_somebody_answers(lessons):
    player, card, window = lessons.player, lessons.bar.card, _window(lessons)
    steps = player.lesson.steps
    assert player.waits
    assert window.session.cursor == steps[1].start
    said = lessons.bar.caption.accessibleDescription()
    assert "By what factor?" in said
    assert "0.307" not in said
    assert card.isVisible()
    assert lessons.bar.rect().contains(card.geometry())
    cover = window.docks["softmax"].findChild(object, "cover")
    assert cover.isVisible()
    card.field.setText("much")
    QTest.keyClick(card.field, Qt.Key.Key_Return)
    assert player.waits
    assert card.words == "a number between 0 and 1"
    card.field.setText("0.45")
    QTest.keyClick(card.field, Qt.Key.Key_Return)
    window.session.settle()
    assert not player.waits
    assert window.session.cursor == steps[1].cursor
    assert "0.307" in lessons.bar.caption.accessibleDescription()
    assert card.words == "Computed 0.307, yours 0.45: 0.143 above."
    assert (card.scale.guess, round(card.scale.truth or 0, 3)) == (0.45, 0.307)
    assert not cover.isVisible()


@pytest.mark.long
def test_what_is_answered_is_not_asked_again_unless_one_wants(lessons):
    player, window = lessons.player, _window(lessons)
    player.guess(0.3)
    window.session.settle()
    player.back()
    window.session.settle()
    player.next()
    window.session.settle()
    assert (player.step_number, player.waits) == (1, False)
    assert lessons.bar.card.words.startswith("Right: computed 0.307, yours 0.3")
    lessons.bar.card.again_button.click()
    window.session.settle()
    assert player.waits


def test_one_key_skips_and_nothing_of_the_question_stays(lessons):
    player, window = lessons.player, _window(lessons)
    player.next()
    window.session.settle()
    assert (player.step_number, player.waits, player.outcome) == (1, False, None)
    assert lessons.bar.card.isHidden()
    player.next()
    window.session.settle()
    assert (player.step_number, player.waits) == (2, True)


def test_a_choice_is_pressed_or_typed(lessons):
    player, card, window = lessons.player, lessons.bar.card, _window(lessons)
    player.go(2)
    window.session.settle()
    assert [button.text() for button in card.choices] == ["1  cat", "2  tired"]
    QTest.keyClick(card, Qt.Key.Key_1)
    window.session.settle()
    assert card.words == "Computed: “tired”. Yours: “cat”."
    player.ask_again()
    window.session.settle()
    card.choices[1].click()
    window.session.settle()
    assert card.words == "Yes: “tired”."


def test_a_cell_that_is_clicked_is_the_guess(lessons):
    player, window = lessons.player, _window(lessons)
    player.go(3)
    window.session.settle()
    assert player.waits
    window.session.select(Cell("S", 3, 10))
    window.session.settle()
    assert player.waits, "a cell of another row is no answer"
    window.session.select(Cell("S", 8, 10))
    window.session.settle()
    assert player.outcome.right


@pytest.mark.long
def test_in_a_talk_the_halls_answer_is_typed_wherever_the_focus_is(lessons, qtbot):
    card, window = lessons.bar.card, _window(lessons)
    window.present(True)
    window.session.settle()
    band = window.stage.band
    assert card.parentWidget() is band
    assert band.rect().contains(card.geometry())
    for key in "0.45":
        does = window.presenter._guess_key(key)
        assert does is not None, key
        does()
    assert card.field.text() == "0.45"
    assert window.presenter._guess_key("B") is None, "B stays the black screen"
    enter = window.presenter._guess_key("Return")
    enter()
    window.session.settle()
    assert card.words.endswith("0.143 above.")
    window.present(False)
    qtbot.waitUntil(lambda: card.parentWidget() is lessons.bar)


def test_films_show_the_question_for_as_long_as_it_takes_to_think(lesson):
    board = make_storyboard(load_lesson(lesson, LAYOUT_PANELS), range(4), fps=10)
    asks = [shot for shot in board.shots if shot.asks]
    assert [shot.step for shot in asks] == [1, 2, 3]
    assert all(shot.seconds > THINKING + 1 for shot in asks)
    second = [shot for shot in board.shots if shot.step == 1]
    assert second[0].asks
    assert second[-1].arrived


def test_handouts_have_the_question_on_a_page_before_the_answer(lesson):
    read = load_lesson(lesson, LAYOUT_PANELS)
    pages = [(shot.step, shot.asks) for shot in handout(read, range(4), questions=True).shots]
    steps = [(0, False), (1, True), (1, False), (2, True), (2, False), (3, True), (3, False)]
    assert pages == steps
    assert len(handout(read, range(4)).shots) == 4


def test_no_scale_tells_the_answer_by_its_ends(lessons):
    step = lessons.player.step
    asked = step.prediction
    assert asked is not None
    free = replace(asked, span=None, truth=328.0, digits=0, unit="kB")
    assert scale_of(free, 100.0, told=False) is None
    told = scale_of(free, 100.0, told=True)
    assert (told.low, told.high) == (0.0, 500.0)
    assert verdict(free, outcome(free, 100.0)).endswith("3.3 times too small.")
    choice = replace(free, choices=("a", "b"), truth=1.0)
    assert printed(choice) == "By what factor?  **1** a · **2** b"
