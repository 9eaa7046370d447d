"""Style sheets of widgets: set where they are others, for Qt polishes all inside anew each time."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


def set_sheet(widget: QWidget, sheet: str) -> None:
    """Give a widget a style sheet, unless it has that one."""
    if sheet != widget.styleSheet():
        widget.setStyleSheet(sheet)
