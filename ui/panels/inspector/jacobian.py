"""Paints how a row's weights move with its scores, in place of the keys that the row reads."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.study.jacobian import RowJacobian, row_jacobian
from ui.kit.shapes import Text
from ui.look.draw import LEFT, RIGHT, draw_text, outline, text_width
from ui.look.heat import U32, diverging, heat_image, word_image
from ui.look.names import key_label, row_name
from ui.look.theme import Style
from ui.look.units import count_text, number_text
from ui.panels.inspector.model import InspectorModel

MOST = 48
"""Keys of the largest map: more could not be told apart."""
_LEAST_CELL = 5.0
_LABEL = 12


def jacobian_of(model: InspectorModel, row: int, most: int = MOST) -> RowJacobian:
    """Return the Jacobian of a row of the model's head, for at most `most` keys."""
    local = model.rows.index(row)
    mask = model.maps.mask.of_head(model.head)
    seen = mask.visible(range(row, row + 1), range(model.keys))[0]
    sink = bool(model.workload.sink_logits)
    return row_jacobian(model.maps.of(model.head)[local], seen, most, sink=sink)


def jacobian_words(model: InspectorModel, found: RowJacobian, row: int) -> tuple[str, ...]:
    """Return the heading, longest first."""
    figures = f"norm {number_text(found.norm)}, trace {number_text(found.trace)}"
    return (f"Jacobian diag(p) − p pᵀ of {row_name(model.workload, row)}: {figures}", figures)


def part_words(found: RowJacobian) -> tuple[str, ...]:
    """Return which part of the matrix is shown, or its axes if all is shown, longest first."""
    count = len(found.keys)
    if count == found.visible:
        return ("how each weight (down) moves with each score (across)", "weights ↓ scores →")
    share = f"{100 * found.shown:.1f} %"
    return (
        f"the {count} strongest of {count_text(found.visible)} keys, {share} of the squared norm",
        f"{count} of {count_text(found.visible)} keys",
    )


def paint_jacobian(
    painter: QPainter, model: InspectorModel, row: int, style: Style, box: QRectF
) -> None:
    """Paint the matrix of a row as a small map with its norm."""
    t, px, font = style.theme, style.px, style.text_font(_LABEL)
    line = px(19)
    side = min(box.height() - 2 * line - px(4), 0.62 * box.width())
    most = max(2, min(MOST, int(side / px(_LEAST_CELL))))
    found = jacobian_of(model, row, most)
    first = QRectF(box.x(), box.y(), box.width(), line)
    second = first.translated(0, line)
    Text(jacobian_words(model, found, row), "muted", size=_LABEL).paint(painter, style, first)
    if not found.visible or side < px(24):
        return
    Text(part_words(found), "muted", size=_LABEL).paint(painter, style, second)
    labels = [key_label(model.workload, int(key)) for key in found.keys]
    wide = min(max(text_width(font, label) for label in labels), px(72)) + px(8)
    size = side / len(labels)
    wide = wide if size >= px(13) else 0.0
    cells = QRectF(box.x() + wide, second.bottom() + px(2), side, side)
    limit = float(np.abs(found.values).max()) or 1.0
    shades = diverging(t)
    rooted = np.sign(found.values) * np.sqrt(np.abs(found.values) / limit)  # small ones are seen
    image = heat_image(rooted.astype(np.float32), -1.0, 1.0, shades)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(cells, image)
    outline(painter, cells, t.border)
    if wide:
        for n, label in enumerate(labels):
            place = QRectF(box.x(), cells.y() + n * size, wide - px(6), size)
            draw_text(painter, place, label, font, t.text, RIGHT)
    bar = QRectF(cells.right() + px(10), cells.y(), px(10), cells.height())
    _paint_bar(painter, bar, limit, shades, style, box.right())


def _paint_bar(
    painter: QPainter, bar: QRectF, limit: float, shades: U32, style: Style, right: float
) -> None:
    """Paint the upright colour bar with its ends and 0."""
    t, px, font = style.theme, style.px, style.code_font(_LABEL)
    if bar.right() + px(24) > right:
        return
    painter.drawImage(bar, word_image(shades[255::-1, None][:256]))
    outline(painter, bar, t.border)
    room = right - bar.right() - px(5)
    ticks = [(limit, 0.0), (limit / 4, 0.25), (0.0, 0.5), (-limit / 4, 0.75), (-limit, 1.0)]
    if bar.height() < px(84):
        ticks = ticks[::2]
    for value, share in ticks:
        high = px(14)
        y = bar.y() + share * (bar.height() - high)
        place = QRectF(bar.right() + px(5), y, room, high)
        sign = "+" if value > 0 else ""
        words = "0" if value == 0 else f"{sign}{number_text(value)}"
        draw_text(painter, place, words, font, t.muted, LEFT)
