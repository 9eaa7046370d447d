"""Rows and columns of widgets in one call."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QBoxLayout, QLayout, QWidget

Part = QWidget | QLayout | int | tuple[QWidget | QLayout, int]
"""A widget or a layout, maybe with its stretch; a number alone is empty space with this stretch."""
B = TypeVar("B", bound=QBoxLayout)


def with_parts(box: B, *parts: Part, margin: int | None = None, gap: int | None = None) -> B:
    """Return a row or a column with its parts, and the space around and between them."""
    if margin is not None:
        box.setContentsMargins(margin, margin, margin, margin)
    if gap is not None:
        box.setSpacing(gap)
    for part in parts:
        inner, stretch = part if isinstance(part, tuple) else (part, 0)
        if isinstance(inner, int):
            box.addStretch(inner)
        elif isinstance(inner, QWidget):
            box.addWidget(inner, stretch)
        else:
            box.addLayout(inner, stretch)
    return box
