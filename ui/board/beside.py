"""How room is shared out beside the scores: strips, titles, tokens, the magnified tile, the legend.

On the stage cells may be less high than the letters of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nlargest

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFont, QFontMetricsF

from ui.look.draw import text_width
from ui.look.pieces import GAP
from ui.look.theme import Style

LEGEND_WIDTH = 184.0
"""Width, at scale 1, from which the legend has its names beside the bars, not over them."""
_NARROW_LEGEND = (76.0, 100.0)
"""Room for the legend, at scale 1, with its names over the bars."""
TOKEN_SIZE = 11.0
"""Size of tokens, at scale 1, beside cells that are as high."""
_SMALL = (5.0, 10.0)
"""Least size of tokens beside smaller cells: at scale 1, and in pixels whatever the scale is."""
MOST_THINNED = 4
"""At least one of so many tokens is written; where that does not fit, numbers of blocks are."""
LINE = 1.1
"""Height of a line of tokens, in sizes of their letters."""
LEAD = 10.0
"""Length, at scale 1, of the lines from tokens to their cells."""
_MOST_ELONGATED = 6.0
"""Largest ratio of the sides of a drawn score matrix, so that bands stay visible."""
_LONGEST, _MEASURED = 84.0, 8
"""Most room, at scale 1, for the longest token, and the number of tokens measured to find it."""


def labels_beside(
    boxes: dict[str, QRectF],
    inputs: tuple[str, str],
    outside: dict[str, str],
    px: Callable[[float], float],
    content: QRectF,
) -> dict[str, QRectF]:
    """Return where the titles go; long titles at the outer sides reach outwards.

    px: turns a length at scale 1 into pixels.
    """
    line, short = px(18), px(30 if outside else 20)
    q, k, v, s, o = (boxes[name] for name in ("Q", *inputs, "S", "O"))
    above = s.top() - px(3) - line
    # Kᵀ is named at the top of its left side, Q just above its box; side by side if need be.
    tall = k.height() >= 2 * line or bool(outside)
    k_left = k.left() - px(4) - short
    labels = {
        inputs[1]: QRectF(v.left() - px(4) - short, v.top(), short, line),
        inputs[0]: QRectF(k_left, k.top() if tall else above, short, line),
        "Q": QRectF(content.left(), above, q.right() - content.left(), line),
        "O": QRectF(o.left(), above, content.right() - o.left(), line),
    }
    if not tall:
        labels["Q"].setRight(k_left - px(4))
    for name, other in outside.items():
        box = boxes[other]
        if name in inputs:
            labels[other] = QRectF(k_left, box.top(), short, line)
        elif box.left() < s.left():
            labels[other] = QRectF(content.left(), above, box.right() - content.left(), line)
            labels[name].setLeft(boxes[name].left())
        else:
            labels[other] = QRectF(box.left(), above, content.right() - box.left(), line)
            labels[name].setRight(boxes[name].right())
    for name, box in boxes.items():
        if name not in labels and box is not s:
            labels[name] = QRectF(box.left(), above, box.width(), line)
            if outside and box.left() - short < s.right():  # its name may be wider than the box
                labels[name].setLeft(min(box.left(), max(s.right() + 1, box.right() - short)))
    return labels


def halves(strip: QRectF, scores: QRectF, gap: int) -> tuple[QRectF, QRectF]:
    """Cut a strip beside the scores: return the half next to them, and the outer half."""
    across = strip.left() >= scores.right() or strip.right() <= scores.left()
    size = ((strip.width() if across else strip.height()) - gap) // 2
    first, last = QRectF(strip), QRectF(strip)
    if across:
        first.setRight(strip.left() + size)
        last.setLeft(strip.right() - size)
    else:
        first.setBottom(strip.top() + size)
        last.setTop(strip.bottom() - size)
    before = strip.left() < scores.left() if across else strip.top() < scores.top()
    return (last, first) if before else (first, last)


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


def shares(
    room: float,
    first: int,
    second: int,
    count: int,
    *,
    low: float,
    high: float,
    least: float,
    last: float = 0.0,
) -> tuple[float, float, float]:
    """Cut `room` into a strip, the scores and a strip, by cells and within limits."""
    whole = first + second + count
    a = max(min(max(first / whole, low), high) * room, least)
    b = max(min(max(second / whole, low, last), max(high, last)) * room, least)
    return a, max(room - a - b, least), b


def least_size(style: Style) -> float:
    """Return the least size of tokens, at scale 1."""
    return min(max(_SMALL[0], max(_SMALL[1], style.least) / style.scale), TOKEN_SIZE)


def room_for(tokens: Sequence[str], style: Style, size: float) -> float:
    """Return the room, at scale 1, that tokens of a size need beside the board."""
    font = style.text_font(size)
    longest = nlargest(_MEASURED, tokens, key=len)
    widest = max((text_width(font, token) for token in longest), default=0.0)
    return min(widest / style.scale + 1, _LONGEST)


def shared_label(long: float, cell: float, font: QFont, text: str) -> tuple[float, str]:
    """Return the side of the picture's piece beside some cells, and the text before the piece.

    The piece is as large as its cells allow, but leaves room for its text. If the piece would then
    be lower than a line of text, there is no text.

    cell: length of the cells that share a label.
    font, text: the text's font, and the whole text.
    """
    side, beside = min(cell - 1, long), (long - text_width(font, text)) / (1 + GAP)
    if beside < min(side, QFontMetricsF(font).height()):
        return side, ""
    return min(side, beside), text


def apart(middles: Sequence[float], line: float, low: float, high: float) -> list[float]:
    """Return the middles of tokens, moved apart if tokens need more room than their cells."""
    if len(middles) < 2 or middles[1] - middles[0] >= line:
        return list(middles)
    whole = line * len(middles)
    start = max(min((middles[0] + middles[-1] - whole) / 2, high - whole), low)
    return [start + (n + 0.5) * line for n in range(len(middles))]


def within(width: float, height: float, ratio: float) -> tuple[float, float]:
    """Return the largest size that fits, with a width to height `ratio` kept within limits."""
    ratio = min(max(ratio, 1 / _MOST_ELONGATED), _MOST_ELONGATED)
    return (width, width / ratio) if width / ratio <= height else (height * ratio, height)
