"""Names of a control: for tests and style sheets, for screen readers, and in its tip."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

W = TypeVar("W", bound=QWidget)


def named(
    widget: W, name: str, meaning: str, tip: str = "", focus: Qt.FocusPolicy | None = None
) -> W:
    """Return a widget with its object name, its name for screen readers, and its tip.

    Screen readers read the tip, too.

    focus: how the widget gets the focus, if not as Qt has it.
    """
    widget.setObjectName(name)
    widget.setAccessibleName(meaning)
    widget.setToolTip(tip)
    if focus is not None:
        widget.setFocusPolicy(focus)
    return widget
