"""Layouts, models and pictures that are made once for an op and shown in each of its frames.

They are kept as long as the op is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter, QTransform

from simulator.base.cache import ARRAY, MIB, BoundedCache
from ui.look.theme import Style

T = TypeVar("T")

MOST_BYTES = 32 * MIB
"""Most bytes kept for one op: the cards of a picture of 3840 x 2160 take three quarters."""
_STRIP = 32
"""Width of a part of a line, in pixels."""
_LAYOUT = 4096
"""About the bytes of a layout, or of a panel's model."""
_OF: WeakKeyDictionary[object, BoundedCache[Any]] = WeakKeyDictionary()


def kept(owner: object, key: Hashable, make: Callable[[], T]) -> T:
    """Return what `make` gave for this key, now or earlier.

    owner: an op that is being done (`Motion`), which is shown in one thread.
    key: all that the result depends on besides the owner.
    """
    cache = _OF.get(owner)
    if cache is None:
        cache = _OF[owner] = BoundedCache(MOST_BYTES, _bytes_of)
    value: T = cache.get(key, make)
    return value


def place_key(style: Style, rect: QRectF) -> Hashable:
    """Return a key of a place and of the style there."""
    return style.theme.name, style.scale, rect.x(), rect.y(), rect.width(), rect.height()


def draw_kept(
    painter: QPainter,
    owner: object,
    key: Hashable,
    box: QRectF,
    ground: QColor | str,
    paint: Callable[[QPainter], None],
) -> None:
    """Draw a box as a picture that is kept, pixel by pixel as if it were painted now.

    owner, key: as for `kept`.
    box: the place of the picture, in the painter's coordinates.
    ground: the fill of the box; a picture is not translucent.
    """
    ratio, to = painter.device().devicePixelRatioF(), painter.deviceTransform()
    place = to.mapRect(box).toAlignedRect()
    if not _has_pixels(painter, to, ratio):
        painter.save()
        painter.fillRect(box, QColor(ground))
        paint(painter)
        painter.restore()
        return

    def make() -> QImage:
        image = QImage(place.size(), QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(ratio)
        image.fill(QColor(ground))
        with QPainter(image) as inner:
            inner.translate((to.dx() - place.x()) / ratio, (to.dy() - place.y()) / ratio)
            paint(inner)
        return image

    apart = to.dx() - place.x(), to.dy() - place.y(), place.width(), place.height(), ratio
    image = kept(owner, (key, apart), make)
    corner = QPointF((place.x() - to.dx()) / ratio, (place.y() - to.dy()) / ratio)
    painter.drawImage(corner, image)


def draw_kept_line(
    painter: QPainter, owner: object, key: Hashable, box: QRectF, paint: Callable[[QPainter], None]
) -> None:
    """Draw something thin over the painted ground, as narrow pictures that are kept.

    painter, owner, key: as for `draw_kept`.
    box: around the thin thing: much of the box is empty, and empty parts cost nothing.
    """
    ratio, to = painter.device().devicePixelRatioF(), painter.deviceTransform()
    if not _has_pixels(painter, to, ratio):
        painter.save()
        paint(painter)
        painter.restore()
        return
    place = to.mapRect(box).toAlignedRect()

    def make() -> list[tuple[QPointF, QImage]]:
        whole = QImage(place.size(), QImage.Format.Format_ARGB32_Premultiplied)
        whole.setDevicePixelRatio(ratio)
        whole.fill(Qt.GlobalColor.transparent)
        with QPainter(whole) as inner:
            inner.translate((to.dx() - place.x()) / ratio, (to.dy() - place.y()) / ratio)
            paint(inner)
        pixels = np.frombuffer(whole.constBits(), np.uint32).reshape(whole.height(), whole.width())
        found = []
        for x in range(0, whole.width(), _STRIP):
            rows = np.flatnonzero(pixels[:, x : x + _STRIP].any(axis=1))
            if rows.size:
                y, width = int(rows[0]), min(_STRIP, whole.width() - x)
                image = whole.copy(x, y, width, int(rows[-1]) + 1 - y)
                image.setDevicePixelRatio(ratio)
                corner = (place.x() + x - to.dx()) / ratio, (place.y() + y - to.dy()) / ratio
                found.append((QPointF(*corner), image))
        return found

    apart = to.dx() - place.x(), to.dy() - place.y(), place.width(), place.height(), ratio
    for corner, image in kept(owner, (key, apart), make):
        painter.drawImage(corner, image)


def _has_pixels(painter: QPainter, to: QTransform, ratio: float) -> bool:
    """Whether a picture painted elsewhere and drawn here falls on the same pixels."""
    raster = painter.paintEngine().type() is QPaintEngine.Type.Raster
    return raster and not to.isRotating() and to.m11() == to.m22() == ratio


def _bytes_of(value: object) -> int:
    if isinstance(value, QImage):
        return value.sizeInBytes()
    if isinstance(value, np.ndarray):
        return value.nbytes + ARRAY
    if isinstance(value, list | tuple):
        return ARRAY + sum(map(_bytes_of, value))
    return _LAYOUT
