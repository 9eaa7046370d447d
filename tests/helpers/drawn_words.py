"""The words of a picture as they are drawn, whoever draws them."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF, QPaintDevice, QPaintEngine, QPainter, QTextItem

METRICS = {
    QPaintDevice.PaintDeviceMetric.PdmDpiX: 96,
    QPaintDevice.PaintDeviceMetric.PdmDpiY: 96,
    QPaintDevice.PaintDeviceMetric.PdmPhysicalDpiX: 96,
    QPaintDevice.PaintDeviceMetric.PdmPhysicalDpiY: 96,
    QPaintDevice.PaintDeviceMetric.PdmDepth: 32,
}


@dataclass(frozen=True)
class Drawn:
    """A text, where its ink is, and the size of its letters."""

    text: str
    ink: QRectF
    size: float


class _Engine(QPaintEngine):
    """Notes texts and paints nothing."""

    def __init__(self) -> None:
        super().__init__(QPaintEngine.PaintEngineFeature.AllFeatures)
        self.drawn: list[Drawn] = []

    def begin(self, device: QPaintDevice) -> bool:
        return True

    def end(self) -> bool:
        return True

    def type(self) -> QPaintEngine.Type:
        return QPaintEngine.Type.User

    def updateState(self, state: object) -> None:
        pass

    def drawTextItem(self, at: QPointF, item: QTextItem) -> None:
        ink = QFontMetricsF(item.font()).tightBoundingRect(item.text()).translated(at)
        flat = QRectF(at.x(), ink.y(), item.width(), ink.height())
        place = self.painter().worldTransform().mapRect(flat)
        if item.text().strip():  # a thin space of another font is an item by itself
            self.drawn.append(Drawn(item.text(), place, item.font().pixelSize()))

    def ignore(self, *_: object) -> None:
        pass

    drawImage = drawLines = drawPath = drawPixmap = drawPolygon = drawRects = ignore


class _Paper(QPaintDevice):
    def __init__(self, rect: QRectF) -> None:
        super().__init__()
        self._engine, self._rect = _Engine(), rect

    def paintEngine(self) -> _Engine:
        return self._engine

    def metric(self, which: QPaintDevice.PaintDeviceMetric) -> int:
        sizes = {
            QPaintDevice.PaintDeviceMetric.PdmWidth: round(self._rect.width()),
            QPaintDevice.PaintDeviceMetric.PdmHeight: round(self._rect.height()),
        }
        return (METRICS | sizes).get(which, 1)


def drawn_words(paint: Callable[[QPainter], object], rect: QRectF) -> list[Drawn]:
    """Return all words that are painted, in their order."""
    paper = _Paper(rect)
    with QPainter(paper) as painter:
        paint(painter)
    return paper.paintEngine().drawn


def faults(drawn: list[Drawn], rect: QRectF) -> list[str]:
    """Return which words are cut off, outside of a picture, or upon others."""
    room, found = rect.adjusted(-1, -1, 1, 1), []
    for n, one in enumerate(drawn):
        if "…" in one.text:
            found.append(f"{one.text!r} is cut")
        if not room.contains(one.ink):
            found.append(f"{one.text!r} is outside")
        for other in drawn[:n]:
            shared = one.ink.intersected(other.ink)
            if shared.width() >= 1 and shared.height() >= 1:
                found.append(f"{one.text!r} is upon {other.text!r}")
    return found
