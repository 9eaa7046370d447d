"""Floors of drawing: bare painters with the same images and words, and a bare window."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QPoint, QRectF, QSize
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPaintEvent, QPen, QTransform
from PySide6.QtWidgets import QApplication, QWidget

from ui.look.draw import draw_text
from ui.look.theme import Style
from ui.safety import painting as safety
from ui.safety.overrides import guarded
from ui.safety.painting import painting

BARE_START = """
from PySide6.QtCore import QTimer
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QApplication, QWidget

class Bare(QWidget):
    def paintEvent(self, event):
        with QPainter(self) as painter:
            painter.drawText(40, 40, "bare")
        QTimer.singleShot(0, leave)

def leave():
    print("first frame", flush=True)
    QApplication.exit(0)

application = QApplication([])
bare = Bare()
bare.resize(1280, 800)
bare.show()
application.exec()
"""
"""A program that shows a window with a word in it, and ends."""


def paint_six_images(painter: QPainter, style: Style, rect: QRectF) -> None:
    """Draw six images over a picture, and sixty words: the least that a frame can cost."""
    width, height = rect.width() / 3, rect.height() / 2
    for n in range(6):
        image = QImage(256, 256, QImage.Format.Format_RGB32)
        image.fill(QColor(40 * n, 80, 90))
        x, y = n % 3 * width, n // 3 * height
        painter.drawImage(QRectF(x, y, 0.9 * width, 0.9 * height), image)
    font, line = style.text_font(12), style.px(18)
    for n in range(60):
        place = QRectF(n % 6 * rect.width() / 6, n // 6 * line, rect.width() / 6, line)
        draw_text(painter, place, f"word {n}", font, style.theme.text)


@dataclass(frozen=True, slots=True)
class Stroke:
    """An image or a text as it was drawn."""

    call: str  # the painter's method
    arguments: tuple[Any, ...]  # its arguments
    # font, pen, place: the state of the painter
    font: QFont
    pen: QPen
    place: QTransform


@dataclass
class Strokes:
    """The images and texts of a picture; the last of each widget that was painted."""

    of: dict[int, list[Stroke]] = field(default_factory=dict)

    def paint(self, painter: QPainter) -> None:
        """Draw all of them, and nothing else."""
        font: QFont | None = None
        pen: QPen | None = None
        for strokes in self.of.values():
            for stroke in strokes:
                painter.setWorldTransform(stroke.place)
                if stroke.font is not font:
                    font = stroke.font
                    painter.setFont(font)
                if stroke.pen is not pen:
                    pen = stroke.pen
                    painter.setPen(pen)
                getattr(painter, stroke.call)(*stroke.arguments)

    def __len__(self) -> int:
        return sum(len(strokes) for strokes in self.of.values())


@guarded
class RecordingPainter(QPainter):
    """A painter that records which images and texts it draws.

    device: what it paints on.
    into: where they are recorded; what it had recorded of this device is removed.
    """

    def __init__(self, device: Any, into: Strokes) -> None:
        super().__init__(device)
        self._offset = QPoint()
        if isinstance(device, QWidget):
            self._offset = device.mapTo(device.window(), QPoint())
        self._out: list[Stroke] = []
        into.of[id(device)] = self._out

    def _note(self, call: str, *arguments: Any) -> None:
        font, pen = self.font(), self.pen()
        if self._out and self._out[-1].font == font:
            font = self._out[-1].font
        if self._out and self._out[-1].pen == pen:
            pen = self._out[-1].pen
        place = QTransform.fromTranslate(self._offset.x(), self._offset.y())
        self._out.append(Stroke(call, arguments, font, pen, self.worldTransform() * place))

    def drawText(self, *arguments: Any) -> Any:
        """Draw a text."""
        self._note("drawText", *arguments)
        return super().drawText(*arguments)

    def drawStaticText(self, *arguments: Any) -> None:
        """Draw a text that has been laid out."""
        self._note("drawStaticText", *arguments)
        super().drawStaticText(*arguments)

    def drawImage(self, *arguments: Any) -> None:
        """Draw an image."""
        self._note("drawImage", *arguments)
        super().drawImage(*arguments)

    def drawPixmap(self, *arguments: Any) -> None:
        """Draw a pixmap."""
        self._note("drawPixmap", *arguments)
        super().drawPixmap(*arguments)


@contextmanager
def recorded() -> Iterator[Strokes]:
    """Record what our widgets draw in the meantime."""
    strokes = Strokes()

    def painter(widget: QWidget) -> QPainter:
        return RecordingPainter(widget, strokes)

    plain = vars(safety)["QPainter"]
    vars(safety)["QPainter"] = painter
    try:
        yield strokes
    finally:
        vars(safety)["QPainter"] = plain


@guarded
class BareWindow(QWidget):
    """A window that draws images and texts, and nothing else."""

    def __init__(self, size: QSize) -> None:
        super().__init__()
        self._strokes = Strokes()
        self.resize(size)
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self._strokes.paint(painter)

    def seconds(self, strokes: Strokes) -> float:
        """Return the time from marking the window until it is painted."""
        self._strokes = strokes
        started = time.perf_counter()
        self.update()
        QApplication.processEvents()
        return time.perf_counter() - started
