"""How widgets paint: the painter always ends, and errors stay inside (`faults`).

After an error the widget says that it was not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import QWidget

from ui.look.draw import CENTRE, draw_text, text_width
from ui.safety.faults import Border

WORDS = ("This panel could not be drawn.", "Not drawn.")
"""Texts of a widget that was not drawn; the first that fits is shown, or none."""


@contextmanager
def painting(widget: QWidget, *, covers: bool = True) -> Iterator[QPainter]:
    """Paint on a widget, inside its `paintEvent`; no error leaves it.

    covers: whether a failed picture is covered with the background of a panel and `WORDS`. Not for
        a widget that lies over or under a picture that is still right.
    """
    with Border(widget) as border:
        painter = QPainter(widget)
        try:
            yield painter
        finally:
            painter.end()  # a traceback would keep the painter, and Qt paints the next widget
    if border.failed and covers:
        with suppress(Exception), QPainter(widget) as ground:
            cover(ground, widget)


@contextmanager
def contained(painter: QPainter, widget: QWidget) -> Iterator[None]:
    """Paint part of a widget with one of Qt's painters, whose state is restored afterwards."""
    with Border(widget) as border:
        painter.save()
        try:
            yield
        finally:
            painter.restore()
    if border.failed:
        with suppress(Exception):
            cover(painter, widget)


def cover(painter: QPainter, widget: QWidget) -> None:
    """Cover a widget with the background of a panel, and say that nothing else could be drawn."""
    place, palette, font = QRectF(widget.rect()), widget.palette(), widget.font()
    painter.fillRect(place, palette.color(QPalette.ColorRole.AlternateBase))
    room = place.adjusted(4, 0, -4, 0)
    fitting = [words for words in WORDS if text_width(font, words) <= room.width()]
    if fitting and widget.fontMetrics().height() <= room.height():
        colour = palette.color(QPalette.ColorRole.PlaceholderText)
        draw_text(painter, room, fitting[0], font, colour, CENTRE)
