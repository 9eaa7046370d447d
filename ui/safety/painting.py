"""How widgets paint: the painter always ends, and what goes wrong stays inside.

An error that leaves a `paintEvent` is pending while Qt calls the next one, and PySide 6.10 then
crashes. So it is told to `sys.excepthook` from here, and the widget says that it was not drawn.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from simulator.base.errors import refuse
from ui.look.draw import CENTRE, draw_text, text_width

WORDS = ("This panel could not be drawn.", "Not drawn.")
"""What a widget shows instead; the first that fits, or nothing."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error of painting, without its frames: they would keep what they paint on."""

    where: str
    error: BaseException
    trace: str


_told: set[tuple[object, ...]] = set()
"""Kind and lines of errors that have been told: a panel may be painted 60 times a second."""
_waiting: list[list[_Failure]] = []
"""Of those who make a picture and want to know: the innermost is told."""


@contextmanager
def painting(widget: QWidget, *, covers: bool = True) -> Iterator[QPainter]:
    """Paint on a widget, inside its `paintEvent`; nothing that is raised comes out.

    Parameters
    ----------
    widget : QWidget
        What is painted on.
    covers : bool
        Whether a failed picture is covered with the ground of a panel and `WORDS`. Not for what
        lies over something that is still good, or under it.
    """
    painter = QPainter(widget)
    try:
        yield painter
    except BaseException as error:
        painter.end()  # the traceback keeps it, and Qt goes on with the next widget
        take_failure(widget, error)
        if covers:
            with suppress(Exception), QPainter(widget) as ground:
                cover(ground, widget)
    else:
        painter.end()


@contextmanager
def contained(painter: QPainter, widget: QWidget) -> Iterator[None]:
    """Paint part of a widget with a painter of Qt's, which goes on with it as it was."""
    painter.save()
    try:
        yield
    except BaseException as error:
        painter.restore()
        take_failure(widget, error)
        with suppress(Exception):
            cover(painter, widget)
    else:
        painter.restore()


@contextmanager
def whole_pictures() -> Iterator[None]:
    """Refuse, in the end, a picture in which a widget could not be drawn.

    Raises
    ------
    InputError
        Which widget, and why, in one line; a note holds the traceback.
    """
    failures: list[_Failure] = []
    _waiting.append(failures)
    try:
        yield
    finally:
        _waiting.remove(failures)
    if not failures:
        return
    first = failures[0]
    if not isinstance(first.error, Exception):
        raise first.error
    why = f"{type(first.error).__name__}: {first.error}"
    refusal = refuse("picture", first.where, why, "a panel that can be drawn")
    refusal.add_note(first.trace)
    raise refusal


def take_failure(what: object, error: BaseException) -> None:
    """Tell of an error in what Qt calls: who waits for it, else the hook, and that once."""
    trace = error.__traceback__
    if _waiting:
        where = type(what).__name__
        if isinstance(what, QWidget) and isValid(what):
            where = what.accessibleName() or what.objectName() or where
        text = "".join(traceback.format_exception(error))
        _waiting[-1].append(_Failure(where, error.with_traceback(None), text))
        return
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    key = (type(error).__name__, *lines)
    if key not in _told or not isinstance(error, Exception):
        _told.add(key)
        with suppress(Exception):
            sys.excepthook(type(error), error, trace)


def cover(painter: QPainter, widget: QWidget) -> None:
    """Draw over a widget the ground of a panel, and that nothing else could be drawn."""
    place, palette, font = QRectF(widget.rect()), widget.palette(), widget.font()
    painter.fillRect(place, palette.color(QPalette.ColorRole.AlternateBase))
    room = place.adjusted(4, 0, -4, 0)
    fitting = [words for words in WORDS if text_width(font, words) <= room.width()]
    if fitting and widget.fontMetrics().height() <= room.height():
        colour = palette.color(QPalette.ColorRole.PlaceholderText)
        draw_text(painter, room, fitting[0], font, colour, CENTRE)
