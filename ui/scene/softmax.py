"""Online softmax of one row: its scores, the running maximum, and the update in real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.dtypes import F32
from simulator.row_report import RowReport
from simulator.snapshot import Snapshot
from ui.scene.draw import CENTRE, LEFT, RIGHT, card, draw_text, mixed, text_width
from ui.scene.formula import first_that_fits, fitting, formula
from ui.theme import Style
from ui.units import count_text, number_text

MIN_SIZE = QSizeF(300, 230)
NOT_YET = "·"
_EXPRESSION = 22
"""Letters before the equals sign of a line of scalars, so that the signs stand in a column."""


# --- the update, in numbers ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """One line of the update.

    Attributes
    ----------
    latex : str
        The formula.
    texts : tuple of str
        It with this row's numbers, longest first; `NOT_YET` while they do not exist.
    reached, current : bool
        Whether it has been done in this visit; whether the current op does it.
    tall : bool
        Whether the formula needs more height than a line of text.
    """

    latex: str
    texts: tuple[str, ...]
    reached: bool
    current: bool
    tall: bool = False


def softmax_lines(snapshot: Snapshot, report: RowReport) -> tuple[UpdateLine, ...]:
    """Return the lines of the algorithm's update with the row's numbers at the cursor."""
    make = {"flash1": _flash1_lines, "flash2": _flash2_lines, "naive": _naive_lines}
    lines = make[snapshot.program.workload.algorithm](
        snapshot, report.row - snapshot.visit.rows.start
    )
    return tuple(lines)


def _line(
    snapshot: Snapshot, ops: str | tuple[str, ...], latex: str, *texts: str, tall: bool = False
) -> UpdateLine:
    """Return a line that the first of `ops` fills and all of them work on."""
    names = (ops,) if isinstance(ops, str) else ops
    reached = names[0] in snapshot.done
    current = snapshot.op.name in names
    return UpdateLine(latex, texts if reached else (NOT_YET,), reached, current, tall)


def _equation(expression: str, result: float) -> tuple[str, str]:
    value = number_text(result)
    return f"{expression:<{_EXPRESSION}} = {value:>6}", f"= {value:>6}"


def _minus(value: float) -> str:
    """Return a number to be taken away, in brackets where it is negative."""
    return _bracketed(number_text(value))


def _bracketed(text: str) -> str:
    return f"({text})" if text.startswith("−") else text


def _vector(values: F32, count: int) -> str:
    """Return the first `count` components of a row of numbers."""
    shown = " ".join(f"{number_text(float(x), 2):>5}" for x in values[:count])
    return f"[{shown} …]" if len(values) > count else f"[{shown}]"


def _vectors(values: F32, before: str = "") -> tuple[str, ...]:
    return tuple(before + _vector(values, count) for count in (4, 3, 2, 1))


def _sum(old: str, prev: F32, new: str, product: F32, total: F32, done: bool) -> tuple[str, ...]:
    """Return ``old × prev + new × product = total``; only its first term until `done`."""
    out = []
    for count in (3, 2, 1):
        text = f"{old}{_vector(prev, count)}"
        if done:
            text += f" + {new}{_vector(product, count)} = {_vector(total, count)}"
        out.append(text)
    first = f"{old}{_bracketed(number_text(float(prev[0]), 2))}"
    if done:
        added, result = (number_text(float(x[0]), 2) for x in (product, total))
        first += f" + {new}{_bracketed(added)} = {result}"
    return (*out, f"{first}, …", f"{_vector(total if done else prev, 2)}", "…")


def _product(snapshot: Snapshot, r: int) -> F32:
    """Return the row's first components of ``P V`` of this tile."""
    cols = snapshot.visit.cols
    return np.asarray(snapshot.tile.p[r] @ snapshot.v[cols.start : cols.stop])


def _flash2_lines(snapshot: Snapshot, r: int) -> list[UpdateLine]:
    t = snapshot.tile
    old, top, tile_top = (float(x[r]) for x in (t.m_prev, t.m, t.m_tile))
    alpha, total, before, added = (float(x[r]) for x in (t.alpha, t.l, t.l_prev, t.l_tile))
    shift = f"exp({number_text(old)} − {_minus(top)})" if top > -np.inf else "no key seen"
    grow = f"{number_text(alpha)} × {number_text(before)} + {number_text(added)}"
    lines = [
        _line(
            snapshot, "row max", r"m \leftarrow \max(m_{\mathrm{old}},\, \max S)",
            *_equation(f"max({number_text(old)}, {number_text(tile_top)})", top),
        ),
        _line(
            snapshot, "row max", r"\alpha \leftarrow \exp(m_{\mathrm{old}} - m)",
            *_equation(shift, alpha),
        ),
        _line(snapshot, "exponentials", r"P \leftarrow \exp(S - m)", *_vectors(t.p[r])),
        _line(
            snapshot, "row sum", r"\ell \leftarrow \alpha\,\ell + \Sigma P",
            *_equation(grow, total),
        ),
    ]  # fmt: skip
    if "normalise" in snapshot.done:
        lines.append(_normalised(snapshot, r, r"O \leftarrow O / \ell", t.o[r], snapshot.o[r]))
        return lines
    done = "accumulate" in snapshot.done
    texts = _sum(
        f"{number_text(alpha)} × ", t.o_prev[r], "", _product(snapshot, r), t.o[r], done
    )
    latex = r"O \leftarrow \alpha\,O + P V"
    return [*lines, _line(snapshot, ("rescale", "accumulate"), latex, *texts)]


def _normalised(
    snapshot: Snapshot, r: int, latex: str, values: F32, divided: F32
) -> UpdateLine:
    """Return the line that divides by l."""
    by = number_text(float(snapshot.tile.l[r]))
    texts = [f"{_vector(values, n)} / {by} = {_vector(divided, n)}" for n in (3, 2, 1)]
    return _line(snapshot, "normalise", latex, *texts, _vector(divided, 2), "…")


def _flash1_lines(snapshot: Snapshot, r: int) -> list[UpdateLine]:
    t = snapshot.tile
    old, top, tile_top = (float(x[r]) for x in (t.m_prev, t.m, t.m_tile))
    alpha, beta = float(t.alpha[r]), float(t.beta[r])
    total, before, added = (float(x[r]) for x in (t.l, t.l_prev, t.l_tile))
    factor = float(snapshot.rescale_factor[r])
    share = beta / total if total > 0 else 0.0
    scores = np.where(t.seen[r], t.s[r], np.float32(-np.inf))
    grow = (
        f"{number_text(alpha)} × {number_text(before)}"
        f" + {number_text(beta)} × {number_text(added)}"
    )
    new = r"m_{\mathrm{new}}"
    done = "accumulate" in snapshot.done
    return [
        _line(
            snapshot, "row max", r"\tilde{m} \leftarrow \max S",
            *_equation(f"max {_vector(scores, 2)}", tile_top),
        ),
        _line(
            snapshot, "exponentials", r"\tilde{P} \leftarrow \exp(S - \tilde{m})",
            *_vectors(t.p[r]),
        ),
        _line(
            snapshot, "row sum", r"\tilde{\ell} \leftarrow \Sigma \tilde{P}",
            *_equation(f"Σ {_vector(t.p[r], 2)}", added),
        ),
        _line(
            snapshot, "combine", new + r" \leftarrow \max(m, \tilde{m})",
            *_equation(f"max({number_text(old)}, {number_text(tile_top)})", top),
        ),
        _line(
            snapshot, "combine",
            rf"\alpha, \beta \leftarrow e^{{m - {new}}}\!,\, e^{{\tilde{{m}} - {new}}}",
            f"{number_text(alpha)}, {number_text(beta)}",
        ),
        _line(
            snapshot, "combine",
            r"\ell_{\mathrm{new}} \leftarrow \alpha\,\ell + \beta\,\tilde{\ell}",
            *_equation(grow, total),
        ),
        _line(
            snapshot, ("rescale", "accumulate"),
            r"O \leftarrow \tfrac{\alpha\ell}{\ell_{\mathrm{new}}} O"
            r" + \tfrac{\beta}{\ell_{\mathrm{new}}} \tilde{P} V",
            *_sum(
                f"{number_text(factor)} × ", t.o_prev[r],
                f"{number_text(share)} × ", _product(snapshot, r), t.o[r], done,
            ),
            tall=True,
        ),
    ]  # fmt: skip


def _naive_lines(snapshot: Snapshot, r: int) -> list[UpdateLine]:
    t = snapshot.tile
    here = snapshot.visit.launch
    lines: list[UpdateLine] = []

    def add(launch: int, line: UpdateLine) -> None:
        if launch != here:
            name = snapshot.program.launches[launch].name
            line = UpdateLine(line.latex, (f"in launch {launch + 1}, {name}",), False, False)
        lines.append(line)

    scores = snapshot.scores[r] if snapshot.scores is not None else t.s[r]
    top, total = float(t.m[r]), float(t.l[r])
    add(0, _line(snapshot, ("scores", "mask"), r"S \leftarrow Q K^{\top}\!\cdot \mathrm{scale}",
                 *_vectors(scores)))  # fmt: skip
    add(1, _line(snapshot, "row max", r"m \leftarrow \max S",
                 *_equation(f"max {_vector(scores, 2)}", top)))  # fmt: skip
    add(1, _line(snapshot, "exponentials", r"P \leftarrow \exp(S - m)", *_vectors(t.p[r])))
    add(1, _line(snapshot, "row sum", r"\ell \leftarrow \Sigma P",
                 *_equation(f"Σ {_vector(t.p[r], 2)}", total)))  # fmt: skip
    weights = snapshot.weights[r] if snapshot.weights is not None else t.p[r]
    add(1, _normalised(snapshot, r, r"P \leftarrow P / \ell", t.p[r], weights))
    product = _product(snapshot, r)
    add(2, _line(snapshot, "accumulate", r"O \leftarrow O + P V",
                 *_sum("", t.o_prev[r], "", product, t.o[r], True)))  # fmt: skip
    return lines


# --- the bars --------------------------------------------------------------------------------


class KeyState(IntEnum):
    """What a bar stands for; where several keys share one, the highest of them counts."""

    HIDDEN = 0
    LATER = 1
    SEEN = 2
    CURRENT = 3


@dataclass(frozen=True, slots=True)
class Bars:
    """The row's scores, one for each key or for as many keys as share a bar.

    Attributes
    ----------
    values : ndarray
        (bars,) float32, largest score of the bar's keys, -inf where all are hidden.
    states : ndarray
        (bars,) uint8, `KeyState`.
    keys_per_bar : int
        How many keys share a bar.
    low, high : float
        Smallest and largest score, and 0.
    """

    values: F32
    states: NDArray[np.uint8]
    keys_per_bar: int
    low: float
    high: float


def score_bars(snapshot: Snapshot, report: RowReport, most: int) -> Bars:
    """Return at most `most` bars."""
    states = np.full(len(report.scores), KeyState.LATER, dtype=np.uint8)
    states[report.seen] = KeyState.SEEN
    cols = snapshot.visit.cols
    if _worked_on(snapshot):
        states[cols.start : cols.stop] = KeyState.CURRENT
    hidden = report.scores == -np.inf
    states[hidden] = KeyState.HIDDEN
    finite = report.scores[~hidden]
    low = min(0.0, float(finite.min())) if len(finite) else 0.0
    high = max(0.0, float(finite.max())) if len(finite) else 0.0
    per = -(-len(states) // max(most, 1))
    starts = np.arange(0, len(states), per)
    return Bars(
        np.maximum.reduceat(report.scores, starts),
        np.maximum.reduceat(states, starts),
        per,
        low,
        high if high > low else low + 1.0,
    )


def _worked_on(snapshot: Snapshot) -> bool:
    """Whether the current tile has been turned into scores or weights."""
    return snapshot.scores is not None or snapshot.weights is not None


@dataclass(frozen=True, slots=True)
class Maximum:
    """The running maximum of the row: now, before this visit, and where the line is drawn."""

    now: float
    old: float | None


def running_maximum(snapshot: Snapshot, report: RowReport) -> Maximum | None:
    """Return the row's maximum at the cursor; None while there is none on chip.

    `old` is given once the visit has changed it, if there was one before.
    """
    moved = bool({"row max", "combine"} & snapshot.done)
    if not moved and all(tile.name != "m" for tile in snapshot.on_chip):
        return None
    r = report.row - snapshot.visit.rows.start
    now, before = float(snapshot.m[r]), float(snapshot.tile.m_prev[r])
    return Maximum(now, before if now != before and before > -np.inf else None)


# --- the picture -----------------------------------------------------------------------------


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
    weights = [1.4 if line.tall else 1.0 for line in lines]
    height = min(max(0.40 * rect.height() / sum(weights), px(14)), px(26))
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
    phase: float = 1.0,
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
    phase : float
        How far the current op has come, 0 to 1: the maximum jumps, new bars rise.
    """
    lines = softmax_lines(snapshot, report)
    layout = softmax_layout(rect, style, lines)
    slots = max(int(layout.plot.width() / layout.style.px(2)), 1)
    bars = score_bars(snapshot, report, slots)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_title(painter, snapshot, report, bars, layout)
    if np.all(bars.states == KeyState.HIDDEN):
        words = f"row {report.row} sees no key: O = 0, lse = −∞"
        font = layout.style.text_font(12)
        draw_text(painter, layout.plot, words, font, layout.style.theme.muted, CENTRE)
    else:
        _paint_bars(painter, snapshot, bars, layout, phase)
        _paint_axis(painter, bars, layout)
        maximum = running_maximum(snapshot, report)
        if maximum is not None:
            _paint_maximum(painter, snapshot, maximum, bars, layout, phase)
        _paint_legend(painter, snapshot, report, layout)
    _paint_lines(painter, lines, layout)
    _paint_footer(painter, snapshot, report, layout)
    painter.restore()


def _paint_title(
    painter: QPainter, snapshot: Snapshot, report: RowReport, bars: Bars, layout: SoftmaxLayout
) -> None:
    style, w = layout.style, snapshot.program.workload
    token = w.query_token(report.row)
    words = f"row {report.row}" + (f" “{token}”" if token else "")
    font, small = style.text_font(12, bold=True), style.text_font(10)
    width = min(text_width(font, words), layout.title.width() * 0.6)
    draw_text(painter, QRectF(layout.title.topLeft(), QSizeF(width + 1, layout.title.height())),
              words, font, style.theme.text)  # fmt: skip
    each = f"max of {count_text(bars.keys_per_bar)} keys each" if bars.keys_per_bar > 1 else ""
    room = layout.title.width() - width - style.px(12)
    notes = ("scores of this row" + (f", {each}" if each else ""), each or "scores")
    note = first_that_fits(notes, room, lambda t: text_width(small, t))
    draw_text(painter, layout.title, note, small, style.theme.muted, RIGHT)


def _height_of(bars: Bars, plot: QRectF, value: float) -> float:
    """Return at what height in the picture a score stands."""
    return plot.bottom() - (value - bars.low) / (bars.high - bars.low) * plot.height()


def _shades(style: Style) -> dict[KeyState, QColor]:
    theme = style.theme
    colour = theme.tensor("S")
    return {
        KeyState.CURRENT: colour,
        KeyState.SEEN: mixed(theme.panel, colour, 0.5),
        KeyState.LATER: mixed(theme.panel, theme.faint, 0.55),
    }


def _paint_bars(
    painter: QPainter, snapshot: Snapshot, bars: Bars, layout: SoftmaxLayout, phase: float
) -> None:
    style, plot = layout.style, layout.plot
    zero = round(_height_of(bars, plot, 0.0))
    edges = plot.x() + np.arange(len(bars.values) + 1) * (plot.width() / len(bars.values))
    slot = plot.width() / len(bars.values)
    lefts = np.round(edges[:-1])
    gap = 0 if slot < 3 else max(1, round(slot * 0.16))
    widths = np.maximum(np.round(edges[1:]) - lefts - gap, 1)
    visible = bars.states != KeyState.HIDDEN
    grown = np.where(visible, bars.values, 0)
    if snapshot.op.name == "scores":
        grown = np.where(bars.states == KeyState.CURRENT, grown * phase, grown)
    tips = [_height_of(bars, plot, value) for value in grown.tolist()]
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(Qt.PenStyle.NoPen)
    for state, colour in _shades(style).items():
        painter.setBrush(colour)
        which = np.flatnonzero(bars.states == state).tolist()
        for n in which:
            top, height = min(zero, tips[n]), max(abs(tips[n] - zero), 1.0)
            painter.drawRect(QRectF(lefts[n], top, widths[n], height))
    painter.setBrush(QColor(style.theme.faint))
    mark = max(1.0, round(style.px(2)))
    hidden = np.flatnonzero(~visible).tolist()
    if slot < 3:  # a mark each would be a solid line
        hidden = hidden[:: int(np.ceil(4 / slot))]
    for n in hidden:
        painter.drawRect(QRectF(lefts[n] + (widths[n] - mark) / 2, zero - mark, mark, mark))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _paint_axis(painter: QPainter, bars: Bars, layout: SoftmaxLayout) -> None:
    style, axis, plot = layout.style, layout.axis, layout.plot
    font = style.code_font(9)
    height = style.px(11)
    zero = _height_of(bars, plot, 0.0)
    painter.setPen(QPen(QColor(style.theme.grid), 1))
    painter.drawLine(QPointF(plot.x(), round(zero) + 0.5), QPointF(plot.right(), round(zero) + 0.5))
    for value in (0.0, bars.high, bars.low):
        y = _height_of(bars, plot, value)
        if value and abs(y - zero) < height:
            continue
        digits = 0 if abs(value) >= 100 else 1
        place = QRectF(axis.x(), y - height / 2, axis.width(), height)
        text = number_text(value, digits) if value else "0"
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
    jumps = snapshot.op.name == ("combine" if "combine" in snapshot.done else "row max")
    if maximum.now == -np.inf:
        y = plot.bottom() - label_height / 2
        _paint_statistic(painter, "m", maximum.now, y, colour, layout)
        return
    y = y_now = _height_of(bars, plot, maximum.now)
    if maximum.old is not None:
        y_old = _height_of(bars, plot, maximum.old)
        if jumps:
            y = y_old + (y_now - y_old) * phase
        faded = mixed(theme.panel, colour, 0.65)
        painter.setPen(QPen(faded, px(1.2), Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(plot.x(), y_old), QPointF(plot.right(), y_old))
        lowest = layout.gutter.bottom() - label_height / 2
        label_y = min(max(y_old, y_now + label_height), lowest)
        name = r"m_{\mathrm{old}}"
        _paint_statistic(painter, name, maximum.old, label_y, faded.name(), layout)
    painter.setPen(QPen(QColor(colour), px(1.6)))
    painter.drawLine(QPointF(plot.x(), y), QPointF(plot.right(), y))
    _paint_statistic(painter, "m", maximum.now, y, colour, layout)


def _paint_statistic(
    painter: QPainter, latex: str, value: float, y: float, colour: str, layout: SoftmaxLayout
) -> None:
    """Write ``m = 1.911`` in the gutter, its middle at height `y`."""
    style, gutter = layout.style, layout.gutter
    name = formula(latex, round(style.px(12)))
    name.draw(painter, gutter.x(), y + style.px(3.5), colour)
    x = gutter.x() + name.width + style.px(2)
    place = QRectF(x, y - style.px(7), gutter.right() - x, style.px(14))
    draw_text(painter, place, f"= {number_text(value)}", style.code_font(11), colour, LEFT)


# --- words under the bars --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LegendWord:
    """A word under the bars and the keys that it is about; no state: hidden ones."""

    text: str
    short: str
    state: KeyState
    keys: tuple[int, int]


def legend_words(snapshot: Snapshot, report: RowReport) -> tuple[LegendWord, ...]:
    """Return the words under the bars, in the order of their keys."""
    cols, visit = snapshot.visit.cols, snapshot.visit
    hidden = report.scores == -np.inf
    current = np.zeros_like(hidden)
    current[cols.start : cols.stop] = True
    here = "the whole row" if snapshot.in_softmax_launch else f"tile j = {visit.j}"
    state = KeyState.CURRENT if _worked_on(snapshot) else KeyState.LATER
    words = [LegendWord(here, here, state, (cols.start, cols.stop))]
    for text, short, shade, which in (
        ("seen", "seen", KeyState.SEEN, report.seen & ~hidden & ~current),
        ("not loaded yet", "later", KeyState.LATER, ~report.seen & ~hidden & ~current),
        ("hidden by the mask", "hidden", KeyState.HIDDEN, hidden & ~current),
    ):
        at = np.flatnonzero(which)
        if len(at):
            words.append(LegendWord(text, short, shade, (int(at[0]), int(at[-1]) + 1)))
    return tuple(sorted(words, key=lambda word: word.keys))


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
    font = style.text_font(10)
    words = legend_words(snapshot, report)
    swatch, gap = px(11), px(12)
    texts = [word.text for word in words]
    if sum(text_width(font, t) + swatch + gap for t in texts) - gap > place.width():
        texts = [word.short for word in words]
    widths = [text_width(font, text) + swatch + 1 for text in texts]
    per_key = plot.width() / len(report.scores)
    centres = [plot.x() + sum(word.keys) / 2 * per_key for word in words]
    starts = legend_places(widths, centres, place.x(), place.right(), gap)
    shades = _shades(style)
    for word, text, x, width in zip(words, texts, starts, widths, strict=True):
        colour = shades.get(word.state, QColor(theme.faint))
        size = px(7) if word.state else px(2)
        box = QRectF(x + (px(7) - size) / 2, place.center().y() - size / 2, size, size)
        painter.fillRect(box, colour)
        at = QRectF(x + swatch, place.y(), width - swatch, place.height())
        is_current = word.keys == (snapshot.visit.cols.start, snapshot.visit.cols.stop)
        draw_text(painter, at, text, font, theme.tensors["S"] if is_current else theme.muted, LEFT)


# --- lines and error -------------------------------------------------------------------------


def _paint_lines(
    painter: QPainter, lines: Sequence[UpdateLine], layout: SoftmaxLayout
) -> None:
    style = layout.style
    px, theme = style.px, style.theme
    letters = round(px(12))
    font = style.code_font(11)
    inset = px(6)
    widest = max(formula(line.latex, letters).width for line in lines)
    x = layout.lines[0].x() + inset + widest + px(12)
    _paint_frames(painter, lines, layout)
    for line, place in zip(lines, layout.lines, strict=True):
        lit = theme.text if line.current else theme.muted if line.reached else theme.faint
        picture = formula(line.latex, letters)
        middle = place.center().y()
        ink = lit if line.reached else mixed(theme.panel, theme.muted, 0.6)
        picture.draw(painter, place.x() + inset, middle + px(4), ink)
        room = place.right() - inset - x
        text = first_that_fits(line.texts, room, lambda t: text_width(font, t))
        draw_text(painter, QRectF(x, place.y(), room, place.height()), text, font, lit)


def _paint_frames(
    painter: QPainter, lines: Sequence[UpdateLine], layout: SoftmaxLayout
) -> None:
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
    if _between_old_and_new(snapshot):
        return ("error against float64: — (O is being updated)", "error: — (O in work)", "error: —")
    if report.error is None or report.ulp is None:
        return ("error against float64: — (no output yet)", "error: — (no output yet)", "error: —")
    figures = f"{number_text(report.error)} ({report.ulp:.1f} ulp)"
    return (f"error against float64 so far {figures}", f"error so far {figures}", figures)


def _between_old_and_new(snapshot: Snapshot) -> bool:
    """Whether l or the scale of O is already the new one while O lacks this tile."""
    first = "rescale" if snapshot.program.workload.algorithm == "flash1" else "row sum"
    names = {op.name for op in snapshot.ops}
    return "accumulate" in names - snapshot.done and first in snapshot.done


def rescale_words(snapshot: Snapshot, report: RowReport) -> str:
    """Return what this visit's rescale multiplies O by, in words."""
    names = {op.name for op in snapshot.ops}
    if "rescale" not in names:
        return "no rescale"
    known = "combine" if "combine" in names else "row max"
    name = "αℓ / ℓ new" if "combine" in names else "α"
    if known not in snapshot.done:
        return f"rescale {name} = —"
    factor = float(snapshot.rescale_factor[report.row - snapshot.visit.rows.start])
    return f"rescale {name} = {number_text(factor)}"


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
    left = first_that_fits(error_words(snapshot, report), room, lambda t: text_width(font, t))
    known = report.error is not None and not _between_old_and_new(snapshot)
    colour = style.theme.good if known else style.theme.muted
    draw_text(painter, QRectF(row.x(), row.y(), room, row.height()), left, font, colour)
    draw_text(painter, row, right, font, style.theme.muted, RIGHT)
