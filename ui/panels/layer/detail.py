"""What is said of a stage: its formula, shapes, costs and error; of tiles, their statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFont, QPainter

from simulator.base.dtypes import F32
from ui.kit.boxes import Box, Placed
from ui.kit.shapes import Text
from ui.look.draw import draw_text, text_width
from ui.look.formula import formula
from ui.look.theme import Style
from ui.panels.layer.matrices import Matrix, MatrixName, MatrixPart, number_font
from ui.panels.layer.model import COLOURS, FlowState
from ui.panels.layer.words import NAMES, PLAIN, facts, formula_of, sum_text, title_of

DOT = "  ·  "
_LINE = 18.0


@dataclass(frozen=True, eq=False)
class Detail(Box):
    """What is said of the stage that is shown, and of the row that the board explains."""

    state: FlowState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        model, stage, px, room = self.state.model, self.state.shown, style.px, rect.width()
        run, line = model.run, style.px(_LINE)
        assert run is not None
        for name, values, box in self._tables(style, rect):
            room = min(room, box.x() - px(24) - rect.x())
            part = MatrixPart(model.finished[0])
            yield Placed(Matrix(values, COLOURS[name], PLAIN[name], part), box)
            above = QRectF(box.x(), box.y() - px(18), box.width(), px(18))
            yield Placed(MatrixName(NAMES[name], style.theme.tensor(COLOURS[name]), size=13), above)
        latex = formula_of(run, stage, model.snapshot.program.workload)
        made = formula(latex, px(16))
        high = px(9.5) + max(made.ascent, px(13))
        yield Placed(
            MatrixName(latex, "text", size=16), QRectF(rect.x(), rect.y(), made.width, high)
        )
        wide = min(made.width + px(24), room)
        title = QRectF(rect.x() + wide, rect.y() + px(3), room - wide, line)
        yield Placed(Text((title_of(run, stage), ""), size=13, bold=True), title)
        below = QRectF(rect.x(), title.bottom() + px(6), room, rect.bottom() - title.bottom())
        said = tuple(facts(run, stage)), sum_text(run, stage, model.row)
        yield Placed(_Facts(*said), below.adjusted(0, 0, 0, -px(6)))

    def _tables(self, style: Style, rect: QRectF) -> list[tuple[str, F32, QRectF]]:
        """Return the statistics of one head with their places, if their numbers can be read."""
        run = self.state.model.run
        if run is None or self.state.shown != "o" or run.heads > 1:
            return []
        px, rows, x = style.px, run.shapes["x"][0], rect.right()
        out: list[tuple[str, F32, QRectF]] = []
        high = min(rect.height() - px(20), px(22) * rows)
        for name in [each for each in ("lse", "l", "m") if each in run.statistics]:
            values = run.statistics[name][0].reshape(rows, -1)
            wide = px(46) * values.shape[1]
            x -= wide
            out.append((name, values, QRectF(x, rect.y() + px(18), wide, high)))
            x -= px(14)
        fits = all(number_font(values, style, box) is not None for _, values, box in out)
        return out if fits and x > rect.x() + 0.4 * rect.width() else []


@dataclass(frozen=True, eq=False)
class _Facts(Box):
    """Phrases in lines, and a sum below them if there is room."""

    said: tuple[str, ...]
    added: str

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        font, line, width = style.text_font(12), style.px(_LINE), rect.width()
        most = int(rect.height() / line)
        lines = filled_lines(self.said, font, width, most)
        if self.added and len(lines) < most and text_width(font, self.added) <= width:
            lines.append(self.added)
        for n, words in enumerate(lines):
            place = QRectF(rect.x(), rect.y() + n * line, width, line)
            draw_text(painter, place, words, font, style.theme.muted)


def filled_lines(said: tuple[str, ...], font: QFont, width: float, most: int) -> list[str]:
    """Return phrases in lines that are full; those at the end are left out if there is no room."""
    lines: list[str] = []
    for fact in said:
        longer = f"{lines[-1]}{DOT}{fact}" if lines else fact
        if lines and text_width(font, longer) <= width:
            lines[-1] = longer
        elif len(lines) < most and text_width(font, fact) <= width:
            lines.append(fact)
    return lines
