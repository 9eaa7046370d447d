"""The buttons beside the menus, one for each layout, or one for all in a narrow window."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QMenu, QMenuBar, QSizePolicy, QToolButton, QWidget

from ui.safety.overrides import guarded

_GAP = 24
"""Pixels that stay free between menus and buttons."""


@guarded
class LayoutButtons(QWidget):
    """Is in the corner of a menu bar, and leaves the menus their space.

    row: a button for each layout.
    chooser: a button with the name of the current layout, and a menu of all layouts.
    """

    needed = Signal(int)
    """The least width of the window, in pixels: a menu bar does not ask its window for any."""

    def __init__(self, bar: QMenuBar, actions: Sequence[QAction]) -> None:
        super().__init__(bar)
        self._bar = bar
        self.row, self.chooser = QWidget(), QToolButton()
        place = _no_margins(QHBoxLayout(self), right=8)
        place.addWidget(self.row)
        place.addWidget(self.chooser)
        buttons = _no_margins(QHBoxLayout(self.row))
        menu = QMenu(self.chooser)
        for action in actions:
            button = QToolButton()
            button.setObjectName("layout")
            button.setAccessibleName(f"Layout {action.text()}")
            button.setDefaultAction(action)
            buttons.addWidget(button)
            menu.addAction(action)
            action.toggled.connect(self._name)
        self.chooser.setObjectName("layout")
        self.chooser.setAccessibleName("Layouts")
        self.chooser.setToolTip("Layouts")
        self.chooser.setMenu(menu)
        self.chooser.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.chooser.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.chooser.setStyleSheet("QToolButton::menu-indicator { image: none; }")  # ▾ is larger
        self.chooser.hide()
        self._actions = actions
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.fit)
        bar.installEventFilter(self)

    def _name(self, on: bool) -> None:
        """Write the name of the current layout on the button for all."""
        if on:
            chosen = next(action for action in self._actions if action.isChecked())
            self.chooser.setText(f"{chosen.text()} ▾")
            self._soon.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notice that the bar, its text or a menu has another size."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.StyleChange, QEvent.Type.FontChange):
            self._soon.start()
        return False

    def fit(self) -> None:
        """Show all buttons if the menus leave space for them, otherwise the one button."""
        bar = self._bar
        menus = max(bar.actionGeometry(action).right() for action in bar.actions())
        self.row.ensurePolished()
        wide = menus + _GAP + self.row.sizeHint().width() <= bar.width()
        self.chooser.ensurePolished()
        self.needed.emit(menus + _GAP + self.chooser.sizeHint().width())
        self.row.setVisible(wide)
        self.chooser.setVisible(not wide)
        if self.size() != self.sizeHint() and not self.isHidden():
            # A menu bar gives its corner another size only when the corner is shown again.
            self.hide()
            self.show()


def _no_margins(row: QHBoxLayout, right: int = 0) -> QHBoxLayout:
    row.setContentsMargins(0, 0, right, 0)
    row.setSpacing(2)
    return row
