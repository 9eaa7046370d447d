"""What painters paint: pictures, their colours, and texts with their places."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter

from simulator.run.snapshot import Snapshot
from ui.board.board import paint_board
from ui.look.draw import CENTRE, LEFT, RIGHT, text_width
from ui.look.theme import Style


@dataclass(frozen=True)
class DrawnText:
    """A text, its ink, whether it had to be cut, and how high its capitals are."""

    text: str
    ink: QRectF
    cut: bool
    high: float


def painted(paint: Callable[[QPainter], None], width: int = 8, height: int = 8) -> QImage:
    """Return a black picture on which `paint` has painted."""
    image = QImage(width, height, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(QColor("#000000"))
    painter = QPainter(image)
    try:
        paint(painter)
    finally:
        painter.end()
    return image


def painted_board(now: Snapshot, style: Style, size: tuple[int, int], **more: Any) -> QImage:
    """Return the board of a state on the ground of its panel."""
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(QColor(style.theme.panel))
    with QPainter(image) as painter:
        paint_board(painter, now, style, QRectF(0, 0, *size), **more)
    return image


def pixels(image: QImage) -> NDArray[np.uint32]:
    """Return the colour of each pixel, 0xrrggbb, (height, width)."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    words = np.frombuffer(image.constBits(), np.uint32)
    return words.reshape(image.height(), image.width()) & 0xFFFFFF


def channels(image: QImage) -> NDArray[np.int64]:
    """Return red, green and blue of each pixel, 0 to 255, (height, width, 3)."""
    return (pixels(image)[..., None] >> (16, 8, 0) & 255).astype(int)


def colours(picture: QImage) -> set[int]:
    """Return the colours in a picture."""
    places = ((x, y) for x in range(picture.width()) for y in range(picture.height()))
    return {picture.pixel(x, y) for x, y in places}


def record_texts(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> list[DrawnText]:
    """Note what painters write, where, instead of drawing it."""
    drawn: list[DrawnText] = []

    def note(
        _: QPainter, rect: QRectF, text: str, font: QFont, colour: object, align: object = LEFT
    ) -> None:
        ink = QFontMetricsF(font).tightBoundingRect(text)
        width = text_width(font, text)
        x = {LEFT: rect.x(), RIGHT: rect.right() - width, CENTRE: rect.center().x() - width / 2}
        middle = rect.center().y() - ink.height() / 2
        place = QRectF(x[align], middle, width, ink.height())  # type: ignore[index]
        high = QFontMetricsF(font).capHeight()
        drawn.append(DrawnText(text, place, width > rect.width() + 0.5, high))

    for module in modules:
        monkeypatch.setattr(module, "draw_text", note)
    return drawn


def assert_tidy(drawn: list[DrawnText], rect: QRectF) -> None:
    """No text is cut, outside, or on another."""
    room = rect.adjusted(-1, -1, 1, 1)
    for n, one in enumerate(drawn):
        assert not one.cut, one
        assert room.contains(one.ink), (one, rect)
        for other in drawn[:n]:
            shared = one.ink.intersected(other.ink)
            assert shared.width() < 1 or shared.height() < 1, (one, other)
