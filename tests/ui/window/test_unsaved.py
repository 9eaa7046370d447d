"""Unsaved changes: asked about once where a person ends or replaces them, kept in any case."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QCloseEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QMessageBox

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.problem.scenario import load_scenario
from tests.helpers.by_hand import choosing, opened_menu
from tests.helpers.changes import choose_algorithm
from tests.helpers.programs import run
from ui.safety.settings import Settings


class ByFrame(QCloseEvent):
    """What the frame's own button sends: nothing in Qt's Python lets a test send it."""

    def spontaneous(self):
        return True


@pytest.fixture
def window(open_window, mine):
    out = open_window("flash2", (1280, 720))
    out.files.open_path(mine)
    out.session.settle()
    return out


def change(window, algorithm="naive"):
    choose_algorithm(window, algorithm)
    window.session.settle()


def answer(window, text):
    box = window.findChild(QMessageBox, "unsaved")
    assert box.isVisible()
    next(button for button in box.buttons() if button.text() == text).click()
    window.session.settle()


def quit_(window):
    window.actions_by_name["quit"].trigger()


def by_frame(window):
    event = ByFrame()
    window.closeEvent(event)
    assert not event.isAccepted() or not window.unsaved.asks


def open_demo(window):
    opened_menu(window, "Demos").actions()[0].trigger()
    window.session.settle()


def drop(window):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(SCENARIOS / "large-logits.toml"))])
    at, button = QPointF(50, 50), Qt.MouseButton.LeftButton
    plain = Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(at, Qt.DropAction.CopyAction, data, button, plain))
    window.session.settle()


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("ask", [quit_, by_frame, open_demo, drop])
def test_cancel_leaves_everything_as_it_is(window, mine, ask):
    change(window)
    before = window.session.scenario
    ask(window)
    answer(window, "Cancel")
    assert window.isVisible()
    assert (window.session.scenario, window.session.path) == (before, mine)
    assert window.isWindowModified()
    ask(window)
    assert window.unsaved.box is not None  # Cancel settles nothing for the next time
    answer(window, "Cancel")


@pytest.mark.parametrize("ask", [quit_, by_frame])
def test_save_writes_the_file_and_closes(window, mine, ask):
    change(window)
    ask(window)
    answer(window, "Save")
    assert not window.isVisible()
    assert load_scenario(mine).attention.algorithm == "naive"


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ask", [quit_, open_demo, drop])
def test_what_is_not_saved_is_among_the_recent_files(window, mine, ask):
    change(window)
    ask(window)
    answer(window, "Don't save")
    copy = window.settings.folder / "unsaved.toml"
    assert copy in window.settings.recent
    assert load_scenario(copy).attention.algorithm == "naive"
    assert load_scenario(mine).attention.algorithm == "flash2"
    assert window.isVisible() is (ask is not quit_)
    if ask is not quit_:
        assert window.session.path != mine
        window.actions_by_name["undo"].trigger()  # opening is a step that can be undone
        window.session.settle()
        assert window.session.scenario.attention.algorithm == "naive"


def test_a_file_dialog_that_is_left_saves_and_closes_nothing(open_window):
    window = open_window("flash2")
    window.session.start(window.session.scenario, None)  # as from an export: there is no file
    window.session.settle()
    change(window)
    quit_(window)
    assert choosing(lambda: answer(window, "Save"), None)
    assert window.isVisible()
    assert window.isWindowModified()


def test_nothing_is_asked_where_nothing_is_unsaved(window):
    open_demo(window)
    assert window.unsaved.box is None
    quit_(window)
    assert window.unsaved.box is None
    assert not window.isVisible()


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("end", [quit_, by_frame, open_demo, drop])
def test_changes_of_a_demo_are_kept_without_a_question(open_window, end):
    window = open_window("causal")
    change(window)
    end(window)
    assert window.unsaved.box is None
    copy = window.settings.folder / "unsaved-causal.toml"
    assert load_scenario(copy).attention.algorithm == "naive"
    assert window.settings.recent[0] == copy
    if end in (quit_, by_frame):
        return
    assert window.isVisible()
    assert window.messages.text() == "Your changes are in unsaved-causal.toml, under File, Recent."
    change(window, "flash1")  # those of the next demo leave this copy alone
    open_demo(window)
    assert load_scenario(copy).attention.algorithm == "naive"
    assert len({path.name for path in window.settings.recent}) == 2


def test_saving_a_demo_proposes_a_name_at_home(open_window, tmp_path):
    window = open_window("causal")
    assert choosing(window.files.save, tmp_path / "mine.toml")
    asked = []

    def look():
        found = QApplication.activeModalWidget()
        asked.extend(found.selectedFiles())
        found.reject()

    QTimer.singleShot(0, look)
    window.actions_by_name["save_scenario_as"].trigger()
    assert asked == [str(tmp_path / "mine.toml")]
    window.files.open_path(SCENARIOS / "naive.toml")
    window.session.settle()
    QTimer.singleShot(0, look)
    window.actions_by_name["save_scenario"].trigger()
    assert asked[1:] == [str(Path.home() / "naive.toml")]


@pytest.mark.long
def test_do_not_ask_again_can_be_taken_back(window, mine):
    change(window)
    quit_(window)
    window.unsaved.box.checkBox().setChecked(True)
    answer(window, "Cancel")
    assert window.settings.ask_unsaved  # an answer that settles nothing sets nothing
    open_demo(window)
    window.unsaved.box.checkBox().setChecked(True)
    answer(window, "Don't save")
    action = window.actions_by_name["ask_unsaved"]
    assert not action.isChecked()
    assert not Settings(window.settings.folder / "settings.ini").ask_unsaved
    window.files.open_path(mine)
    window.session.settle()
    change(window, "flash1")
    open_demo(window)
    assert window.unsaved.box is None
    assert load_scenario(window.settings.folder / "unsaved.toml").attention.algorithm == "flash1"
    action.trigger()
    window.files.open_path(mine)
    window.session.settle()
    change(window, "flash1")
    quit_(window)
    assert window.unsaved.box is not None
    answer(window, "Cancel")


@pytest.mark.long
def test_a_copy_that_is_opened_again_is_not_written_over(window):
    change(window)
    window.unsaved.keep()
    copy = window.settings.folder / "unsaved.toml"
    change(window, "flash1")
    window.files.open_by_hand(copy)
    window.session.settle()
    answer(window, "Don't save")
    assert window.session.path == copy
    assert window.session.scenario.attention.algorithm == "naive"
    assert load_scenario(copy).attention.algorithm == "naive"
    other = [path for path in window.settings.recent if path.name.startswith("unsaved-")]
    assert load_scenario(other[0]).attention.algorithm == "flash1"


@pytest.mark.long
def test_during_a_lesson_it_is_the_scenario_before_it_that_counts(window, mine):
    change(window)
    lessons = window.lessons
    lessons.open(LESSONS / "01-soft-lookup.md")
    window.session.settle()
    assert window.unsaved.box is None  # a lesson puts nothing away
    quit_(window)
    answer(window, "Cancel")
    assert lessons.player.lesson is not None
    quit_(window)
    answer(window, "Save")
    assert load_scenario(mine).attention.algorithm == "naive"
    assert not window.isVisible()


def test_a_talk_goes_on_when_its_end_is_cancelled(window):
    change(window)
    window.presenter.start()
    quit_(window)
    answer(window, "Cancel")
    assert window.presenter.on
    window.presenter.end()


@pytest.mark.long
def test_the_end_of_the_session_asks_nothing_and_keeps_the_copy(window):
    change(window)
    window.unsaved.end_session()
    assert load_scenario(window.settings.folder / "unsaved.toml").attention.algorithm == "naive"
    by_frame(window)
    assert window.unsaved.box is None


@pytest.mark.long
def test_a_program_that_closes_its_window_is_not_held_up(tmp_path, mine):
    done = run(
        tmp_path,
        """
        if once("change"):
            change(algorithm="flash1")
        if w.isWindowModified() and once("closed"):
            w.close()
        """,
        str(mine),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert load_scenario(tmp_path / "unsaved.toml").attention.algorithm == "flash1"
