"""Paints one step of generation: its row of weights below the old rows, K and V growing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from simulator.base.dtypes import F32
from simulator.program.playback import eased
from simulator.study.generation.choices import Way
from simulator.study.generation.steps import Generation, GenerationStep, Quantity
from ui.kit.shapes import Text
from ui.look.draw import LEFT, RIGHT, draw_text, outline, text_width
from ui.look.heat import colour_map, heat_image, signed_limit
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, factor_text
from ui.panels.generation.plots import QUANTITIES, figure_text, share_text

_STRIP = 0.12
"""Share of the room that K, V, Q and O take each."""
_LEAST_BAND = 3.0
"""Least height of a row that is outlined, at scale 1."""
_DOCKED, _LEAVES = 0.5, 0.35
"""Shares of a step at which K and V have docked, and at which its row begins to come down."""
_MOVED = 64
"""Width of the bars that say how far old rows have moved, at scale 1."""


@dataclass(frozen=True, eq=False)
class GenerationState:
    """The step and choices on show of a generated run."""

    found: Generation
    at: int = 1  # which step; 0 is the prompt
    way: Way = "cache"
    shows: str = "bytes"
    summed: bool = False
    share: float = 1.0  # how much of the step has been done, 0 to 1

    @property
    def step(self) -> GenerationStep:
        """The step that is shown."""
        return self.found.steps[self.at]

    @property
    def fresh(self) -> range:
        """Rows, and columns of K and V, that the step computes."""
        return range(self.step.keys) if self.way == "again" else self.step.rows

    @property
    def docked(self) -> float:
        """How far K and V have come to their places, 0 to 1."""
        return eased(min(self.share / _DOCKED, 1.0))

    @property
    def down(self) -> float:
        """How far the rows have come down to their places, 0 to 1."""
        return eased(max((self.share - _LEAVES) / (1 - _LEAVES), 0.0))

    @property
    def words(self) -> str:
        """The step in words."""
        step, w = self.step, self.found.workload
        keys, last = count_text(step.keys), len(self.found.steps) - 1
        if not self.at:
            return f"The prompt: {keys} rows in one pass; K and V of all are kept"
        names = [w.key_token(row) for row in step.rows]
        said = f" “{' '.join(names).replace(' ##', '')}”" if any(names) else ""
        whole = f"Step {self.at} of {last}{said}"
        if self.way == "again":
            again = f"K and V of {keys} tokens and all their rows are computed again"
            return f"{whole}, without a cache: {again}"
        if self.way == "no mask":
            moved = share_text(float(self.found.moved[self.at].max()))
            return (
                f"{whole}, without the mask: old rows of O move by up to {moved}, so K and V of "
                "the next layer would have to be made again"
            )
        one = len(step.rows) == 1
        brought = "one query" if one else f"{len(step.rows)} queries at once"
        if self.at == last:
            new = "now the triangle is that of one causal pass"
        else:
            new = "a column of K and V joins" if one else "as many columns of K and V join"
            new += " the cache"
        return f"{whole}: {brought}, {keys} keys; {new}"


@dataclass(frozen=True, slots=True)
class _Places:
    """Places of the parts of a picture with `count` tokens."""

    line: float  # height of a line of words
    keys: QRectF
    box: QRectF
    values: QRectF
    count: int

    def part(self, rows: range, columns: range) -> QRectF:
        """Return the place of some rows and columns of the weights."""
        wide, high = self.box.width() / self.count, self.box.height() / self.count
        return QRectF(
            self.box.x() + wide * columns.start, self.box.y() + high * rows.start,
            wide * len(columns), high * len(rows),
        )  # fmt: skip


def _places(state: GenerationState, style: Style, rect: QRectF) -> _Places:
    px = style.px
    line, left = px(17), text_width(style.text_font(LABEL), "prompt") + px(10)
    high = rect.height() - px(2)
    strip, top = _STRIP * high, rect.y()
    right = px(_MOVED) if state.way == "no mask" else px(4)
    x, wide = rect.x() + left, rect.width() - left - right
    box = QRectF(x, top + strip + px(5), wide, high - 2 * strip - px(12))
    return _Places(
        line, QRectF(x, top, wide, strip), box,
        QRectF(x, box.bottom() + px(5), wide, strip), len(state.found.k),
    )  # fmt: skip


def paint_generation(state: GenerationState, painter: QPainter, style: Style, rect: QRectF) -> None:
    """Paint the weights of all rows so far, the newest marked, and K and V as they are kept.

    While a step is done, its columns of K and V dock and its rows come down from K to their place.
    """
    theme, lay = style.theme, _places(state, style, rect)
    bold = style.text_font(12.5, bold=True)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    for place in (lay.box, lay.keys, lay.values):
        painter.fillRect(place, QColor(theme.empty))
    edge = rect.x(), lay.box.x() - style.px(5)
    for name, values, place in (("K", state.found.k, lay.keys), ("V", state.found.v, lay.values)):
        _paint_strip(painter, state, name, values, style, place, rect.right())
        label = QRectF(edge[0], place.y(), edge[1] - edge[0], place.height())
        draw_text(painter, label, f"{name}ᵀ", bold, theme.tensor(name), RIGHT)
    _paint_sides(painter, state, style, lay, edge)
    for place in (lay.box, lay.keys, lay.values):
        outline(painter, place.adjusted(-1, -1, 1, 1), theme.grid)
    front = _paint_rows(painter, state, style, lay)
    if state.way == "no mask":
        _paint_moved(painter, state, style, lay, rect)
    elif state.at and state.share == 1:  # nothing is in the way of words
        top = _paint_costs(painter, state, style, lay)
        _paint_alone(painter, state, style, lay, front, top)


def _paint_strip(
    painter: QPainter, state: GenerationState, name: str, values: np.ndarray, style: Style,
    place: QRectF, edge: float,
) -> None:  # fmt: skip
    """Paint K or V: the kept columns, and the columns of the step on their way from the edge."""
    step, theme = state.step, style.theme
    limit = signed_limit(values) or 1.0
    wide = place.width() / len(values)

    def columns(which: range, x: float) -> QRectF:
        box = QRectF(x, place.y(), wide * len(which), place.height())
        if which:
            part = values[which.start : which.stop].T
            painter.drawImage(box, heat_image(part, -limit, limit, colour_map(theme, name)))
        return box

    if state.way == "again":
        # Nothing is kept: columns are there as far as they have been computed.
        columns(range(round(state.docked * step.keys)), place.x())
        return
    columns(range(step.rows.start), place.x())
    there = place.x() + wide * step.rows.start
    painter.save()
    painter.setClipRect(QRectF(place.x(), place.y(), edge - place.x(), place.height()))
    new = columns(step.rows, edge + (there - edge) * state.docked)
    painter.restore()
    if state.at and state.docked == 1:
        _mark(painter, new, QColor(theme.tensor(name)), style)


def _paint_sides(
    painter: QPainter, state: GenerationState, style: Style, lay: _Places,
    edge: tuple[float, float],
) -> None:  # fmt: skip
    """Say which rows came with the prompt and which in steps."""
    small, theme, line = style.text_font(LABEL), style.theme, lay.line
    first = state.found.steps[0].keys
    for words, rows, ink in (
        ("prompt", range(first), theme.muted),
        ("steps", range(first, state.step.keys), theme.text),
    ):
        part = lay.part(rows, range(1))
        if part.height() >= line:
            place = QRectF(edge[0], part.y(), edge[1] - edge[0], part.height())
            draw_text(painter, place, words, small, ink, RIGHT)


def _paint_rows(painter: QPainter, state: GenerationState, style: Style, lay: _Places) -> QRectF:
    """Paint the rows in place and the rows that come down; return the place of the latter."""
    step, masked = state.step, state.way != "no mask"
    now = state.found.seen(state.at, masked=masked)
    before = np.full_like(now, np.nan)
    if state.at and state.way != "again":
        old = state.found.seen(state.at - 1, masked=masked)
        before[: len(old), : len(old)] = old
    # Rows above the row that comes down are as they will be, rows below as they were.
    front = step.rows if state.at else range(step.keys)
    passed = round(state.down * front.start)
    shown = np.where(np.arange(step.keys)[:, None] < passed, now, before)
    shown[front.start :] = now[front.start :] if state.down == 1 else np.nan
    whole = range(step.keys)
    _paint_weights(painter, shown, masked, 0, style, lay.part(whole, whole))
    place = lay.part(front, whole)
    place.moveTop(lay.box.y() + (place.y() - lay.box.y()) * state.down)
    if 0 < state.down < 1:
        painter.fillRect(place, QColor(style.theme.empty))
        rows = now[front.start : front.stop]
        _paint_weights(painter, rows, masked, front.start, style, place)
    if state.at and state.down > 0:
        fresh = lay.part(state.fresh, whole) if state.down == 1 else place
        _mark(painter, fresh, QColor(style.theme.current), style)
    return place


def _paint_weights(
    painter: QPainter, weights: F32, masked: bool, first: int, style: Style, place: QRectF
) -> None:
    """Paint rows of weights; a masked key is blank."""
    # The map shows square roots, so that small weights are seen.
    shades = np.sqrt(weights)
    if masked:
        shades[np.triu(np.ones(shades.shape, dtype=bool), 1 + first)] = np.nan
    painter.drawImage(place, heat_image(shades, 0.0, 1.0, colour_map(style.theme, "P")))


def _paint_moved(
    painter: QPainter, state: GenerationState, style: Style, lay: _Places, rect: QRectF
) -> None:
    """Paint beside each old row how far its O has moved."""
    px, theme, moved = style.px, style.theme, state.found.moved[state.at]
    x = lay.box.right() + px(5)
    most = max(float(each.max(initial=0.0)) for each in state.found.moved) or 1.0
    place = QRectF(x, lay.keys.y(), rect.right() - x, lay.keys.height())
    Text(("O moves", "O"), "bad").paint(painter, style, place)
    for row, far in enumerate(moved[: round(state.down * len(moved))]):
        bar = lay.part(range(row, row + 1), range(1))
        wide = (rect.right() - x) * float(far) / most
        painter.fillRect(QRectF(x, bar.y(), wide, 0.8 * bar.height()), QColor(theme.bad))


def _cost_lines(state: GenerationState) -> list[tuple[str, ...]]:
    """Return the costs of the step with a cache and without, and their ratio."""
    out: list[tuple[str, ...]] = [("this step", "with a cache", "all rows again", "")]
    for quantity in QUANTITIES:
        ours, theirs = (state.step.of(quantity, cached=cached) for cached in (True, False))
        texts = (figure_text(quantity, each) for each in (ours, theirs))
        out.append((_NAMES[quantity], *texts, factor_text(theirs / ours)))
    return out


_NAMES: dict[Quantity, str] = {"bytes": "bytes", "flops": "FLOPs", "time": "time"}


def _paint_costs(painter: QPainter, state: GenerationState, style: Style, lay: _Places) -> float:
    """Write the costs of the step where the mask leaves room; return where the words end."""
    px, small = style.px, style.text_font(LABEL)
    lines, line, gap = _cost_lines(state), px(16), px(12)
    sizes = [max(text_width(small, each[n]) for each in lines) for n in range(4)]
    wide = sum(sizes) + 5 * gap
    high = len(lines) * line + px(4)
    place = QRectF(lay.box.right() - wide, lay.box.y() + px(2), wide, high)
    # Keys that the last row beside the words sees would lie under them.
    sees = lay.box.x() + lay.box.width() * (place.bottom() - lay.box.y()) / lay.box.height()
    if place.x() < min(sees, lay.part(range(1), range(state.step.keys)).right()) + gap:
        return lay.box.y()
    chosen = 2 if state.way == "again" else 1
    for n, texts in enumerate(lines):
        x = place.x() + gap
        for column, (text, size) in enumerate(zip(texts, sizes, strict=True)):
            box = QRectF(x, place.y() + n * line, size, line)
            tone = "text" if column == chosen else "muted"
            Text(text, tone, RIGHT if column else LEFT).paint(painter, style, box)
            x += size + gap
    return place.bottom()


def _paint_alone(
    painter: QPainter, state: GenerationState, style: Style, lay: _Places, row: QRectF, top: float
) -> None:
    """Say beside the rows that no other is computed; not over the words that end at `top`."""
    px, small, line = style.px, style.text_font(LABEL), lay.line
    one = len(state.step.rows) == 1
    alone = "this row alone is new" if one else "these rows alone are new"
    if state.way == "again":
        alone = "all rows are computed again"
    side = QRectF(row.right() + px(5), row.y() - line / 2, lay.box.right() - row.right(), line)
    side.moveTop(min(max(side.y(), lay.box.y()), lay.box.bottom() - line))
    if side.width() > text_width(small, alone) and side.y() >= top:
        draw_text(painter, side, alone, small, style.theme.current, LEFT)


def _mark(painter: QPainter, place: QRectF, ink: QColor, style: Style) -> None:
    """Outline a row or a column, at least as wide as can be seen."""
    least = style.px(_LEAST_BAND)
    x, y = max(least - place.width(), 0) / 2, max(least - place.height(), 0) / 2
    outline(painter, place.adjusted(-x, -y, x, y), ink, style.px(1.5))
