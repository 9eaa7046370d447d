"""Paints how values add up to a row's output, in place of the keys that the row reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from ui.kit.shapes import Text
from ui.look.draw import CENTRE, RIGHT, draw_text, outline, text_width
from ui.look.heat import diverging, heat_image
from ui.look.names import key_label, row_name
from ui.look.theme import Style
from ui.look.units import count_text, number_text
from ui.panels.inspector.model import InspectorModel

F64 = NDArray[np.float64]
_LABEL = 12
_LINE, _HIGHEST = 19, 30
"""Least and largest height of a key's line, pixels."""


class BlendPart(NamedTuple):
    """The part of a row's output that one key, or all other keys together, add."""

    name: str
    weight: float
    value: F64 | None  # (dv,); None for many keys
    share: F64  # (dv,), weight times value


def parts_of(model: InspectorModel, row: int, most: int) -> list[BlendPart]:
    """Return the parts of a row's output: of the strongest keys, then of all others together."""
    weights = model.maps.of(model.head)[model.rows.index(row)].astype(np.float64)
    shares = weights[:, None] * model.v.astype(np.float64)
    order = np.argsort(-weights, kind="stable")
    kept = order if len(order) <= most else order[: max(most - 1, 0)]
    parts = [
        BlendPart(key_label(model.workload, int(key)), float(weights[key]),
                  model.v[key].astype(np.float64), shares[key])
        for key in kept
    ]  # fmt: skip
    rest = order[len(kept) :]
    if len(rest):
        name = f"{count_text(len(rest))} others"
        parts.append(BlendPart(name, float(weights[rest].sum()), None, shares[rest].sum(axis=0)))
    return parts


def blend_words(model: InspectorModel, row: int) -> tuple[str, ...]:
    """Return the heading, longest first."""
    whole = f"Output of {row_name(model.workload, row)}"
    return f"{whole}: each value times its weight, and their sum", f"{whole}: Σ p·v", "Σ p·v"


def paint_parts(
    painter: QPainter, model: InspectorModel, row: int, style: Style, box: QRectF
) -> None:
    """Paint a line for each key, its value, weight and share of the output, and their sum."""
    t, px, font = style.theme, style.px, style.text_font(_LABEL)
    line = px(_LINE)
    head = Text(blend_words(model, row), "muted", size=_LABEL)
    head.paint(painter, style, QRectF(box.x(), box.y(), box.width(), line))
    room = int((box.height() - 2 * line) / line) - 1
    if room < 2:
        return
    parts = parts_of(model, row, room)
    total = np.sum([part.share for part in parts], axis=0)
    limit = max(float(np.abs(model.v).max()), float(np.abs(total).max())) or 1.0
    high = min((box.height() - 2 * line) / (len(parts) + 1), px(_HIGHEST))
    names = [*(part.name for part in parts), "sum"]
    wide = min(max(text_width(font, name) for name in names), 0.3 * box.width()) + px(8)
    number = text_width(font, "0.0000") + px(16)
    strip = max((box.width() - wide - number) / 2, 1.0)
    value, weight = box.x() + wide, box.x() + wide + strip
    share, top = weight + number, box.y() + 2 * line

    def paint_strip(x: float, y: float, numbers: F64) -> None:
        place = QRectF(x, y + 1, strip, high - 2)
        numbers32 = numbers[None].astype(np.float32)
        painter.drawImage(place, heat_image(numbers32, -limit, limit, diverging(t)))
        outline(painter, place, t.border)

    for x, across, forms in (
        (value, strip, ("value v", "v")), (weight, number, "× p"), (share, strip, "= p·v"),
    ):  # fmt: skip
        place = QRectF(x, box.y() + line, across, line)
        Text(forms, "muted", CENTRE, _LABEL).paint(painter, style, place)
    for n, part in enumerate(parts):
        y = top + n * high
        label = QRectF(box.x(), y, wide - px(6), high)
        draw_text(painter, label, part.name, font, t.text, RIGHT)
        if part.value is not None:
            paint_strip(value, y, part.value)
        place = QRectF(weight, y, number, high)
        draw_text(painter, place, number_text(part.weight, 2), font, t.tensor("P"), CENTRE)
        paint_strip(share, y, part.share)
    y = top + len(parts) * high
    draw_text(painter, QRectF(weight, y, number, high), "Σ", font, t.text, CENTRE)
    paint_strip(share, y, total)
    place = QRectF(box.x(), y, wide + strip - px(6), high)
    said = f"the sum, O of {row_name(model.workload, row)}", "the sum, O", "O"
    Text(said, "O", RIGHT, _LABEL).paint(painter, style, place)
