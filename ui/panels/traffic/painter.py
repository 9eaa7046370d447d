"""Requested HBM bytes over the run: each tensor as an area, the other algorithms as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF, Qt

from simulator.program.algorithms import ALGORITHMS
from simulator.program.tensors import symbol
from simulator.program.tile_program import TileProgram
from simulator.study.compare import at_scale
from simulator.study.traffic_curve import RunTraffic, TrafficCurve
from ui.board.scores import clipped
from ui.kit.shapes import Text
from ui.look.boundaries import boundaries
from ui.look.draw import CENTRE, RIGHT, draw_text, hairline, mixed, patterned, text_width
from ui.look.names import fitting
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text, factor_text

MIN_SIZE = QSizeF(420, 74)
_LEAST_OWN = 14
"""Least pixels (scale 1) of the current run, however much another algorithm requests."""
_LINE = 14
_LETTERS = 9
"""Height of an area with room for a name: the height of capitals and digits, and a little."""
_COLUMNS = 161
"""Places along the run at which room for names is measured."""
_TICK_ROW = 16
_NAMES = {name: algorithm.label for name, algorithm in ALGORITHMS.items()}
_NOTES = "requested bytes", "dashed: other algorithms, stretched"
_BETWEEN = "  ·  "
_PATTERNS = (
    Qt.BrushStyle.NoBrush, Qt.BrushStyle.BDiagPattern, Qt.BrushStyle.Dense6Pattern,
    Qt.BrushStyle.FDiagPattern, Qt.BrushStyle.HorPattern, Qt.BrushStyle.VerPattern,
)  # fmt: skip
"""Patterns in turns for the areas from below, so that neighbours differ in more than colour."""


@dataclass(frozen=True, slots=True)
class TrafficLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    plot: QRectF  # between the axes
    labels: QRectF  # at the right, for the names of the curves
    ticks: QRectF  # below the plot; empty if there is no space
    note: QRectF  # below the ticks; empty if there is no space
    names: Mapping[str, str]  # the names of the algorithms in the labels
    traffic: RunTraffic  # the curves
    top: int  # bytes at the upper edge of the plot

    @property
    def length(self) -> int:
        """How many visits the run has."""
        return self.traffic.own.length

    def x(self, visits: float) -> float:
        """Return the place at which `visits` visits are done."""
        return self.plot.x() + self.plot.width() * visits / self.length

    def y(self, amount: float) -> float:
        """Return the height of an amount of bytes."""
        return self.plot.bottom() - self.plot.height() * amount / self.top

    def visit_at(self, x: float) -> int:
        """Return the visit at a place; the nearest one outside."""
        share = (x - self.plot.x()) / max(self.plot.width(), 1.0)
        return min(max(int(share * self.length), 0), self.length - 1)


def traffic_layout(traffic: RunTraffic, style: Style, rect: QRectF) -> TrafficLayout:
    """Return the places of axes, curves and labels."""
    style = fitting(style, rect, MIN_SIZE)
    px, font = style.px, style.text_font(11)
    ticks_height = px(_TICK_ROW) if rect.height() >= px(84) else 0.0
    note_height = px(_TICK_ROW) if rect.height() >= px(150) else 0.0
    plot_height = rect.height() - ticks_height - note_height - px(6)
    top = _top(traffic, plot_height, style)
    steps = axis_steps(top, plot_height, style)
    left = max(text_width(font, axis_text(step)) for step in steps) + px(8)
    bold, names, right = style.text_font(11, bold=True), _NAMES, 0.0
    for names in (_NAMES, {name: name for name in _NAMES}):
        ends = _ends(traffic, names)
        right = max(text_width(bold, each.text(top)) for each in ends) + px(15)
        if right <= 0.3 * rect.width():
            break
    plot = QRectF(
        rect.x() + left, rect.y() + px(5), rect.width() - left - right, plot_height - px(1)
    )
    labels = QRectF(plot.right() + px(4), rect.y(), right - px(4), rect.height())
    ticks = QRectF(plot.x(), plot.bottom() + px(1), plot.width(), ticks_height)
    note = QRectF(plot.x(), ticks.bottom(), plot.width(), note_height)
    return TrafficLayout(style, plot, labels, ticks, note, names, traffic, top)


def _top(traffic: RunTraffic, height: float, style: Style) -> int:
    """Return the bytes at the upper edge: all curves, if the current run remains visible."""
    own = traffic.own.end
    largest = max(own, *(other.end for other in traffic.others), traffic.compulsory)
    least = min(style.px(_LEAST_OWN) / max(height, 1.0), 0.5)
    return min(round(largest * 1.03), round(own / least))


def axis_steps(top: int, height: float, style: Style) -> list[int]:
    """Return the amounts of the axis: their labels are exact, their steps one power of two."""
    most = max(int(height / style.px(26)), 1)
    unit = 1 << (top.bit_length() - 1) // 10 * 10
    step = 1
    while top / step > most or 2 * step < unit:
        step *= 2
    return [n * step for n in range(int(top / step) + 1)]


def axis_text(amount: int) -> str:
    """Return an amount of the axis: ``64 MiB``."""
    return bytes_text(amount).replace(".0 ", " ") if amount else "0"


# --- labels at the ends of curves --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EndLabel:
    """The name of a curve at its end."""

    text: str  # name and bytes
    colour: QColor  # of the text
    y: float  # where the curve ends
    rank: int  # labels of a lower rank stay if there is no space for all
    bold: bool = False  # whether it is the current run


class _End(NamedTuple):
    """The end of a curve: its name, the bytes there, its colour, its height and its rank."""

    name: str
    amount: int
    role: str
    height: float
    rank: int

    def text(self, top: int) -> str:
        """Return the label; with an arrow where the curve leaves at `top`."""
        return f"{self.name} {bytes_text(self.amount)}{' ↑' if self.amount > top else ''}"


def _ends(traffic: RunTraffic, names: Mapping[str, str]) -> list[_End]:
    """Return the ends of the algorithms, the levels and the tensors."""
    own, runs = traffic.own, (traffic.own, *traffic.others)
    levels = (("minimum", traffic.compulsory, "muted"), ("DRAM, measured", traffic.dram, "text"))
    out = [_End(names[r.algorithm], r.end, r.algorithm, r.end, int(r is not own)) for r in runs]
    out += [_End(name, at, role, at, 2) for name, at, role in levels if at is not None]
    amounts = own.bytes[:, -1].tolist()
    largest = sorted(range(len(amounts)), key=lambda n: -amounts[n])
    below = 0
    for n, (tensor, amount) in enumerate(zip(own.tensors, amounts, strict=True)):
        middle = below + amount / 2
        out.append(_End(symbol(tensor), amount, tensor, middle, 3 + largest.index(n)))
        below += amount
    return out


def end_labels(lay: TrafficLayout) -> list[EndLabel]:
    """Return the labels of all curves at the ends of the curves."""
    theme, top = lay.style.theme, lay.plot.top()
    return [
        EndLabel(each.text(lay.top), (theme.tensor if each.rank > 2 else theme.role)(each.role),
                 max(lay.y(each.height), top), each.rank, bold=each.rank == 0)
        for each in _ends(lay.traffic, lay.names)
    ]  # fmt: skip


def placed_labels(
    labels: Sequence[EndLabel], top: float, bottom: float, line: float
) -> list[tuple[EndLabel, float]]:
    """Return labels with the middle of their line, without overlaps; the least are left out."""
    most = max(int((bottom - top) / line), 1)
    kept = sorted(sorted(labels, key=lambda label: label.rank)[:most], key=lambda label: label.y)
    places = []
    free = top
    for label in kept:
        middle = max(label.y, free + line / 2)
        places.append(middle)
        free = middle + line / 2
    free = bottom
    for n in range(len(places) - 1, -1, -1):
        places[n] = min(places[n], free - line / 2)
        free = places[n] - line / 2
    return list(zip(kept, places, strict=True))


def band_labels(lay: TrafficLayout) -> list[tuple[EndLabel, QRectF]]:
    """Return the names of tensors that have no line beside the plot, inside their own areas.

    A name is as far right as its area alone is under the name. Where the bytes do not fit, the name
    is there alone; an area that is thinner than letters has no name.
    """
    traffic, own, plot, px = lay.traffic, lay.traffic.own, lay.plot, lay.style.px
    font, high = lay.style.text_font(11), px(_LETTERS)
    labels, room = end_labels(lay), lay.labels
    beside = [label for label, _ in placed_labels(labels, room.top(), room.bottom(), px(_LINE))]
    wanted = [
        (n, label)
        for n, label in enumerate(labels[-len(own.tensors) :])
        if label not in beside and lay.y(0) - lay.y(int(own.bytes[n, -1])) >= high
    ]
    if not wanted:
        return []
    at = np.linspace(0, 1, _COLUMNS)
    sums = np.cumsum([np.interp(at * own.length, own.visits, each) for each in own.bytes], axis=0)
    edges = np.maximum(heights(np.concatenate([0 * sums[:1], sums]), lay), plot.top())
    amounts = [np.interp(at * run.length, run.visits, run.totals) for run in traffic.others]
    levels = [level for level in (traffic.compulsory, traffic.dram) if level is not None]
    lines = heights(np.array([*amounts, *(0 * at + level for level in levels)]), lay)
    out = []
    for n, label in wanted:
        for text in (label.text, symbol(own.tensors[n])):
            wide = text_width(font, text) + px(6)
            columns = int(np.ceil(wide / plot.width() * (_COLUMNS - 1))) + 1
            if columns > _COLUMNS:
                continue
            lower, upper, others = (
                sliding_window_view(each, columns, axis=-1)
                for each in (edges[n], edges[n + 1], lines)
            )
            top, bottom = upper.max(axis=-1), lower.min(axis=-1)
            y = (top + bottom) / 2
            reach = high / 2 + px(1)
            above, under = others.max(axis=-1) < y - reach, others.min(axis=-1) > y + reach
            fits = np.flatnonzero((bottom - top >= high) & (above | under).all(axis=0))
            if len(fits):
                start = plot.left() + fits[-1] / (_COLUMNS - 1) * plot.width()
                box = QRectF(start, y[fits[-1]] - high / 2, wide, high)
                out.append((replace(label, text=text), box))
                break
    return out


# --- painting ----------------------------------------------------------------------------------


def paint_curves(
    painter: QPainter, program: TileProgram, traffic: RunTraffic, style: Style, rect: QRectF
) -> None:
    """Paint the parts that stay the same during the whole run."""
    lay = traffic_layout(traffic, style, rect)
    painter.save()
    _paint_axes(painter, program, lay)
    with clipped(painter, lay.plot):
        _paint_areas(painter, traffic.own, lay)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for other in traffic.others:
            _paint_line(painter, other, lay, 1.4, Qt.PenStyle.DashLine)
        _paint_level(painter, traffic.compulsory, lay, lay.style.theme.muted)
        if traffic.dram is not None:
            _paint_level(painter, traffic.dram, lay, lay.style.theme.text)
        _paint_line(painter, traffic.own, lay, 2.0, Qt.PenStyle.SolidLine)
    _paint_labels(painter, lay)
    painter.restore()


def _paint_axes(painter: QPainter, program: TileProgram, lay: TrafficLayout) -> None:
    style, theme, plot, px = lay.style, lay.style.theme, lay.plot, lay.style.px
    font = style.text_font(11)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.fillRect(plot, QColor(theme.window))
    for step in axis_steps(lay.top, plot.height(), style):
        y = round(lay.y(step))
        painter.setPen(QPen(mixed(theme.window, theme.grid, 0.7), hairline(style)))
        painter.drawLine(QLineF(plot.left(), y, plot.right(), y))
        words = axis_text(step)
        width = text_width(font, words)
        box = QRectF(plot.x() - width - px(5), y - px(_LINE) / 2, width + 1, px(_LINE))
        draw_text(painter, box, words, font, theme.muted, RIGHT)
    for edge in boundaries(program, max(int(plot.width() / px(72)), 1)):
        x = round(lay.x(edge.visit))
        painter.setPen(QPen(QColor(theme.grid), hairline(style)))
        deep = plot.top() if edge.strong else plot.bottom() - px(4)
        if edge.visit:
            painter.drawLine(QLineF(x, deep, x, plot.bottom()))
    for words, box in tick_labels(program, lay):
        draw_text(painter, box, words, font, theme.muted)
    if lay.note.height():
        said = notes(program)
        wordings = tuple(_BETWEEN.join(said[:n]) for n in range(len(said), 0, -1))
        Text(wordings, "muted").paint(painter, style, lay.note)


def notes(program: TileProgram) -> tuple[str, ...]:
    """Return notes on the curves, the most important first; for a short run, on long ones, too."""
    scale = at_scale(program)
    if scale is None:
        return _NOTES
    tiles = f"{count_text(scale.rows)} × {count_text(scale.cols)} tiles"
    base, *others = (
        ALGORITHMS[n].in_a_sentence
        for n in (scale.baseline, *(each for each in scale.bytes if each != scale.baseline))
    )
    times = (factor_text(scale.times(n)) for n in scale.bytes if n != scale.baseline)
    much = " and ".join(f"{t} as much as {n}" for t, n in zip(times, others, strict=True))
    where = f"at N = {count_text(scale.keys)} in {tiles} {base} requests {much}"
    return (*_NOTES, where)


def tick_labels(program: TileProgram, lay: TrafficLayout) -> list[tuple[str, QRectF]]:
    """Return labels for the parts of the run at their beginnings; no label touches another.

    If not all fit, the labels of the longest parts stay.
    """
    px, font = lay.style.px, lay.style.text_font(11)
    if not lay.ticks.height():
        return []
    edges = boundaries(program, max(int(lay.plot.width() / px(72)), 1))
    starts = [edge.visit for edge in edges]
    parts = [stop - start for start, stop in zip(starts, [*starts[1:], lay.length], strict=True)]
    out: list[tuple[str, QRectF]] = []
    for n in sorted(range(len(edges)), key=lambda n: -parts[n]):
        x, width = round(lay.x(edges[n].visit)), text_width(font, edges[n].label) + 1
        box = QRectF(x, lay.ticks.y(), width, px(_LINE))
        around = lay.style.inset(box, -5, 0, -5, 0)
        if box.right() <= lay.plot.right() and not any(around.intersects(b) for _, b in out):
            out.append((edges[n].label, box))
    return out


def _paint_areas(painter: QPainter, own: TrafficCurve, lay: TrafficLayout) -> None:
    theme = lay.style.theme
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    across = lay.plot.x() + own.visits * (lay.plot.width() / own.length)
    below = np.zeros(len(own.visits), dtype=np.int64)
    for n, tensor in enumerate(own.tensors):
        above = below + own.bytes[n]
        upper, lower = heights(above, lay), heights(below, lay)
        shape = _polygon(np.concatenate([across, across[::-1]]),
                         np.concatenate([upper, lower[::-1]]))  # fmt: skip
        colour = theme.tensor(tensor)
        painter.setBrush(mixed(theme.window, colour, 0.42))
        painter.drawPolygon(shape)
        pattern = _PATTERNS[n % len(_PATTERNS)]
        if pattern is not Qt.BrushStyle.NoBrush:
            painter.setBrush(patterned(mixed(theme.window, colour, 0.75), pattern, lay.style))
            painter.drawPolygon(shape)
        below = above


def heights(amounts: NDArray[Any], lay: TrafficLayout) -> NDArray[np.floating[Any]]:
    """Return the heights of amounts of bytes."""
    out: NDArray[np.floating[Any]] = lay.plot.bottom() - amounts * (lay.plot.height() / lay.top)
    return out


def _polygon(x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> QPolygonF:
    return QPolygonF([QPointF(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])


def _paint_line(
    painter: QPainter, curve: TrafficCurve, lay: TrafficLayout, width: float, pen: Qt.PenStyle
) -> None:
    """Draw a run's total; another algorithm's run is stretched to the same width."""
    x = lay.plot.x() + curve.visits * (lay.plot.width() / curve.length)
    colour = lay.style.theme.role(curve.algorithm)
    painter.setPen(lay.style.pen(colour, width, pen))
    painter.drawPolyline(_polygon(x, heights(curve.totals, lay)))


def _paint_level(painter: QPainter, amount: int, lay: TrafficLayout, colour: str) -> None:
    y = lay.y(amount)
    painter.setPen(lay.style.pen(colour, 1.2, Qt.PenStyle.DotLine))
    painter.drawLine(QLineF(lay.plot.left(), y, lay.plot.right(), y))


def _paint_labels(painter: QPainter, lay: TrafficLayout) -> None:
    style, px, line, room = lay.style, lay.style.px, lay.style.px(_LINE), lay.labels
    placed = placed_labels(end_labels(lay), room.top(), room.bottom(), line)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for label, y in placed:
        painter.setPen(QPen(mixed(style.theme.panel, label.colour, 0.7), hairline(style)))
        painter.drawLine(QPointF(lay.plot.right() + 1, label.y), QPointF(room.x() + px(7), y))
        font = style.text_font(11, bold=label.bold)
        box = QRectF(room.x() + px(9), y - line / 2, room.width() - px(9), line)
        draw_text(painter, box, label.text, font, label.colour)
    font = style.text_font(11)
    for label, box in band_labels(lay):
        painter.fillRect(box, mixed(style.theme.window, label.colour, 0.12))
        draw_text(painter, box, label.text, font, label.colour, CENTRE)
