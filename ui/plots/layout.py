"""Places of everything in a plot: its axes with their ticks, and every label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QFont

from ui.look.draw import fitted, text_width, wrapped
from ui.look.names import fitting, readable
from ui.look.theme import Style
from ui.plots.labels import Wanted, place_labels, spread
from ui.plots.model import F64, Curve, HeatMap, Level, PlotModel

MIN_SIZE = QSizeF(330, 130)
"""Size below which the text shrinks."""
_BAR = 12
"""Width of the colour bar."""
_ENDS = 8
"""Distance from the plot to the names of curves beside it."""
Range = tuple[float, float]
_Look = Callable[[tuple[QSizeF, ...]], Wanted]
"""Makes a label that looks for its place from the sizes of its wordings."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The stretch of the axes that is in sight, and its rectangle."""

    plot: QRectF  # where the curves are
    x: Range  # x, y: places at its left and right, at its bottom and top
    y: Range

    def point(self, x: float, y: float) -> QPointF:
        """Return where a pair of places is drawn."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return QPointF(
            self.plot.left() + across * self.plot.width(),
            self.plot.bottom() - up * self.plot.height(),
        )

    def points(self, x: F64, y: F64) -> F64:
        """Return where pairs of places are drawn, (n, 2)."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0]) * self.plot.width()
        up = (y - self.y[0]) / (self.y[1] - self.y[0]) * self.plot.height()
        return np.stack([self.plot.left() + across, self.plot.bottom() - up], axis=1)

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
    """Words that have found their place."""

    box: QRectF  # their place
    text: str  # the words
    role: str  # colour of the thing they name
    anchor: QPointF | None = None  # the end of a line from the words; None: no line
    curve: Curve | None = None  # the curve whose sample stands before them


@dataclass(frozen=True, slots=True, eq=False)
class PlotLayout:
    """Places of axes, curves and labels."""

    style: Style  # at the text scale that suits the place
    frame: Frame  # the plot itself
    x_ticks: tuple[tuple[float, str], ...]  # x_ticks, y_ticks: (pixel, words) of each
    y_ticks: tuple[tuple[float, str], ...]
    x_title: QRectF  # x_title, y_title: where the titles of the axes are
    y_title: QRectF
    note: tuple[Label, ...]  # lines of the note
    labels: tuple[Label, ...]  # of curves, marks and lines
    bar: QRectF | None = None  # the colour bar
    bar_ticks: tuple[tuple[float, str], ...] = ()  # (pixel, words) of each
    bar_title: QRectF | None = None  # words over the colour bar


def line_height(style: Style) -> float:
    """Return the height of a line of words."""
    return style.px(14)


# --- layout ------------------------------------------------------------------------------------


def plot_layout(model: PlotModel, style: Style, rect: QRectF, x: Range, y: Range) -> PlotLayout:
    """Return the places of everything in a plot."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, font, line = style.px, style.text_font(11), line_height(style)
    note = _wrapped(model.note, font, rect.width(), 2 if rect.height() > 16 * line else 1)
    top = rect.top() + 1.5 * line
    bottom = rect.bottom() - len(note) * line - 2 * line - px(6)
    y_ticks = _upright_ticks(model.y.ticks(*y), y, top, bottom, line)
    left = rect.left() + max((text_width(font, t) for _, t in y_ticks), default=0) + px(8)
    right, long, heat = rect.right() - px(10), True, model.heat
    bar_ticks: tuple[tuple[float, str], ...] = ()
    if heat is not None:
        bar_ticks = _upright_ticks(heat.axis.ticks(*heat.ends), heat.ends, top, bottom, line)
        words = max((text_width(font, text) for _, text in bar_ticks), default=0)
        right = rect.right() - words - px(4 + _BAR + 8)
    elif model.curves:
        curves = (*model.curves, *model.beside)
        names = [[curve.name for curve in curves], [curve.short for curve in curves]]
        widths = [px(32) + max(text_width(font, each) for each in texts) for texts in names]
        long = widths[0] < 0.3 * rect.width()
        right -= widths[0 if long else 1]
    plot = QRectF(QPointF(left, top), QPointF(max(right, left + 20), max(bottom, top + 20)))
    frame = Frame(plot, x, y)
    x_ticks = _level_ticks(model.x.ticks(*x), frame, font, style, rect)
    under = plot.bottom() + px(4) + line
    wide = min(text_width(font, model.x.title), rect.width())
    x_title = QRectF(plot.center().x() - wide / 2, under, wide + 1, line)
    x_title.moveLeft(min(max(x_title.left(), rect.left()), rect.right() - wide))
    wide = text_width(style.text_font(11, bold=True), model.y.title)
    title_right = plot.right() if rect.left() + wide < plot.right() else rect.right()
    # Names of curves have their own column, which may reach above and below the plot.
    ticks = [tick_box(x, text, font, plot, style) for x, text in x_ticks]
    end = max((box.right() for box in (*ticks, x_title)), default=0.0)
    column = (
        plot.top() - line / 2 if title_right > plot.right() else rect.top(),
        plot.bottom() if end > plot.right() + px(_ENDS) else x_title.bottom(),
    )
    ends = _end_labels(model, frame, style, rect, column, long=long)
    bar = bar_title = None
    if heat is not None:
        bar = QRectF(plot.right() + px(8), plot.top(), px(_BAR), plot.height())
        width = min(text_width(font, heat.title) + 1, rect.width() / 2)
        bar_title = QRectF(rect.right() - width, rect.top(), width, line)
        title_right = bar_title.left() - px(8)
    return PlotLayout(
        style=style,
        frame=frame,
        x_ticks=x_ticks,
        y_ticks=y_ticks,
        x_title=x_title,
        y_title=QRectF(QPointF(rect.left(), rect.top()), QPointF(title_right, rect.top() + line)),
        note=tuple(
            Label(
                QRectF(rect.left(), rect.bottom() - (len(note) - n) * line, rect.width(), line),
                text, "muted",
            )
            for n, text in enumerate(note)
        ),
        labels=(*ends, *_inner_labels(model, frame, style)),
        bar=bar,
        bar_ticks=bar_ticks,
        bar_title=bar_title,
    )  # fmt: skip


_END = re.compile(r"(?<! al)[.;] ")
"""The end of a sentence or clause, but not of "et al."."""


def _wrapped(text: str, font: QFont, width: float, most: int) -> list[str]:
    """Return a text in at most `most` lines: its last sentences are left out.

    The first sentence may take one line more; else its end is left out.
    """
    lines = fewer = wrapped(text, font, width) if text else []
    if len(lines) <= most:
        return lines
    shorter = text
    while ends := [found.start() for found in _END.finditer(shorter)]:
        shorter = shorter[: ends[-1]]
        fewer = wrapped(f"{shorter}.", font, width)
        if len(fewer) <= most:
            return fewer
    if len(fewer) <= most + 1:
        return fewer
    return [*lines[: most - 1], fitted(font, " ".join(lines[most - 1 :]), width)]


def _upright_ticks(
    choices: Iterable[tuple[tuple[float, str], ...]], ends: Range, top: float, bottom: float,
    line: float,
) -> tuple[tuple[float, str], ...]:  # fmt: skip
    """Return (pixel, words) of the finest ticks whose lines do not touch."""
    for choice in choices:
        at = [
            (bottom - (place - ends[0]) / (ends[1] - ends[0]) * (bottom - top), text)
            for place, text in choice
        ]
        pixels = sorted(y for y, _ in at)
        if all(b - a >= 1.7 * line for a, b in pairwise(pixels)):
            return tuple(at)
    return ()


def tick_box(x: float, text: str, font: QFont, plot: QRectF, style: Style) -> QRectF:
    """Return where the words of a tick below the plot are."""
    width = text_width(font, text)
    return QRectF(x - width / 2, plot.bottom() + style.px(4), width, line_height(style))


def _level_ticks(
    choices: Iterable[tuple[tuple[float, str], ...]], frame: Frame, font: QFont, style: Style,
    rect: QRectF,
) -> tuple[tuple[float, str], ...]:  # fmt: skip
    """Return (pixel, words) of the finest ticks whose words do not touch; none is cut off."""
    for choice in choices:
        at = [(frame.point(place, frame.y[0]).x(), text) for place, text in choice]
        boxes = [tick_box(x, text, font, frame.plot, style) for x, text in at]
        whole = [
            pair
            for pair, box in zip(at, boxes, strict=True)
            if rect.left() <= box.left() and box.right() <= rect.right()
        ]
        edges = sorted((box.left(), box.right()) for box in boxes)
        gaps = [b[0] - a[1] for a, b in pairwise(edges)]
        if all(gap >= style.px(9) for gap in gaps):
            return tuple(whole)
    return ()


def _end_labels(
    model: PlotModel, frame: Frame, style: Style, rect: QRectF, column: Range, *, long: bool
) -> list[Label]:
    """Return the labels of curves, right of the plot, at the height where each curve leaves it.

    If labels have no room beside the plot, they take the room above and below, too: `column`.
    """
    font, px, line = style.text_font(11), style.px, line_height(style)
    seen = []
    for curve in model.curves:
        # A curve without a name, such as an error bar, belongs to another one.
        end = _last_seen(model, curve, frame) if curve.name else None
        if end is not None:
            seen.append((curve, end))
    left = frame.plot.right() + px(_ENDS)
    wanted = [end.y() for _, end in seen]
    middles = spread(wanted, line, frame.plot.top() - line / 2, frame.plot.bottom())
    middles = middles or spread(wanted, line, *column) or []
    out = []
    for (curve, end), y in zip(seen, middles, strict=False):
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
    # Lines have few places for words, marks have places all around.
    for level in model.levels:
        place = (model.y if level.across else model.x).place(level.value)
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
    dots = _marked_points(model, frame)
    found = place_labels(wanted, inside, taken, _line_points(model, frame), dots)
    return [
        Label(place.box, texts[place.wording], role, place.anchor if place.far else None)
        for (texts, role), place in zip(named, found, strict=True)
        if place is not None
    ]


_ALONG = 9
"""Places of a line at which its label may stand."""
_LINE_RINGS = (1.0, 4.0, 6.5, 9.5, 13.0, 17.0)
"""Gaps between a line and its label, where other lines and curves leave no room beside the line."""
_STEP = 3.0
"""Pixels between two points of a line that labels keep off."""


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
    """Return pixels along all curves and lines, (n, 2), NaN between two of them."""
    ends = [
        frame.points(
            model.x.places(np.array(curve.xs, dtype=np.float64)),
            model.y.places(np.array(curve.ys, dtype=np.float64)),
        )
        for curve in model.curves
        if len(curve.xs) > 1
    ]
    # Levels count as well: a label beside its own level does not hide another one.
    for level in model.levels:
        at = (model.y if level.across else model.x).place(level.value)
        across, up = (frame.x, (at, at)) if level.across else ((at, at), frame.y)
        ends.append(frame.points(np.array(across), np.array(up)))
    parts = [np.empty((0, 2))]
    for line in ends:
        far = np.cumsum([0, *np.hypot(*np.diff(line, axis=0).T)])
        steps = np.linspace(0, far[-1], int(far[-1] / _STEP) + 2)
        x, y = (np.interp(steps, far, each) for each in line.T)
        parts += [np.stack([x, y], axis=1), np.full((1, 2), np.nan)]
    return np.concatenate(parts)


def _marked_points(model: PlotModel, frame: Frame) -> F64:
    """Return pixels of the points of curves that have markers, (n, 2)."""
    marked = [curve for curve in model.curves if curve.marker is not None]
    xs = np.array([x for curve in marked for x in curve.xs], dtype=np.float64)
    ys = np.array([y for curve in marked for y in curve.ys], dtype=np.float64)
    return frame.points(model.x.places(xs), model.y.places(ys))


def _beyond_anchor(heat: HeatMap, frame: Frame) -> QPointF | None:
    """Return the middle of the hatched cells in sight; None without any."""
    rows, columns = np.nonzero(heat.beyond)
    xs, ys = np.array(heat.xs)[columns], np.array(heat.ys)[rows]
    seen = (frame.x[0] <= xs) & (xs <= frame.x[1]) & (frame.y[0] <= ys) & (ys <= frame.y[1])
    if not seen.any():
        return None
    return frame.point(float(np.median(xs[seen])), float(np.median(ys[seen])))
