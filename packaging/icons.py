"""Draws the program's icon in the sizes and formats that desktops ask for."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

SVG = Path("assets/icons/tilescope.svg")
SIZES = (16, 32, 48, 64, 128, 256)
ICNS = {128: b"ic07", 256: b"ic08", 512: b"ic09"}


def main(folder: Path) -> None:
    """Write ``tilescope-SIZE.png``, ``tilescope.ico`` and ``tilescope.icns``."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    application = QGuiApplication([])
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {size: _png(size) for size in (*SIZES, *ICNS)}
    for size in SIZES:
        (folder / f"tilescope-{size}.png").write_bytes(pictures[size])
    (folder / "tilescope.ico").write_bytes(_ico({size: pictures[size] for size in SIZES}))
    parts = [kind + struct.pack(">I", 8 + len(pictures[size])) + pictures[size]
             for size, kind in ICNS.items()]  # fmt: skip
    whole = b"".join(parts)
    (folder / "tilescope.icns").write_bytes(b"icns" + struct.pack(">I", 8 + len(whole)) + whole)
    del application


def _png(size: int) -> bytes:
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(SVG)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    out = QBuffer()
    out.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(out, "PNG")  # type: ignore[call-overload]  # takes the type's name as text
    return bytes(out.data().data())


def _ico(pictures: dict[int, bytes]) -> bytes:
    head = struct.pack("<HHH", 0, 1, len(pictures))
    start = len(head) + 16 * len(pictures)
    entries = b""
    for size, data in pictures.items():
        entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(data), start)
        start += len(data)
    return head + entries + b"".join(pictures.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
