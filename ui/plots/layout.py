"""Where everything of a plot stands: its axes with their ticks, and every label.

Ours is what pyqtgraph cannot do. It draws the ticks, but they are chosen here: its own are round
in tens alone, which bytes and sizes are not, and too few on a logarithmic axis of less than a
decade. It has a legend, but no labels at the ends of curves, beside marks or on lines that keep
off one another and off the curves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt

from ui.look.draw import CENTRE, LEFT, RIGHT, text_width, wrapped
from ui.look.names import fitting
from ui.look.theme import Style
from ui.plots.labels import Wanted, place_labels, spread
from ui.plots.model import F64, Axis, Curve, HeatMap, Level, PlotModel, Ticks

MIN_SIZE = QSizeF(330, 130)
"""Below this the text shrinks."""
_BAR = 12
"""Width of the colour bar."""
Range = tuple[float, float]
_Look = Callable[[tuple[QSizeF, ...]], Wanted]
"""Makes a label that looks for its place from the sizes of its wordings."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Which places of the axes are shown where.

    Attributes
    ----------
    plot : QRectF
        Where the curves are.
    x, y : tuple of float
        Places at its left and right, at its bottom and top.
    """

    plot: QRectF
    x: Range
    y: Range

    def point(self, x: float, y: float) -> QPointF:
        """Return where a pair of places is drawn."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return QPointF(
            self.plot.left() + across * self.plot.width(),
            self.plot.bottom() - up * self.plot.height(),
        )

    def places(self, point: QPointF) -> tuple[float, float]:
        """Return the pair of places that is drawn at a point."""
        across = (point.x() - self.plot.left()) / self.plot.width()
        up = (self.plot.bottom() - point.y()) / self.plot.height()
        return (
            self.x[0] + across * (self.x[1] - self.x[0]),
            self.y[0] + up * (self.y[1] - self.y[0]),
        )

    def shows(self, point: QPointF) -> bool:
        """Return whether a point lies in the plot, its edge included."""
        return self.plot.adjusted(-0.5, -0.5, 0.5, 0.5).contains(point)


@dataclass(frozen=True, slots=True)
class Label:
    """Words that have found their place.

    Attributes
    ----------
    box : QRectF
        Where.
    text : str
        What.
    role : str
        Colour of what they name.
    anchor : QPointF or None
        Where a line leads; None: they stand beside it.
    curve : Curve or None
        Whose sample stands before them.
    align : AlignmentFlag
        Where in the box they stand.
    bold : bool
        Whether they are a heading.
    """

    box: QRectF
    text: str
    role: str
    anchor: QPointF | None = None
    curve: Curve | None = None
    align: Qt.AlignmentFlag = CENTRE
    bold: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PlotLayout:
    """Where everything is.

    Attributes
    ----------
    style : Style
        At the text scale that suits the place.
    frame : Frame
        The plot itself.
    x_ticks, y_ticks, bar_ticks : tuple
        (place, words) of each, of the axes and of the colour bar.
    words : tuple of Label
        Titles, and the lines of the note.
    labels : tuple of Label
        Of curves, marks and lines.
    bar : QRectF or None
        The colour bar.
    """

    style: Style
    frame: Frame
    x_ticks: Ticks
    y_ticks: Ticks
    bar_ticks: Ticks
    words: tuple[Label, ...]
    labels: tuple[Label, ...]
    bar: QRectF | None


def line_height(style: Style) -> float:
    """Return the height of a line of words."""
    return style.px(14)


def plot_layout(model: PlotModel, style: Style, rect: QRectF, x: Range, y: Range) -> PlotLayout:
    """Return where everything of a plot is.

    Parameters
    ----------
    model : PlotModel
        What is shown.
    style : Style
        As the user wants it.
    rect : QRectF
        Where to draw.
    x, y : tuple of float
        Places of the axes that are shown.
    """
    style = fitting(style, rect, MIN_SIZE)
    px, line, heat = style.px, line_height(style), model.heat
    wide = partial(text_width, style.text_font(11))
    note = _note(model.note, style, rect)
    top = rect.top() + 1.5 * line
    high = max(rect.bottom() - (len(note) + 2) * line - px(6) - top, 20)

    def upright(axis: Axis, ends: Range) -> tuple[Ticks, float]:
        """Return the ticks of an upright axis, and how wide their words are."""
        ticks = _ticks(axis, ends, high, lambda _: 1.7 * line)
        return ticks, max((wide(text) for _, text in ticks), default=0)

    y_ticks, words = upright(model.y, y)
    left, beside, long = words + px(8), px(10), True
    bar_ticks: Ticks = ()
    if heat is not None:
        bar_ticks, words = upright(heat.axis, heat.ends)
        beside = words + px(4 + _BAR + 8)
    elif model.curves:
        widths = [_end_width(model.curves, style, long=long) for long in (True, False)]
        long = widths[0] < 0.3 * rect.width()
        beside += widths[0 if long else 1]
    plot = QRectF(rect.left() + left, top, max(rect.width() - left - beside, 20), high)
    frame = Frame(plot, x, y)
    x_ticks = _ticks(model.x, x, plot.width(), lambda text: wide(text) + px(9))
    half = min(wide(model.x.title), rect.width()) / 2
    middle = min(max(plot.center().x(), rect.left() + half), rect.right() - half)
    under = QRectF(middle - half, plot.bottom() + px(4) + line, 2 * half + 1, line)
    heads = [Label(under, model.x.title, "text")]
    head, bar = QRectF(rect.left(), rect.top(), rect.width(), line), None
    if heat is not None:
        bar = QRectF(plot.right() + px(8), top, px(_BAR), high)
        words = min(wide(heat.title) + 1, rect.width() / 2)
        place = head.adjusted(head.width() - words, 0, 0, 0)
        heads.append(Label(place, heat.title, "text", align=RIGHT))
        head.adjust(0, 0, -words - px(8), 0)
    heads.append(Label(head, model.y.title, "text", align=LEFT, bold=True))
    labels = _end_labels(model, frame, style, rect, long=long) + _inner_labels(model, frame, style)
    ticks = x_ticks, y_ticks, bar_ticks
    return PlotLayout(style, frame, *ticks, (*heads, *note), tuple(labels), bar)


def _note(text: str, style: Style, rect: QRectF) -> list[Label]:
    """Return the note in at most two lines, the last one elided."""
    font, line = style.text_font(11), line_height(style)
    lines = wrapped(text, font, rect.width()) if text else []
    most = 2 if rect.height() > 16 * line else 1
    lines[most - 1 :] = [" ".join(lines[most - 1 :])] if lines[most - 1 :] else []
    return [
        Label(QRectF(rect.left(), rect.bottom() - (len(lines) - n) * line, rect.width(), line),
              each, "muted", align=LEFT)
        for n, each in enumerate(lines)
    ]  # fmt: skip


def _ticks(axis: Axis, ends: Range, length: float, room: Callable[[str], float]) -> Ticks:
    """Return the finest ticks of an axis whose words have the room that each takes along it."""
    for ticks in axis.ticks(*ends):
        at = [(place - ends[0]) / (ends[1] - ends[0]) * length for place, _ in ticks]
        halves = [room(text) / 2 for _, text in ticks]
        if all(
            b - a >= m + n for (a, b), (m, n) in zip(pairwise(at), pairwise(halves), strict=True)
        ):
            return ticks
    return ()


def _end_width(curves: Sequence[Curve], style: Style, *, long: bool) -> float:
    font = style.text_font(11)
    texts = [curve.name if long else curve.short for curve in curves]
    return style.px(32) + max(text_width(font, text) for text in texts)


def _end_labels(
    model: PlotModel, frame: Frame, style: Style, rect: QRectF, *, long: bool
) -> list[Label]:
    """Return the labels of curves, right of the plot and level with where they leave it."""
    font, px, line = style.text_font(11), style.px, line_height(style)
    seen = []
    for curve in model.curves:
        # A curve without a name, such as an error bar, belongs to another one.
        end = _last_seen(model, curve, frame) if curve.name else None
        if end is not None:
            seen.append((curve, end))
    left = frame.plot.right() + px(8)
    bottom = frame.plot.bottom()
    middles = spread([end.y() for _, end in seen], line, frame.plot.top() - line / 2, bottom)
    out = []
    for (curve, end), y in zip(seen, middles or (), strict=False):
        text = curve.name if long else curve.short
        width = px(22) + text_width(font, text)
        box = QRectF(left, y - line / 2, min(width, rect.right() - left), line)
        out.append(Label(box, text, curve.role, end, curve))
    return out


def _last_seen(model: PlotModel, curve: Curve, frame: Frame) -> QPointF | None:
    """Return the rightmost point of a curve that is in the plot."""
    xs = model.x.places(np.array(curve.xs, dtype=np.float64))
    ys = model.y.places(np.array(curve.ys, dtype=np.float64))
    if not len(xs) or xs[0] > frame.x[1] or xs[-1] < frame.x[0]:
        return None
    across = np.linspace(max(frame.x[0], xs[0]), min(frame.x[1], xs[-1]), 129)
    up = np.interp(across, xs, ys)
    inside = np.flatnonzero((up >= frame.y[0]) & (up <= frame.y[1]))
    if not len(inside):
        return None
    return frame.point(float(across[inside[-1]]), float(up[inside[-1]]))


def _inner_labels(model: PlotModel, frame: Frame, style: Style) -> list[Label]:
    """Return the labels of marks and lines, inside the plot."""
    font, px, line = style.text_font(11), style.px, line_height(style)
    named: list[tuple[tuple[str, ...], str]] = []
    wanted: list[Wanted] = []
    taken: list[QRectF] = []

    def want(
        texts: tuple[str, ...], role: str, look: Callable[[tuple[QSizeF, ...]], Wanted]
    ) -> None:
        texts = tuple(dict.fromkeys(texts))
        sizes = tuple(QSizeF(text_width(font, text) + px(8), line + px(2)) for text in texts)
        named.append((texts, role))
        wanted.append(look(sizes))

    spots = [
        (mark, at)
        for mark in model.marks
        if frame.shows(at := frame.point(model.x.place(mark.x), model.y.place(mark.y)))
    ]
    for mark, at in spots:
        reach = px(mark.size + 1.5)
        taken.append(QRectF(at.x() - reach, at.y() - reach, 2 * reach, 2 * reach))
    # Lines have few places for their words, marks have them all around.
    for level in model.levels:
        place = model.level_place(level)
        low, high = frame.y if level.across else frame.x
        if low <= place <= high:
            want(
                (level.label, level.short),
                level.role,
                partial(_on_level, level, place, frame, px(3)),
            )
    for mark, at in spots:
        if mark.label:
            look: _Look = partial(Wanted, (at,), gap=px(mark.size + 3))
            want((mark.label, mark.short), mark.role, look)
    heat = model.heat
    middle = None if heat is None else _beyond_anchor(heat, frame)
    if heat is not None and middle is not None:
        want((heat.beyond_label, heat.beyond_short), "bad", partial(Wanted, (middle,), gap=px(9)))
    inside = frame.plot.adjusted(px(2), px(2), -px(2), -px(2))
    found = place_labels(wanted, inside, taken, _line_points(model, frame))
    return [
        Label(place.box, texts[place.wording], role, place.anchor if place.far else None)
        for (texts, role), place in zip(named, found, strict=True)
        if place is not None
    ]


_ALONG = 9
"""Places of a line at which its label may stand."""
_LINE_RINGS = (1.0, 4.0, 6.5, 9.5, 13.0, 17.0)
"""How many gaps away from it, where other lines and curves leave no room beside it."""
_LINE_POINTS = 2000
"""Points of a line across: a label on the line of another would be taken for that one's."""


def _on_level(
    level: Level, at: float, frame: Frame, gap: float, sizes: tuple[QSizeF, ...]
) -> Wanted:
    """Return a label that stands on a line: near its start, or farther along it."""
    plot, half = frame.plot, sizes[0].width() / 2 + 2 * gap
    if level.across:
        y = frame.point(frame.x[0], at).y()
        xs = np.linspace(plot.left() + half, plot.right() - half, _ALONG).tolist()
        return Wanted(tuple(QPointF(x, y) for x in xs), sizes, gap, ((0, -1), (0, 1)), _LINE_RINGS)
    x = frame.point(at, frame.y[0]).x()
    down = sizes[0].height()
    ys = np.linspace(plot.top() + down, plot.bottom() - down, _ALONG).tolist()
    return Wanted(tuple(QPointF(x, y) for y in ys), sizes, gap, ((1, 0), (-1, 0)), _LINE_RINGS)


def _line_points(model: PlotModel, frame: Frame) -> F64:
    """Return pixels along all curves and lines, (n, 2)."""
    parts, share = [_along(model.curves, model.x.log, model.y.log)], np.linspace(0, 1, _LINE_POINTS)
    for level in model.levels:  # a label beside its own does not hide another one
        at, (low, high) = model.level_place(level), frame.x if level.across else frame.y
        line = low + share * (high - low), np.full(_LINE_POINTS, at)
        parts.append(np.stack(line if level.across else line[::-1], axis=1))
    x, y = np.concatenate(parts).T
    across = frame.plot.left() + (x - frame.x[0]) / (frame.x[1] - frame.x[0]) * frame.plot.width()
    down = frame.plot.bottom() - (y - frame.y[0]) / (frame.y[1] - frame.y[0]) * frame.plot.height()
    return np.stack([across, down], axis=1)


@lru_cache(maxsize=8)
def _along(curves: tuple[Curve, ...], x_log: bool, y_log: bool) -> F64:
    """Return places along all curves, (n, 2): they are the same at any zoom."""
    parts = [np.empty((0, 2))]
    for curve in curves:
        if len(curve.xs) > 1:
            xs, ys = np.array(curve.xs), np.array(curve.ys)
            known = np.arange(len(xs))
            steps = np.linspace(0, len(xs) - 1, max(12 * len(xs), 200))
            xs, ys = np.log10(xs) if x_log else xs, np.log10(ys) if y_log else ys
            parts.append(
                np.stack([np.interp(steps, known, xs), np.interp(steps, known, ys)], axis=1)
            )
    return np.concatenate(parts)


def _beyond_anchor(heat: HeatMap, frame: Frame) -> QPointF | None:
    """Return the middle of those hatched cells that are in sight."""
    rows, columns = np.nonzero(heat.beyond)
    xs, ys = np.array(heat.xs)[columns], np.array(heat.ys)[rows]
    seen = (frame.x[0] <= xs) & (xs <= frame.x[1]) & (frame.y[0] <= ys) & (ys <= frame.y[1])
    if not seen.any():
        return None
    return frame.point(float(np.median(xs[seen])), float(np.median(ys[seen])))
