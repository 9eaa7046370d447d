"""Failures, planted: one dialog in plain words, a report to copy, and the program goes on."""

import faulthandler
import signal
import sys
import threading

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QWidget

from simulator.problem.scenario import scenario_toml
from tests.helpers.changes import choose_algorithm
from tests.helpers.programs import run, started
from ui.look.theme import TEXT_SCALES
from ui.safety.crash import MOST_TOLD, CrashDesk, CrashDialog
from ui.window.autosave import Autosave, find_orphans


@pytest.fixture
def desk(qapp):
    """A desk that takes all errors of a test."""
    out = CrashDesk()
    out.install()
    yield out
    out.uninstall()
    out.deleteLater()


@pytest.fixture
def shown(desk, open_window):
    """The desk of a window with unsaved changes."""
    window = open_window("causal")
    desk.window, desk.session = window, window.session
    desk.autosave = Autosave(window.session, window.settings.folder)
    choose_algorithm(window, "flash1")
    window.session.settle()
    yield desk
    desk.autosave.finish()


def plant(words="planted"):
    """Fail in a slot of the event loop."""

    def fail():
        raise ZeroDivisionError(words)

    QTimer.singleShot(0, fail)


def dialogs(window):
    return [d for d in window.findChildren(CrashDialog) if d.isVisible()]


def test_a_failure_in_a_slot_is_one_dialog_in_plain_words(shown, qtbot):
    plant()
    qtbot.waitUntil(lambda: shown.dialog is not None)
    assert dialogs(shown.window) == [shown.dialog]
    words = " ".join(w.text() for w in shown.dialog.findChildren(QLabel) if not w.isHidden())
    assert "went wrong" in words
    assert "changes are kept" in words
    for foreign in ("Traceback", "ZeroDivisionError", "planted", ".py"):
        assert foreign not in words
    assert shown.dialog.details.isHidden()
    shown.dialog.continue_button.click()
    assert not dialogs(shown.window)
    assert shown.window.isVisible()


def test_the_report_holds_all_that_mending_needs(shown, qtbot):
    plant("planted here")
    qtbot.waitUntil(lambda: shown.dialog is not None)
    shown.dialog.copy_button.click()
    text = QGuiApplication.clipboard().text()
    session = shown.window.session
    assert text == shown.dialog.report
    assert scenario_toml(session.scenario).strip() in text
    assert f"engine {session.trace.engine.name}" in text
    assert "Traceback" in text
    assert "ZeroDivisionError: planted here" in text
    assert text.startswith("Tilescope ")
    shown.dialog.show_button.click()
    assert shown.dialog.details.toPlainText() == text.rstrip("\n") + "\n"
    assert shown.dialog.details.isVisible()
    shown.dialog.accept()


def test_the_scenario_is_copied_at_that_moment(shown, qtbot):
    assert shown.autosave.pending  # the usual copy would come seconds later
    plant()
    qtbot.waitUntil(lambda: shown.dialog is not None)
    assert shown.autosave.kept
    shown.dialog.accept()


def test_further_failures_are_added_and_open_nothing(shown, qtbot):
    plant("first")
    qtbot.waitUntil(lambda: shown.dialog is not None)
    dialog = shown.dialog
    for n in range(MOST_TOLD + 5):
        plant(f"later {n}")
    qtbot.waitUntil(lambda: f"{MOST_TOLD + 5} more times" in dialog.more.text())
    assert dialogs(shown.window) == [dialog]
    assert "first" in dialog.report
    assert "later 3" in dialog.report
    assert "6 more" in dialog.report
    dialog.accept()


def test_threads_and_what_is_let_go_of_arrive_too(shown, qtbot):
    class Careless:
        def __del__(self):
            raise KeyError("let go of")

    def fail():
        raise OSError("in a thread")

    thread = threading.Thread(target=fail, name="far")
    thread.start()
    thread.join()
    Careless()
    qtbot.waitUntil(lambda: shown.dialog is not None and "once more" in shown.dialog.more.text())
    assert "In the thread far:" in shown.dialog.report
    assert "in a thread" in shown.dialog.report
    assert "KeyError: 'let go of'" in shown.dialog.report
    shown.dialog.accept()


def test_a_failure_of_painting_is_told_once_however_often_it_comes(shown, qtbot):
    class Broken(QWidget):
        painted = 0

        def paintEvent(self, event):
            self.painted += 1
            raise ValueError("painting")

    broken = Broken(shown.window)
    broken.resize(50, 50)
    broken.show()
    qtbot.waitUntil(lambda: shown.dialog is not None)
    shown.dialog.accept()
    before = broken.painted
    for _ in range(10):
        broken.update()
        qtbot.wait(5)
    assert broken.painted >= before + 10
    assert shown.dialog is None
    broken.hide()


def test_a_failure_comes_again_later_and_is_told_again(shown, qtbot):
    shown.quiet_seconds = 0.0
    for _ in range(2):
        plant()
        qtbot.waitUntil(lambda: shown.dialog is not None)
        shown.dialog.accept()
        assert shown.dialog is None


def test_a_failure_in_telling_ends_there(shown, qtbot):
    class NoRun:
        @property
        def trace(self):
            raise RuntimeError("the teller is broken")

    shown.session = NoRun()
    plant("first")
    qtbot.waitUntil(lambda: shown.broken)
    plant("second")
    qtbot.wait(50)
    assert shown.dialog is None


@pytest.mark.parametrize("scale", [TEXT_SCALES[0], TEXT_SCALES[-1]])
def test_nothing_in_the_dialog_is_cut_off(shown, qtbot, scale):
    window = shown.window
    window.settings.text_scale = scale
    window.apply_style()
    plant()
    qtbot.waitUntil(lambda: shown.dialog is not None)
    plant("another")
    qtbot.waitUntil(lambda: not shown.dialog.more.isHidden())
    shown.dialog.show_button.click()
    qtbot.wait(20)
    for label in (shown.dialog.words, shown.dialog.more):
        assert label.height() >= label.heightForWidth(label.width())
    for button in (shown.dialog.show_button, shown.dialog.copy_button, shown.dialog.quit_button):
        assert button.width() >= button.sizeHint().width()
    assert shown.dialog.width() <= window.width()
    shown.dialog.accept()


# --- the whole program -------------------------------------------------------------------------

PLANT = """
if once("change"):
    change(algorithm="flash1")
if w.isWindowModified() and once("plant"):
    QTimer.singleShot(0, lambda: 1 / 0)
if box("crash") and once("told"):
    say(len(copies(w)))
    button("crash", "{button}").click()
    QTimer.singleShot(100, w.close)
"""


@pytest.mark.long
def test_continue_goes_on_and_closing_later_offers_nothing(tmp_path):
    done = run(tmp_path, PLANT.format(button="Continue"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert not find_orphans(tmp_path)
    assert "ZeroDivisionError" in (tmp_path / "tilescope.log").read_text(encoding="utf-8")


@pytest.mark.long
def test_quit_ends_and_the_next_start_offers_the_scenario(tmp_path):
    done = run(tmp_path, PLANT.format(button="Quit"))
    assert (done.returncode, done.stdout, done.stderr) == (1, "1\n", "")
    done = run(
        tmp_path,
        """
        if box("restore") and once("answer"):
            button("restore", "Restore").click()
        if w.isWindowModified() and copies(w) and once("closed"):
            say(w.session.scenario.attention.algorithm)
            w.close()
        """,
    )
    assert done.stdout == "flash1\n"


@pytest.mark.long
def test_an_interrupt_closes_the_window(tmp_path):
    with started(tmp_path, 'once("told") and say("ready")') as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in err


def test_a_start_that_fails_is_a_dialog_and_no_traceback(tmp_path):
    setup = """
    def broken(*arguments):
        raise RuntimeError("no window today")

    def quit():
        if box("crash"):
            say([b.text() for b in box("crash").findChildren(ui.safety.crash.QPushButton)
                 if b.isVisible()])
            button("crash", "Quit").click()

    ui.app.start.make_window = broken
    ticks = QTimer(app, interval=20)
    ticks.timeout.connect(quit)
    ticks.start()
    """
    done = run(tmp_path, "pass", setup=setup)
    assert done.returncode == 1
    assert "Continue" not in done.stdout
    assert "Copy report" in done.stdout
    assert not done.stderr


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing there")
def test_a_crash_of_the_interpreter_is_in_the_log(tmp_path):
    assert hasattr(faulthandler, "_sigsegv")
    done = run(tmp_path, "import faulthandler; faulthandler._sigsegv()")
    assert done.returncode == -signal.SIGSEGV
    text = (tmp_path / "tilescope.log").read_text(encoding="utf-8")
    assert "Segmentation fault" in text
    assert "in act" in text
