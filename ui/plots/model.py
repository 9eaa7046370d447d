"""A plot as plain data: axes, curves, marks, lines, a map; and the places of ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor

from ui.look import curves
from ui.look.draw import mixed
from ui.look.theme import Theme

F64 = NDArray[np.float64]
Words = Callable[[float], str]
Marker = curves.Marker
Dash = curves.Dash

_STEPS = {2: (1, 2, 3, 4, 5, 6, 8, 10, 15, 20), 10: (1, 2, 3, 4, 6, 8, 12)}
"""Steps between exponents of logarithmic ticks, by their base."""
_MOST_TICKS = 40


def ink(theme: Theme, role: str) -> QColor:
    """Return the colour of an algorithm, a tensor or one of the theme's own roles."""
    if role == "hbm_line":  # a frame's colour is too dark for words
        return mixed(theme.hbm_line, theme.text, 0.4)
    return theme.role(role)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis."""

    title: str  # its title, with the unit unless the ticks say it
    text: Words  # a value in words, with its unit
    log: bool = False  # whether it is logarithmic
    base: int = 10  # base of round ticks: 10, or 2 for bytes and sizes
    whole: bool = False  # whether only whole numbers stand on it

    def place(self, value: float) -> float:
        """Return where a value stands: itself, or its logarithm."""
        return math.log10(value) if self.log else float(value)

    def places(self, values: F64) -> F64:
        """Return where values stand, of the same shape."""
        return np.log10(values) if self.log else values

    def value(self, place: float) -> float:
        """Return the value at a place."""
        return float(10.0**place) if self.log else place

    def ticks(self, low: float, high: float) -> Iterator[tuple[tuple[float, str], ...]]:
        """Yield choices of ticks between two places, finest first; the last has none.

        A choice is a row of places with their words. A choice with two equal words is left out.
        """
        for values in self._choices(low, high):
            if len(values) <= _MOST_TICKS:
                words = tuple((self.place(value), _short(self.text(value))) for value in values)
                if len({text for _, text in words}) == len(words):
                    yield words
        yield ()

    def _choices(self, low: float, high: float) -> Iterator[list[float]]:
        first, last = self.value(low), self.value(high)
        if not self.log or high - low < math.log10(4):
            yield from self._linear(first, last)
            return
        if self.base == 10:
            decades = [10.0**n for n in range(math.floor(low), math.ceil(high) + 1)]
            for parts in ((1, 2, 5), (1, 3)):
                yield [n for ten in decades for p in parts if first <= (n := ten * p) <= last]
        least = math.ceil(math.log(first, self.base) - 1e-9)
        most = math.floor(math.log(last, self.base) + 1e-9)
        for step in _STEPS[self.base]:
            yield [float(self.base) ** n for n in range(least, most + 1) if n % step == 0]

    def _linear(self, low: float, high: float) -> Iterator[list[float]]:
        span = high - low
        if span <= 0:
            return
        n = math.floor(math.log(span / _MOST_TICKS, self.base))
        while True:
            for part in (1, 2, 5) if self.base == 10 else (1,):
                step = part * float(self.base) ** n
                if step > span:
                    return
                if self.whole and step < 1:
                    continue
                first = math.ceil(low / step - 1e-9)
                yield [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]
            n += 1


def _short(text: str) -> str:
    """Return ``64 KiB`` for ``64.0 KiB``: a tick is exact."""
    return text.replace(".0 ", " ")


@dataclass(frozen=True, slots=True)
class Curve:
    """Points in a row, joined."""

    name: str  # its label, at its end; empty: none, as for the bar of an error
    short: str  # the same where there is little room
    role: str  # its colour, as `ink` takes it
    xs: tuple[float, ...]  # xs, ys: values; on logarithmic axes above 0
    ys: tuple[float, ...]
    # how the line is broken; with the marker it tells curves apart without colour
    dash: Dash = "solid"
    marker: Marker | None = "circle"  # at each point; with None the pointer finds no point
    width: float = 1.8  # of the line, at scale 1
    # lines that the pointer reads at each point, the first a heading
    details: tuple[tuple[str, ...], ...] = ()
    # the object that a click on each point picks; empty: none
    picks: tuple[object, ...] = ()
    # width of a bar from 0 to each point, in units of an even x; 0: the points are joined
    bar: float = 0.0


@dataclass(frozen=True, slots=True)
class PlotMark:
    """One marked point."""

    x: float  # x, y: where
    y: float
    label: str  # beside it
    short: str  # the same where there is little room
    role: str  # its colour
    # its shape; None: words alone, which the pointer does not find
    marker: Marker | None = "circle"
    size: float = 4.5  # radius at scale 1
    details: tuple[str, ...] = ()  # lines that the pointer reads, the first a heading
    pick: object = None  # the object that a click picks; None: none
    moves: bool = False  # whether it can be dragged to another place


@dataclass(frozen=True, slots=True)
class Level:
    """A line across the whole plot."""

    value: float  # where it crosses its axis
    label: str  # on it
    short: str  # the same where there is little room
    role: str  # its colour
    across: bool = True  # whether it lies across at a height; else it stands at a value of x


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """Coloured cells over two evenly spaced axes."""

    xs: tuple[float, ...]  # xs, ys: middles of the cells, rising by equal steps
    ys: tuple[float, ...]
    values: F64  # (len(ys), len(xs)), above 0, read-only
    title: str  # of the colour bar
    text: Words  # a value in words
    base: int  # base of the bar's round ticks
    role: str  # the colour of large values
    beyond: NDArray[np.bool_]  # (len(ys), len(xs)), read-only: cells hatched and fenced off
    beyond_label: str  # beyond_label, beyond_short: words for these cells, long and short
    beyond_short: str
    details: Callable[[int, int], tuple[str, ...]]  # lines read in the cell of a row and column

    @property
    def step_x(self) -> float:
        """Width of a cell."""
        return self.xs[1] - self.xs[0] if len(self.xs) > 1 else 1.0

    @property
    def step_y(self) -> float:
        """Height of a cell."""
        return self.ys[1] - self.ys[0] if len(self.ys) > 1 else 1.0

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, right, lower and upper edge."""
        dx, dy = self.step_x / 2, self.step_y / 2
        return self.xs[0] - dx, self.xs[-1] + dx, self.ys[0] - dy, self.ys[-1] + dy

    @property
    def axis(self) -> Axis:
        """The colour bar's axis, logarithmic."""
        return Axis(self.title, self.text, log=True, base=self.base)

    @property
    def ends(self) -> tuple[float, float]:
        """Places of the least and the largest value on the colour bar."""
        low, high = np.log10(self.values.min()), np.log10(self.values.max())
        return float(low), float(high) if high > low else float(low) + 0.1

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Return row and column of the cell at a place; None outside."""
        left, right, low, high = self.bounds
        if not (left <= x < right and low <= y < high):
            return None
        column, row = int((x - left) // self.step_x), int((y - low) // self.step_y)
        return min(row, len(self.ys) - 1), min(column, len(self.xs) - 1)

    def fence(self) -> list[tuple[float, float, float, float]]:
        """Return the edges (x, y, x, y) between cells that are beyond and other cells."""
        left, _, low, _ = self.bounds
        dx, dy, out = self.step_x, self.step_y, self.beyond
        lines = []
        for r, c in np.argwhere(out[:, 1:] != out[:, :-1]).tolist():
            x, y = left + (c + 1) * dx, low + r * dy
            lines.append((x, y, x, y + dy))
        for r, c in np.argwhere(out[1:] != out[:-1]).tolist():
            x, y = left + c * dx, low + (r + 1) * dy
            lines.append((x, y, x + dx, y))
        return lines


@dataclass(frozen=True, slots=True, eq=False)
class PlotModel:
    """A whole plot."""

    name: str  # name of the plot, for screen readers
    x: Axis  # x, y: axes
    y: Axis
    curves: tuple[Curve, ...] = ()  # curves, marks, levels: what is drawn
    marks: tuple[PlotMark, ...] = ()
    levels: tuple[Level, ...] = ()
    heat: HeatMap | None = None  # coloured cells under all else
    # curves of a plot above or below this one: with space for their labels as well, the axes of
    # both plots line up
    beside: tuple[Curve, ...] = ()
    note: str = ""  # one line that has to be known to read the plot; empty: none
    # x_range, y_range: values that a fit shows; None: all curves, marks and cells
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    summary: str = ""  # the figures in words, for screen readers

    def fit(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the places of x and of y that show everything."""
        if self.heat is not None:
            left, right, low, high = self.heat.bounds
            return (left, right), (low, high)
        xs = [x for curve in self.curves for x in curve.xs] + [mark.x for mark in self.marks]
        ys = [y for curve in self.curves for y in curve.ys] + [mark.y for mark in self.marks]
        xs += [level.value for level in self.levels if not level.across]
        ys += [level.value for level in self.levels if level.across]
        across = self.x_range or (min(xs, default=1.0), max(xs, default=10.0))
        up = self.y_range or (min(ys, default=1.0), max(ys, default=10.0))
        return _roomy(self.x, across, 0.03), _roomy(self.y, up, 0.07)


def _roomy(axis: Axis, ends: tuple[float, float], share: float) -> tuple[float, float]:
    low, high = axis.place(ends[0]), axis.place(ends[1])
    more = (high - low) * share or 0.5
    return low - more, high + more


@dataclass(frozen=True, slots=True)
class Spot:
    """Something in a plot that can be pointed at."""

    series: int  # index of the curve; after the curves come the marks; -1 for a cell of the map
    index: tuple[int, ...]  # place along it, or row and column
    x: float  # x, y: its values
    y: float
    details: tuple[str, ...]  # lines that the pointer reads
    pick: object  # the object that a click picks; None: none
    moves: bool = False  # whether it can be dragged


def spots(model: PlotModel) -> tuple[Spot, ...]:
    """Return the points of all curves that have markers, then the marks."""
    out = []
    for s, curve in enumerate(model.curves):
        if curve.marker is None:
            continue
        for n, (x, y) in enumerate(zip(curve.xs, curve.ys, strict=True)):
            lines = curve.details[n] if curve.details else (curve.name, model.y.text(y))
            pick = curve.picks[n] if curve.picks else None
            out.append(Spot(s, (n,), x, y, lines, pick))
    for n, mark in enumerate(model.marks):
        if mark.marker is None:
            continue
        lines = mark.details or (mark.label,)
        series = len(model.curves) + n
        out.append(Spot(series, (0,), mark.x, mark.y, lines, mark.pick, mark.moves))
    return tuple(out)


def cell_spot(heat: HeatMap, row: int, column: int) -> Spot:
    """Return a cell of the map; a click on it picks its two values."""
    x, y = heat.xs[column], heat.ys[row]
    return Spot(-1, (row, column), x, y, heat.details(row, column), (y, x))
