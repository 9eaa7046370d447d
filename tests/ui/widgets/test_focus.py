"""The ring around what has the focus: where a key took it, and nowhere else."""

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from ui.widgets.focus import has_ring

ROOT = Path(__file__).resolve().parents[3]
TAB, BACK = Qt.Key.Key_Tab, Qt.Key.Key_Backtab


@pytest.fixture
def window(open_window, qapp):
    out = open_window("causal", (1280, 720))
    out.activateWindow()
    out.board.setFocus()
    qapp.processEvents()
    return out


def click(widget, at=None):
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at or widget.rect().center())
    QTest.mouseMove(widget.window(), QPoint(2, 2))  # or the pointer would light it as well
    QApplication.processEvents()


def picture(widget):
    return widget.grab().toImage()


def tab_to(widget, key=TAB):
    for _ in range(60):
        QTest.keyClick(QApplication.focusWidget(), key)
        if widget.hasFocus():
            return
    raise AssertionError("no way there with Tab")


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ["scrubber", "chips", "first", "play"])
def test_a_click_leaves_no_ring_and_tab_makes_one(window, name):
    bar = window.transport
    part = bar.buttons.get(name) or getattr(bar, name)
    click(part, QPoint(1, 1))
    window.session.play(False)
    window.session.first()
    window.session.settle()
    assert part.hasFocus()
    assert not has_ring(part)
    plain = picture(part)
    tab_to(part)
    assert has_ring(part)
    assert picture(part) != plain
    click(window.board, QPoint(2, 2))
    assert not has_ring(part)
    assert picture(part) == plain


def test_a_ring_on_a_chip_is_no_choice(window):
    """The algorithm is first in the order of Tab: what merely loses its focus leaves it there."""
    window.resize(1920, 1080)
    QApplication.processEvents()
    chip = window.header.chips.chips["attention.algorithm"]
    plain = picture(chip)
    window.board.hide()
    window.board.show()
    window.board.setFocus()
    window.board.setEnabled(False)
    window.board.setEnabled(True)
    chip.setFocus()
    assert picture(chip) == plain
    window.board.setFocus()
    tab_to(chip)
    assert picture(chip) != plain


def test_a_ring_comes_back_with_the_window(window, qapp):
    button = window.transport.buttons["first"]
    tab_to(button)
    button.clearFocus()
    assert not has_ring(button)
    button.setFocus(Qt.FocusReason.ActiveWindowFocusReason)
    assert has_ring(button)


def test_a_shortcut_that_goes_to_a_field_shows_where_it_went(window, qapp):
    window.desk.take("algorithm")
    QTest.keyClick(window, Qt.Key.Key_F8, Qt.KeyboardModifier.ControlModifier)
    qapp.processEvents()
    assert has_ring(window.docks.panel("code").bar.until)


@pytest.mark.long
def test_an_application_that_was_there_before_has_rings_too():
    lines = (
        "from PySide6.QtWidgets import QApplication\n"
        "app = QApplication([])\n"
        "from ui.app.start import application\n"
        "from ui.widgets.focus import FocusRing\n"
        "assert application() is application() is app\n"
        "print(len(app.findChildren(FocusRing)), app.style().name())"
    )
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("1 fusion\n", "")
