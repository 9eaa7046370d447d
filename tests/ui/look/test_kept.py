"""Pictures that are kept while an op is being done: as if they were painted now."""

import gc
from collections.abc import Callable
from weakref import ref

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from tests.helpers.painted import channels
from ui.look.draw import draw_text
from ui.look.kept import draw_kept, draw_kept_line, kept
from ui.look.theme import DARK, Style

pytestmark = pytest.mark.usefixtures("qapp")
BOX = QRectF(20.3, 11.7, 150.2, 80.4)


class Owner:
    """Something that can be an op."""


def paint(painter: QPainter) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(QColor(200, 80, 40, 120))
    painter.drawEllipse(BOX.adjusted(4, 3, -5, -6))
    painter.drawLine(QPointF(25.5, 20.1), QPointF(160.2, 85.9))
    draw_text(painter, BOX, "0.307 of 42", Style(DARK).text_font(12), "#ffffff")


def painted(
    draw: Callable[[QPainter], None], ratio: float, place: Callable[[QPainter], None]
) -> QImage:
    image = QImage(500, 400, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor("#102030"))
    with QPainter(image) as painter:
        place(painter)
        draw(painter)
    return image


@pytest.mark.parametrize("ratio", [1.0, 1.25, 2.0])
@pytest.mark.parametrize(
    "place",
    [lambda p: None, lambda p: p.translate(7, 5), lambda p: p.translate(7.4, 5.5),
     lambda p: p.scale(1.3, 1.3), lambda p: p.rotate(10)],
    ids=["as it is", "moved", "moved by parts of a pixel", "larger", "turned"],
)  # fmt: skip
def test_a_kept_picture_is_what_would_be_painted(ratio, place):
    def directly(painter):
        paint(painter)

    def from_memory(painter):
        for _ in range(2):
            draw_kept(painter, owner, "a", BOX, "#102030", paint)

    owner = Owner()
    assert painted(from_memory, ratio, place) == painted(directly, ratio, place)
    # Painted somewhere else before.
    painted(from_memory, ratio, lambda p: p.translate(31, 44))
    assert painted(from_memory, ratio, place) == painted(directly, ratio, place)


@pytest.mark.parametrize("ratio", [1.0, 1.25, 2.0])
def test_a_kept_line_is_the_line_but_for_rounding(ratio):
    path = QPainterPath(QPointF(22, 80))
    path.cubicTo(QPointF(90, 85), QPointF(60, 15), QPointF(168, 20))

    def line(painter):
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(200, 80, 40, 115), 1.3, Qt.PenStyle.DashLine))
        painter.drawPath(path)

    def over(draw):
        def both(painter):
            painter.fillRect(QRectF(60, 30, 50, 50), QColor("#a0b010"))
            draw(painter)

        return painted(both, ratio, lambda p: p.translate(7, 5))

    owner = Owner()
    for _ in range(2):
        kept_one = channels(over(lambda p: draw_kept_line(p, owner, "line", BOX, line)))
        assert np.abs(kept_one - channels(over(line))).max() <= 2
        assert np.abs(kept_one - channels(over(lambda p: None))).max() > 50


def test_what_is_kept_goes_with_its_owner():
    owner = Owner()
    made = kept(owner, "thing", Owner)
    assert kept(owner, "thing", Owner) is made
    gone = ref(made)
    del owner, made
    gc.collect()
    assert gone() is None
