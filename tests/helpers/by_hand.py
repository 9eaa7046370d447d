"""What a user does with menus, fields and the dialogs that ask for a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QMenu

from tests.helpers.waiting import settle
from ui.window.main_window import MainWindow
from ui.window.mnemonics import plain


def opened_menu(window: MainWindow, title: str) -> QMenu:
    """Return a menu inside File as it is once it has been opened: it is filled then."""
    menus = window.menus["File"].findChildren(QMenu)
    (menu,) = (menu for menu in menus if plain(menu.title()) == title)
    menu.aboutToShow.emit()
    return menu


def retype(edit: QLineEdit, text: str) -> None:
    """Type over what stands in a line."""
    edit.selectAll()
    QTest.keyClicks(edit, text)


def press(panel: Any, choice: str, value: str) -> None:
    """Press a button above a panel, and wait for what it shows."""
    QTest.mouseClick(panel.bar.buttons[choice, value], Qt.MouseButton.LeftButton)
    settle(panel.window())


def choosing(act: Callable[[], object], path: Path | None, kind: int = 0) -> list[QFileDialog]:
    """Do something that asks for a file, and answer.

    act: opens the dialog.
    path: the file that is chosen; None: Cancel.
    kind: which of the kinds of files that are offered.
    Returns: the dialog that has asked; none where nothing was asked.
    """
    asked: list[QFileDialog] = []

    def answer() -> None:
        dialog = QApplication.activeModalWidget()
        if not isinstance(dialog, QFileDialog):
            return
        asked.append(dialog)
        if path is None:
            dialog.reject()
            return
        dialog.selectNameFilter(dialog.nameFilters()[kind])
        dialog.setDirectory(str(path.parent))
        line = dialog.findChild(QLineEdit, "fileNameEdit")
        assert line is not None
        line.setText(str(path))
        dialog.accept()

    timer = QTimer(singleShot=True, interval=0)
    timer.timeout.connect(answer)
    timer.start()
    act()
    timer.stop()
    return asked
