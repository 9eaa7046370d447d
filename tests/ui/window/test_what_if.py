"""The what-if strip: six questions in two actions, answered as `run` does, and one key back."""

import json
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.problem.scenario import save_scenario, with_values
from tests.helpers.waiting import wait_until
from ui.app.cli import main
from ui.look.theme import DARK, Style
from ui.look.units import time_text
from ui.window.what_if.places import COMPACT, ROOMY, Control, places
from ui.window.what_if.words import (
    FigureWords,
    back_words,
    factor_words,
    figures_words,
    question_words,
)

SIZE = (1280, 720)

Key, Alt = Qt.Key, Qt.KeyboardModifier.AltModifier
DEMOS = ("flash2", "causal", "grouped-heads")
QUESTIONS = {
    "tile": (Key.Key_T, lambda: key(Key.Key_Up)),
    "causal": (Key.Key_C, lambda: key(Key.Key_Up)),
    "width": (Key.Key_D, lambda: typed("128")),
    "tokens": (Key.Key_N, lambda: typed("1024")),
    "sentence": (Key.Key_S, lambda: key(Key.Key_Down)),
    "gpu": (Key.Key_G, lambda: key(Key.Key_Up)),
}
"""The key that goes to a field, and what is pressed there."""


def key(which: Qt.Key) -> None:
    QTest.keyClick(QApplication.focusWidget(), which)


def typed(text: str) -> None:
    QTest.keyClicks(QApplication.focusWidget(), text)
    key(Key.Key_Return)


def settled(window) -> None:
    window.session.settle()
    QApplication.processEvents()


def printed(window, tmp_path, capsys) -> dict:
    """Return what `run` prints of the scenario on show."""
    path = tmp_path / "asked.toml"
    save_scenario(window.session.scenario, path)
    assert main(["run", str(path), "--json", "--engine", "numpy"]) == 0
    return json.loads(capsys.readouterr().out)


def summed(summary: dict) -> tuple:
    hbm, model = summary["hbm"], summary["model"]
    seconds = (model["seconds"], model["bound_by"]) if model else (None, "")
    return summary["tiles"]["visited"], hbm["read_bytes"] + hbm["write_bytes"], *seconds


def figures(found) -> tuple:
    return found.tiles, found.requested, found.seconds, found.bound


def shown(window) -> tuple:
    """Return all that is to come back bit for bit, also as it is seen."""
    session = window.session
    arrays = {name: array.tobytes() for name, array in session.trace.arrays().items()}
    place = session.scenario, session.path, session.cursor, session.row
    return *place, arrays, window.board.grab().toImage()


@pytest.fixture
def talk(talk):
    wait_until(lambda: not talk.presenter.arrival.awaited, QTest.qWait)
    return talk


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", DEMOS)
def test_six_questions_of_the_window(open_window, tmp_path, capsys, name) -> None:
    window = open_window(name, (1280, 720))
    session, strip = window.session, window.what_if
    window.activateWindow()
    session.last()
    settled(window)
    before, was = shown(window), summed(printed(window, tmp_path, capsys))
    for question, (letter, answer) in QUESTIONS.items():
        QTest.keyClick(window, letter, Alt)
        assert QApplication.focusWidget() is getattr(
            strip.fields[question], "edit", strip.fields[question]
        )
        answer()
        settled(window)
        compared = session.what_ifs.compared
        assert compared is not None, question
        assert figures(compared.was) == was
        assert figures(compared.now) == summed(printed(window, tmp_path, capsys))
        assert compared.was != compared.now or question == "sentence"  # of the same length
        assert strip.fields[question].isVisible()
        QTest.keyClick(QApplication.focusWidget(), Key.Key_Backspace)
        settled(window)
        assert shown(window) == before, question
        assert not window.isWindowModified()


@pytest.mark.long
def test_six_questions_of_the_stage(talk, tmp_path, capsys, qapp) -> None:
    session, band = talk.session, talk.stage.what_if
    session.last()
    settled(talk)
    before, was = shown(talk), summed(printed(talk, tmp_path, capsys))

    def answered(question: str) -> None:
        settled(talk)
        assert band.here
        compared = session.what_ifs.compared
        assert compared is not None, question
        assert talk.stage.title.question.startswith("What if ")
        assert figures(compared.was) == was
        assert figures(compared.now) == summed(printed(talk, tmp_path, capsys))
        QTest.keyClick(talk, Key.Key_Backspace)
        settled(talk)
        assert shown(talk) == before, question

    for question, (letter, answer) in QUESTIONS.items():
        QTest.keyClick(talk, letter, Alt)
        qapp.processEvents()
        answer()
        answered(question)
        assert talk.stage.title.question == ""
    band.leave(at_once=True)
    QTest.keyClick(talk.windowHandle(), Key.Key_0)
    wait_until(lambda: band.here, QTest.qWait)
    assert all(field.isVisible() for field in band.strip.fields.values())


def test_it_comes_to_the_lowest_part_and_never_over_a_spotlight(talk, qapp) -> None:
    band, window = talk.stage.what_if, talk.windowHandle()
    QTest.mouseMove(window, QPoint(300, talk.height() // 2))
    qapp.processEvents()
    assert not band.here
    QTest.mouseMove(window, QPoint(320, talk.height() - 4))
    qapp.processEvents()
    assert band.here
    assert band.band.top() >= talk.height() * (1 - 130 / 1080) - 1
    talk.presenter.toggle_spotlight()
    qapp.processEvents()
    assert not band.here
    QTest.mouseMove(window, QPoint(340, talk.height() - 6))
    QTest.keyClick(talk, Key.Key_T, Alt)
    qapp.processEvents()
    assert not band.here
    talk.presenter.toggle_spotlight()


@pytest.mark.long
def test_it_leaves_when_nobody_uses_it(talk) -> None:
    band = talk.stage.what_if
    talk.stage.ask_what_if()
    assert band.strip.isVisible()
    QTest.keyClick(talk.windowHandle(), Key.Key_Escape)  # and not the end of the talk
    wait_until(lambda: not band.here, QTest.qWait)
    assert talk.presenter.on
    talk.stage.ask_what_if()
    wait_until(lambda: not band.strip.isVisible(), QTest.qWait)


@pytest.mark.long
def test_names_and_results_are_for_the_hall(talk) -> None:
    talk.stage.ask_what_if()
    strip = talk.stage.what_if.strip
    u = talk.stage.what_if.scale
    high = min(talk.height(), talk.width() * 9 / 16)
    assert strip.sizes.name * u >= 0.02 * high
    assert 0.025 * high <= strip.sizes.was * u < strip.sizes.now * u <= 0.029 * high


@pytest.mark.long
def test_two_changes_in_a_row_are_compared_with_what_was_before_both(window, session) -> None:
    found = window.session.what_ifs
    first = session.scenario
    edit = window.what_if.fields["tile"].edit
    for _ in range(2):
        QTest.keyClick(edit, Key.Key_Up)
        settled(window)
    assert found.compared.before == first
    assert (session.trace.workload.rows, session.trace.workload.cols) == (16, 12)
    found.end()
    second = session.scenario
    QTest.keyClick(edit, Key.Key_Down)
    settled(window)
    assert found.compared.before == second
    QTest.keyClick(edit, Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    settled(window)
    assert (session.trace.workload.rows, session.trace.workload.cols) == (9, 7)


@pytest.mark.long
def test_many_presses_at_once_count_each(window) -> None:
    first = window.session.scenario
    edit = window.what_if.fields["tile"].edit
    for _ in range(2):
        QTest.keyClick(edit, Key.Key_Up)
    assert edit.text() == "16 × 12"  # before the run is there
    settled(window)
    assert window.session.trace.workload.rows == 16
    window.restore()
    settled(window)
    assert window.session.scenario == first


@pytest.mark.long
def test_what_was_before_goes_after_three_seconds_and_the_values_stay(window, session) -> None:
    found = window.session.what_ifs
    session.motion = True
    QTest.keyClick(window.what_if.fields["tile"].edit, Key.Key_Up)
    session.settle()
    assert found.left > 0.5
    wait_until(lambda: found.compared is None, QTest.qWait)
    assert [each.was for each in window.what_if.figures] == ["", "", ""]
    assert window.what_if.figures[0].now == "6"
    window.restore()
    settled(window)
    assert window.what_if.figures[0].now == "20"


@pytest.mark.long
def test_without_motion_the_next_key_takes_what_was_before_away(window) -> None:
    found = window.session.what_ifs
    QTest.keyClick(window.what_if.fields["tile"].edit, Key.Key_Up)
    settled(window)
    assert found.compared is not None
    window.board.setFocus()
    QTest.keyClick(window.board, Key.Key_Shift)
    assert found.compared is not None
    QTest.keyClick(window.board, Key.Key_Right)
    assert found.compared is None


def test_backspace_belongs_to_what_is_being_typed(window) -> None:
    edit = window.what_if.fields["tokens"].edit
    edit.setFocus()
    QTest.keyClick(window.what_if.fields["tile"].edit, Key.Key_Up)
    settled(window)
    changed = window.session.scenario
    edit.selectAll()
    QTest.keyClicks(edit, "40")
    QTest.keyClick(edit, Key.Key_Backspace)
    assert edit.text() == "4"
    settled(window)
    assert window.session.scenario == changed
    QTest.keyClick(edit, Key.Key_Escape)
    assert edit.text() == "13"


def test_what_cannot_be_used_is_said_and_changes_nothing(window) -> None:
    first, edit = window.session.scenario, window.what_if.fields["width"].edit
    edit.setFocus()
    edit.selectAll()
    QTest.keyClicks(edit, "0")
    QTest.keyClick(edit, Key.Key_Return)
    settled(window)
    assert window.session.scenario == first
    assert edit.text() == "32"
    assert window.messages.isVisible()


def test_keys_of_the_window_stay_its_own_in_a_field(window) -> None:
    edit = window.what_if.fields["tile"].edit
    window.ask_what_if("tile")
    assert isinstance(QApplication.focusWidget(), QLineEdit)
    QTest.keyClick(edit, Key.Key_Right)
    settled(window)
    assert window.session.cursor.op == 1
    assert edit.text() == "4 × 3"


def test_all_questions_have_room(open_window) -> None:
    window = open_window(size=(1280, 720))
    shown = [name for name, field in window.what_if.fields.items() if field.isVisible()]
    assert shown == ["tile", "causal", "tokens", "width"]  # the others are in the header
    assert window.what_if.height() < 70
    assert min(each.font().pixelSize() for each in window.what_if.fields.values()) >= 12
    assert window.what_if.grab().toImage().pixelColor(600, 30).isValid()


def test_words_of_factors_and_of_the_way_back(open_window) -> None:
    assert factor_words(0.2664) == "÷ 3.8"
    assert factor_words(1.046) == "× 1.05"
    assert factor_words(69939.2) == "× 69\u2009939"
    window = open_window("split-kv", (1280, 720))
    settled(window)
    *_, seconds = figures_words(window.session.what_ifs.figures, None)
    assert seconds.now == "–"
    assert "not modelled" in seconds.tip
    now = window.what_if.settings
    assert back_words(replace(now, rows=4, cols=3), now) == "back to 4 × 3"
    assert question_words(now, replace(now, rows=1, cols=1)) == "What if the tile were smaller?"
    assert question_words(replace(now, queries=1, keys=1), now).startswith("What if there were ")
    assert back_words(replace(now, causal=not now.causal, rows=1), now) == "back to before"


def test_a_change_in_the_form_is_compared_too(window, session) -> None:
    session.propose(with_values(session.scenario, {"hardware": {"preset": "T4"}}), "GPU")
    settled(window)
    compared = session.what_ifs.compared
    assert compared.after.hardware.preset == "T4"
    assert compared.now.seconds > compared.was.seconds
    assert time_text(compared.now.seconds) == window.what_if.figures[2].now
    session.open(SCENARIOS / "causal.toml")
    settled(window)
    assert session.what_ifs.compared is None
    assert not session.what_ifs.restore()


@pytest.mark.parametrize("size", [COMPACT, ROOMY])
def test_figures_that_are_compared_keep_clear_of_the_key_that_goes_back(size, qapp) -> None:
    style, name = Style(DARK), "Sentence"
    fields = [Control(str(n), name, 140, 60) for n in range(6)]
    figures = [FigureWords("time", "6.0", "6.0 µs", "launch", "same", None, (1.0, 1.0), "")] * 3
    for width in range(1250, 2000, 7):
        found = places((width, 60), size, style, fields, figures, "back to the sentence", ["5"])
        last = found.figures[-1]
        assert last.right() + style.px(size.gap) <= found.back.left() + 1, width
        assert found.more.right() <= found.figures[0].left(), width


def top(window) -> tuple[bool, bool]:
    """Return whether the sentence of chips and the strip are in sight."""
    return window.header.isVisible(), window.what_if.isVisible()


@pytest.mark.long
def test_in_a_low_window_a_lesson_has_the_strip_when_it_is_asked_for(open_window, qtbot, qapp):
    window = open_window("flash2", (944, 492))
    assert top(window) == (True, True)
    window.files.open_path(LESSONS / "05-online-softmax.md")
    settled(window)
    assert top(window) == (True, False)
    for field in ("tile", "tokens", "causal", "gpu"):
        window.ask_what_if(field)
        qapp.processEvents()
        assert top(window) == (False, True)
        assert window.what_if.isAncestorOf(qapp.focusWidget())
        assert window.size().toTuple() == (944, 492)
    window.what_if.fields["gpu"].showPopup()
    qapp.processEvents()
    assert top(window) == (False, True)
    window.what_if.fields["gpu"].hidePopup()
    window.ask_what_if("causal")
    key(Key.Key_Up)
    settled(window)
    window.board.setFocus()
    qapp.processEvents()
    assert top(window) == (False, True)  # the answer stands in it
    window.session.what_ifs.end()
    qtbot.waitUntil(lambda: top(window) == (True, False))
    window.resize(1440, 900)
    qapp.processEvents()
    assert top(window) == (True, True)
    for _ in range(4):  # lower bars let it become lower still
        window.resize(944, 492)
        qapp.processEvents()
    assert (window.size().toTuple(), top(window)) == ((944, 492), (True, False))
    window.lessons.player.leave()
    settled(window)
    assert top(window) == (True, True)
