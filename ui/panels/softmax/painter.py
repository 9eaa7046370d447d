"""Online softmax of one row: its scores, the running maximum, and the update in real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32
from simulator.program.playback import eased
from simulator.run.motion import Motion
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_text, hairline, mixed, outline, text_width
from ui.look.formula import formula
from ui.look.names import first_that_fits, fitting, font_that_fits
from ui.look.theme import Style
from ui.look.units import count_text, number_text, plural, ulp_text
from ui.panels.softmax.model import (
    Bars,
    KeyState,
    Maximum,
    is_worked_on,
    own_begin,
    row_scores,
    running_maximum,
    score_bars,
    scores_by_now,
)
from ui.panels.update_lines import UpdateLine, softmax_lines

MIN_SIZE = QSizeF(300, 230)
MOST_ULP = 1e5
"""Error of a row's O from which it is shown as bad: rounding to bfloat16 makes 32 768."""
_TALL = 1.9
"""Height of a line with fractions, in lines."""
_OUTLINED = 4
"""Narrowest bar with an outline, in widths of its line."""
_MOST_NAMED = 6
"""Most splits of which each is named under its bar."""
_LETTERS = 42
"""Letters of a usual line, for which text is made small if need be."""


# --- the bars --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SoftmaxLayout:
    """Where everything goes.

    Attributes
    ----------
    style : Style
        With the text scale that fits.
    title, axis, plot, gutter, legend, footer : QRectF
        Row and token; score axis; bars; words beside the maximum; words under the bars; error.
    lines : tuple of QRectF
        One for each line of the update.
    """

    style: Style
    title: QRectF
    axis: QRectF
    plot: QRectF
    gutter: QRectF
    legend: QRectF
    lines: tuple[QRectF, ...]
    footer: QRectF


def softmax_layout(rect: QRectF, style: Style, lines: Sequence[UpdateLine]) -> SoftmaxLayout:
    """Return the places of a picture with these lines of update."""
    style = fitting(style, rect, MIN_SIZE)
    px = style.px
    title = QRectF(rect.x(), rect.y(), rect.width(), px(16))
    footer = QRectF(rect.x(), rect.bottom() - px(15), rect.width(), px(15))
    weights = [_TALL if line.tall else 1.0 for line in lines]
    height = min(max(0.46 * rect.height() / sum(weights), px(14)), px(26))
    top = footer.y() - px(2) - height * sum(weights)
    places = []
    y = top
    for weight in weights:
        places.append(QRectF(rect.x(), y, rect.width(), height * weight))
        y += height * weight
    legend = QRectF(rect.x(), top - px(18), rect.width(), px(14))
    axis_width, gutter_width = px(34), px(88)
    plot = QRectF(
        rect.x() + axis_width,
        title.bottom() + px(6),
        rect.width() - axis_width - gutter_width,
        legend.y() - title.bottom() - px(9),
    )
    axis = QRectF(rect.x(), plot.y(), axis_width - px(4), plot.height())
    gutter = QRectF(plot.right() + px(4), plot.y(), gutter_width - px(4), plot.height())
    return SoftmaxLayout(style, title, axis, plot, gutter, legend, tuple(places), footer)


def paint_softmax(
    painter: QPainter,
    snapshot: Snapshot,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    motion: Motion | None = None,
    share: float = 1.0,
) -> None:
    """Paint the online softmax of one row.

    Parameters
    ----------
    painter : QPainter
        Where to.
    snapshot : Snapshot
        The state.
    report : RowReport
        The row.
    style : Style
        Colours and text scale.
    rect : QRectF
        The place, at least `MIN_SIZE`.
    motion : Motion, optional
        The op that leads to the state, while it is being done: the maximum jumps, new bars grow as
        the sums that they are.
    share : float
        How much of it has been done, 0 to 1.
    """
    lines = softmax_lines(snapshot, report)
    layout = softmax_layout(rect, style, lines)
    slots = max(int(layout.plot.width() / layout.style.px(1)), 1)
    bars = score_bars(snapshot, report, slots)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_title(painter, snapshot, report, bars, layout)
    if np.all(bars.states == KeyState.HIDDEN):
        words = f"row {count_text(report.row)} sees no key: O = 0, lse = −∞"
        if not np.isneginf(row_scores(snapshot, report)).all():
            words = "no split has left a finite LSE"
        font = layout.style.text_font(12)
        draw_text(painter, layout.plot, words, font, layout.style.theme.muted, CENTRE)
    else:
        now = None if motion is None else scores_by_now(motion, share, report.row)
        _paint_bars(painter, snapshot, bars, layout, now)
        _paint_axis(painter, bars, layout)
        maximum = running_maximum(snapshot, report)
        if maximum is not None:
            _paint_maximum(painter, snapshot, maximum, bars, layout, eased(share))
        _paint_legend(painter, snapshot, report, layout)
    _paint_lines(painter, lines, layout)
    _paint_footer(painter, snapshot, report, layout)
    painter.restore()


def _paint_title(
    painter: QPainter, snapshot: Snapshot, report: RowReport, bars: Bars, layout: SoftmaxLayout
) -> None:
    style, w = layout.style, snapshot.program.workload
    token = w.query_token(report.row)
    words = f"row {count_text(report.row)}" + (f" “{token}”" if token else "")
    if w.group > 1:
        words = w.row_name(snapshot.visit.head, report.row)
    font, small = style.text_font(12, bold=True), style.text_font(11)
    width = min(text_width(font, words), layout.title.width() * 0.6)
    draw_text(painter, QRectF(layout.title.topLeft(), QSizeF(width + 1, layout.title.height())),
              words, font, style.theme.text)  # fmt: skip
    if snapshot.launch.combines:
        words = f"LSE of {'each of ' * (w.splits > 1)}{plural(w.splits, 'split')}"
        draw_text(painter, layout.title, words, small, style.theme.muted, RIGHT)
        return
    each = f"max of {count_text(bars.keys_per_bar)} keys each" if bars.keys_per_bar > 1 else ""
    room = layout.title.width() - width - style.px(12)
    notes = ("scores of this row" + (f", {each}" if each else ""), each or "scores")
    note = first_that_fits(notes, room, small)
    draw_text(painter, layout.title, note, small, style.theme.muted, RIGHT)


def _height_of(bars: Bars, plot: QRectF, value: float) -> float:
    """Return at what height in the picture a score stands."""
    return plot.bottom() - (value - bars.low) / (bars.high - bars.low) * plot.height()


def _shades(style: Style) -> dict[KeyState, QColor]:
    """Return the colours of bars with a score, and of the outline of one that has none yet."""
    theme = style.theme
    colour = theme.tensor("S")
    return {
        KeyState.CURRENT: colour,
        KeyState.SEEN: mixed(theme.panel, colour, 0.5),
        KeyState.ELSEWHERE: mixed(theme.panel, colour, 0.22),
        KeyState.LATER: QColor(theme.muted),
    }


def _paint_bars(
    painter: QPainter,
    snapshot: Snapshot,
    bars: Bars,
    layout: SoftmaxLayout,
    now: F32 | None,
) -> None:
    style, plot = layout.style, layout.plot
    theme = style.theme
    slot = plot.width() / len(bars.values)
    edges = np.round(plot.x() + np.arange(len(bars.values) + 1) * slot).astype(int)
    gap = 0 if slot < 3 else max(1, round(slot * 0.16))
    lefts, widths = edges[:-1].tolist(), np.maximum(np.diff(edges) - gap, 1).tolist()
    hidden = bars.states == KeyState.HIDDEN
    values = np.where(hidden, 0, bars.values)
    if now is not None and bars.keys_per_bar == 1:
        values[snapshot.visit.cols.start : snapshot.visit.cols.stop] = now
    zero = round(_height_of(bars, plot, 0.0))
    per_score = plot.height() / (bars.high - bars.low)
    tips = np.rint(plot.bottom() - (values - bars.low) * per_score).astype(int).tolist()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    per_key = plot.width() / len(snapshot.k)
    cols = snapshot.visit.cols
    band = QRectF(plot.x() + cols.start * per_key, plot.y(), len(cols) * per_key, plot.height())
    painter.fillRect(band, mixed(theme.panel, theme.tensor("S"), 0.12))
    painter.setPen(Qt.PenStyle.NoPen)
    line = hairline(style)
    outlined = min(widths) >= _OUTLINED * line
    for state, colour in _shades(style).items():
        which = np.flatnonzero(bars.states == state).tolist()
        if state == KeyState.LATER and not outlined:  # the ends alone
            painter.setBrush(colour)
            painter.drawRects([QRect(lefts[n], tips[n], widths[n], line) for n in which])
            continue
        places = [
            QRect(lefts[n], min(zero, tips[n]), widths[n], max(abs(tips[n] - zero), 1))
            for n in which
        ]
        if state == KeyState.LATER:  # empty: a look ahead
            painter.setPen(QPen(colour, line, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            near, far = line // 2, line - line // 2
            places = [place.adjusted(near, near, -far, -far) for place in places]
        else:
            painter.setBrush(colour)
        painter.drawRects(places)
        painter.setPen(Qt.PenStyle.NoPen)
    # Of narrow bars not each has a mark: they would be a solid line.
    mark, stride = max(1, round(style.px(2))), 1 if slot >= 3 else int(np.ceil(4 / slot))
    painter.setBrush(QColor(theme.faint))
    painter.drawRects(
        [
            QRect(lefts[n] + (widths[n] - mark) // 2, zero - mark, mark, mark)
            for n in np.flatnonzero(hidden).tolist()[::stride]
        ]
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _paint_axis(painter: QPainter, bars: Bars, layout: SoftmaxLayout) -> None:
    style, axis, plot = layout.style, layout.axis, layout.plot
    font = style.code_font(11)
    height = style.px(13)
    zero = _height_of(bars, plot, 0.0)
    painter.setPen(QPen(QColor(style.theme.grid), 1))
    painter.drawLine(QPointF(plot.x(), round(zero) + 0.5), QPointF(plot.right(), round(zero) + 0.5))
    for value in {0.0, bars.high, bars.low}:
        y = _height_of(bars, plot, value)
        if value and abs(y - zero) < height:
            continue
        place = QRectF(axis.x(), y - height / 2, axis.width(), height)
        precise = (number_text(value, 1),) if abs(value) < 100 else ()
        choices = (*precise, number_text(value, 0), f"{value:.0e}".replace("e+0", "e"))
        text = first_that_fits(choices, axis.width(), font) if value else "0"
        draw_text(painter, place, text, font, style.theme.muted, RIGHT)


def _paint_maximum(
    painter: QPainter,
    snapshot: Snapshot,
    maximum: Maximum,
    bars: Bars,
    layout: SoftmaxLayout,
    phase: float,
) -> None:
    style, plot = layout.style, layout.plot
    theme, px = style.theme, style.px
    colour = theme.tensors["m"]
    label_height = px(13)
    jumps = "m" in snapshot.op.makes
    if not np.isfinite(maximum.now):
        y = plot.bottom() - label_height / 2
        _paint_statistic(painter, "m", maximum.now, y, colour, layout)
        return
    y = label_y = _height_of(bars, plot, maximum.now)
    if maximum.old is not None:
        y_old = _height_of(bars, plot, maximum.old)
        lowest = layout.gutter.bottom() - label_height / 2
        old_label_y = min(max(y_old, y + label_height), lowest)
        label_y = min(y, old_label_y - label_height)
        if jumps:
            y = y_old + (y - y_old) * phase
        faded = mixed(theme.panel, colour, 0.8).name()
        painter.setPen(QPen(QColor(faded), px(1.2), Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(plot.x(), y_old), QPointF(plot.right(), y_old))
        _paint_statistic(painter, r"m_{\mathrm{old}}", maximum.old, old_label_y, faded, layout)
    painter.setPen(QPen(QColor(colour), px(1.6)))
    painter.drawLine(QPointF(plot.x(), y), QPointF(plot.right(), y))
    _paint_statistic(painter, "m", maximum.now, label_y, colour, layout)


def _paint_statistic(
    painter: QPainter, latex: str, value: float, y: float, colour: str, layout: SoftmaxLayout
) -> None:
    """Write ``m = 1.911`` in the gutter, its middle at height `y`."""
    style, gutter = layout.style, layout.gutter
    name = formula(latex, round(style.px(12)))
    name.draw(painter, gutter.x(), y + style.px(3.5), colour)
    x = gutter.x() + name.width + style.px(5)
    place = QRectF(x, y - style.px(7), gutter.right() - x, style.px(14))
    draw_text(painter, place, f"= {number_text(value)}", style.code_font(11), colour, LEFT)


# --- words under the bars --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LegendWord:
    """A word under the bars, a shorter one, and the shade and keys that it is about."""

    text: str
    short: str
    state: KeyState
    keys: tuple[int, int]


def legend_words(snapshot: Snapshot, report: RowReport) -> tuple[LegendWord, ...]:
    """Return the words under the bars, in the order of their keys."""
    if snapshot.launch.combines:
        return _split_words(snapshot, len(report.scores))
    cols, visit = snapshot.visit.cols, snapshot.visit
    hidden = row_scores(snapshot, report) == -np.inf
    current = np.zeros_like(hidden)
    current[cols.start : cols.stop] = True
    own = np.arange(len(hidden)) >= own_begin(snapshot)
    here = "the whole row" if snapshot.in_softmax_launch else f"tile j = {visit.j}"
    state = KeyState.CURRENT if is_worked_on(snapshot) else KeyState.LATER
    words = [LegendWord(here, here, state, (cols.start, cols.stop))]
    for text, short, shade, which in (
        ("other splits", "others", KeyState.ELSEWHERE, report.seen & ~own & ~hidden),
        ("seen", "seen", KeyState.SEEN, report.seen & own & ~hidden & ~current),
        ("not computed yet", "later", KeyState.LATER, ~report.seen & ~hidden & ~current),
        ("hidden by the mask", "hidden", KeyState.HIDDEN, hidden & ~current),
    ):
        if which.any():
            keys = int(which.argmax()), len(which) - int(which[::-1].argmax())
            words.append(LegendWord(text, short, shade, keys))
    return tuple(sorted(words, key=lambda word: word.keys))


def _split_words(snapshot: Snapshot, keys: int) -> tuple[LegendWord, ...]:
    """Return the words under the bars of splits, which are equally wide."""
    splits = snapshot.program.workload.splits
    if splits > _MOST_NAMED:
        words = plural(splits, "split")
        return (LegendWord(words, words, KeyState.CURRENT, (0, keys)),)
    return tuple(
        LegendWord(f"split {n}", str(n), KeyState.CURRENT,
                   (round(n * keys / splits), round((n + 1) * keys / splits)))
        for n in range(splits)
    )  # fmt: skip


def legend_places(
    widths: Sequence[float], centres: Sequence[float], left: float, right: float, gap: float
) -> list[float]:
    """Return where words start so that none overlap: near their centres, within the ends."""
    starts: list[float] = []
    edge = left
    for width, centre in zip(widths, centres, strict=True):
        starts.append(max(centre - width / 2, edge))
        edge = starts[-1] + width + gap
    edge = right
    for n in reversed(range(len(starts))):
        starts[n] = min(starts[n], edge - widths[n])
        edge = starts[n] - gap
    return starts


def _paint_legend(
    painter: QPainter, snapshot: Snapshot, report: RowReport, layout: SoftmaxLayout
) -> None:
    style, plot, place = layout.style, layout.plot, layout.legend
    px, theme = style.px, style.theme
    font = style.text_font(11)
    words = legend_words(snapshot, report)
    swatch, gap = px(11), px(12)
    texts = [word.text for word in words]
    if sum(text_width(font, t) + swatch + gap for t in texts) - gap > place.right() - plot.x():
        texts = [word.short for word in words]
    widths = [text_width(font, text) + swatch + 1 for text in texts]
    per_key = plot.width() / len(report.scores)
    centres = [plot.x() + sum(word.keys) / 2 * per_key for word in words]
    starts = legend_places(widths, centres, plot.x(), place.right(), gap)
    shades = _shades(style)
    for word, text, x, width in zip(words, texts, starts, widths, strict=True):
        colour = shades.get(word.state, QColor(theme.faint))
        size = px(7) if word.state else px(2)
        box = QRectF(x + (px(7) - size) / 2, place.center().y() - size / 2, size, size)
        if word.state == KeyState.LATER:
            outline(painter, QRectF(box.toAlignedRect()), colour, hairline(style))
        else:
            painter.fillRect(box, colour)
        at = QRectF(x + swatch, place.y(), width - swatch, place.height())
        is_current = word.keys == (snapshot.visit.cols.start, snapshot.visit.cols.stop)
        draw_text(painter, at, text, font, theme.tensors["S"] if is_current else theme.muted, LEFT)


# --- lines and error -------------------------------------------------------------------------


def _paint_lines(painter: QPainter, lines: Sequence[UpdateLine], layout: SoftmaxLayout) -> None:
    style = layout.style
    px, theme = style.px, style.theme
    row = layout.lines[0].height()
    letters = round(min(px(12.5), 0.74 * row))
    inset = px(6)
    widest = max(formula(line.latex, letters).width for line in lines)
    x = layout.lines[0].x() + inset + widest + px(10)
    # One size for all lines and all steps: what decides is a line of usual length.
    fonts = [style.code_font(size) for size in (12, 11) if px(size) <= 0.8 * row]
    fonts = fonts or [style.code_font(11)]
    font = font_that_fits(fonts, "0" * _LETTERS, layout.lines[0].right() - inset - x)
    _paint_frames(painter, lines, layout)
    for line, place in zip(lines, layout.lines, strict=True):
        later = mixed(theme.panel, theme.muted, 0.75)
        lit = theme.text if line.current else theme.muted if line.reached else later
        picture = formula(line.latex, letters)
        middle = place.center().y()
        picture.draw(painter, place.x() + inset, middle + px(4), lit)
        room = place.right() - px(3) - x
        text = first_that_fits(line.texts, room, font)
        draw_text(painter, QRectF(x, place.y(), room, place.height()), text, font, lit)


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
    """Return the error so far in words, longest first."""
    if report.error is None or report.ulp is None:
        return ("error against float64: — (no output yet)", "error: — (no output yet)", "error: —")
    figures = f"{number_text(report.error)} ({ulp_text(report.ulp)})"
    return (f"error against float64 so far {figures}", f"error so far {figures}", figures)


def rescale_words(snapshot: Snapshot, report: RowReport) -> str:
    """Return what this visit's rescale multiplies O by, in words."""
    if snapshot.tile.last("factor") is None:
        return "no rescale"
    name = "factor" if snapshot.program.algorithm.normalises_each_tile else "α"
    if not snapshot.made("m"):
        return f"rescale {name} = —"
    factor = float(snapshot.rescale_factor[report.row - snapshot.visit.rows.start])
    forgotten = snapshot.program.workload.faults.forget_alpha
    return f"rescale {name} = {number_text(factor)}" + (", α forgotten" if forgotten else "")


def _paint_footer(
    painter: QPainter, snapshot: Snapshot, report: RowReport, layout: SoftmaxLayout
) -> None:
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
    draw_text(painter, row, right, font, style.theme.muted, RIGHT)
