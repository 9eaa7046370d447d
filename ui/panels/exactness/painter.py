"""How exact the run is: the error of every row as a strip, also for float16 without a maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.program.faults import fault_note
from simulator.run.exactness import EXP_OVERFLOW, HALF_OVERFLOW, ErrorStrip, Exactness, RowError
from simulator.run.snapshot import Snapshot
from ui.kit.shapes import Text
from ui.look.draw import LEFT, RIGHT, draw_text, mixed, outline, patterned, text_width
from ui.look.heat import hatching
from ui.look.names import first_that_fits, fitting, weights_words
from ui.look.theme import Style, Theme
from ui.look.units import count_text, number_text, plural, ulp_text

MIN_SIZE = QSizeF(300, 96)
DECADES = (-1.0, 8.0)
"""The range of the strips' height, in powers of ten of a unit; 2**24 units are the number
itself."""
_TICKS = ((0, "1"), (2, "10²"), (4, "10⁴"), (6, "10⁶"))
_SHADES = 28

Words = tuple[str, ...]
"""Words for one fact, the longest first."""
Figure = tuple[str, Words, bool]
"""A line below the strips: its name, its words, and whether it warns."""


@dataclass(frozen=True, slots=True)
class ExactnessLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    titles: tuple[QRectF, ...]  # above each strip
    axes: tuple[QRectF, ...]  # left of each strip
    strips: tuple[QRectF, QRectF]  # errors so far; float16 without a maximum
    rows_axis: QRectF  # row numbers below the strips; null if there is no space
    # one for each line below the strips; fewer if there is little space
    figures: tuple[QRectF, ...]


def exactness_layout(rect: QRectF, style: Style) -> ExactnessLayout:
    """Return the places of a picture; with little space, less important parts are left out."""
    style = fitting(style, rect, MIN_SIZE)
    px = style.px
    title, line, least = px(16), px(17), px(22)
    room = rect.height() - 2 * (title + least) - px(4)
    count = max(0, min(4, int((room - px(6)) // line)))
    room -= count * line + (px(6) if count else 0)
    axis = px(14) if room >= px(14) else 0.0
    height = least + max(0.0, room - axis) / 2
    left = px(34)
    upper = QRectF(rect.x() + left, rect.y() + title, rect.width() - left, height)
    strips = upper, upper.translated(0, title + height + px(4))
    titles = tuple(QRectF(rect.x(), s.y() - title, rect.width(), title) for s in strips)
    axes = tuple(QRectF(rect.x(), s.y(), left - px(5), height) for s in strips)
    under = QRectF(strips[1].x(), strips[1].bottom(), strips[1].width(), axis)
    first = strips[1].bottom() + axis + px(6)
    figures = tuple(QRectF(rect.x(), first + n * line, rect.width(), line) for n in range(count))
    return ExactnessLayout(style, titles, axes, strips, under if axis else QRectF(), figures)


def paint_exactness(
    painter: QPainter,
    snapshot: Snapshot,
    model: Exactness,
    style: Style,
    rect: QRectF,
    *,
    row: int | None = None,
) -> None:
    """Paint the errors of all rows of the head.

    rect: the place, at least `MIN_SIZE`.
    """
    lay = exactness_layout(rect, style)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    texts = now_words(snapshot, model), half_words(model)
    for n, strip in enumerate((model.now, model.half)):
        _paint_title(painter, lay, lay.titles[n], *texts[n])
        _paint_strip(painter, strip, lay, lay.strips[n])
        _paint_scale(painter, lay, n, model.rounding if n == 0 else None)
    _paint_rows(painter, snapshot, model, lay, row)
    for place, line in zip(lay.figures, figure_lines(snapshot, model), strict=False):
        _paint_figure(painter, lay.style, place, *line)
    painter.restore()


# --- words -------------------------------------------------------------------------------------


def now_words(snapshot: Snapshot, model: Exactness) -> tuple[Words, Words]:
    """Return the title of the first strip, and its result."""
    made = " and ".join(model.gradients[0]) or "O"
    figures = _worst_words(model.now, "no row has an output yet")
    if model.rounding is not None and model.now.worst is not None:
        dtype = snapshot.program.workload.dtype
        figures = (f"{figures[0]}; dashed: {dtype} rounds {made} by up to this", *figures)
    return _error_names(made, "row"), figures


def half_words(model: Exactness) -> tuple[Words, Words]:
    """Return the title of the second strip, and its result."""
    if model.gradients[1]:
        made = " and ".join(model.gradients[1])
        result = _worst_words(model.half, "no key has a gradient yet", "key")
        return _error_names(made, "key"), result
    what, tail = "exp(S), ℓ and O", ", no maximum"
    if model.features:
        what, tail = "P, ℓ and O", ""
    names = f"same inputs, {what} in fp16{tail}", f"same inputs in fp16{tail}", f"fp16{tail}"
    return names, _worst_words(model.half, "not computed yet")


def _error_names(made: str, each: str) -> Words:
    return f"error of {made} so far, {each} by {each}", f"error of {made} so far", f"{made} so far"


def _worst_words(strip: ErrorStrip, none: str, each: str = "row") -> Words:
    unknown, row = strip.count(RowError.UNKNOWN), strip.worst
    rest = f"{plural(unknown, each)} not computed yet"
    if row is None:
        return (rest, "not computed yet", "·") if unknown else (none, "·")
    size = "NaN or ∞" if strip.states[row] == RowError.BROKEN else ulp_text(float(strip.ulp[row]))
    worst = f"worst {size} in {each} {count_text(row)}"
    return (f"{worst}, {rest}", worst, size) if unknown else (worst, size)


def figure_lines(snapshot: Snapshot, model: Exactness) -> list[Figure]:
    """Return the lines below the strips."""
    if model.gradients[0]:
        return _gradient_lines(snapshot, model)
    if model.features:
        none = "no maximum and no rescale: there is no softmax"
        said = f"{model.features}: the error is that of linear attention"
        return [
            ("rescale", (none, "no softmax", "none"), False),
            ("φ", (said, model.features), False),
            ("fp16", *_half_texts(model, limit="")),
        ]
    lines = [
        ("rescale", _rescale_texts(snapshot, model), False),
        ("exp", *_margin_texts(snapshot, model)),
        ("fp16", *_half_texts(model, limit=f" (S > {HALF_OVERFLOW:.2f})")),
    ]
    if model.ways:  # P in the dtype: standard attention and flash, beside P in float32
        ulp = f"ulp of {snapshot.program.workload.dtype}"
        standard, flash, single = (
            number_text(model.ways[way].ulp, 2) for way in ("standard", "flash", "float32")
        )
        least = f"standard {standard}, flash {flash}"
        beside = f"{least}, P in float32 {single}"
        whole = f"O of the head off by at most, in {ulp}, S and P rounded as stored: {beside}"
        brief = f"S and P rounded, worst {ulp}: {beside}", f"{ulp}: {beside}", least
        lines.append(("P", (whole, *brief), False))
    return lines


def _gradient_lines(snapshot: Snapshot, model: Exactness) -> list[Figure]:
    origin = weights_words(snapshot.program.algorithm)
    lines: list[Figure] = [
        ("rescale", (*(f"none: {words}" for words in origin), "none"), False),
        ("ulp", ("of the largest number of each gradient so far", "of each largest number"), False),
    ]
    if model.now.count(RowError.UNKNOWN):
        size = "the run is too large to be compared at every step; verify compares it"
        lines.append(("float64", (size, "too large a run: see verify", "too large"), False))
    return lines


def _rescale_texts(snapshot: Snapshot, model: Exactness) -> Words:
    if not model.rescales:
        return "none: one maximum over the whole row", "none"
    if model.rescale is None:
        return "no maximum has changed so far", "none so far"
    note = fault_note(snapshot.program.workload, "alpha")
    alpha, tail = f"α = {number_text(model.rescale)}", f", {note}" if note else ""
    whole = f"{alpha} is the largest rescale so far{tail}"
    return whole, f"largest so far {alpha}{tail}", f"{alpha}{tail}"


def _margin_texts(snapshot: Snapshot, model: Exactness) -> tuple[Words, bool]:
    """Return how far exp is from its overflow; without a maximum, and with one."""
    if model.largest is None:
        return ("no score so far", "·"), False
    largest, limit = f"max S = {number_text(model.largest, 1)}", f"{EXP_OVERFLOW:.1f}"
    margin = EXP_OVERFLOW - model.largest
    over = margin < 0
    side = f"{number_text(abs(margin), 1)} {'over' if over else 'below'}"
    none = f"{largest}, {side} the overflow of exp at {limit} without a maximum"
    brief = f"{largest}, {side} overflow at {limit}"
    if fault_note(snapshot.program.workload, "m"):
        return (none, brief, side), over
    return (f"{none}; with one S − m ≤ 0", none, brief, largest), False


def _half_texts(model: Exactness, *, limit: str) -> tuple[Words, bool]:
    known = len(model.half.states) - model.half.count(RowError.UNKNOWN)
    if not known:
        return ("not computed yet", "·"), False
    over, broken = count_text(model.half_overflows), count_text(model.half.count(RowError.BROKEN))
    some = f"{over} of {plural(known, 'row')} overflow"
    whole = f"{some}{limit}, {broken} become NaN or ∞"
    return (whole, f"{some}, {broken} NaN or ∞", f"{over} overflow"), model.half_overflows > 0


# --- strips ------------------------------------------------------------------------------------


def shade(theme: Theme, decade: float) -> QColor:
    """Return the colour of an error of 10**decade units: good, then current, then bad."""
    share = (decade - DECADES[0]) / (DECADES[1] - DECADES[0])
    share = round(min(max(share, 0.0), 1.0) * _SHADES) / _SHADES
    if share < 0.5:
        return mixed(theme.good, theme.current, share * 2)
    return mixed(theme.current, theme.bad, (share - 0.5) * 2)


def _paint_strip(painter: QPainter, whole: ErrorStrip, lay: ExactnessLayout, box: QRectF) -> None:
    theme = lay.style.theme
    painter.fillRect(box, QColor(theme.empty))
    strip = whole.pooled(max(int(box.width()), 1))
    count = len(strip.ulp)
    edges = np.rint(box.x() + np.arange(count + 1) * box.width() / count)
    gap = 1.0 if box.width() / count >= 6 else 0.0
    with np.errstate(divide="ignore"):
        decades = np.log10(strip.ulp)
    shares = (decades - DECADES[0]) / (DECADES[1] - DECADES[0])
    heights = np.clip(shares, 0.0, 1.0) * box.height()
    heights = np.maximum(heights, lay.style.px(2))
    hatched = hatching(theme.empty, theme.hatch, lay.style.scale)
    broken = patterned(theme.bad, Qt.BrushStyle.DiagCrossPattern, lay.style)
    shown: dict[int, list[QRectF]] = {}
    steps = np.rint(np.clip(shares, 0, 1) * _SHADES)
    for state, brush in ((RowError.UNKNOWN, hatched), (RowError.BROKEN, broken)):
        for first, stop in _runs(strip.states == state):
            place = QRectF(edges[first], box.y(), edges[stop] - edges[first], box.height())
            if state == RowError.BROKEN:
                painter.fillRect(place, mixed(theme.empty, theme.bad, 0.45))
            painter.fillRect(place, brush)
    for n in np.flatnonzero(strip.states == RowError.KNOWN).tolist():
        bar = QRectF(
            edges[n], box.bottom() - heights[n], max(edges[n + 1] - edges[n] - gap, 1), heights[n]
        )
        shown.setdefault(int(steps[n]), []).append(bar)
    painter.setPen(Qt.PenStyle.NoPen)
    for step, bars in shown.items():
        decade = DECADES[0] + step / _SHADES * (DECADES[1] - DECADES[0])
        painter.setBrush(shade(theme, decade))
        painter.drawRects(bars)
    outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid)


def _runs(marks: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """Return the places of marks, as ranges."""
    padded = np.concatenate([[False], marks, [False]])
    ends = np.flatnonzero(padded[1:] != padded[:-1])
    return list(zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True))


def _height(box: QRectF, decade: float) -> float:
    share = (decade - DECADES[0]) / (DECADES[1] - DECADES[0])
    return box.bottom() - share * box.height()


def _paint_scale(painter: QPainter, lay: ExactnessLayout, n: int, rounding: float | None) -> None:
    """Write the powers of ten beside a strip, and mark the error of storing O in the dtype."""
    theme, box, axis = lay.style.theme, lay.strips[n], lay.axes[n]
    font, high = lay.style.text_font(11), lay.style.px(13)
    last = box.bottom() + high
    for decade, text in _TICKS:
        y = round(_height(box, decade))
        painter.setPen(QPen(mixed(theme.empty, theme.muted, 0.35), 1, Qt.PenStyle.DotLine))
        painter.drawLine(QLineF(box.left(), y, box.right(), y))
        if last - y >= high and y - high / 2 >= box.y() - high / 2:
            place = QRectF(axis.x(), y - high / 2, axis.width(), high)
            draw_text(painter, place, text, font, theme.muted, RIGHT)
            last = y
    if rounding is not None:
        y = round(_height(box, float(np.log10(rounding))))
        painter.setPen(lay.style.pen(theme.muted, 1.2, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(box.left(), y, box.right(), y))


def _paint_title(
    painter: QPainter, lay: ExactnessLayout, place: QRectF, names: Words, figures: Words
) -> None:
    theme, px = lay.style.theme, lay.style.px
    bold, font = lay.style.text_font(11.5, bold=True), lay.style.text_font(11)
    short = text_width(bold, names[-1]) + px(12)
    figure = first_that_fits(figures, place.width() - short, font)
    room = place.width() - text_width(font, figure) - px(12)
    name = first_that_fits(names, room, bold)
    draw_text(painter, QRectF(place.x(), place.y(), room, place.height()), name, bold, theme.text)
    draw_text(painter, place, figure, font, theme.muted, RIGHT)


def _paint_rows(
    painter: QPainter, snapshot: Snapshot, model: Exactness, lay: ExactnessLayout, row: int | None
) -> None:
    """Write the first and last row below the strips, and point at the current ones.

    If the lower strip shows keys, first and last key are written.
    """
    theme, px, visit = lay.style.theme, lay.style.px, snapshot.visit
    of_keys = bool(model.gradients[1])
    counts = len(model.now.ulp), len(model.half.ulp)
    current = visit.rows, visit.cols if of_keys else visit.rows
    for box, part, count in zip(lay.strips, current, counts, strict=True):
        left = box.x() + part.start / count * box.width()
        right = box.x() + part.stop / count * box.width()
        around = QRectF(left, box.y(), max(right - left, px(3)), box.height())
        outline(painter, around.intersected(box), theme.current, px(1.5))
    if lay.rows_axis.isNull():
        return
    font, axis, rows = lay.style.text_font(11), lay.rows_axis, counts[1]
    first, last = "key 0" if of_keys else "row 0", count_text(rows - 1)
    begin, end = axis.x() + text_width(font, first), axis.right() - text_width(font, last)
    if row is not None and not of_keys:
        x = axis.x() + (row + 0.5) / rows * axis.width()
        text, gap = f"row {count_text(row)}", px(8)
        side = px(6) + text_width(font, text) / 2  # beside the pointer
        if side < axis.width() / 4:  # the row's own label takes the place of an end's
            first, begin = (first, begin + gap) if x - gap > begin else ("", axis.x())
            last, end = (last, end - gap) if x + gap < end else ("", axis.right())
            at = x + side if x + 2 * side <= end else x - side
            if begin <= at - side + px(6):
                place = QRectF(at - side + px(5), axis.y(), 2 * side, axis.height())
                draw_text(painter, place, text, font, theme.text, LEFT)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.text))
        tip = QPointF(x, axis.y())
        painter.drawPolygon(
            QPolygonF([tip, tip + QPointF(px(3.5), px(4.5)), tip + QPointF(-px(3.5), px(4.5))])
        )
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for text, align in ((first, LEFT), (last, RIGHT)):
        if text:
            draw_text(painter, axis, text, font, theme.muted, align)


def _paint_figure(
    painter: QPainter, style: Style, place: QRectF, name: str, texts: Words, bad: bool
) -> None:
    width = text_width(style.text_font(11.5), "rescale") + style.px(12)
    left = QRectF(place.x(), place.y(), width, place.height())
    Text(name, "muted", size=11.5).paint(painter, style, left)
    said = Text(texts, "bad" if bad else "text", size=11.5)
    said.paint(painter, style, place.adjusted(width, 0, 0, 0))


def row_at(rect: QRectF, style: Style, point: QPointF, model: Exactness) -> tuple[int, int] | None:
    """Return which strip (0 or 1) and row or key are at a point; None outside of the strips."""
    lay = exactness_layout(rect, style)
    for n, (box, strip) in enumerate(zip(lay.strips, (model.now, model.half), strict=True)):
        if box.contains(point):
            share, count = (point.x() - box.x()) / box.width(), len(strip.ulp)
            return n, min(int(share * count), count - 1)
    return None


def row_words(model: Exactness, strip: int, row: int) -> str:
    """Return the error of a row in words, for the pointer on a strip."""
    errors = model.half if strip else model.now
    words = {
        RowError.EMPTY: "no gradient yet" if model.gradients[0] else "no output yet",
        RowError.UNKNOWN: "not computed yet",
        RowError.BROKEN: "NaN or ∞",
    }
    state = RowError(int(errors.states[row]))
    tail = " in fp16" if model.features else " in fp16 without a maximum"
    said = words.get(state) or f"off by {ulp_text(float(errors.ulp[row]))}"
    if strip and model.gradients[1]:
        return f"key {count_text(row)}: {said}"
    return f"row {count_text(row)}: {said}" + (tail if strip else "")
