"""Where what stands beside the boxes lies: titles, the magnified tile and the legend."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF

LEGEND_WIDTH = 184.0
"""From which width, at scale 1, the legend has its names beside the bars, not over them."""
_NARROW_LEGEND = (76.0, 100.0)
"""Room that it needs with its names over the bars."""


def labels_beside(
    boxes: dict[str, QRectF],
    inputs: tuple[str, str],
    px: Callable[[float], float],
    content: QRectF,
) -> dict[str, QRectF]:
    """Return where the titles go; those of Q and O reach outwards where their sizes are long."""
    line, short = px(18), px(20)
    q, k, v, s, o = (boxes[name] for name in ("Q", *inputs, "S", "O"))
    above = s.top() - px(3) - line
    # Kᵀ is named at the top of its left side, Q just above its box; side by side if need be.
    tall = k.height() >= 2 * line
    k_left = k.left() - px(4) - short
    labels = {
        inputs[1]: QRectF(v.left() - px(4) - short, v.top(), short, line),
        inputs[0]: QRectF(k_left, k.top() if tall else above, short, line),
        "Q": QRectF(content.left(), above, q.right() - content.left(), line),
        "O": QRectF(o.left(), above, content.right() - o.left(), line),
    }
    if not tall:
        labels["Q"].setRight(k_left - px(4))
    for name in ("m", "l"):
        if name in boxes:
            labels[name] = QRectF(boxes[name].left(), above, boxes[name].width(), line)
    return labels


def corner_places(
    corner: QRectF, px: Callable[[float], float], large: bool
) -> tuple[QRectF, QRectF]:
    """Share the room right of Vᵀ between the magnified tile and the legend."""
    inset, rest = QRectF(), corner
    if large and min(corner.width(), corner.height()) >= px(48):
        side = min(corner.height(), corner.width())
        beside = corner.width() - px(16) - px(_NARROW_LEGEND[0])
        if beside >= px(64) and corner.height() >= px(_NARROW_LEGEND[1]):
            side = min(side, beside)
        inset = QRectF(corner.left(), corner.top(), side, corner.height())
        rest = corner.adjusted(side + px(16), 0, 0, 0)
    wide, high = rest.width(), rest.height()
    least = _NARROW_LEGEND
    fits = wide >= px(LEGEND_WIDTH) and high >= px(52)
    fits = fits or (wide >= px(least[0]) and high >= px(least[1]))
    return inset, rest if fits else QRectF()
