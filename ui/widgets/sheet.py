"""Style sheets of widgets: set only when they differ, because Qt then styles all children again."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


def set_sheet(widget: QWidget, sheet: str) -> None:
    """Give a widget a style sheet, unless it has this one."""
    if sheet != widget.styleSheet():
        widget.setStyleSheet(sheet)
