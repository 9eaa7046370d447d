"""The dock that shows traffic."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from ui.session import Session, View
from ui.theme import DARK, Style


class TrafficPanel(QWidget):
    """Shows traffic."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.setObjectName("traffic_panel")
        self.setMinimumSize(320, 150)
        self.style_now = Style(DARK)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.update()

    def show_view(self, view: View) -> None:
        """Show a view."""
        self.update()
