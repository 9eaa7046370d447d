"""Asks before an existing file is replaced, if no file dialog has asked already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget


def ask_replace(parent: QWidget, there: list[Path], act: Callable[[], object]) -> None:
    """Do something at once if no file is in its way, otherwise after the user agrees."""
    if not there:
        act()
        return
    first = there[0]
    words = f"{first.name} is there already."
    if len(there) > 1:
        words = f"{len(there)} such pictures, from {first.name} on, are there already."
    box = QMessageBox(parent)
    box.setObjectName("replace")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle("Replace?")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(words)
    box.setInformativeText(f"In {first.parent}. What was in it is lost.")
    replace = box.addButton("Replace", QMessageBox.ButtonRole.DestructiveRole)
    cancel = box.addButton("Cancel", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(cancel)
    box.setEscapeButton(cancel)
    box.finished.connect(lambda _: act() if box.clickedButton() is replace else None)
    box.open()
