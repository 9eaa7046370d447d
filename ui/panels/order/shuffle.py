"""Paints rows of O before and after a shuffle, and which of them go with their tokens."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ui.look.draw import LEFT, RIGHT, draw_text, outline, text_width, wrapped
from ui.look.heat import colour_map, heat_image, signed_limit
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style
from ui.look.units import count_text
from ui.panels.order.state import ShuffleState

MIN_SIZE = QSizeF(430, 240)
"""Below this the text shrinks."""
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_SHARE = 0.5
"""Share of the height that the rows have at least, before sentences below them are left out."""


def paint_shuffle(painter: QPainter, state: ShuffleState, style: Style, rect: QRectF) -> None:
    """Paint O by token, lines to where the tokens stand afterwards, and O there."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    line, bold = px(16), style.text_font(12.5, bold=True)
    title = first_that_fits(state.title, rect.width(), bold)
    draw_text(painter, QRectF(rect.x(), rect.y(), rect.width(), line), title, bold, theme.text)
    said = [wrapped(words, font, rect.width()) for words in state.words]
    found = state.found
    if found is None:
        for n, words in enumerate(said[0]):
            place = QRectF(rect.x(), rect.y() + (n + 2) * line, rect.width(), line)
            draw_text(painter, place, words, font, theme.text)
        return
    top = rect.y() + 2 * line + px(6)
    while said and (
        rect.bottom() - top - line * (sum(map(len, said)) + 0.5) < _SHARE * rect.height()
    ):
        said.pop()
    foot = line * (sum(map(len, said)) + 0.5) if said else 0.0
    n, high = len(found.order), rect.bottom() - top - foot
    w = state.workload
    names = [w.key_token(t) or count_text(t) for t in range(n)]
    wide = min(max(text_width(font, name) for name in names), px(84)) + px(10)
    figures = ("100 %", "apart")
    end = max(text_width(font, words) for words in figures) + px(10)
    maps = max((rect.width() - 2 * wide - end) * 0.3, px(20))
    each = high / n
    left = QRectF(rect.x() + wide, top, maps, high)
    right = QRectF(rect.right() - end - wide - maps, top, maps, high)
    heads = (("O, in order", left), ("O, shuffled", right))
    limit = signed_limit(found.before) or 1.0
    for (words, box), values in zip(heads, (found.before, found.after), strict=True):
        place = QRectF(box.x(), top - line - px(2), box.width() + wide, line)
        draw_text(painter, place, words, font, theme.tensor("O"), LEFT)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(box, heat_image(values, -limit, limit, colour_map(theme, "O")))
        outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid)
    apart, places = found.apart, found.places
    bent = apart > found.bound
    step = next((s for s in _STEPS if s * each >= px(LABEL + 2)), _STEPS[-1])
    most = float(max(apart.max(), 1e-30))
    for token in sorted(range(n), key=lambda t: t == state.row):
        stands, own = int(places[token]), token == state.row
        ys = (top + (token + 0.5) * each, top + (stands + 0.5) * each)
        ink = QColor(theme.current if own else theme.bad if bent[token] else theme.good)
        dash = Qt.PenStyle.DashLine if bent[token] else Qt.PenStyle.SolidLine
        painter.setPen(QPen(ink, px(2.2 if own else 1.2), dash))
        ends = QPointF(left.right() + px(2), ys[0]), QPointF(right.left() - px(2), ys[1])
        painter.drawLine(QLineF(*ends))
        if own:
            for box, y in ((left, ys[0]), (right, ys[1])):
                frame = QRectF(box.x() - 1, y - each / 2, box.width() + 2, each)
                outline(painter, frame, theme.current, px(2))
        colour = theme.current if own else theme.text
        if token % step == 0:
            box = QRectF(rect.x(), ys[0] - line / 2, wide - px(4), line)
            draw_text(painter, box, names[token], font, colour, RIGHT)
        if stands % step == 0:
            box = QRectF(right.right() + px(7), ys[1] - line / 2, wide - px(6), line)
            draw_text(painter, box, names[token], font, colour, LEFT)
            words = f"{100 * apart[token]:.0f} %"
            box = QRectF(rect.right() - end, ys[1] - line / 2, end, line)
            draw_text(painter, box, words, font, theme.bad if bent[token] else theme.good, RIGHT)
        bar = QRectF(right.right() + px(1), ys[1] - each * 0.35, px(3), each * 0.7)
        if bent[token]:
            painter.fillRect(bar, QColor(theme.bad) if apart[token] >= most / 2 else ink)
    place = QRectF(rect.right() - end, top - line - px(2), end, line)
    draw_text(painter, place, "apart", font, theme.muted, RIGHT)
    y = rect.bottom() - foot + line * 0.4
    for words in (words for part in said for words in part):
        box = QRectF(rect.x(), y, rect.width(), line)
        draw_text(painter, box, words, font, theme.muted)
        y += line
