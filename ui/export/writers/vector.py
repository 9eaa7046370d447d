"""A still as SVG or PDF: lines and letters stay sharp at every size."""

from __future__ import annotations

import base64
import re
import struct
from functools import partial
from itertools import count
from xml.sax.saxutils import escape, quoteattr, unescape

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QDataStream,
    QIODevice,
    QMarginsF,
    QPointF,
    QRect,
    QSize,
    QSizeF,
    Qt,
)
from PySide6.QtGui import QFont, QImage, QPageSize, QPainter, QPainterPath, QPdfWriter
from PySide6.QtSvg import QSvgGenerator

from simulator.base.errors import safe_text
from ui.export.frames import FrameSource
from ui.export.writers.metadata import NO_CHARACTER, Note
from ui.look.theme import DARK, Style
from ui.session.tasks import Report

_MOST_PIXELS = 2**22  # pixels of an enlarged heat map
_DPI = 144


def svg_bytes(source: FrameSource, note: Note, report: Report) -> bytes:
    """Return frame 0 as SVG; `report` may end the work."""
    source.make_ready(0, lambda: report(0.0))
    data = QByteArray()
    buffer = QBuffer(data)
    generator = new_svg(buffer, QSize(*source.size))
    painter = QPainter(generator)
    try:
        source.paint(painter, 0)
    finally:
        painter.end()
    return finished_svg(bytes(data.data()), note)


def new_svg(buffer: QBuffer, size: QSize) -> QSvgGenerator:
    """Return a device for SVG on which a painter can draw."""
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)  # the other version does not clip
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setResolution(96)
    generator.setTitle("Tilescope")
    return generator


def finished_svg(data: bytes, note: Note | None) -> bytes:
    """Return an SVG of Qt's with crisp heat maps, letters as outlines and the note inside."""
    text = NO_CHARACTER.sub("\ufffd", data.decode("utf-8", "replace"))
    text = _TEXT.sub(_outlined, _IMAGE.sub(_enlarged, text))
    text = _MOVED.sub(_as_thick_as_asked, text)
    # Qt writes millimetres, and readers do not agree on how many pixels these are.
    text = _SIDES.sub(r'<svg width="\2" height="\3" \1', text, count=1)
    if note is not None:
        told = f"<metadata>{escape(note.text)}</metadata>"
        text = text.replace("</title>", f"</title>\n{told}", 1)
    return text.encode("utf-8")


_SIDES = re.compile(r'<svg width="[^"]*" height="[^"]*"\s+(viewBox="0 0 (\d+) (\d+)")')
_IMAGE = re.compile(r"<image\b[^>]*?>")


def _enlarged(found: re.Match[str]) -> str:
    """Return an image of an SVG with more pixels if it is drawn enlarged.

    Viewers smooth enlarged images, whatever the file asks for, but a cell has to keep its edges.
    """
    element = found[0]
    sides = [re.search(rf'\b{name}="([\d.]+)"', element) for name in ("width", "height")]
    code = re.search(r"base64,([^\"]+)\"", element)
    if code is None or sides[0] is None or sides[1] is None:
        return element
    image = QImage.fromData(base64.b64decode(code[1]))
    width, height = (float(side[1]) for side in sides if side)
    times_x, times_y = (
        max(1, round(2 * drawn / pixels))
        for drawn, pixels in ((width, image.width()), (height, image.height()))
    )
    size = QSize(image.width() * times_x, image.height() * times_y)
    if times_x * times_y == 1 or size.width() * size.height() > _MOST_PIXELS:
        return element
    larger = image.scaled(
        size, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.FastTransformation
    )
    png = QByteArray()
    buffer = QBuffer(png)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    larger.save(buffer, "PNG")  # type: ignore[call-overload]
    return element.replace(code[1], base64.b64encode(bytes(png.data())).decode())


_TEXT = re.compile(r"<text\b([^>]*?)>([^<]*)</text>")


def _outlined(found: re.Match[str]) -> str:
    """Return a text of an SVG as outlines, because other fonts than ours are wider."""
    said = dict(re.findall(r'([\w-]+)="([^"]*)"', found[1]))
    text = unescape(found[2], {"&quot;": '"', "&apos;": "'"})
    path = QPainterPath()
    path.addText(QPointF(float(said["x"]), float(said["y"])), _font(said), text)
    label = quoteattr(text)
    fill = f'fill="{said["fill"]}" fill-opacity="{said.get("fill-opacity", "1")}" stroke="none"'
    return f'<path role="img" aria-label={label} {fill} d="{commands(path)}"/>'


def _font(said: dict[str, str]) -> QFont:
    """Return the font of a text of an SVG."""
    style, size = Style(DARK), float(said["font-size"])
    bold = int(said.get("font-weight", 400)) > QFont.Weight.Medium.value
    for font in (style.text_font(size, bold=bold), style.code_font(size, bold=bold)):
        if said["font-family"] == font.families()[0]:
            return font
    font = QFont(said["font-family"])
    font.setPixelSize(round(size))
    font.setBold(bold)
    return font


_MOVED = re.compile(
    r'(<g\b[^>]*?)transform="matrix\(([^)]*)\)"([^>]*>)((?:(?!</?g\b).)*)</g>', re.DOTALL
)
_COSMETIC = re.compile(r'<\w+ vector-effect="non-scaling-stroke"[^>]*?/>')
_POINTS = re.compile(r'(\b(?:points|d)=")([^"]*)')
_POINT = re.compile(r"([-+.\de]+)([ ,])([-+.\de]+)")


def _as_thick_as_asked(found: re.Match[str]) -> str:
    """Return a group of an SVG with the lines whose width is in pixels at their places.

    Some viewers do not know SVG's attribute for such lines, and enlarge the lines with the plot.
    """
    before, numbers, after, inner = found.groups()
    a, b, c, d, e, f = map(float, numbers.split(","))
    if (a, b, c, d) == (1, 0, 0, 1) or not _COSMETIC.search(inner):
        return found[0]

    def at_its_place(point: re.Match[str]) -> str:
        x, y = float(point[1]), float(point[3])
        return f"{a * x + c * y + e:.2f}{point[2]}{b * x + d * y + f:.2f}"

    def alone(line: re.Match[str]) -> str:
        moved = _POINTS.sub(lambda text: text[1] + _POINT.sub(at_its_place, text[2]), line[0])
        return f"</g>{before}{after}{moved}</g>{opened}"

    opened = f'{before}transform="matrix({numbers})"{after}'
    return f"{opened}{_COSMETIC.sub(alone, inner)}</g>"


_ELEMENT = struct.Struct(">idd")  # a point of a path as Qt streams it: its kind, and its place
_LETTERS = {
    QPainterPath.ElementType.MoveToElement.value: "M",
    QPainterPath.ElementType.LineToElement.value: "L",
    QPainterPath.ElementType.CurveToElement.value: "C",
    QPainterPath.ElementType.CurveToDataElement.value: "",
}


def commands(path: QPainterPath) -> str:
    """Return a path's outline as SVG; Qt's stream is faster than asking for each point."""
    data = QByteArray()
    QDataStream(data, QIODevice.OpenModeFlag.WriteOnly) << path
    begin, size = 4, _ELEMENT.size * path.elementCount()  # the number of points comes first
    points = _ELEMENT.iter_unpack(bytes(data.data())[begin : begin + size])
    return " ".join(f"{_LETTERS[kind]}{x:.2f} {y:.2f}" for kind, x, y in points)


def pdf_bytes(source: FrameSource, note: Note, report: Report) -> bytes:
    """Return every frame as a page of a PDF; `report` gets the share done, and may end the work."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(safe_text(note.title))
    writer.setCreator(f"Tilescope {note.version}")
    writer.setDocumentXmpMetadata(QByteArray(note.xmp))
    writer.setResolution(_DPI)
    width, height = source.size
    points = QSizeF(width * 72 / _DPI, height * 72 / _DPI)
    writer.setPageSize(
        QPageSize(points, QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch)
    )
    writer.setPageMargins(QMarginsF(0, 0, 0, 0))
    painter = QPainter(writer)
    try:
        for k in count():
            if k >= len(source):  # a handout knows its last pages only then
                break
            share = k / len(source)
            report(share)
            source.make_ready(k, partial(report, share))
            if k:
                writer.newPage()
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.LosslessImageRendering)  # cells, no JPEG
            painter.scale(writer.width() / width, writer.height() / height)
            source.paint(painter, k)
            painter.restore()
    finally:
        painter.end()
    return bytes(data.data())
