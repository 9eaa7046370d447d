"""Drops from other programs are copies: a program deletes a file that was moved."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget


def accept_copy(event: QDropEvent) -> None:
    """Accept a drag or a drop as a copy; refuse one whose source would move it."""
    if event.possibleActions() & Qt.DropAction.CopyAction:
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
    else:
        event.ignore()


def leave_drops(widget: QWidget) -> None:
    """Leave drops on the lines of text of a widget to its window."""
    for line in (*widget.findChildren(QLineEdit), *widget.findChildren(QPlainTextEdit)):
        line.setAcceptDrops(False)
