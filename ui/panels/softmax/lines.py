"""The lines of the update below the bars, and the error of the row."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.program.faults import fault_note
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.board.middle import middle_at
from ui.look.draw import RIGHT, card, draw_text, mixed, text_width
from ui.look.formula import draw_part, formula
from ui.look.lit import alpha_boxes, paint_lit
from ui.look.names import first_that_fits, font_that_fits, weights_words
from ui.look.units import number_text, ulp_text
from ui.panels.softmax.places import SoftmaxLayout
from ui.panels.update_lines import UpdateLine

MOST_ULP = 1e5
"""Error of a row's O from which it is shown as bad: rounding to bfloat16 makes 32 768."""
_LETTERS = 42
"""Letters of a usual line, for which text is made small if need be."""


def paint_lines(
    painter: QPainter, lines: Sequence[UpdateLine], layout: SoftmaxLayout, *, lit: bool
) -> None:
    """Write the lines of the update; `lit`: whether α is lit, wherever it stands."""
    style = layout.style
    px, theme = style.px, style.theme
    row = layout.lines[0].height()
    letters = round(min(px(12.5), 0.74 * row))
    inset = px(6)
    widest = max(formula(line.latex, letters).width for line in lines)
    x = layout.lines[0].x() + inset + widest + px(10)
    # One size for all lines and all steps: a line of usual length decides.
    fonts = [style.code_font(size) for size in (12, 11) if px(size) <= 0.8 * row]
    fonts = fonts or [style.code_font(11)]
    font = font_that_fits(fonts, "0" * _LETTERS, layout.lines[0].right() - inset - x)
    _paint_frames(painter, lines, layout)
    for line, place in zip(lines, layout.lines, strict=True):
        later = mixed(theme.panel, theme.muted, 0.75)
        colour = theme.text if line.current else theme.muted if line.reached else later
        middle = place.center().y()
        left, baseline = place.x() + inset, middle + px(4)
        for box in alpha_boxes(line.latex, letters, left, baseline, style) if lit else ():
            paint_lit(painter, box, style)
        pair = colour, later
        draw_part(painter, line.latex, letters, left, baseline, line.part, pair)
        room = place.right() - px(3) - x
        text = first_that_fits(line.texts, room, font)
        draw_text(painter, QRectF(x, place.y(), room, place.height()), text, font, colour)


def _paint_frames(painter: QPainter, lines: Sequence[UpdateLine], layout: SoftmaxLayout) -> None:
    """Frame the lines that the current op does, neighbours in one frame."""
    style = layout.style
    frames: list[QRectF] = []
    for line, place in zip(lines, layout.lines, strict=True):
        if not line.current:
            continue
        if frames and abs(frames[-1].bottom() - place.y()) < 0.5:
            frames[-1] = frames[-1].united(place)
        else:
            frames.append(place)
    for frame in frames:
        card(painter, frame, style.theme.accent, style.theme.current, style.px(4), style.px(1.2))


def error_words(snapshot: Snapshot, report: RowReport) -> tuple[str, ...]:
    """Return the error so far in words, longest first; for a backward pass, the source of P."""
    if snapshot.program.algorithm.backward:
        return weights_words(snapshot.program.algorithm)
    if report.error is None or report.ulp is None:
        return ("error against float64: — (no output yet)", "error: — (no output yet)", "error: —")
    figures = f"{number_text(report.error)} ({ulp_text(report.ulp)})"
    return (f"error against float64 so far {figures}", f"error so far {figures}", figures)


def rescale_words(snapshot: Snapshot, report: RowReport) -> str:
    """Return the factor of this visit's rescale of O, in words."""
    if not middle_at(snapshot).has_maximum:
        return ""
    if snapshot.tile.last("factor") is None:
        return "no rescale"
    name = "factor" if snapshot.program.algorithm.normalises_each_tile else "α"
    if not snapshot.made("m"):
        return f"rescale {name} = —"
    factor = float(snapshot.rescale_factor[report.row - snapshot.visit.rows.start])
    note = fault_note(snapshot.program.workload, "alpha")
    return f"rescale {name} = {number_text(factor)}" + (f", α {note}" if note else "")


def paint_footer(
    painter: QPainter, snapshot: Snapshot, report: RowReport, layout: SoftmaxLayout
) -> None:
    """Write the error of the row so far, and the factor of the visit's rescale."""
    style, place = layout.style, layout.footer
    font = style.text_font(11)
    right = rescale_words(snapshot, report)
    width = text_width(font, right) + 1
    inset = style.px(6)
    row = place.adjusted(inset, 0, -inset, 0)
    room = row.width() - width - style.px(10)
    left = first_that_fits(error_words(snapshot, report), room, font)
    # Rounding O to the dtype is far below; NaN is not.
    fine = report.ulp is not None and report.ulp < MOST_ULP
    colour = style.theme.good if fine else style.theme.bad
    if report.ulp is None:
        colour = style.theme.muted
    draw_text(painter, QRectF(row.x(), row.y(), room, row.height()), left, font, colour)
    if right:
        draw_text(painter, row, right, font, style.theme.muted, RIGHT)
