"""The table of variants: what each costs at this N, and the power of N with which it grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QPainter

from simulator.problem.workload import Workload
from simulator.study.variants import HEADS, Variant, VariantCost, VariantTable
from ui.look.draw import LEFT, RIGHT, card, draw_text, text_width, wrapped
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text, time_text
from ui.panels.sweep.plot import ONE_LENGTH

MIN_SIZE = QSizeF(440, 190)
"""Below this the text shrinks."""
_HEADINGS = (
    ("variant",),
    ("time", "time"),
    ("held in HBM", "held"),
    ("cached",),
    ("weights W", "W"),
)


@dataclass(frozen=True, slots=True)
class VariantsShown:
    """A table, and the scenario whose it is."""

    table: VariantTable  # the variants
    workload: Workload  # their N, d, mask and GPU

    @property
    def note(self) -> str:
        """What has to be known to read it."""
        t, w = self.table, self.workload
        parts = [
            f"N = {count_text(w.seqlen_k)}, d = {w.head_dim}, one layer of {t.heads} heads, "
            f"D = {count_text(t.width)}, {w.gpu.name}"
        ]
        if t.lengths:
            low, high = (count_text(n) for n in (t.lengths[0], t.lengths[-1]))
            parts.append(f"exponents fitted from N = {low} to {high}")
        else:
            parts.append(ONE_LENGTH)
        if w.queries != w.seqlen_k:
            parts[0] = f"{count_text(w.queries)} queries, {parts[0]}"
        if t.heads == HEADS != w.input_heads[0]:
            parts.append(f"{HEADS} heads because a single one shares nothing")
        if w.dtype == "float32":
            parts.append("times are of bytes alone: no float32 rate in the presets")
        return "; ".join(parts) + "."

    @property
    def summary(self) -> str:
        """The figures in words."""
        rows = [
            f"{row.name}: "
            + ", ".join(
                f"{heading[0]} {text(cost.here)}"
                + (f", as N to the {exponent_text(cost)}" if cost.power else "")
                for heading, (cost, text) in zip(_HEADINGS[1:], cells_of(row), strict=True)
            )
            for row in self.table.rows
        ]
        return ". ".join([self.note.rstrip("."), *rows]) + "."


def exponent_text(cost: VariantCost) -> str:
    """Return a fitted exponent with two digits; "" where none could be fitted."""
    if cost.power is None:
        return ""
    return f"{cost.power.exponent + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def cells_of(row: Variant) -> tuple[tuple[VariantCost, Callable[[float], str]], ...]:
    """Return the costs of a variant in the order of the columns, with how they are written."""

    def whole_bytes(count: float) -> str:
        return bytes_text(round(count))

    def whole(count: float) -> str:
        return count_text(round(count))

    return (
        (row.seconds, time_text),
        (row.held, whole_bytes),
        (row.cached, whole_bytes),
        (row.parameters, whole),
    )


def paint_variants(painter: QPainter, shown: VariantsShown, style: Style, rect: QRectF) -> None:
    """Paint the table; the scenario's own variant is framed."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, theme = style.px, style.theme
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    rows = shown.table.rows
    text, code, small = style.text_font(12), style.code_font(12), style.code_font(11)
    line = px(16)
    notes = wrapped(shown.note, style.text_font(11), rect.width())[:3]
    foot = px(14) * len(notes) + px(4)
    high = min((rect.height() - line - foot) / len(rows), px(44))
    two = high >= 2 * px(15)  # the exponent stands below its figure
    code = code if two else small
    names = max(text_width(text, row.name) for row in rows) + px(16)
    first = min(names, 0.36 * rect.width())
    # Where letters may not be smaller, columns are left out, the last ones first.
    figures = [words(cost.here) for row in rows for cost, words in cells_of(row)]
    room = rect.width() - first - px(8)
    widest = max(text_width(code, words) for words in figures) + px(12)
    columns = len(_HEADINGS) - 1
    if style.least:
        columns = min(max(int(room / widest), 1), columns)
        first = min(names, rect.width() - px(8) - columns * widest)
    room = rect.width() - first - px(8)
    widths, powers = _columns(rows, columns, room, style, (code, small), two=two)
    edges = [rect.x() + first + sum(widths[:c]) for c in range(columns)]
    for n, headings in enumerate(_HEADINGS[: columns + 1]):
        left = edges[n - 1] if n else rect.x() + px(6)
        width = widths[n - 1] if n else first
        words = first_that_fits(headings, width - px(8), style.text_font(11))
        place = QRectF(left, rect.y(), width, line)
        draw_text(painter, place, words, style.text_font(11), theme.muted, RIGHT if n else LEFT)
    for n, row in enumerate(rows):
        top = rect.y() + line + n * high
        if row.own:
            frame = QRectF(rect.x() + 1, top + 1, rect.width() - 2, high - 2)
            card(painter, frame, theme.accent, theme.current, px(4), px(1.2))
        box = QRectF(rect.x() + px(6), top, first - px(6), high)
        painter.setPen(Qt.PenStyle.NoPen)
        _paint_name(painter, row.name, box, style, two=two)
        for c, (cost, words_of) in enumerate(cells_of(row)[:columns]):
            cell = QRectF(edges[c], top, widths[c], high)
            power = exponent_text(cost) if c < powers else ""
            words = words_of(cost.here)
            _paint_cell(painter, words, power, cell, style, (code, small), two=two)
    for n, words in enumerate(notes):
        y = rect.bottom() - px(14) * (len(notes) - n)
        place = QRectF(rect.x(), y, rect.width(), px(14))
        draw_text(painter, place, words, style.text_font(11), theme.muted, LEFT)


def _columns(
    rows: Sequence[Variant], count: int, room: float, style: Style, fonts: tuple[QFont, QFont],
    *, two: bool,
) -> tuple[list[float], int]:  # fmt: skip
    """Return how wide columns are, and how many of them have room for their exponents.

    A column has them all or none, so that nobody takes a missing one for another power.
    """
    if two:
        return [room / count] * count, count
    figures, whole = [0.0] * count, [0.0] * count
    for row in rows:
        for c, (cost, words) in enumerate(cells_of(row)[:count]):
            wide = text_width(fonts[0], words(cost.here))
            figures[c] = max(figures[c], wide)
            whole[c] = max(whole[c], wide + _power_width(exponent_text(cost), style, fonts))
    gaps, powers = count * style.px(12), count
    while powers and sum(whole[:powers]) + sum(figures[powers:]) + gaps > room:
        powers -= 1
    needs = whole[:powers] + figures[powers:]
    spare = (room - sum(needs)) / count
    return [need + spare for need in needs], powers


def _power_width(power: str, style: Style, fonts: tuple[QFont, QFont]) -> float:
    """Return the room of N and its exponent after a figure."""
    code, small = fonts
    return text_width(code, "N") + text_width(small, power) + style.px(8)


def _paint_name(painter: QPainter, name: str, box: QRectF, style: Style, *, two: bool) -> None:
    """Write the name of a variant, on two lines if it is too wide for one."""
    text, px = style.text_font(12), style.px
    lines = wrapped(name, text, box.width()) if two else [name]
    if len(lines) > 2:
        lines = [name]
    top = box.center().y() - px(15.5 if len(lines) == 2 else 7.5)
    for n, words in enumerate(lines):
        place = QRectF(box.x(), top + n * px(16), box.width(), px(15))
        draw_text(painter, place, words, text, style.theme.text, LEFT)


def _paint_cell(
    painter: QPainter, words: str, power: str, cell: QRectF, style: Style,
    fonts: tuple[QFont, QFont], *, two: bool,
) -> None:  # fmt: skip
    """Write a figure and, below or after it, N with the fitted exponent raised; "" for none."""
    theme, px = style.theme, style.px
    code, small = fonts
    ink = QColor(theme.tensor("S"))
    if not power:
        draw_text(painter, cell, words, code, theme.text, RIGHT)
        return
    if two:
        figure = QRectF(cell.x(), cell.center().y() - px(15.5), cell.width(), px(15))
        under = QRectF(cell.x(), cell.center().y() + px(0.5), cell.width(), px(15))
    else:
        figure = cell.adjusted(0, 0, -_power_width(power, style, fonts), 0)
        under = cell
    draw_text(painter, figure, words, code, theme.text, RIGHT)
    raised, letter = text_width(small, power), text_width(code, "N")
    at = QRectF(under.right() - raised - letter - px(1), under.y() + px(1), letter, under.height())
    draw_text(painter, at, "N", code, ink, LEFT)
    top = QRectF(under.right() - raised, under.y() - px(2), raised + 1, under.height())
    draw_text(painter, top, power, small, ink, LEFT)
