"""What painters share: how coarse a pattern is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from ui.look.draw import patterned
from ui.look.theme import DARK, Style

SIDE = 48
PATTERNS = [
    Qt.BrushStyle.BDiagPattern, Qt.BrushStyle.FDiagPattern,
    Qt.BrushStyle.HorPattern, Qt.BrushStyle.VerPattern,
]  # fmt: skip


def lines(pattern: Qt.BrushStyle, scale: float) -> int:
    """Count the lines of a pattern that cross the middle row and the middle column."""
    side = round(SIDE * scale)
    image = QImage(side, side, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    with QPainter(image) as painter:
        painter.fillRect(QRectF(image.rect()), patterned("white", pattern, Style(DARK, scale)))
    # Through the middle, where no line of a pattern runs along an edge of the picture.
    along = range(side)
    row = [QColor(image.pixel(k, side // 2 + 1)).lightnessF() > 0.4 for k in along]
    column = [QColor(image.pixel(side // 2 + 1, k)).lightnessF() > 0.4 for k in along]
    return sum(two and not one for edge in (row, column) for one, two in pairwise(edge))


@pytest.mark.parametrize("scale", [2.0, 3.0])
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_a_larger_picture_has_as_many_lines_in_a_pattern(qapp, pattern, scale):
    usual = lines(pattern, 1.0)
    assert usual > 0
    assert abs(lines(pattern, scale) - usual) <= 2  # the row and the column may each end in one
