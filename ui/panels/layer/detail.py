"""What is said of a stage: its formula, shapes, costs and error; of tiles, their statistics."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFont, QPainter

from simulator.base.dtypes import F32
from simulator.problem.workload import Workload
from simulator.run.whole_layer import LayerRun
from ui.look.draw import draw_text, text_width
from ui.look.formula import formula
from ui.look.names import first_that_fits
from ui.look.theme import Style
from ui.panels.layer.matrices import MatrixPart, number_font, paint_matrix
from ui.panels.layer.model import COLOURS, FlowState
from ui.panels.layer.words import NAMES, facts, formula_of, sum_text, title_of

DOT = "  ·  "
_LINE = 18.0


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """A line of text and its place."""

    text: str
    font: QFont
    colour: str
    box: QRectF


@dataclass(frozen=True, slots=True)
class Detail:
    """The picture of a stage.

    Attributes
    ----------
    words : tuple of Word
        Lines of text.
    latex : str
        The formula.
    formula : QRectF
        Its place.
    tables : tuple of (str, ndarray, QRectF)
        Statistics of a small run, by name, with the places of their numbers.
    """

    words: tuple[PlacedLine, ...]
    latex: str
    formula: QRectF
    tables: tuple[tuple[str, F32, QRectF], ...]


def detail_layout(
    run: LayerRun,
    stage: str,
    row: int,
    style: Style,
    rect: QRectF,
    w: Workload | None = None,
) -> Detail:
    """Return what is said of a stage, and of a row that it makes, and where.

    `w` says what turns products into scores.
    """
    theme, px, line = style.theme, style.px, style.px(_LINE)
    tables = _tables(run, stage, style, rect)
    right = tables[0][2].left() - px(24) if tables else rect.right()
    room = right - rect.x()
    title, text = style.text_font(13, bold=True), style.text_font(12)
    latex = formula_of(run, stage, w)
    made = formula(latex, px(16))
    wide = min(made.width + px(24), room)
    words = [
        PlacedLine(first_that_fits([title_of(run, stage), ""], room - wide, title), title,
             theme.text,
             QRectF(rect.x() + wide, rect.y() + px(3), room - wide, line))
    ]  # fmt: skip
    y = rect.y() + line + px(9)
    most = int((rect.bottom() - y) / line)
    lines = wrapped_facts(facts(run, stage), text, room, most)
    added = sum_text(run, stage, row)
    if added and len(lines) < most and text_width(text, added) <= room:
        lines.append(added)
    for n, said in enumerate(lines):
        words.append(
            PlacedLine(said, text, theme.muted, QRectF(rect.x(), y + n * line, room, line))
        )
    place = QRectF(rect.x(), rect.y(), wide, line + px(6))
    return Detail(tuple(words), latex, place, tables)


def wrapped_facts(said: list[str], font: QFont, width: float, most: int) -> list[str]:
    """Return phrases in lines that are full; those at the end are left out if there is no room."""
    lines: list[str] = []
    for fact in said:
        longer = f"{lines[-1]}{DOT}{fact}" if lines else fact
        if lines and text_width(font, longer) <= width:
            lines[-1] = longer
        elif len(lines) < most and text_width(font, fact) <= width:
            lines.append(fact)
    return lines


def _tables(
    run: LayerRun, stage: str, style: Style, rect: QRectF
) -> tuple[tuple[str, F32, QRectF], ...]:
    """Return the statistics of one head, if their numbers can be read."""
    if stage != "o" or run.heads > 1 or not run.statistics:
        return ()
    found = {
        name: run.statistics[name][0].reshape(run.shapes["x"][0], -1)
        for name in ("m", "l", "lse")
        if name in run.statistics
    }
    px = style.px
    cell, head = px(46), px(18)
    high = min(rect.height() - head - px(2), px(22) * run.shapes["x"][0])
    x, out = rect.right(), []
    for name, values in reversed(found.items()):
        wide = cell * values.shape[1]
        x -= wide
        out.append((name, values, QRectF(x, rect.y() + head, wide, high)))
        x -= px(14)
    fits = all(number_font(values, style, box) is not None for _, values, box in out)
    return tuple(reversed(out)) if fits and x > rect.x() + 0.4 * rect.width() else ()


def paint_detail(painter: QPainter, state: FlowState, style: Style, rect: QRectF) -> None:
    """Draw what is said of a stage."""
    theme, px, run = style.theme, style.px, state.model.run
    assert run is not None
    w = state.model.snapshot.program.workload
    lay = detail_layout(run, state.shown, state.model.row, style, rect, w)
    made = formula(lay.latex, px(16))
    baseline = lay.formula.y() + px(4) + max(made.ascent, px(13))
    made.draw(painter, lay.formula.x(), baseline, QColor(theme.text))
    for word in lay.words:
        draw_text(painter, word.box, word.text, word.font, word.colour)
    for name, values, box in lay.tables:
        label = formula(NAMES[name], px(13))
        colour = theme.tensor(COLOURS[name])
        label.draw(painter, box.center().x() - label.width / 2, box.y() - px(5), colour)
        done = MatrixPart(state.model.finished[0])
        paint_matrix(painter, values, COLOURS[name], style, box, done)
