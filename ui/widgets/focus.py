"""Shows which widget has the focus, but only if a key, not a click, moved the focus there.

A ring around a button that somebody has clicked, or that got the focus because another widget
disappeared, looks like a choice. Browsers make the same distinction (``:focus-visible``).
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

RING = "ring"
"""The property of a widget that shows its focus; style sheets ask for ``[ring="true"]``."""
_BY_KEY = Qt.WidgetAttribute.WA_KeyboardFocusChange
"""The property that Qt sets on a window when Tab or a shortcut has moved the focus in it."""


def has_ring(widget: QWidget) -> bool:
    """Return whether a widget is to show that it has the focus."""
    return widget.hasFocus() and bool(widget.property(RING))


class FocusRing(QObject):
    """Gives the ring to the widget to which a key has moved the focus, and takes it back."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._ringed: QWidget | None = None
        app.focusChanged.connect(self._follow)

    def _follow(self, old: QWidget | None, now: QWidget | None) -> None:
        if now is None:
            return  # another program has the keyboard; when it comes back the ring is still there
        window = now.window()
        by_key = window.testAttribute(_BY_KEY)
        window.setAttribute(_BY_KEY, False)  # Qt sets it again at a move by key
        ringed = self._ringed if self._ringed is not None and isValid(self._ringed) else None
        clicked = bool(now.focusPolicy() & Qt.FocusPolicy.ClickFocus)
        along = ringed is not None and ringed is old and not clicked  # the arrow keys in a group
        self._ringed = now if by_key or along or now is ringed else None
        if ringed is not None and ringed is not self._ringed:
            _show(ringed, False)
        if self._ringed is not None and ringed is not self._ringed:
            _show(self._ringed, True)


def _show(widget: QWidget, on: bool) -> None:
    widget.setProperty(RING, on)
    widget.style().unpolish(widget)  # style sheets read properties only then
    widget.style().polish(widget)
    widget.update()
