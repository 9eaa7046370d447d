"""One picture of the scene, as PNG."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRectF, QSizeF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from simulator.errors import refuse
from simulator.files import write_atomically
from ui.scene.scene import paint_scene, scene_style
from ui.session import View
from ui.theme import Theme


def draw_scene(view: View, theme: Theme, size: tuple[int, int]) -> QImage:
    """Return the scene as an image.

    Parameters
    ----------
    view : View
        Snapshot and row.
    theme : Theme
        Colours.
    size : tuple of int
        Width and height in pixels.
    """
    image = QImage(*size, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    style = scene_style(theme, QSizeF(*size))
    paint_scene(painter, view.snapshot, view.report, style, QRectF(0, 0, *size))
    painter.end()
    return image


def save_picture(view: View, theme: Theme, size: tuple[int, int], path: Path) -> None:
    """Draw the scene into a PNG file, whole or not at all.

    Raises
    ------
    InputError
        The file cannot be written, or does not end in .png.
    """
    if path.suffix != ".png":
        raise refuse("export", "-o", str(path), "a file that ends in .png")
    from ui.app import application

    application()
    _write(path, _png(draw_scene(view, theme, size)))


def save_widget(widget: QWidget, path: Path) -> None:
    """Draw a widget as it is seen into a PNG or SVG file, whole or not at all.

    Raises
    ------
    InputError
        The file cannot be written, or ends in something else.
    """
    if path.suffix == ".png":
        _write(path, _png(widget.grab().toImage()))
    elif path.suffix == ".svg":
        data = QByteArray()
        buffer = QBuffer(data)
        generator = QSvgGenerator()
        generator.setOutputDevice(buffer)
        generator.setSize(widget.size())
        generator.setViewBox(widget.rect())
        generator.setTitle("Tilescope")
        painter = QPainter(generator)
        widget.render(painter, QPoint())
        painter.end()
        _write(path, data)
    else:
        raise refuse("export", "file", str(path), "a file that ends in .png or .svg")


def _png(image: QImage) -> QByteArray:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.setText("Software", "Tilescope")
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return data


def _write(path: Path, data: QByteArray) -> None:
    def write(out: IO[bytes]) -> None:
        out.write(data.data())

    write_atomically(path, write)
