"""The figures of the whole runs as a table: the smallest is marked, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan, nan

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from simulator.study.compare import Comparison, EngineRun, Totals
from ui.look.draw import RIGHT, draw_text, text_width
from ui.look.names import first_that_fits, fitting
from ui.look.theme import Style
from ui.look.units import LAUNCH, bytes_text, count_text, factor_text, time_text
from ui.panels.compare.painter import paint_verdicts
from ui.panels.compare.words import title

MIN_SIZE = QSizeF(540, 220)
_SAME = 1.005
"""Ratios up to here are not written."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One figure of all of them."""

    names: tuple[str, ...]  # what it is, longest first
    texts: tuple[str, ...]  # one for each algorithm
    # the amounts by which they are ranked, NaN of those that are not; None if less is not better
    amounts: tuple[float, ...] | None
    rank: int  # rows of a higher rank are left out first if there is no space


def table_rows(
    comparison: Comparison, runs: Mapping[str, EngineRun] | None = None
) -> tuple[TableRow, ...]:
    """Return the rows of the table.

    Parameters
    ----------
    runs : mapping, optional
        The results of engines, by algorithm; without it these cells say ``not run``.
    """
    totals = comparison.totals
    gpu = comparison.programs[comparison.shown].workload.gpu

    def row(
        names: tuple[str, ...],
        amount: Callable[[Totals], float],
        text: Callable[[Totals], str],
        rank: int,
        ranked: bool = True,
    ) -> TableRow:
        alike = comparison.alike
        amounts = tuple(amount(t) if t.algorithm in alike else nan for t in totals)
        return TableRow(names, tuple(map(text, totals)), amounts if ranked else None, rank)

    def size(names: tuple[str, ...], amount: Callable[[Totals], int], rank: int) -> TableRow:
        return row(names, amount, lambda total: bytes_text(amount(total)), rank)

    short: tuple[str, ...] = ()
    if any(total.time.below_launch for total in totals):
        short = (f"roofline time (a launch alone: {LAUNCH})", f"time (a launch: {LAUNCH})")
    rows = (
        size(("requested, read", "read"), lambda t: t.counters.read_bytes, 1),
        size(("requested, written", "written"), lambda t: t.counters.write_bytes, 1),
        size(("requested, total", "requested"), lambda t: t.counters.bytes, 0),
        size(("compulsory (each launch, once)", "compulsory"), lambda t: t.compulsory, 2),
        row(("matmul FLOPs", "FLOPs"), lambda t: t.counters.flops,
            lambda t: flops_text(t.counters.flops), 2),
        row(("FLOPs for each requested byte", "FLOPs / byte"), lambda t: t.intensity,
            lambda t: f"{t.intensity:.1f}", 3, ranked=False),
        row((*short, f"roofline time on {gpu.name}", "roofline time", "time"),
            lambda t: t.time.seconds,
            lambda t: f"≈ {time_text(t.time.seconds)}", 0),
        row(("what takes longer, if nothing is found in L2", "bound by, without L2", "bound by"),
            lambda t: 0.0, lambda t: t.time.bound, 4, ranked=False),
        size((f"shared memory at most (limit {bytes_text(gpu.smem_bytes)})",
              "shared memory at most", "SRAM at most"), lambda t: t.peak, 1),
        size(("written to HBM for each pair (N²)", "N² numbers in HBM"), lambda t: t.square, 1),
        row(("visits", "visits"), lambda t: t.visits, lambda t: count_text(t.visits), 4,
            ranked=False),
    )  # fmt: skip
    found = [runs.get(name) if runs else None for name in comparison.programs]
    errors = tuple(_error_text(r.max_abs_error) if r else "not run" for r in found)
    seconds = tuple(time_text(r.seconds) if r else "not run" for r in found)
    engine = next((r.engine for r in found if r), "")
    took = f"seconds of the {engine} engine" if engine else "seconds of the engine"
    measured = (
        TableRow(("largest error of O from float64", "error of O"), errors, None, 3),
        TableRow((took, "engine time"), seconds, None, 4),
    )
    return (*rows, *measured)


def _error_text(error: float) -> str:
    return "NaN or ∞" if isnan(error) else f"{error:.1e}".replace("-", "−")


def flops_text(count: int) -> str:
    """Return a number of FLOPs in powers of ten: ``8.6 GFLOP``."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}FLOP"
    return f"{count} FLOP"


def paint_table(
    painter: QPainter,
    comparison: Comparison,
    style: Style,
    rect: QRectF,
    *,
    runs: Mapping[str, EngineRun] | None = None,
) -> None:
    """Paint the table, and below it what it says in words.

    Parameters
    ----------
    rect : QRectF
        The place, at least about `MIN_SIZE`.
    runs : mapping, optional
        The results of engines, by algorithm.
    """
    style = fitting(style, rect, MIN_SIZE)
    px, theme = style.px, style.theme
    footer_height = px(16) * (3 if rect.height() >= px(420) else 2 if rect.height() >= 240 else 1)
    footer = QRectF(rect.x(), rect.bottom() - footer_height, rect.width(), footer_height)
    place = QRectF(rect.x(), rect.y(), rect.width(), footer.y() - px(4) - rect.y())
    rows = _that_fit(table_rows(comparison, runs), int(place.height() / px(15)) - 1)
    height = min(place.height() / (len(rows) + 1), px(30))
    first = _first_width(rows, style, rect.width())
    width = (rect.width() - first) / len(comparison.programs)
    font, bold = style.text_font(12), style.text_font(12, bold=True)

    def cell(line: int, column: int) -> QRectF:
        x = rect.x() + first + column * width
        return QRectF(x, place.y() + line * height, width - px(6), height)

    painter.save()
    for n, total in enumerate(comparison.totals):
        shown = total.algorithm == comparison.shown
        name, box = title(total.algorithm), cell(0, n)
        over_figures = box.width() - _ratio_width(style)
        if text_width(bold, name) > box.width():
            name = total.algorithm
        if text_width(bold, name) <= over_figures:
            box.setWidth(over_figures)
        ink = theme.current if shown else theme.text
        draw_text(painter, box, name, bold, ink, RIGHT)
    for line, row in enumerate(rows, start=1):
        y = place.y() + line * height
        painter.fillRect(QRectF(rect.x(), round(y), rect.width(), 1), QColor(theme.border))
        label = QRectF(rect.x(), y, first - px(6), height)
        words = first_that_fits(row.names, label.width(), font)
        draw_text(painter, label, words, font, theme.muted)
        for n in range(len(comparison.programs)):
            _paint_cell(painter, row, n, style, cell(line, n))
    paint_verdicts(painter, comparison, style, footer)
    painter.restore()


def _ratio_width(style: Style) -> float:
    return text_width(style.text_font(11), "9\u2009999×") + style.px(6)


def _paint_cell(painter: QPainter, row: TableRow, n: int, style: Style, box: QRectF) -> None:
    theme = style.theme
    font, bold, small = (
        style.text_font(12), style.text_font(12, bold=True), style.text_font(11),
    )  # fmt: skip
    least, ratio = False, ""
    ranked = [amount for amount in row.amounts or () if not isnan(amount)]
    if row.amounts is not None and not isnan(row.amounts[n]) and max(ranked) > min(ranked):
        smallest = min(ranked)
        least = row.amounts[n] <= smallest * _SAME
        if smallest and not least:
            ratio = factor_text(row.amounts[n] / smallest)
    reserved = _ratio_width(style)
    if box.width() < text_width(bold, row.texts[n]) + reserved:
        reserved, ratio = 0.0, ""
    figure = QRectF(box.x(), box.y(), box.width() - reserved, box.height())
    ink = theme.good if least else theme.text
    draw_text(painter, figure, row.texts[n], bold if least else font, ink, RIGHT)
    if ratio:
        draw_text(painter, box, ratio, small, theme.muted, RIGHT)


def _that_fit(rows: tuple[TableRow, ...], most: int) -> tuple[TableRow, ...]:
    """Return as many rows as fit; the least important are left out."""
    kept = list(rows)
    while len(kept) > max(most, 2):
        last = max(range(len(kept)), key=lambda n: (kept[n].rank, n))
        del kept[last]
    return tuple(kept)


def _first_width(rows: tuple[TableRow, ...], style: Style, width: float) -> float:
    """Return the width of the column of names: as much as they need, up to two fifths."""
    font = style.text_font(12)
    widest = max(text_width(font, row.names[0]) for row in rows)
    return min(widest + style.px(14), 0.34 * width)
