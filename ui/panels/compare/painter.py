"""The algorithms side by side: how far each is, and what it has cost so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen, Qt

from simulator.problem.hardware import LAUNCH_SECONDS
from simulator.study.compare import Comparison, Position, Totals
from ui.board.mini_board import paint_mini_board
from ui.look.draw import RIGHT, card, draw_text, mixed, outline, patterned, text_width
from ui.look.names import first_that_fits, fitting
from ui.look.theme import Style
from ui.look.units import LAUNCH, bytes_text, time_text
from ui.panels.compare.words import label, legend_words, pace_words, place_words, sentences, title

MIN_SIZE = QSizeF(540, 220)
_BARS = 3


@dataclass(frozen=True, slots=True)
class CompareLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    caption: QRectF  # by what the boards are kept at the same place
    columns: tuple[QRectF, ...]  # one for each algorithm
    legend: QRectF  # what the boards' colours mean; empty if there is no space
    footer: QRectF  # sentences

    def column_at(self, place: QPointF) -> int | None:
        """Return the column at a place."""
        return next((n for n, box in enumerate(self.columns) if box.contains(place)), None)


def compare_layout(rect: QRectF, style: Style, runs: int) -> CompareLayout:
    """Return the places of the columns, one for each run, and of the words around them."""
    style = fitting(style, rect, MIN_SIZE)
    px, height = style.px, rect.height()
    lines = 3 if height >= px(420) else 2 if height >= px(250) else 1
    legend_height = px(18) if height >= px(330) else 0.0
    caption = QRectF(rect.x(), rect.y(), rect.width(), px(18))
    footer = QRectF(rect.x(), rect.bottom() - lines * px(16), rect.width(), lines * px(16))
    legend = QRectF(rect.x(), footer.y() - legend_height, rect.width(), legend_height)
    top, gap = caption.bottom() + px(2), px(8)
    width = (rect.width() - (runs - 1) * gap) / runs
    height = legend.y() - px(4) - top
    columns = tuple(QRectF(rect.x() + n * (width + gap), top, width, height) for n in range(runs))
    return CompareLayout(style, caption, columns, legend, footer)


def paint_compare(
    painter: QPainter,
    comparison: Comparison,
    positions: Sequence[Position],
    style: Style,
    rect: QRectF,
    *,
    by_time: bool = False,
    marked: int | None = None,
) -> None:
    """Paint the algorithms at the same time of their runs.

    Parameters
    ----------
    rect : QRectF
        The place, at least about `MIN_SIZE`.
    by_time : bool
        Whether they are at the same simulated time; otherwise at the same number of visits.
    marked : int, optional
        The column that the keyboard has selected.
    """
    lay = compare_layout(rect, style, len(positions))
    theme, font = lay.style.theme, lay.style.text_font(12)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    words = pace_words(comparison, positions, by_time=by_time)
    caption = first_that_fits(words, lay.caption.width(), font)
    draw_text(painter, lay.caption, caption, font, theme.muted)
    scales = _Scales.of(comparison)
    said = [
        _rows(position, total, scales, lay.style)
        for position, total in zip(positions, comparison.totals, strict=True)
    ]
    for n, (position, box) in enumerate(zip(positions, lay.columns, strict=True)):
        _paint_column(painter, comparison, n, position, said, scales, lay.style, box)
        if n == marked:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            inside = box.adjusted(3, 3, -3, -3)
            painter.setPen(QPen(QColor(theme.text), 1, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(inside, lay.style.px(4), lay.style.px(4))
    if lay.legend.height() > 0:
        small = lay.style.text_font(11)
        legend = first_that_fits(legend_words(comparison), lay.legend.width(), small)
        draw_text(painter, lay.legend, legend, small, theme.muted)
    paint_verdicts(painter, comparison, lay.style, lay.footer)
    painter.restore()


def paint_verdicts(painter: QPainter, comparison: Comparison, style: Style, place: QRectF) -> None:
    """Write the sentences about the whole runs, as many as fit."""
    font, line = style.text_font(12), style.px(16)
    room = int((place.height() + 1) / line)
    for n, text in enumerate(sentences(comparison, font, place.width(), room)):
        row = QRectF(place.x(), place.y() + n * line, place.width(), line)
        draw_text(painter, row, text, font, style.theme.text)


@dataclass(frozen=True, slots=True)
class _Scales:
    """The amount of a full bar, the same in all columns."""

    bytes: int
    seconds: float
    chip: int
    limit: int

    @classmethod
    def of(cls, comparison: Comparison) -> _Scales:
        totals = comparison.totals
        limit = comparison.programs[comparison.shown].workload.gpu.smem_bytes
        return cls(
            bytes=max(total.counters.bytes for total in totals),
            seconds=max(total.time.seconds for total in totals),
            chip=max(limit, *(total.peak for total in totals)),
            limit=limit,
        )


def _paint_column(
    painter: QPainter,
    comparison: Comparison,
    number: int,
    position: Position,
    said: Sequence[Sequence[_BarWords]],
    scales: _Scales,
    style: Style,
    box: QRectF,
) -> None:
    theme, px = style.theme, style.px
    shown = position.algorithm == comparison.shown
    line, width = (theme.current, px(2)) if shown else (theme.border, px(1))
    card(painter, box, theme.window, line, px(5), width)
    inner = box.adjusted(px(8), px(5), -px(8), -px(5))
    head = QRectF(inner.x(), inner.y(), inner.width(), px(20))
    bold, small = style.text_font(13, bold=True), style.text_font(11)
    names = title(position.algorithm), label(position.algorithm)
    name = first_that_fits(names, head.width(), bold)
    draw_text(painter, head, name, bold, theme.text)
    if shown and text_width(bold, name) + text_width(small, "on show") + px(8) <= head.width():
        draw_text(painter, head, "on show", small, theme.current, RIGHT)
    place = QRectF(inner.x(), head.bottom(), inner.width(), px(16))
    words = first_that_fits(place_words(comparison, position), place.width(), small)
    draw_text(painter, place, words, small, theme.good if position.finished else theme.muted)
    body = QRectF(inner.x(), place.bottom() + px(4), inner.width(), 0)
    body.setBottom(inner.bottom())
    board, bars = _split(body, style)
    program = comparison.programs[position.algorithm]
    first = comparison.programs[comparison.shown].workload
    # One grid for all boards, so that they share their images; packed heads have their own.
    same = first.group == program.workload.group
    grid = first.grid if same else program.workload.grid
    if min(board.width(), board.height()) >= 16:
        paint_mini_board(painter, program, position, grid, style, board)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    over = []
    for alike in zip(*said, strict=True):
        bar_name, figures = fitting_words(alike, bars.width(), style)
        over.append((bar_name, figures[number], alike[number].ink))
    _paint_bars(painter, position, comparison.totals[number], over, scales, style, bars)


def _split(body: QRectF, style: Style) -> tuple[QRectF, QRectF]:
    """Return the places of the board and of the bars: side by side if there is enough width."""
    px = style.px
    bars_height = min(_BARS * px(46), max(_BARS * px(27), body.height() * 0.4))
    beside = min(body.height(), body.width() * 0.46)
    above = min(body.width(), body.height() - bars_height - px(6))
    if body.width() >= px(330) and beside >= above:
        board = QRectF(body.x(), body.y(), beside, body.height())
        room = QRectF(board.right() + px(12), body.y(), 0, 0)
        room.setRight(body.right())
        room.setHeight(min(body.height(), _BARS * px(56)))
        room.moveTop(body.y() + (body.height() - room.height()) / 2)
        return board, room
    bars = QRectF(body.x(), body.bottom() - bars_height, body.width(), bars_height)
    return QRectF(body.x(), body.y(), body.width(), bars.y() - px(6) - body.y()), bars


@dataclass(frozen=True, slots=True)
class _BarWords:
    """Words above a bar: its name and its figures, each from long to short, and their colour."""

    labels: tuple[str, ...]
    figures: tuple[str, ...]
    ink: str


def _rows(
    position: Position, total: Totals, scales: _Scales, style: Style
) -> tuple[_BarWords, ...]:
    """Return the words above the bars of one algorithm."""
    theme = style.theme
    moved, most = bytes_text(position.counters.bytes), bytes_text(total.counters.bytes)
    spent, end = time_text(position.time.seconds), time_text(total.time.seconds)
    held, peak = bytes_text(position.on_chip), bytes_text(total.peak)
    limit = bytes_text(scales.limit)
    over = total.peak > scales.limit
    short = (f"roofline time, a launch: {LAUNCH}",) if scales.seconds < LAUNCH_SECONDS else ()
    chip = (
        (f"{held}, up to {peak}: over {limit}", f"up to {peak}: over {limit}",
         f"{peak} > {limit}", "over the limit")
        if over
        else (f"{held}, up to {peak} of {limit}", f"{held} of {limit}", f"{held} / {limit}", held)
    )  # fmt: skip
    return (
        _BarWords(
            ("requested from HBM", "requested bytes", "requested", "bytes"),
            (f"{moved} of {most}", f"{moved} / {most}", moved), theme.text,
        ),
        _BarWords(
            (*short, "roofline time", "time"),
            (f"≈ {spent} of {end}", f"{spent} / {end}", spent), theme.text,
        ),
        _BarWords(
            ("shared memory of this visit", "shared memory", "SRAM"), chip,
            theme.bad if over else theme.text,
        ),
    )  # fmt: skip


def fitting_words(
    rows: Sequence[_BarWords], width: float, style: Style
) -> tuple[str, tuple[str, ...]]:
    """Return a bar's name ("" without space) and its figures, worded alike in all columns."""
    small, font = style.text_font(11), style.text_font(11, bold=True)
    room = width - style.px(6)
    names = rows[0].labels
    shortest = text_width(small, names[-1])
    wordings = list(zip(*(row.figures for row in rows), strict=True))
    spent = [max(text_width(font, text) for text in texts) for texts in wordings]
    at = next((n for n, taken in enumerate(spent) if taken <= room - shortest), len(spent) - 1)
    name = next((name for name in names if text_width(small, name) <= room - spent[at]), "")
    return name, wordings[at]


def _paint_bars(
    painter: QPainter,
    position: Position,
    total: Totals,
    words: Sequence[tuple[str, str, str]],
    scales: _Scales,
    style: Style,
    place: QRectF,
) -> None:
    """Paint bars below their words: (name, figures, colour) of each."""
    theme, now = style.theme, position.counters
    height = place.height() / _BARS
    bars = []
    for n, said in enumerate(words):
        row = QRectF(place.x(), place.y() + n * height, place.width(), height)
        bars.append(_paint_row(painter, row, style, *said))

    bar, amber = bars[0], QColor(theme.hbm_line)
    share = bar.width() / scales.bytes
    _frame(painter, bar, total.counters.bytes * share, theme.hbm_ground, amber, style)
    read, written = now.read_bytes * share, now.write_bytes * share
    painter.fillRect(QRectF(bar.x(), bar.y(), read, bar.height()), amber)
    stored = QRectF(bar.x() + read, bar.y(), written, bar.height())
    painter.fillRect(stored, mixed(theme.hbm_ground, amber, 0.4))
    painter.fillRect(stored, patterned(amber, Qt.BrushStyle.BDiagPattern, style))

    bar, grey = bars[1], mixed(theme.panel, theme.text, 0.55)
    share = bar.width() / scales.seconds
    _frame(painter, bar, total.time.seconds * share, theme.panel, grey, style)
    painter.fillRect(QRectF(bar.x(), bar.y(), position.time.seconds * share, bar.height()), grey)

    bar = bars[2]
    share = bar.width() / scales.chip
    green = QColor(theme.bad if total.peak > scales.limit else theme.good)
    _frame(painter, bar, scales.limit * share, theme.window, QColor(theme.faint), style)
    _frame(painter, bar, total.peak * share, theme.sram_ground, green, style)
    painter.fillRect(QRectF(bar.x(), bar.y(), position.on_chip * share, bar.height()), green)
    painter.setPen(QPen(QColor(theme.bad), style.px(2)))
    x = min(bar.x() + scales.limit * share, bar.right() - style.px(1))
    painter.drawLine(QLineF(x, bar.y(), x, bar.bottom() + style.px(3)))


def _paint_row(
    painter: QPainter, row: QRectF, style: Style, label: str, figure: str, ink: str
) -> QRectF:
    """Write a bar's name and figures above it; return the bar's place."""
    px = style.px
    words = QRectF(row.x(), row.y(), row.width(), px(16))
    draw_text(painter, words, figure, style.text_font(11, bold=True), ink, RIGHT)
    if label:
        draw_text(painter, words, label, style.text_font(11), style.theme.muted)
    height = min(max(row.height() - px(22), px(6)), px(16))
    return QRectF(row.x(), words.bottom() + px(1), row.width(), height)


def _frame(
    painter: QPainter, bar: QRectF, width: float, ground: str, line: QColor, style: Style
) -> None:
    """Draw the figure of the whole run, as a frame around the part that is done."""
    frame = QRectF(bar.x(), bar.y(), max(width, style.px(2)), bar.height())
    painter.fillRect(frame, QColor(ground))
    outline(painter, frame, mixed(ground, line, 0.7), style.px(0.8))
