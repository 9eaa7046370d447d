"""Pictures of the screen: the scene, and panels as they are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMargins, QMimeData, QPoint, QRectF
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter
from PySide6.QtWidgets import QWidget

from simulator.base.errors import refuse
from simulator.base.files import write_atomically
from simulator.problem.scenario import Scenario
from simulator.program.faults import fault_labels
from ui.board.fault_marks import paint_fault_label
from ui.export.writers.vector import finished_svg, new_svg
from ui.export.writers.widgets import paint_widgets
from ui.look.theme import DARK, Style
from ui.safety.faults import raising

Files = dict[str, QByteArray]  # a picture as files, by their kinds
Beside = Callable[[Callable[[], Files], Callable[[Files], None]], None]
_MARK = "application/x-tilescope-copy"
"""Type of a mark on the clipboard that names a picture until its files are there."""


class WidgetPicture:
    """A widget as it is shown, with a strip above it that names the faults of the run."""

    def __init__(
        self, widget: QWidget, scenario: Scenario | None = None, style: Style | None = None
    ) -> None:
        self._widget = widget
        self._faulty = scenario if scenario and fault_labels(scenario) else None
        self._style = style or Style(DARK)
        self._strip = round(self._style.px(30)) if self._faulty else 0

    def _paint_strip(self, painter: QPainter) -> None:
        if self._faulty is not None:
            whole = QRectF(0, 0, self._widget.width(), self._strip)
            painter.fillRect(whole, QColor(self._style.theme.panel))
            inset = self._style.px(4)
            place = whole.adjusted(inset, inset, -inset, -inset)
            paint_fault_label(painter, self._faulty, self._style, place)

    def image(self) -> QImage:
        """Return the picture in pixels."""
        with raising():
            seen = self._widget.grab().toImage()
        ratio = seen.devicePixelRatio()
        image = QImage(seen.width(), seen.height() + round(self._strip * ratio), seen.format())
        image.setDevicePixelRatio(ratio)
        with QPainter(image) as painter:
            self._paint_strip(painter)
            painter.drawImage(QPoint(0, self._strip), seen)
        return image

    def png(self) -> QByteArray:
        """Return the picture as the bytes of a PNG."""
        return _png(self.image())

    def svg(self) -> bytes:
        """Return the picture as an SVG."""
        return finished_svg(self._drawn(), None)

    def _drawn(self) -> bytes:
        """Return the picture as the SVG that Qt draws."""
        data = QByteArray()
        buffer = QBuffer(data)
        generator = new_svg(buffer, self._widget.size().grownBy(QMargins(0, 0, 0, self._strip)))
        with raising(), QPainter(generator) as painter:
            self._paint_strip(painter)
            paint_widgets(painter, self._widget, QPoint(0, self._strip))
        return bytes(data.data())

    def save(self, path: Path) -> None:
        """Write the picture into a PNG or SVG file, whole or not at all."""
        if path.suffix not in (".png", ".svg"):
            raise refuse("export", "file", str(path), "a file that ends in .png or .svg")
        data = bytes(self.png().data()) if path.suffix == ".png" else self.svg()
        write_atomically(path, lambda out: out.write(data))

    def copy(self, beside: Beside) -> None:
        """Put the picture on the clipboard: pixels at once, PNG and SVG as soon as they are made.

        beside: calls its first argument in another thread, and gives the result to the second:
            making the files takes longer than a window may stand still.
        """
        image, drawn, clipboard = self.image(), self._drawn(), QGuiApplication.clipboard()
        mark = QByteArray(str(image.cacheKey()).encode())
        pixels = QMimeData()
        pixels.setImageData(image)
        pixels.setData(_MARK, mark)
        clipboard.setMimeData(pixels)
        seen = QImage(image)  # threads do not share one

        def done(files: Files) -> None:
            if clipboard.mimeData().data(_MARK) != mark:
                return  # another copy has replaced this one
            content = QMimeData()
            content.setImageData(image)
            for kind, data in files.items():
                content.setData(kind, data)
            clipboard.setMimeData(content)

        beside(
            lambda: {
                "image/png": _png(seen),
                "image/svg+xml": QByteArray(finished_svg(drawn, None)),
            },
            done,
        )


def _png(image: QImage) -> QByteArray:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.setText("Software", "Tilescope")
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return data
