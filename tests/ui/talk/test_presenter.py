"""A talk: a clicker's keys, what is put away, the pointer, the speaker's window."""

from operator import attrgetter

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QCursor, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMessageBox

from simulator.base.assets import LESSONS
from tests.helpers.changes import choose_algorithm
from ui.talk.presenter import Presenter
from ui.talk.presenter_keys import IN_SPEAKER, KEYS
from ui.widgets.message_bar import MessageKind
from ui.window.actions import ACTIONS
from ui.window.main_window import MainWindow

Key, Ctrl = Qt.Key, Qt.KeyboardModifier.ControlModifier
LESSON = LESSONS / "05-online-softmax.md"


SIZE = (1200, 760)


@pytest.fixture
def talk(window, monkeypatch, qapp):
    """A presenter whose talk is on, over a lesson."""
    monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
    window.lessons.open(LESSON)
    window.session.settle()
    presenter = window.presenter
    presenter.start()
    yield presenter
    presenter.end()
    qapp.processEvents()


def press(window, key, modifier=Qt.KeyboardModifier.NoModifier) -> None:
    """Press a key as a keyboard does: shortcuts and filters come before widgets."""
    QTest.keyClick(window.windowHandle(), key, modifier)
    QApplication.processEvents()
    main = window if isinstance(window, MainWindow) else window.parentWidget()
    main.session.settle()


def stroke(presenter: Presenter) -> None:
    QTest.mousePress(presenter.overlay, Qt.MouseButton.LeftButton, pos=QPoint(200, 200))
    QTest.mouseMove(presenter.overlay, QPoint(300, 260))
    QTest.mouseRelease(presenter.overlay, Qt.MouseButton.LeftButton, pos=QPoint(300, 260))


# --- begin and end --------------------------------------------------------------------------


def test_errors_are_seen_during_a_talk(talk, window, qapp) -> None:
    window.say("d=96 needs 210 KiB", MessageKind.REFUSAL)
    qapp.processEvents()
    assert window.messages.isVisible()
    assert window.rect().contains(window.messages.geometry())
    talk.off_or_end()
    assert not window.messages.isVisible()
    assert talk.on


def test_the_screen_is_kept_on_for_as_long_as_the_talk(talk, qtbot) -> None:
    qtbot.waitUntil(lambda: talk.awake.granted)
    talk.end()
    assert not talk.awake.on


def test_closing_the_window_ends_the_talk(window) -> None:
    presenter = window.presenter
    presenter.start()
    presenter.link.open()
    presenter.toggle_spotlight()
    window.close()
    assert not presenter.on
    assert not presenter.awake.on
    assert not presenter.speaker.isVisible()
    assert presenter.overlay.isHidden()
    assert QApplication.overrideCursor() is None


def test_a_layout_is_remembered_with_what_the_talk_hides(window) -> None:
    window.docks["scenario"].show()
    presenter = window.presenter
    presenter.start()
    state = presenter.state()
    assert not window.docks["scenario"].isVisible()
    presenter.end()
    window.docks["scenario"].hide()
    assert window.restoreState(state)
    assert window.docks["scenario"].isVisible()


def test_a_layout_that_comes_during_a_talk_is_tidied_and_stays(window, qtbot) -> None:
    presenter = window.presenter
    presenter.start()
    window.desk.take("memory")
    assert window.docks["memory"].isVisible()
    window.desk.take("steps")
    assert not window.docks["scenario"].isVisible()
    window.docks["scenario"].show()
    window.desk.take("memory")
    presenter.end()
    assert window.settings.layout == "memory"
    assert not window.docks["scenario"].isVisible()
    window.desk.take("steps")
    assert window.docks["scenario"].isVisible()


# --- keys -----------------------------------------------------------------------------------


def test_a_shows_an_answer_and_hides_it_again(talk, window) -> None:
    player = window.lessons.player
    player.go(next(n for n, s in enumerate(player.lesson.steps) if s.said.question))
    window.session.settle()
    for shown in (True, False, True):
        press(window, Key.Key_A)
        assert player.revealed == shown


def test_a_clicker_goes_through_a_lesson(talk, window) -> None:
    player = window.lessons.player
    count = len(player.lesson.steps)
    asked = 0
    while player.step.number + 1 < count:
        before = player.step
        press(window, Key.Key_PageDown)
        if before.question and player.step is before:
            assert player.revealed
            asked += 1
            press(window, Key.Key_PageDown)
        if before.waits:  # what was skipped is shown first
            assert (player.step.number, player.waits) == (before.number, False)
            continue
        assert player.step.number == before.number + 1
    assert asked > 0
    path = player.path
    player.reveal()
    press(window, Key.Key_PageDown)
    assert (player.path, player.ended) == (path, True)
    press(window, Key.Key_PageUp)
    assert not player.ended
    press(window, Key.Key_PageUp)
    assert player.step.number == count - 2


def test_without_a_lesson_a_clicker_steps_through_the_run(window) -> None:
    presenter = window.presenter
    presenter.start()
    start = window.session.cursor
    press(window, Key.Key_PageDown)
    press(window, Key.Key_PageDown)
    assert window.session.cursor != start
    press(window, Key.Key_PageUp)
    press(window, Key.Key_PageUp)
    assert window.session.cursor == start
    presenter.end()


@pytest.mark.long
@pytest.mark.parametrize("key", [Key.Key_B, Key.Key_Period])
def test_a_clicker_blanks_the_screen_and_brings_it_back(talk, window, key) -> None:
    press(window, key)
    assert window.blanked
    press(window, key)
    assert not window.blanked


@pytest.mark.long
def test_a_full_stop_that_wants_shift_is_one(talk, window) -> None:
    press(window, Key.Key_Period, Qt.KeyboardModifier.ShiftModifier)
    assert window.blanked


@pytest.mark.parametrize("key", [Key.Key_F5, Key.Key_Escape])
def test_a_clicker_ends_the_talk(talk, window, key) -> None:
    press(window, key)
    assert not talk.on


@pytest.mark.long
def test_escape_switches_things_off_before_it_ends_the_talk(talk, window) -> None:
    for switch in (talk.toggle_pen, talk.toggle_spotlight, talk.toggle_blank):
        switch()
        press(window, Key.Key_Escape)
        assert talk.on
        assert (talk.overlay.pen, talk.overlay.spotlight) == (False, False)
        assert not window.blanked
    press(window, Key.Key_Escape)
    assert not talk.on


@pytest.mark.long
def test_keys_of_the_pen(talk, window) -> None:
    undone = window.session.undo_stack.index()
    press(window, Key.Key_P, Ctrl)
    for _ in range(4):
        stroke(talk)
    press(window, Key.Key_Backspace)
    press(window, Key.Key_Z, Ctrl)
    assert len(talk.overlay.strokes) == 2
    assert window.session.undo_stack.index() == undone
    press(window, Key.Key_L, Ctrl)
    assert (talk.overlay.pen, talk.overlay.spotlight) == (False, True)
    assert len(talk.overlay.strokes) == 2
    press(window, Key.Key_E)
    assert talk.overlay.strokes == []


def test_strokes_go_with_the_step_and_with_the_talk(talk, window) -> None:
    talk.toggle_pen()
    stroke(talk)
    press(window, Key.Key_PageDown)
    assert talk.overlay.strokes == []
    stroke(talk)
    talk.end()
    assert talk.overlay.strokes == []
    assert talk.overlay.isHidden()


def test_ctrl_z_without_a_pen_is_undo(window) -> None:
    choose_algorithm(window, "naive")
    window.session.settle()
    presenter = window.presenter
    presenter.start()
    press(window, Key.Key_Z, Ctrl)
    presenter.end()
    assert window.session.scenario.attention.algorithm == "flash2"


def test_other_keys_keep_their_meaning(talk, window) -> None:
    cursor = window.session.cursor
    press(window, Key.Key_Right)
    assert window.session.cursor != cursor


def test_without_a_talk_the_keys_mean_nothing_of_it(window) -> None:
    presenter = window.presenter
    for key in (Key.Key_E, Key.Key_S, Key.Key_Escape):
        press(window, key)
    press(window, Key.Key_P, Ctrl)
    press(window, Key.Key_L, Ctrl)
    assert (presenter.overlay.pen, presenter.overlay.spotlight) == (False, False)
    assert presenter.speaker is None


def test_a_key_that_is_held_acts_once(talk, window) -> None:
    QTest.keyPress(window.windowHandle(), Key.Key_B)
    none = Qt.KeyboardModifier.NoModifier
    held = QKeyEvent(QEvent.Type.KeyPress, Key.Key_B, none, "b", True)
    QApplication.sendEvent(window.windowHandle(), held)
    QTest.keyRelease(window.windowHandle(), Key.Key_B)
    QApplication.processEvents()
    assert window.blanked


@pytest.fixture
def field(talk, window, qapp) -> QLineEdit:
    """A field of a panel that is being filled in during a talk."""
    out = QLineEdit(window)
    out.show()
    window.activateWindow()
    out.setFocus()
    qapp.processEvents()
    assert QApplication.focusWidget() is out
    return out


def test_letters_go_into_a_field_and_page_keys_do_not(field, talk, window) -> None:
    step = window.lessons.player.step.number
    for key in (Key.Key_B, Key.Key_E, Key.Key_S, Key.Key_Period):
        press(window, key)
    assert field.text() == "bes."
    assert not window.blanked
    press(window, Key.Key_PageDown)
    assert window.lessons.player.step.number == step + 1
    press(window, Key.Key_B)  # the field has been left: the next letter is the clicker's
    assert window.blanked
    assert field.text() == "bes."


def test_typing_is_left_alone_without_a_talk(window, qapp) -> None:
    field = QLineEdit(window)
    field.show()
    window.activateWindow()
    field.setFocus()
    qapp.processEvents()
    for key in (Key.Key_B, Key.Key_E, Key.Key_Period, Key.Key_Backspace):
        press(window, key)
    assert field.text() == "be"


@pytest.mark.long
def test_a_message_has_its_own_keys(talk, window, qtbot) -> None:
    window.actions_by_name["about"].trigger()
    box = window.findChild(QMessageBox, "message")
    qtbot.waitUntil(box.isVisible)
    QTest.keyClick(box, Key.Key_Escape)
    qtbot.waitUntil(lambda: not box.isVisible())
    assert talk.on


def test_the_table_of_keys_holds_together(window) -> None:
    plain = [key for row in KEYS if not row.drawing for key in row.keys]
    assert len(set(plain)) == len(plain)
    for row in KEYS:
        assert callable(attrgetter(row.does)(window.presenter))
        assert row.words
    assert set(IN_SPEAKER) <= {spec.name for spec in ACTIONS}
    # A dock's or an action's key that a talk takes is one that it means to take.
    shared = {key for row in KEYS for key in row.keys} & {
        keys.toString() for action in window.actions() for keys in action.shortcuts()
    }
    assert shared <= {"PgDown", "PgUp", "B", "F5", "Shift+F5", "Ctrl+Z", "Backspace"}


# --- pointer --------------------------------------------------------------------------------


@pytest.mark.long
def test_a_pointer_that_stands_still_goes_and_comes_back(window, qtbot) -> None:
    presenter = window.presenter
    presenter._still.setInterval(30)
    presenter.start()
    qtbot.waitUntil(lambda: QApplication.overrideCursor() is not None)
    assert QApplication.overrideCursor().shape() is Qt.CursorShape.BlankCursor
    presenter._still.setInterval(60_000)  # not again while the move itself is being handled
    at = QPoint(QCursor.pos())
    QTest.mouseMove(window.windowHandle(), window.mapFromGlobal(at) + QPoint(7, 9))
    assert QApplication.overrideCursor() is None
    presenter._still.setInterval(30)
    qtbot.waitUntil(lambda: QApplication.overrideCursor() is not None)
    presenter.toggle_pen()  # who draws wants to see the pen
    assert QApplication.overrideCursor() is None
    qtbot.wait(90)
    assert QApplication.overrideCursor() is None
    presenter.toggle_pen()
    qtbot.waitUntil(lambda: QApplication.overrideCursor() is not None)
    presenter.end()
    assert QApplication.overrideCursor() is None
    qtbot.wait(90)
    assert QApplication.overrideCursor() is None


# --- speaker --------------------------------------------------------------------------------


@pytest.mark.long
def test_with_one_screen_the_speakers_window_opens_by_its_key(talk, window, qtbot) -> None:
    assert not talk.speaker.isVisible()
    press(window, Key.Key_S)
    assert talk.speaker.isVisible()
    assert not talk.speaker.isFullScreen()
    player = window.lessons.player
    following = talk.speaker.following.prose
    qtbot.waitUntil(lambda: following.caption.number == player.step.number + 1)
    assert "{{" not in following.caption.body
    talk.speaker.close()
    assert talk.on
    press(window, Key.Key_S)
    press(window, Key.Key_S)
    assert not talk.speaker.isVisible()


def test_the_speakers_window_follows_the_lesson_and_leads_it(talk, window, qtbot) -> None:
    talk.link.open()
    speaker, player = talk.speaker, window.lessons.player
    now = speaker.now.prose
    qtbot.mouseClick(speaker.buttons["next"], Qt.MouseButton.LeftButton)
    window.session.settle()
    assert (player.step.number, now.caption.number) == (1, 1)
    number = next(n for n, s in enumerate(player.lesson.steps) if s.said.question)
    player.go(number)
    window.session.settle()
    assert now.caption.answer
    qtbot.mouseClick(speaker.buttons["reveal"], Qt.MouseButton.LeftButton)
    assert player.revealed
    assert speaker.buttons["reveal"].text() == "Hide answer"
    qtbot.mouseClick(speaker.buttons["reveal"], Qt.MouseButton.LeftButton)
    assert not player.revealed
    qtbot.mouseClick(speaker.buttons["blank"], Qt.MouseButton.LeftButton)
    assert window.blanked
    assert speaker.buttons["blank"].isChecked()
    qtbot.mouseClick(speaker.buttons["back"], Qt.MouseButton.LeftButton)
    window.session.settle()
    assert now.caption.number == number - 1
    player.leave()
    window.session.settle()
    assert now.caption.title == "No lesson is open"


@pytest.mark.long
def test_keys_in_the_speakers_window_lead_the_talk(talk, window, session, qapp, qtbot) -> None:
    talk.link.open()
    speaker = talk.speaker
    speaker.activateWindow()
    qapp.processEvents()
    assert speaker.isActiveWindow()
    press(speaker, Key.Key_PageDown)
    assert window.lessons.player.step.number == 1
    press(speaker, Key.Key_PageUp)
    assert window.lessons.player.step.number == 0
    press(speaker, Key.Key_B)
    assert window.blanked
    press(speaker, Key.Key_Escape)
    assert not window.blanked
    cursor = session.cursor
    press(speaker, Key.Key_Right)
    assert session.cursor != cursor
    QTest.keyClick(speaker.windowHandle(), Key.Key_Space)
    qtbot.waitUntil(lambda: session.playing)
    QTest.keyClick(speaker.windowHandle(), Key.Key_Space)
    qtbot.waitUntil(lambda: not session.playing)
    large = speaker.now.prose.style_now.scale
    press(speaker, Key.Key_Plus)
    assert speaker.now.prose.style_now.scale > large
    press(speaker, Key.Key_Escape)
    assert not talk.on
    assert not speaker.isVisible()


@pytest.mark.long
def test_space_presses_a_button_that_has_the_focus(talk, window, qapp) -> None:
    talk.link.open()
    talk.speaker.activateWindow()
    talk.speaker.buttons["pause"].setFocus()
    qapp.processEvents()
    QTest.keyClick(talk.speaker.windowHandle(), Key.Key_Space)
    assert talk.speaker.buttons["pause"].isChecked()
    assert not window.session.playing


def test_the_speaker_is_told_that_the_screen_may_sleep(window, monkeypatch, qtbot) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setenv("WAKEPY_FORCE_FAILURE", "1")
    presenter = window.presenter
    presenter.start()
    presenter.link.open()
    note = presenter.speaker.note
    qtbot.waitUntil(lambda: note.text().startswith("The screen may go to sleep: "))
    presenter.end()


def test_a_screen_that_goes_brings_the_speakers_window_back(talk, window, qapp) -> None:
    talk.link.open()
    talk.speaker.setWindowState(Qt.WindowState.WindowFullScreen)
    qapp.screenRemoved.emit(qapp.primaryScreen())
    qapp.processEvents()
    assert talk.speaker.isVisible()
    assert not talk.speaker.isFullScreen()
    assert talk.on
    talk.end()
    qapp.screenRemoved.emit(qapp.primaryScreen())
    qapp.processEvents()
    assert not talk.speaker.isVisible()


@pytest.mark.long
def test_the_theme_of_the_speakers_window_follows(talk, window) -> None:
    talk.link.open()
    window.settings.theme = "light"
    window.apply_style()
    assert talk.speaker.now.prose.style_now.theme.name == "light"
