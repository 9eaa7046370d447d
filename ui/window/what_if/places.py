"""The places of the strip's parts: a function of its width and of its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFont

from ui.look.draw import text_width
from ui.look.theme import Style
from ui.window.what_if.words import ARROW, FigureWords

TITLE = "What if"
KEY = "Backspace"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths and letters of a strip, at scale 1."""

    high: float
    pad: float  # around its contents
    gap: float  # between its parts
    title: float  # letters of the title; 0 for none
    name: float  # name, field, was, now: letters of names, fields, earlier and present figures
    field: float
    was: float
    now: float
    field_high: float
    stacked: bool  # whether names stand over their fields
    bar: float  # height of the bar of a present figure


ROOMY = Sizes(84, 14, 20, 18, 14, 17, 17, 19, 38, True, 7)
COMPACT = Sizes(56, 10, 14, 15, 12, 14, 14, 15, 32, False, 6)
STAGE = Sizes(112, 26, 26, 0, 22, 29, 28, 31, 50, True, 8)


@dataclass(frozen=True, slots=True)
class Control:
    """A field that the strip may show."""

    name: str
    label: str
    width: float  # of the field, in pixels
    least: float  # its width where there is little room


@dataclass(frozen=True, slots=True)
class StripPlaces:
    """Rectangles of the parts that have room."""

    title: QRectF
    labels: dict[str, QRectF]
    fields: dict[str, QRectF]
    more: QRectF  # of the sign that some fields are hidden; null if none is
    figures: tuple[QRectF, ...]
    back: QRectF  # of the key that goes back; null without it


def figure_width(figure: FigureWords, sizes: Sizes, style: Style) -> float:
    """Return the least width of a figure, in pixels."""
    name, was = style.text_font(sizes.name), style.code_font(sizes.was)
    now, end = style.code_font(sizes.now, bold=True), style.text_font(sizes.name)
    top = text_width(name, figure.name) + text_width(
        style.code_font(sizes.name, bold=True), figure.factor
    ) + style.px(sizes.name)  # fmt: skip
    line = text_width(now, figure.now) + _end(end, figure)
    if figure.was:
        line += text_width(was, f"{figure.was} {ARROW} ")
    return max(top, line)


def _end(font: QFont, figure: FigureWords) -> float:
    return text_width(font, f", {figure.after}") if figure.after else 0.0


def places(
    size: tuple[float, float], sizes: Sizes, style: Style, controls: Sequence[Control],
    figures: Sequence[FigureWords], back: str, first: Sequence[str],
) -> StripPlaces:  # fmt: skip
    """Return the places of all parts.

    While figures are compared they come first, and fields without room are left out until the
    figures have faded; otherwise as many figures are shown as have room beside the fields.

    size: size of the strip, in pixels.
    first: names of fields that are shown before others.
    """
    px, (width, high) = style.px, size
    comparing = any(figure.was for figure in figures)
    pad, gap = px(sizes.pad), px(sizes.gap)
    name = style.text_font(sizes.name, bold=True)  # the widest that a name may become
    x, stop = pad, width - pad
    title = QRectF()
    if sizes.title:
        wide = text_width(style.text_font(sizes.title, bold=True), TITLE)
        title = QRectF(x, 0, wide, high)
        x += wide + gap
    back_wide = 0.0
    if back:
        small = style.text_font(sizes.name - 1)
        back_wide = max(text_width(small, back), text_width(small, KEY) + px(16))
    widths = [figure_width(figure, sizes, style) for figure in figures]
    need = sum(widths) + gap * len(widths) + (back_wide + gap if back else 0.0)

    def full(control: Control, least: bool = False) -> float:
        wide = control.least if least else control.width
        beside = text_width(name, control.label) + px(8)
        return wide + gap + (0.0 if sizes.stacked else beside)

    room = stop - x - (need if comparing else 0.0)
    more_wide = text_width(style.text_font(sizes.field), "…") + gap
    ranks = {name: rank for rank, name in reversed([*enumerate(first)])}
    order = sorted(controls, key=lambda each: ranks.get(each.name, len(first)))
    narrow = sum(map(full, controls)) > room
    kept: list[Control] = []
    for control in order:
        taken = sum(full(each, narrow) for each in (*kept, control))
        rest = more_wide if len(kept) + 1 < len(controls) else 0.0
        if not kept or taken + rest <= room:
            kept.append(control)
    labels, fields = {}, {}
    field_high = px(sizes.field_high)
    left_out = more_wide if len(kept) < len(controls) else 0.0
    spare = room - left_out - sum(full(each, True) for each in kept)
    for control in (each for each in controls if each in kept):
        wide = control.width
        if narrow:
            wide = control.least + min(max(spare, 0.0), control.width - control.least)
            spare -= wide - control.least
        if sizes.stacked:
            top = (high - field_high - px(sizes.name * 1.5)) / 2
            labels[control.name] = QRectF(x, top, wide, px(sizes.name * 1.4))
            fields[control.name] = QRectF(x, top + px(sizes.name * 1.5), wide, field_high)
        else:
            beside = text_width(name, control.label)
            labels[control.name] = QRectF(x, 0, beside, high)
            x += beside + px(8)
            fields[control.name] = QRectF(x, (high - field_high) / 2, wide, field_high)
        x += wide + gap
    more = QRectF()
    if len(kept) < len(controls):
        more = QRectF(x, 0, more_wide - gap, high)
        x += more_wide
    back_place = QRectF()
    if back and x + back_wide <= stop:
        back_place = QRectF(stop - back_wide, 0, back_wide, high)
        stop -= back_wide + gap
    shown: list[QRectF] = []
    while widths and x + sum(widths) + gap * (len(widths) - 1) > stop + 1 and not comparing:
        widths.pop()
    if widths:
        # Figures have columns of their own, as wide as there is room for.
        free = stop - x - sum(widths) - gap * (len(widths) - 1)
        each = max(free, 0.0) / len(widths)
        for wide in widths:
            column = wide + min(each, px(12 * sizes.name))
            shown.append(QRectF(x, 0, column, high))
            x += column + gap
    return StripPlaces(title, labels, fields, more, tuple(shown), back_place)
