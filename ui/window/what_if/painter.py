"""The strip's picture: its ground, names and figures; fields paint themselves."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_text, text_width
from ui.look.theme import Style
from ui.window.what_if.places import KEY, TITLE, Control, Sizes, StripPlaces
from ui.window.what_if.words import ARROW, FigureWords


@dataclass(frozen=True, slots=True)
class StripState:
    """The state that the strip shows beside its fields."""

    controls: tuple[Control, ...]
    figures: tuple[FigureWords, ...]
    back: str  # the settings to which the key goes back; empty if there are none
    current: str  # name of the field that has the focus or has been changed; empty for none
    comparing: bool
    left: float  # share of the comparison's time that is left
    faded: float  # how far the figures from before have faded, 0 to 1


def paint_strip(
    painter: QPainter,
    state: StripState,
    places: StripPlaces,
    sizes: Sizes,
    style: Style,
    rect: QRectF,
) -> None:
    """Paint the strip into a rectangle."""
    theme, px = style.theme, style.px
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    lit = state.comparing
    card(painter, rect, theme.panel, theme.current if lit else theme.border, px(8),
         px(2) if lit else px(1))  # fmt: skip
    if not places.title.isNull():
        font = style.text_font(sizes.title, bold=True)
        draw_text(painter, places.title, TITLE, font, theme.text, LEFT)
    for control in state.controls:
        if control.name in places.labels:
            chosen = control.name == state.current
            _label(painter, places.labels[control.name], control.label, chosen, sizes, style)
    if not places.more.isNull():
        draw_text(painter, places.more, "…", style.text_font(sizes.field), theme.muted, CENTRE)
    for figure, place in zip(state.figures, places.figures, strict=False):
        _figure(painter, figure, place, state.faded, sizes, style)
    if not places.back.isNull():
        _back(painter, places.back, state.back, sizes, style)
    if lit and state.left > 0:
        foot = rect.adjusted(px(8), 0, -px(8), 0)
        line = QRectF(foot.left(), rect.bottom() - px(3), foot.width() * state.left, px(3))
        painter.fillRect(line, QColor(theme.current))


def _label(
    painter: QPainter, place: QRectF, label: str, chosen: bool, sizes: Sizes, style: Style
) -> None:
    """Draw the name of a field, its first letter underlined: Alt and that letter go there."""
    font = style.text_font(sizes.name, bold=chosen)
    colour = QColor(style.theme.current if chosen else style.theme.muted)
    draw_text(painter, place, label, font, colour, LEFT)
    y = place.center().y() + style.px(0.55 * sizes.name)
    painter.setPen(QPen(colour, style.px(1.2)))
    painter.drawLine(QLineF(place.left(), y, place.left() + text_width(font, label[0]), y))


def _figure(
    painter: QPainter, figure: FigureWords, place: QRectF, faded: float, sizes: Sizes, style: Style
) -> None:
    theme, px = style.theme, style.px
    name, was = style.text_font(sizes.name), style.code_font(sizes.was)
    now = style.code_font(sizes.now, bold=True)
    heights = px(1.35 * sizes.name), px(1.35 * sizes.now), px(0.5 * sizes.name + sizes.bar)
    gone = faded if figure.was else 1.0  # bars leave their room to the rest
    top = place.top() + (place.height() - sum(heights[:2]) - (1 - gone) * heights[2]) / 2
    first = QRectF(place.left(), top, place.width(), heights[0])
    draw_text(painter, first, figure.name, name, theme.muted, LEFT)
    colour = {True: theme.bad, False: theme.good, None: theme.muted}[figure.worse]
    line = QRectF(place.left(), first.bottom(), place.width(), heights[1])
    painter.save()
    painter.setOpacity(painter.opacity() * (1 - faded))
    draw_text(painter, first, figure.factor, style.code_font(sizes.name, bold=True), colour, RIGHT)
    x = line.left()
    if figure.was:
        draw_text(painter, line, figure.was, was, theme.muted, LEFT)
        start = x + text_width(was, f"{figure.was} ")
        _arrow(painter, start, line.center().y(), text_width(was, ARROW), px(2), theme.muted)
        x += (1 - faded) * text_width(was, f"{figure.was} {ARROW} ")
        _bars(painter, QRectF(place.left(), line.bottom(), place.width(), heights[2]), figure,
              colour, sizes, style)  # fmt: skip
    painter.restore()
    line.setLeft(x)
    draw_text(painter, line, figure.now, now, theme.text, LEFT)
    if figure.after:
        line.setLeft(x + text_width(now, figure.now))
        draw_text(painter, line, f", {figure.after}", name, theme.muted, LEFT)


def _arrow(painter: QPainter, x: float, y: float, wide: float, pen: float, colour: str) -> None:
    painter.setPen(QPen(QColor(colour), pen, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    end, wing = x + wide, 0.3 * wide
    painter.drawLine(QLineF(x, y, end, y))
    painter.drawPolyline([QPointF(end - wing, y - wing), QPointF(end, y),
                          QPointF(end - wing, y + wing)])  # fmt: skip


def _bars(
    painter: QPainter, place: QRectF, figure: FigureWords, colour: str, sizes: Sizes, style: Style
) -> None:
    """Draw the earlier value in grey, and below it the present value, to one scale."""
    px = style.px
    thin = max(px(0.55 * sizes.bar), 2.0)
    painter.setPen(Qt.PenStyle.NoPen)
    y = place.top() + px(1)
    for share, high, ink in (
        (figure.bars[0], thin, style.theme.faint), (figure.bars[1], px(sizes.bar), colour),
    ):  # fmt: skip
        painter.setBrush(QColor(ink))
        painter.drawRoundedRect(QRectF(place.left(), y, place.width() * share, high), px(2), px(2))
        y += high + px(2)


def _back(painter: QPainter, place: QRectF, back: str, sizes: Sizes, style: Style) -> None:
    """Draw the key that goes back, and the settings to which it goes."""
    theme, px, font = style.theme, style.px, style.text_font(sizes.name - 1)
    high = px(1.7 * (sizes.name - 1))
    key = QRectF(place.left(), place.center().y() - high - px(1),
                 text_width(font, KEY) + px(16), high)  # fmt: skip
    card(painter, key, theme.field, theme.border, px(5))
    draw_text(painter, key, KEY, font, theme.text, CENTRE)
    below = QRectF(place.left(), key.bottom() + px(2), place.width(), high)
    draw_text(painter, below, back, font, theme.muted, LEFT)
