"""The box that asks exercises: typed and clicked in a real window."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from simulator.base.assets import LESSONS
from simulator.lesson.course import list_lessons
from simulator.run.snapshot import Cell
from tests.helpers.waiting import settle, wait_until
from ui.talk.exercises_dialog import ExercisesDialog, open_exercises

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def window(open_window):
    return open_window("flash2", (1280, 720))


def opened(window, lesson: str) -> ExercisesDialog:
    window.actions_by_name["exercises"].trigger()
    dialog = window.findChild(ExercisesDialog)
    names = [dialog.lessons.itemData(n) for n in range(dialog.lessons.count())]
    dialog.lessons.setCurrentIndex(names.index(next(n for n in names if n.endswith(lesson))))
    pause(window, lambda: dialog.exercise is not None and dialog.exercise.lesson == lesson)
    return dialog


def pause(window, holds) -> None:
    def go_on(milliseconds: int) -> None:
        settle(window)
        QTest.qWait(milliseconds)

    wait_until(holds, go_on)


def asked(window, dialog, name: str):
    names = [each.name for each in dialog.exercises]
    dialog.go(names.index(name))
    return dialog.exercise


def judged(window, dialog) -> str:
    QTest.mouseClick(dialog.check, LEFT)
    pause(window, lambda: dialog.says.text() not in ("", "Checking it."))
    return dialog.says.text()


def test_the_lessons_bar_opens_the_box_of_its_lesson_and_the_stage_has_no_button(window, tmp_path):
    path = next(each.path for each in list_lessons() if each.path.stem.endswith("kv-cache"))
    lessons = window.lessons
    lessons.open(path)
    pause(window, lambda: lessons.player.step is not None)
    button = lessons.bar.buttons["exercises"]
    QTest.mouseClick(button, LEFT)
    dialog = window.findChild(ExercisesDialog)
    pause(window, lambda: dialog.exercise is not None)
    assert dialog.exercise.lesson == "kv-cache"
    dialog.lessons.setCurrentIndex(0)
    QTest.mouseClick(button, LEFT)
    assert dialog.lessons.currentData() == path.stem
    pause(window, lambda: dialog.exercise.lesson == "kv-cache")
    own = tmp_path / "own.md"
    own.write_text(path.read_text("utf-8"), "utf-8")
    lessons.open(own)
    pause(window, lambda: lessons.player.path == own)
    assert not button.isEnabled()
    window.presenter.start()
    assert not button.isVisible()
    window.presenter.end()


def test_a_typed_number_is_right_or_told_what_is_wrong_and_is_remembered(window):
    dialog = opened(window, "kv-cache")
    assert dialog.focusWidget() is dialog.line
    e = asked(window, dialog, "per-token")
    assert judged(window, dialog) == "Nothing is typed or chosen yet."
    QTest.keyClicks(dialog.line, str(e.answer // 2))
    assert "K and V are both kept" in judged(window, dialog)
    dialog.line.setText("many")
    assert judged(window, dialog) == "Expected a number."
    dialog.line.setText(str(e.answer))
    assert judged(window, dialog).startswith("Right.")
    assert "1 right" in dialog.place.text()
    QTest.mouseClick(dialog.next, LEFT)
    QTest.mouseClick(dialog.back, LEFT)
    assert dialog.line.text() == str(e.answer)
    before = dialog.ask.text()
    dialog.seed.setValue(5)
    pause(window, lambda: dialog.exercise.seed == 5)
    assert dialog.ask.text() != before
    assert dialog.line.text() == ""


def test_a_clicked_cell_a_choice_and_a_function_are_answers(window):
    dialog = opened(window, "two-corners")
    asked(window, dialog, "last-key")
    window.session.select(Cell("S", 3, 7))
    settle(window)
    assert dialog.line.text() == "3, 7"
    dialog = opened(window, "flash-attention-2")
    e = asked(window, dialog, "fewest")
    wrong = next(o for o in dialog.options if o.text() == "naive")
    wrong.click()
    assert "It writes and reads S and P" in judged(window, dialog)
    next(o for o in dialog.options if o.text() == e.answer).click()
    assert judged(window, dialog).startswith("Right.")
    asked(window, dialog, "bytes-of-k")
    asked(window, dialog, "fewest")
    assert dialog.answer == e.answer
    assert sum(o.isChecked() for o in dialog.options) == 1
    asked(window, dialog, "rescale")
    assert dialog.code.toPlainText().startswith("def rescale(O, alpha):")
    dialog.code.setPlainText("def rescale(O, alpha):\n    return O\n")
    assert "O is not multiplied by alpha." in judged(window, dialog)


@pytest.mark.long
def test_the_box_asks_about_the_lesson_on_show_and_opens_once(window):
    window.lessons.open(next(LESSONS.glob("*-two-corners.md")))
    settle(window)
    dialog = open_exercises(window)
    assert open_exercises(window) is dialog
    pause(window, lambda: dialog.exercise is not None)
    assert dialog.exercise.lesson == "two-corners"
    window.lessons.open(next(LESSONS.glob("*-sinks.md")))
    pause(window, lambda: dialog.exercise.lesson == "sinks")
    dialog.close()
    QApplication.processEvents()


def test_nothing_is_asked_for_before_the_numbers_are_there(window):
    dialog = open_exercises(window)
    fields = dialog.line, dialog.code
    buttons = dialog.check, dialog.show_answer, dialog.next
    assert dialog.exercise is None
    assert not any(each.isVisible() for each in fields)
    assert not any(each.isEnabled() for each in buttons)
    pause(window, lambda: dialog.exercise is not None)
    assert [each.isVisible() for each in fields].count(True) <= 1
    assert all(each.isEnabled() for each in buttons)
