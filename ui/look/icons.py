"""Tilescope's icons, in the colour of the text around them."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from simulator.base.assets import ASSETS

_SIZES = (16, 24, 32, 48, 64)


@lru_cache(maxsize=128)  # all icons in three themes
def icon(name: str, colour: str) -> QIcon:
    """Return an icon of ``assets/icons`` drawn in `colour` (``#rrggbb``)."""
    svg = (ASSETS / "icons" / f"{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(svg.replace("#000", colour).encode()))
    out = QIcon()
    for size in _SIZES:
        pixmap = QPixmap(QSize(size, size))
        pixmap.fill(Qt.GlobalColor.transparent)
        with QPainter(pixmap) as painter:
            renderer.render(painter, QRectF(0, 0, size, size))
        out.addPixmap(pixmap.copy())  # without the painter's larger buffers
    return out


def app_icon() -> QIcon:
    """Return the program's icon."""
    return QIcon(str(ASSETS / "icons" / "tilescope.svg"))
