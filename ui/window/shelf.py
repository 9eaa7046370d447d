"""Where the panels are kept, out of the window, whose docks nobody sees."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from PySide6.QtCore import QObject, QSize, QTimer
from PySide6.QtWidgets import QDockWidget, QWidget

from ui.panels.base import Panel
from ui.safety.overrides import guarded

UNSEEN_MS, NEXT_MS = 1000, 50
"""How long nobody has seen a dock before its panel goes, and after which the next one follows: the
window takes input in between. A layout that is left for a moment finds its panels in place."""


class Shelf(QObject):
    """Takes panels out of docks that are closed or behind a tab for long, and puts them back.

    With every change of theme or text size Qt goes through all widgets inside a window, in sight
    or not, and most of them are of panels that nobody sees. Something as large stays for each.

    Parameters
    ----------
    window : QWidget
        With which it ends.
    docks : mapping
        Name to dock.
    panels : mapping
        Name to panel, of those that have been made.
    seen : collection of str
        Names of the docks in sight.
    """

    def __init__(
        self,
        window: QWidget,
        docks: Mapping[str, QDockWidget],
        panels: Mapping[str, Panel[Any]],
        seen: Collection[str],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._docks, self._panels, self._seen = docks, panels, seen
        self._place = QWidget()
        self._place.setObjectName("shelf")
        window.destroyed.connect(self._place.deleteLater)
        self._next = QTimer(self, singleShot=True)
        self._next.timeout.connect(self._clear_one)

    def put_back(self, name: str) -> None:
        """Put a panel into its dock, unless it is there."""
        panel, dock = self._panels[name], self._docks[name]
        stand_in = dock.widget()
        if stand_in is panel:
            return
        dock.setWidget(panel)
        panel.show()  # a dock in sight does not do so by itself
        if stand_in is not None:
            stand_in.deleteLater()
            layout = dock.layout()
            assert layout is not None
            layout.activate()

    def clear_later(self) -> None:
        """Take panels out of the docks that nobody sees by then."""
        if not self._next.isActive():
            self._next.start(UNSEEN_MS)

    def _clear_one(self) -> None:
        if not self._window.isVisible() or self._window.isMinimized():
            return  # all that was seen will be so again, at once
        for name, panel in self._panels.items():
            if name not in self._seen and panel.parentWidget() is not self._place:
                self._docks[name].setWidget(_StandIn(panel))
                panel.setParent(self._place)
                self._next.start(NEXT_MS)
                return


@guarded
class _StandIn(QWidget):
    """Wants as much room as a panel that is away."""

    def __init__(self, panel: QWidget) -> None:
        super().__init__()
        self._hint, self._least = panel.sizeHint(), panel.minimumSizeHint()
        self.setMinimumSize(panel.minimumSize())
        self.setMaximumSize(panel.maximumSize())
        self.setSizePolicy(panel.sizePolicy())

    def sizeHint(self) -> QSize:
        return self._hint

    def minimumSizeHint(self) -> QSize:
        return self._least
