"""Paints the bytes of a cache as a product, the name of each factor below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.study.kv_cache.formula import CacheFormula
from ui.look.draw import CENTRE, draw_text, text_width
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, decimal_bytes_text

_VALUES = (13.0, 12.0, 11.5)
"""Sizes of the values, the largest that fits."""
_LINE, _NAMES, _GAP = 18.0, 14.0, 5.0
_BRIEF = {"KV heads": "heads", "head size": "size", "sequences": "seq.", "latent + rope": "latent"}
"""Names where there is little room."""


@dataclass(frozen=True, slots=True)
class FormulaColumn:
    """A value or a sign, and the name below it."""

    text: str
    name: str = ""


def columns(formula: CacheFormula, count: str) -> tuple[FormulaColumn, ...]:
    """Return values and signs from left to right; `count` names the sum."""
    out: list[FormulaColumn] = []
    for term in formula.terms:
        out += [
            FormulaColumn("+"), FormulaColumn(count_text(term.layers), "layers"),
            FormulaColumn("×"),
            FormulaColumn(count_text(term.tokens), "tokens"),
        ]  # fmt: skip
    out = out[1:]
    if len(formula.terms) > 1:
        out = [FormulaColumn("("), *out, FormulaColumn(")")]
    for factor in formula.factors:
        value = f"{float(factor.value):g} B" if factor.bytes else count_text(int(factor.value))
        out += [FormulaColumn("×"), FormulaColumn(value, factor.name)]
    return (*out, FormulaColumn("="), FormulaColumn(decimal_bytes_text(formula.total), count))


def formula_text(formula: CacheFormula, count: str) -> str:
    """Return the same in one line."""
    return " ".join(each.text for each in columns(formula, count))


def formula_height(style: Style) -> float:
    """Return what it takes from top to bottom."""
    return style.px(_LINE + _NAMES)


def paint_formula(
    painter: QPainter, formula: CacheFormula, count: str, style: Style, rect: QRectF
) -> None:
    """Draw the product; without names, as one line, if it is too narrow."""
    theme, gap = style.theme, style.px(_GAP)
    small = style.text_font(LABEL)
    for size in _VALUES:
        font = style.text_font(size, bold=True)
        for brief in (False, True):
            shown = _named(columns(formula, count), brief)
            widths = [max(text_width(font, c.text), text_width(small, c.name)) for c in shown]
            if sum(widths) + gap * (len(shown) - 1) > rect.width():
                continue
            x, line = rect.x(), style.px(_LINE)
            for column, width in zip(shown, widths, strict=True):
                place = QRectF(x, rect.y(), width + 1, line)
                ink = theme.text if column.name else theme.muted
                draw_text(painter, place, column.text, font, ink, CENTRE)
                below = QRectF(x, rect.y() + line, width + 1, style.px(_NAMES))
                draw_text(painter, below, column.name, small, theme.muted, CENTRE)
                x += width + gap
            return
    place = QRectF(rect.x(), rect.y(), rect.width(), formula_height(style))
    draw_text(painter, place, formula_text(formula, count), small, theme.text)


def _named(all_of: Sequence[FormulaColumn], brief: bool) -> list[FormulaColumn]:
    return [FormulaColumn(c.text, _BRIEF.get(c.name, c.name) if brief else c.name) for c in all_of]
