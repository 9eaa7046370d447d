"""Pictures of the first page: runs, computed beside the window, and drawn by the board's painter.

`picture_of` computes a picture in any thread; the picture paints itself in the window's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen, QPolygonF

from simulator.base.assets import DEMO
from simulator.base.dtypes import F32, frozen
from simulator.base.errors import InputError
from simulator.lesson.places import Pointer
from simulator.problem.scenario import Scenario, load_scenario
from simulator.program.op import Gesture
from simulator.program.playback import first_cursor
from simulator.run.motion import Motion
from simulator.run.row_report import RowReport, row_report
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.run.whole_layer import LayerRun, compute_layer
from ui.board.board import Marks, moving_layout, paint_board, paint_moving_board, paint_still_board
from ui.look.draw import CENTRE, LEFT, card, draw_text, outline, text_width
from ui.look.layouts import LAYOUT_PANELS, layout_named
from ui.look.theme import Style, Theme
from ui.panels.layer.matrices import Matrix
from ui.panels.softmax.painter import paint_softmax
from ui.window.welcome.entries import MINUTE, PictureName

_ROOM, _STAGE = (740.0, 370.0), (1280.0, 720.0)
"""Room at scale 1 in which a board can be read, and the size of a stage."""
_LEAST, _FEW = 0.55, 6
"""Least scale of letters; rows of a layer up to which it is drawn with every number."""
_LETTERS = 7.0
_HALF = 0.8
"""Share of the rescale that is done in the picture."""


class WelcomePicture(Protocol):
    """A picture for a card."""

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        """Paint the picture as large as a place."""


def named_picture(
    name: PictureName, run_of: Callable[[Scenario], Trace]
) -> tuple[PictureName, WelcomePicture | None]:
    """Return a name and its picture; None where there is none, which opening the lesson explains.

    run_of: gives the run of a scenario.
    """
    try:
        return name, picture_of(name, run_of)
    except (InputError, MemoryError):
        return name, None


def picture_of(name: PictureName, run_of: Callable[[Scenario], Trace]) -> WelcomePicture:
    """Return a picture by its name, or by its lesson and step; this takes a moment.

    run_of: gives the run of a scenario.

    Raises InputError: the lesson, or the step's run, cannot be used.
    """
    if isinstance(name, tuple):
        return _of_step(*name, run_of)
    motion, report = _rescale(run_of(load_scenario(DEMO)))
    return _Minute(motion, report) if name == MINUTE else _Talk(motion, report)


def _of_step(path: Path, number: int, run_of: Callable[[Scenario], Trace]) -> WelcomePicture:
    """Return the picture of a step, or of the first later step that has one."""
    from simulator.lesson.reader import load_lesson

    lesson = load_lesson(path, LAYOUT_PANELS)
    steps = lesson.steps[number:] + lesson.steps[:number]
    drawn = [step for step in steps if step.layout == "layer" or layout_named(step.layout).board]
    under_way = (step for step in drawn if step.cursor != first_cursor())
    step = next(under_way, drawn[0] if drawn else steps[0])
    trace = run_of(step.scenario)
    if trace.whole_layer is not None and trace.workload.seqlen_q <= _FEW:
        return _LayerPicture(compute_layer(trace), _weights(trace))
    snapshot = trace.snapshot(step.cursor.visit, step.cursor.op)
    return _Board(snapshot, step.row, step.points)


def _weights(trace: Trace) -> F32:
    """Return the weights of the first head, (N, N)."""
    scores = trace.snapshot(len(trace) - 1).head
    assert scores is not None
    shifted = np.exp(scores.s - scores.s.max(axis=1, keepdims=True))
    return frozen(np.asarray(shifted / shifted.sum(axis=1, keepdims=True), dtype=np.float32))


def _rescale(trace: Trace) -> tuple[Motion, RowReport]:
    """Return the rescale of the row of “it” in the demo: its maximum has just risen."""
    program, row = trace.program, 8
    at = program.index(0, 2, 3)
    assert at is not None
    ops = program.ops(at)
    op = next(n for n, each in enumerate(ops) if each.gesture is Gesture.SHRINK)
    before, after = (trace.snapshot(at, n) for n in (op - 1, op))
    return Motion(before, after), row_report(after, row)


def _fitting(style: Style, rect: QRectF, room: tuple[float, float] = _ROOM) -> Style:
    """Return the style in which a picture that needs `room` at scale 1 can be read in a place."""
    scale = max(min(rect.width() / room[0], rect.height() / room[1]), _LEAST * style.scale)
    return Style(style.theme, scale, least=_LETTERS * scale)  # no words around the board


def _paint_moving(painter: QPainter, motion: Motion, style: Style, place: QRectF, row: int) -> None:
    lay = moving_layout(motion, style, place)
    paint_still_board(painter, motion.after, lay)
    paint_moving_board(painter, motion, _HALF, lay, Marks(row), ground=False)


@dataclass(frozen=True, eq=False)
class _Board:
    """A place in a run."""

    snapshot: Snapshot
    row: int
    points: tuple[Pointer, ...]

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        style = _fitting(style, rect)
        pad = style.px(8)
        paint_board(
            painter, self.snapshot, style, rect.adjusted(pad, pad, -pad, -pad), row=self.row,
            points=self.points,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Minute:
    """FlashAttention-2 while it multiplies by α."""

    motion: Motion
    report: RowReport

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        style = _fitting(style, rect)
        pad = style.px(8)
        place = rect.adjusted(pad, pad, -pad, -pad)
        _paint_moving(painter, self.motion, style, place, self.report.row)


@dataclass(frozen=True, eq=False)
class _LayerPicture:
    """A small layer with all its numbers: X, Q, K, V, the weights, O."""

    run: LayerRun
    weights: F32

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        places = self.places(rect)
        size = 17 * min(rect.width() / _WIDE, rect.height() / _HIGH) / style.scale
        numbers = style.code_font(0.85 * size, bold=True)
        self._paint_arrows(painter, style, places)
        for name, place in places.items():
            tone = "text" if name == "x" else "P" if name == _WEIGHTS else name.upper()
            values = self.weights if name == _WEIGHTS else self.run.flat.get(name)
            if name == "x":
                values = self.run.layer.x
            elif name == "o":
                values = self.run.flat["concat"]
            assert values is not None
            limit = 1.0 if name == _WEIGHTS else None
            shown = Matrix(values, tone if name != "x" else "x", positive=name == _WEIGHTS,
                           limit=limit, font=numbers, written=name == _WEIGHTS)  # fmt: skip
            shown.paint(painter, style, place)
            high = 1.5 * style.px(size)
            above = QRectF(place.center().x() - 99, place.top() - high, 198, high)
            words = name if name == _WEIGHTS else name.upper()
            font = style.text_font(size, bold=True)
            draw_text(painter, above, words, font, style.theme.role(tone), CENTRE)
        row = places[_WEIGHTS]
        part = row.height() / len(self.weights)
        middle = QRectF(row.x(), row.y() + part, row.width(), part).adjusted(-2, 0, 2, 0)
        outline(painter, middle, style.theme.current, max(style.px(2.5), 2), style.px(3))

    def places(self, rect: QRectF) -> dict[str, QRectF]:
        """Return the places of all matrices."""
        unit = min(rect.width() / _WIDE, rect.height() / _HIGH)
        left = rect.center().x() - unit * _WIDE / 2
        top = rect.center().y() - unit * _HIGH / 2
        rows, cols = len(self.weights), self.run.layer.x.shape[1]

        def place(x: float, middle: float, cell: float, wide: int) -> QRectF:
            return QRectF(
                round(left + unit * x), round(top + unit * (middle - cell * rows / 2)),
                round(unit * cell * wide), round(unit * cell * rows),
            )  # fmt: skip

        wide = {name: self.run.flat[name].shape[1] for name in ("q", "k", "v", "concat")}
        return {
            "x": place(28, 137, 19, cols),
            **{n: place(170, 58 + 82 * k, 19, wide[n]) for k, n in enumerate("qkv")},
            _WEIGHTS: place(296, 137, 50, rows),
            "o": place(486, 137, 19, wide["concat"]),
        }

    def _paint_arrows(self, painter: QPainter, style: Style, places: dict[str, QRectF]) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        muted, thin = style.theme.muted, max(style.px(1.6), 1.0)
        weights, gap = places[_WEIGHTS], style.px(5)
        for name in "qkv":
            _arrow(painter, _right(places["x"], gap), _left(places[name], gap), muted, thin)
        for name in "qk":
            _arrow(painter, _right(places[name], gap), _left(weights, gap), muted, thin)
        _arrow(painter, _right(weights, gap), _left(places["o"], gap), muted, thin)
        below = QPointF(places["o"].center().x(), places["o"].bottom() + gap)
        start, colour = _right(places["v"], gap), style.theme.tensor("V")
        way = QPainterPath(start)
        way.cubicTo(QPointF(weights.right(), start.y() + 2 * gap),
                    QPointF(below.x(), start.y()), below)  # fmt: skip
        painter.strokePath(way, QPen(colour, thin))


_WEIGHTS = "weights"
_WIDE, _HIGH = 584.0, 282.0
"""Size of the picture of a layer at which its lengths are given."""


def _right(rect: QRectF, gap: float) -> QPointF:
    return QPointF(rect.right() + gap, rect.center().y())


def _left(rect: QRectF, gap: float) -> QPointF:
    return QPointF(rect.left() - gap, rect.center().y())


def _arrow(painter: QPainter, start: QPointF, end: QPointF, colour: str, thin: float) -> None:
    """Draw a curve that leaves and arrives level, with a head."""
    middle, head = (start.x() + end.x()) / 2, 5 * thin
    way = QPainterPath(start)
    way.cubicTo(QPointF(middle, start.y()), QPointF(middle, end.y()), end)
    painter.strokePath(way, QPen(QColor(colour), thin))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    back = end.x() - head
    painter.drawPolygon(
        QPolygonF([end, QPointF(back, end.y() - head / 2), QPointF(back, end.y() + head / 2)])
    )


@dataclass(frozen=True, eq=False)
class _Talk:
    """A stage, and over its corner the speaker's window."""

    motion: Motion
    report: RowReport

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        theme, px = style.theme, style.px
        unit = min(rect.width() / _WIDE, rect.height() / _HIGH)
        width, height = unit * 430, unit * 242
        stage = QRectF(rect.center().x() - 0.55 * width, rect.y() + unit * 20, width, height)
        stage.translate(0, (rect.height() - height) / 2 - unit * 20)
        card(painter, stage, theme.window, theme.muted, unit * 6, max(unit * 2, 1))
        inner = stage.adjusted(3 * unit, 3 * unit, -3 * unit, -3 * unit)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(inner, self._stage(theme))
        window = QRectF(stage.right() - unit * 118, stage.bottom() - unit * 106,
                        unit * 176, unit * 118)  # fmt: skip
        card(painter, window, theme.panel, theme.border, unit * 6, max(unit * 2, 1))
        times = Style(theme, unit)
        line = window.adjusted(unit * 14, unit * 12, -unit * 14, 0)
        line.setHeight(unit * 26)
        clock, target = times.code_font(20, bold=True), times.code_font(14)
        draw_text(painter, line, "14:32", clock, theme.text, LEFT)
        line.setLeft(line.left() + text_width(clock, "14:32") + px(6))
        draw_text(painter, line, "of 20:00", target, theme.muted, LEFT)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.faint))
        for n, wide in enumerate((140, 118, 132, 70)):
            place = QRectF(window.x() + unit * 14, window.y() + unit * (46 + 17 * n),
                           unit * wide, unit * 7)  # fmt: skip
            painter.drawRoundedRect(place, 3 * unit, 3 * unit)

    def _stage(self, theme: Theme) -> QImage:
        """Return the stage, in the size in which its letters can be set."""
        width, height = _STAGE
        image = QImage(int(width), int(height), QImage.Format.Format_RGB32)
        image.fill(QColor(theme.window))
        style = Style(theme, 1.35)
        with QPainter(image) as painter:
            segments = 8
            for n in range(segments):
                colour = theme.current if n == 4 else theme.faint
                painter.fillRect(QRectF(30 + n * 153, 14, 147, 6), QColor(colour))
            place = QRectF(24, 40, 790, 540)
            _paint_moving(painter, self.motion, style, place, self.report.row)
            beside = QRectF(830, 40, 426, 540)
            paint_softmax(painter, self.motion.after, self.report, style, beside)
            font = Style(theme, 1.0).text_font(34, bold=True)
            for n, words in enumerate(_SAID):
                line = QRectF(40, 596 + 46 * n, 1200, 46)
                draw_text(painter, line, words, font, theme.text, LEFT)
        return image


_SAID = (
    "Everything summed so far was measured from the old maximum.",
    "One factor, α, moves all of it to the new one.",
)
