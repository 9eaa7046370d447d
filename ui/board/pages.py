"""Edges of pages on the strips of keys and values, whose pages lie elsewhere in HBM."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.run.snapshot import Snapshot
from ui.board.layout import BoardLayout
from ui.look.draw import CENTRE, draw_text, hairline, text_width
from ui.look.theme import LABEL

_NARROWEST = 6
"""Narrowest page, at scale 1, whose edges are drawn."""


def paint_pages(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw a dashed line between pages, and on each page of the keys its place in HBM."""
    style, px, w = lay.style, lay.style.px, snapshot.program.workload
    table = w.pages
    wide = lay.col_x(w.page_size) - lay.col_x(0)
    if table is None or wide < px(_NARROWEST):
        return
    theme, font = style.theme, style.text_font(LABEL)
    painter.setPen(QPen(QColor(theme.text), hairline(style), Qt.PenStyle.DashLine))
    for name in (lay.keys, lay.values):
        box = lay.boxes[name]
        for page in range(1, table.pages):
            x = round(lay.col_x(page * w.page_size))
            if box.left() < x < box.right():
                painter.drawLine(QLineF(x, box.top(), x, box.bottom()))
    box, high, at_work = lay.boxes[lay.keys], px(15), snapshot.tile_pages
    if wide < text_width(font, str(table.places)) + px(4) or box.height() < 2 * high:
        return
    for page, place in enumerate(table.used.tolist()):
        keys = range(w.seqlen_k)[page * w.page_size : (page + 1) * w.page_size]
        left, right = lay.col_x(keys.start), lay.col_x(keys.stop)
        chip = QRectF(left + px(3), box.bottom() - high, text_width(font, str(place)) + px(6), high)
        if left < box.left() - 1 or max(right, chip.right()) > min(right, box.right()) + 1:
            continue
        painter.fillRect(chip, QColor(theme.panel))
        ink = theme.current if page in at_work else theme.text
        draw_text(painter, chip, str(place), font, ink, CENTRE)
