"""Online softmax of one row: its scores, the running maximum, and the update in real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32
from simulator.program.op import Gesture
from simulator.program.playback import eased, rescaling
from simulator.run.motion import Motion
from simulator.run.rescales import has_seen
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.board.middle import middle_at
from ui.look.draw import (
    CENTRE,
    LEFT,
    RIGHT,
    draw_text,
    draw_upright,
    hairline,
    mixed,
    outline,
    text_width,
)
from ui.look.formula import formula
from ui.look.kept import draw_kept, kept, place_key
from ui.look.names import first_that_fits, row_name
from ui.look.theme import Style
from ui.look.units import count_text, number_text, plural
from ui.panels.softmax.lines import paint_footer, paint_lines
from ui.panels.softmax.model import (
    KeyState,
    Maximum,
    ScoreBars,
    SumBar,
    is_worked_on,
    own_begin,
    row_scores,
    row_weights,
    running_maximum,
    score_bars,
    scores_by_now,
    sum_bar,
    sum_by_now,
    weights_by_now,
)
from ui.panels.softmax.places import SoftmaxLayout, height_of, legend_places, softmax_layout
from ui.panels.softmax.rescale import RescaleScene, paint_excess, paint_rescale
from ui.panels.softmax.weights import paint_weights
from ui.panels.update_lines import UpdateLine, softmax_lines

_OLDER = KeyState.SEEN, KeyState.ELSEWHERE, KeyState.LATER
"""States of bars that no op is working on."""
_OUTLINED = 4
"""Narrowest bar with an outline, in widths of its line."""
_MOST_NAMED = 6
"""Most splits that are named under their bars."""
_HALL_LINES = 2
"""Lines of the update that are seen from the last row at once."""
_MOST_NAMES = 40
"""Most keys that have their names."""


# --- the bars --------------------------------------------------------------------------------


def paint_softmax(
    painter: QPainter,
    snapshot: Snapshot,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    motion: Motion | None = None,
    share: float = 1.0,
    elsewhere: int | None = None,
) -> None:
    """Paint the online softmax of one row in a place of at least `MIN_SIZE`.

    With a motion its op is being done: the maximum jumps, new bars grow term by term.
    `elsewhere` is the row that a user has chosen instead, in another row block.
    """
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if motion is not None and 0 < share < 1:
        _paint_moving(painter, motion, share, report, style, rect, elsewhere)
    else:
        picture = _picture(snapshot, report, style, rect, elsewhere)
        _paint_still(painter, picture, grows=False)
        if not picture.empty:
            _paint_maximum(painter, picture, eased(share))
        _paint_sum(painter, picture, picture.sum)
    painter.restore()


@dataclass(frozen=True, slots=True)
class _RowPicture:
    """Parts of a picture of a row, with their places."""

    snapshot: Snapshot
    report: RowReport
    lines: tuple[UpdateLine, ...]
    layout: SoftmaxLayout
    bars: ScoreBars
    weights: F32 | None
    maximum: Maximum | None
    sum: SumBar | None
    elsewhere: int | None

    @property
    def empty(self) -> bool:
        """Whether no bar is seen."""
        return bool(np.all(self.bars.states == KeyState.HIDDEN))


def _picture(
    snapshot: Snapshot, report: RowReport, style: Style, rect: QRectF, elsewhere: int | None
) -> _RowPicture:
    lines = softmax_lines(snapshot, report)
    if style.least:
        lines = hall_lines(lines)
    weights = row_weights(snapshot, report)
    layout = softmax_layout(
        rect, style, lines, weights=weights is not None, names=key_names(snapshot)
    )
    slots = max(int(layout.plot.width() / layout.style.px(1)), 1)
    bars = score_bars(snapshot, report, slots)
    maximum, summed = running_maximum(snapshot, report), sum_bar(snapshot, report)
    return _RowPicture(snapshot, report, lines, layout, bars, weights, maximum, summed, elsewhere)


def hall_lines(lines: Sequence[UpdateLine]) -> tuple[UpdateLine, ...]:
    """Return the line that the op fills, and the one before it: in a hall bars have the room."""
    places = [n for n, line in enumerate(lines) if line.current]
    places = places or [n for n, line in enumerate(lines) if line.reached] or [0]
    last = max(places[-1], min(len(lines), _HALL_LINES) - 1)
    return tuple(lines[max(last + 1 - _HALL_LINES, 0) : last + 1])


def _paint_moving(
    painter: QPainter, motion: Motion, share: float, report: RowReport, style: Style, rect: QRectF,
    elsewhere: int | None,
) -> None:  # fmt: skip
    """Paint bars that grow, and the maximum, over the parts that stay while the op is done."""
    key = "softmax", report.row, elsewhere, place_key(style, rect)
    picture = kept(motion, key, lambda: _picture(motion.after, report, style, rect, elsewhere))
    now = None
    if picture.bars.keys_per_bar == 1:
        now = scores_by_now(motion, share, report.row)

    r = report.row - motion.after.visit.rows.start
    alpha = float(motion.after.carried[r]) if has_seen(motion.after)[r] else 1.0
    shrinks = motion.gesture is Gesture.SHRINK and alpha < 1
    grows = now is not None
    moves = not picture.empty and (grows or motion.after.op.makes_maximum)

    sums = shrinks or any(line.sums and line.current for line in picture.lines)
    lit = shrinks and rescaling(share).lit

    def paint(inner: QPainter) -> None:
        _paint_still(inner, picture, grows=grows, shrinks=shrinks, lit=lit)
        if not sums:
            _paint_sum(inner, picture, picture.sum)
        if not (picture.empty or moves):
            _paint_maximum(inner, picture, 1.0)

    draw_kept(painter, motion, (*key, grows, moves, shrinks, lit), rect, style.theme.panel, paint)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if grows and moves:
        _paint_bars(painter, picture, (KeyState.CURRENT, KeyState.HIDDEN), now)
        _paint_zero(painter, picture)
    if moves:
        _paint_maximum(painter, picture, eased(share))
    if sums:
        _paint_sum(painter, picture, sum_by_now(motion, share, report))
    if shrinks and not picture.empty:
        now, per = weights_by_now(motion, share, report), picture.bars.keys_per_bar
        old = row_weights(motion.before, report)
        paint_weights(painter, motion.after, now, picture.layout, per, old)
        maximum = picture.maximum
        if maximum is not None and maximum.old is not None and np.isfinite(maximum.now):
            moments = rescaling(share)
            paint_rescale(
                painter, RescaleScene(picture.layout, picture.bars, maximum, alpha, moments)
            )


def _paint_still(
    painter: QPainter, picture: _RowPicture, *, grows: bool, shrinks: bool = False,
    lit: bool = False,
) -> None:  # fmt: skip
    """Paint all but the maximum, all but the current bars if they grow, and weights that stay.

    lit: whether α is lit in the lines of the update.
    """
    snapshot, report, layout = picture.snapshot, picture.report, picture.layout
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_title(painter, picture)
    if picture.empty:
        words = f"row {count_text(report.row)} sees no key: O = 0, lse = −∞"
        if not np.isneginf(row_scores(snapshot, report)).all():
            words = "no split has left a finite LSE"
        font = layout.style.text_font(12)
        draw_text(painter, layout.plot, words, font, layout.style.theme.muted, CENTRE)
    else:
        _paint_band(painter, picture)
        if grows:
            _paint_bars(painter, picture, _OLDER)
        else:
            _paint_bars(painter, picture, (KeyState.CURRENT, *_OLDER, KeyState.HIDDEN))
            _paint_zero(painter, picture)
        if not shrinks:
            paint_weights(painter, snapshot, picture.weights, layout, picture.bars.keys_per_bar)
        _paint_names(painter, picture)
        _paint_axis(painter, picture.bars, layout)
        _paint_legend(painter, picture)
    paint_lines(painter, picture.lines, layout, lit=lit)
    paint_footer(painter, snapshot, report, layout)


def elsewhere_words(snapshot: Snapshot, row: int) -> tuple[str, ...]:
    """Return why a row that was chosen is not explained, the longest text first."""
    w = snapshot.program.workload
    name, token = w.row_name(snapshot.visit.head, row), w.query_token(row)
    whole = f"{name} is not in this row block"
    quoted = (f"{name} “{token}” is not in this row block: double-click its tile",) * bool(token)
    return (*quoted, f"{whole}: double-click its tile", whole, f"{name}: other row block", "")


def _paint_title(painter: QPainter, picture: _RowPicture) -> None:
    snapshot, report, layout = picture.snapshot, picture.report, picture.layout
    style, w = layout.style, snapshot.program.workload
    words = row_name(w, report.row)
    if w.group > 1:
        words = w.row_name(snapshot.visit.head, report.row)
    font, small = style.text_font(12, bold=True), style.text_font(11)
    width = min(text_width(font, words), layout.title.width() * 0.6)
    draw_text(painter, QRectF(layout.title.topLeft(), QSizeF(width + 1, layout.title.height())),
              words, font, style.theme.text)  # fmt: skip
    room = layout.title.width() - width - style.px(12)
    colour = style.theme.muted if picture.elsewhere is None else style.theme.current
    notes = _note_words(picture)
    of_scores = middle_at(snapshot).state is None
    if layout.gutter.isEmpty() and picture.elsewhere is None and of_scores:
        notes = ("",)  # the number of the maximum is there
    note = first_that_fits(notes, room, small)
    draw_text(painter, layout.title, note, small, colour, RIGHT)


def _note_words(picture: _RowPicture) -> tuple[str, ...]:
    """Return a note on the bars, longest first."""
    snapshot, bars = picture.snapshot, picture.bars
    if picture.elsewhere is not None:
        return elsewhere_words(snapshot, picture.elsewhere)
    if own := middle_at(snapshot).of_row(snapshot):
        return own
    if bars.strange:
        lost = f"{count_text(bars.strange)} of {plural(len(picture.report.scores), 'score')}"
        return f"{lost} are infinite or NaN", "inf or NaN"
    if bars.keys_per_bar > 1:
        each = f"max of {count_text(bars.keys_per_bar)} keys each"
        return f"scores of this row, {each}", each
    return "scores of this row", "scores"


def _shades(style: Style) -> dict[KeyState, QColor]:
    """Return the colours of bars with a score, and of the outline of a bar without one yet."""
    theme = style.theme
    colour = theme.tensor("S")
    return {
        KeyState.CURRENT: colour,
        KeyState.SEEN: mixed(theme.panel, colour, 0.5),
        KeyState.ELSEWHERE: mixed(theme.panel, colour, 0.22),
        KeyState.LATER: QColor(theme.muted),
    }


def _paint_band(painter: QPainter, picture: _RowPicture) -> None:
    """Paint the ground of the keys of the tile."""
    plot, theme, cols = picture.layout.plot, picture.layout.style.theme, picture.snapshot.visit.cols
    per_key = plot.width() / len(picture.snapshot.k)
    high = max(plot.bottom(), picture.layout.weights.bottom()) - plot.y()
    band = QRectF(plot.x() + cols.start * per_key, plot.y(), len(cols) * per_key, high)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.fillRect(band, mixed(theme.panel, theme.tensor("S"), 0.12))


def _paint_bars(
    painter: QPainter, picture: _RowPicture, states: Sequence[KeyState], now: F32 | None = None
) -> None:
    """Paint the bars of some states; the tile's bars are as high as its scores are by now."""
    bars, plot, style = picture.bars, picture.layout.plot, picture.layout.style
    slot = plot.width() / len(bars.values)
    edges = np.round(plot.x() + np.arange(len(bars.values) + 1) * slot).astype(int)
    gap = 0 if slot < 3 else max(1, round(slot * 0.16))
    lefts, widths = edges[:-1].tolist(), np.maximum(np.diff(edges) - gap, 1).tolist()
    values = np.where(bars.states == KeyState.HIDDEN, 0, bars.values.astype(np.float64))
    if now is not None:
        cols = picture.snapshot.visit.cols
        values[cols.start : cols.stop] = now
    values = np.nan_to_num(values, nan=0.0).clip(bars.low, bars.high)
    zero = round(height_of(bars, plot, 0.0))
    per_score = plot.height() / (bars.high - bars.low)
    tips = np.rint(plot.bottom() - (values - bars.low) * per_score).astype(int).tolist()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(Qt.PenStyle.NoPen)
    line = hairline(style)
    outlined = min(widths) >= _OUTLINED * line
    shades = _shades(style)
    for state in states:
        which = np.flatnonzero(bars.states == state).tolist()
        if state == KeyState.HIDDEN:
            # Not every narrow bar has a mark: the marks would be a solid line.
            mark, stride = max(1, round(style.px(2))), 1 if slot >= 3 else int(np.ceil(4 / slot))
            painter.setBrush(QColor(style.theme.faint))
            painter.drawRects(
                [
                    QRect(lefts[n] + (widths[n] - mark) // 2, zero - mark, mark, mark)
                    for n in which[::stride]
                ]
            )
            continue
        colour = shades[state]
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
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _paint_zero(painter: QPainter, picture: _RowPicture) -> None:
    plot = picture.layout.plot
    y = round(height_of(picture.bars, plot, 0.0)) + 0.5
    painter.setPen(QPen(QColor(picture.layout.style.theme.grid), 1))
    painter.drawLine(QPointF(plot.x(), y), QPointF(plot.right(), y))


def key_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the tokens of the keys where each can have its name; else none."""
    tokens = snapshot.program.workload.tokens
    return tokens if len(tokens) == len(snapshot.k) <= _MOST_NAMES else ()


def _paint_names(painter: QPainter, picture: _RowPicture) -> None:
    """Write each key's token between its score and its weight."""
    layout, snapshot = picture.layout, picture.snapshot
    place, theme, font = layout.names, layout.style.theme, layout.style.text_font(11)
    names = key_names(snapshot) if not place.isEmpty() else ()
    slot = place.width() / max(len(names), 1)
    for key, name in enumerate(names):
        colour = theme.text if key in snapshot.visit.cols else theme.muted
        if not layout.upright:
            box = QRectF(place.x() + key * slot, place.y(), slot, place.height())
            draw_text(painter, box, name, font, colour, CENTRE)
            continue
        box = QRectF(place.x() + (key - 0.08) * slot, place.y(), slot, place.height())
        draw_upright(painter, box, name, font, colour, RIGHT)


def _paint_axis(painter: QPainter, bars: ScoreBars, layout: SoftmaxLayout) -> None:
    style, axis, plot = layout.style, layout.axis, layout.plot
    if axis.isEmpty():
        return
    font = style.code_font(11)
    height = style.px(13)
    zero = height_of(bars, plot, 0.0)
    for value in {0.0, bars.high, bars.low}:
        y = height_of(bars, plot, value)
        if value and abs(y - zero) < height:
            continue
        place = QRectF(axis.x(), y - height / 2, axis.width(), height)
        precise = (number_text(value, 1),) if abs(value) < 100 else ()
        rough = f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("-", "−")
        choices = (*precise, number_text(value, 0), rough, "")  # none is cut
        text = first_that_fits(choices, axis.width(), font) if value else "0"
        if text:
            draw_text(painter, place, text, font, style.theme.muted, RIGHT)


def _paint_maximum(painter: QPainter, picture: _RowPicture, phase: float) -> None:
    """Paint the running maximum, if there is one, after a share `phase` of its jump.

    Its number stands in the gutter; without a gutter, above its line, with the old number below.
    """
    bars, layout, maximum = picture.bars, picture.layout, picture.maximum
    if maximum is None:
        return
    plot, theme, px = layout.plot, layout.style.theme, layout.style.px
    colour, line, high = theme.tensors["m"], px(13), px(8)
    jumps, named = picture.snapshot.op.makes_maximum, layout.gutter.isEmpty()
    if not np.isfinite(maximum.now):
        y = plot.bottom() - (high if named else line / 2)
        _paint_number(painter, "m", maximum.now, y, colour, layout)
        return
    if jumps:
        paint_excess(painter, layout, bars, maximum, phase)
    y = label_y = height_of(bars, plot, maximum.now)
    if maximum.old is not None:
        y_old, name = height_of(bars, plot, maximum.old), r"m_{\mathrm{old}}"
        faded = mixed(theme.panel, colour, 0.8).name()
        painter.setPen(layout.style.pen(faded, 1.2, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(plot.x(), y_old), QPointF(plot.right(), y_old))
        if named:
            free = _free_places(bars, plot, y_old + 2 * high, px(112))
            if free and y_old + 2 * high < plot.bottom():
                at = y_old + high
                _paint_number(painter, name, maximum.old, at, faded, layout, free[0][0] + px(3))
        else:
            at = min(max(y_old, y + line), layout.gutter.bottom() - line / 2)
            label_y = min(y, at - line)
            _paint_number(painter, name, maximum.old, at, faded, layout)
        if jumps:
            y = y_old + (y - y_old) * phase
    painter.setPen(layout.style.pen(colour, 1.6))
    painter.drawLine(QPointF(plot.x(), y), QPointF(plot.right(), y))
    end = None
    if named:
        free = _free_places(bars, plot, label_y, px(64))
        end, label_y = free[-1][1] if free else None, y - high
    _paint_number(painter, "m", maximum.now, label_y, colour, layout, end=end)


def _free_places(
    bars: ScoreBars, plot: QRectF, low: float, wide: float
) -> list[tuple[float, float]]:
    """Return both ends of places as wide as a label, above bars that end below `low`."""
    slot = plot.width() / len(bars.values)
    values = np.where(bars.states == KeyState.HIDDEN, bars.low, bars.values.astype(np.float64))
    tops = plot.bottom() - (values - bars.low) / (bars.high - bars.low) * plot.height()
    need, run, out = max(1, int(np.ceil(wide / slot))), 0, []
    for n, top in enumerate(np.nan_to_num(tops, nan=plot.bottom()).tolist(), start=1):
        run = run + 1 if top >= low - 0.5 else 0
        if run >= need:
            out.append((plot.x() + (n - need) * slot, plot.x() + n * slot))
    return out


def _paint_number(
    painter: QPainter, latex: str, value: float, y: float, colour: str, layout: SoftmaxLayout,
    left: float | None = None, end: float | None = None,
) -> None:  # fmt: skip
    """Write ``m = 1.911`` in the gutter, its middle at height `y`; without a gutter ``m 1.911``.

    left, end: where it begins or ends; by default it ends where the bars end.
    """
    style, plot, gutter = layout.style, layout.plot, layout.gutter
    name, among = formula(latex, round(style.px(12))), gutter.isEmpty()
    font = style.code_font(11, bold=among and left is None)
    start, text = name.width + style.px(5), number_text(value, 3)
    x, wide = gutter.x(), gutter.width() - start
    if among:
        wide = start + text_width(font, text)
        x = (plot.right() if end is None else end) - wide if left is None else left
    else:
        numbers = [number_text(value, digits) for digits in (3, 2, 1, 0)]
        text = first_that_fits((*(f"= {each}" for each in numbers), *numbers), wide, font)
    name.draw(painter, x, y + style.px(3.5), colour)
    place = QRectF(x + start, y - style.px(7), wide, style.px(14))
    draw_text(painter, place, text, font, colour, LEFT)


def _paint_sum(painter: QPainter, picture: _RowPicture, summed: SumBar | None) -> None:
    """Paint the running sum under its line: a part for each tile, the current one bright."""
    places = zip(picture.lines, picture.layout.lines, strict=True)
    place = next((place for line, place in places if line.sums), None)
    if place is None or summed is None:
        return
    style = picture.layout.style
    theme, high, inset = style.theme, max(2, round(style.px(4))), round(style.px(6))
    track = QRect(
        round(place.x()) + inset, round(place.bottom()) - high - round(style.px(1)),
        round(place.width()) - 2 * inset, high,
    )  # fmt: skip
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.fillRect(track, mixed(theme.panel, theme.muted, 0.2))
    shades = mixed(theme.panel, theme.tensor("l"), 0.5), mixed(theme.panel, theme.tensor("l"), 0.7)
    ends = np.rint(track.width() / summed.most * np.cumsum(summed.parts)).astype(int)
    begins, last = np.append(0, ends[:-1]), len(ends) - 1
    for n in np.flatnonzero(ends > begins).tolist():  # many parts of long rows are not a pixel wide
        left, right = int(begins[n]), int(ends[n])
        bright = n == last and picture.snapshot.made("l")
        colour = theme.tensor("l") if bright else shades[n % 2]
        painter.fillRect(QRect(track.x() + left, track.y(), right - left, high), colour)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


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
    if snapshot.joined is not None:
        return _split_words(len(snapshot.joined), len(report.scores))
    cols, visit = snapshot.visit.cols, snapshot.visit
    hidden = row_scores(snapshot, report) == -np.inf
    current = np.zeros_like(hidden)
    current[cols.start : cols.stop] = True
    own = np.arange(len(hidden)) >= own_begin(snapshot)
    here = "the whole row" if snapshot.launch.whole_rows else f"tile j = {visit.j}"
    state = KeyState.CURRENT if is_worked_on(snapshot) else KeyState.LATER
    if snapshot.launch.whole_rows and report.seen.any() and state == KeyState.LATER:
        state = KeyState.SEEN
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


def _split_words(splits: int, keys: int) -> tuple[LegendWord, ...]:
    """Return the words under the bars of splits, which are equally wide."""
    if splits > _MOST_NAMED:
        words = plural(splits, "split")
        return (LegendWord(words, words, KeyState.CURRENT, (0, keys)),)
    return tuple(
        LegendWord(f"split {n}", str(n), KeyState.CURRENT,
                   (round(n * keys / splits), round((n + 1) * keys / splits)))
        for n in range(splits)
    )  # fmt: skip


def _paint_legend(painter: QPainter, picture: _RowPicture) -> None:
    layout, report, cols = picture.layout, picture.report, picture.snapshot.visit.cols
    style, plot, place = layout.style, layout.plot, layout.legend
    px, theme, font = style.px, style.theme, style.text_font(11)
    words = legend_words(picture.snapshot, report)
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
        is_current = word.keys == (cols.start, cols.stop)
        draw_text(painter, at, text, font, theme.tensors["S"] if is_current else theme.muted, LEFT)
