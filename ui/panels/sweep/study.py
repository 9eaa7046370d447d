"""The costs of other sizes and tiles: curves over one size, a map over tiles, or a table."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, get_args

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter

from simulator.base.choices import one_of
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS
from simulator.run.trace import Trace
from simulator.study.sweep import (
    Axis,
    Sweep,
    TilingMap,
    axis_values,
    in_kernel_tiles,
    map_sizes,
    scenario_at,
    sweep,
    tiles_scenario,
    tiling_map,
)
from simulator.study.sweep_choices import CHOICES, KERNELS, MAP, VARIANTS
from simulator.study.variants import HEADS, Variant, VariantCost, VariantTable, variant_table
from ui.kit.boxes import Box, Column, Row
from ui.kit.shapes import Text
from ui.look.draw import LEFT, RIGHT, card, draw_text, text_width
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text, queries_text, time_text
from ui.panels.study import Chosen, Study, Words
from ui.panels.sweep.plot import ONE_LENGTH, QUANTITIES, CurvePick, Quantity, map_plot, sweep_plot
from ui.plots.model import PlotModel
from ui.session.tasks import Report
from ui.session.view import View

_HEADINGS = ("time", "held in HBM", "cached", "weights W")
_LINE, _HIGHEST = 14.0, 44.0
"""Height of a line and most of a row, pixels at scale 1."""


def variants_words(t: VariantTable, w: Workload) -> Words:
    """Return the words that a reader of the table needs."""
    queries = "" if w.queries == w.seqlen_k else f"{queries_text(w.queries)}, "
    first = (
        f"{queries}N = {count_text(w.seqlen_k)}, d = {w.head_dim}, one layer of {t.heads} heads, "
        f"D = {count_text(t.width)}, {w.gpu.name}."
    )
    more = [f"{ONE_LENGTH}."]
    if t.lengths:
        low, high = (count_text(n) for n in (t.lengths[0], t.lengths[-1]))
        more = [f"Exponents fitted from N = {low} to {high}."]
    if t.heads == HEADS != w.input_heads[0]:
        more.append(f"{HEADS} heads because a single one shares nothing.")
    more.append("Times: the least that the data sheet allows.")
    if w.dtype == "float32":
        more.append("Times are of bytes alone: no float32 rate in the presets.")
    return Words(first, "", tuple(more))


def exponent_text(cost: VariantCost) -> str:
    """Return a fitted exponent with two digits; "" where none could be fitted."""
    if cost.power is None:
        return ""
    return f"{cost.power.exponent + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def cells_of(row: Variant) -> tuple[tuple[VariantCost, Callable[[float], str]], ...]:
    """Return the costs of a variant in the order of the columns, with how they are written."""
    return (
        (row.seconds, time_text),
        (row.held, bytes_text),
        (row.cached, bytes_text),
        (row.parameters, count_text),
    )


@dataclass(frozen=True, eq=False)
class _Power(Box):
    """N with a raised exponent, at the right."""

    exponent: str

    def height(self, style: Style, width: float) -> float:
        return style.px(_LINE)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        code, small, ink = style.code_font(12), style.code_font(11), style.theme.tensor("S")
        raised, letter = text_width(small, self.exponent), text_width(code, "N")
        base = rect.adjusted(0, 0, -raised - style.px(1), 0)
        draw_text(painter, base.adjusted(base.width() - letter, 0, 0, 0), "N", code, ink, LEFT)
        top = rect.translated(0, -style.px(3))
        draw_text(painter, top, self.exponent, small, ink, RIGHT)


@dataclass(frozen=True, eq=False)
class _Cell(Column):
    """A cell as wide as the widest of its column, in the middle of its row."""

    of: tuple[str, ...] = ()  # all words of the column

    def width(self, style: Style) -> float:
        return max(text_width(style.text_font(12), each) for each in self.of) + style.px(10)


class _OwnRow(Row):
    """The row of the scenario's own variant, framed."""

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        theme, frame = style.theme, rect.adjusted(1, 0, -1, 0)
        card(painter, frame, theme.accent, theme.current, style.px(4), style.px(1.2))


class _Rows(Column):
    """The rows of the table, with a largest height."""

    def most_height(self, style: Style) -> float:
        return style.px(_HIGHEST) * len(self.parts)


def variants_picture(t: VariantTable) -> Box:
    """Return a row for each variant; with little room the last columns are left out."""
    names = ["variant", *(part for row in t.rows for part in row.name.split(", "))]
    columns = [
        [heading, *(text(cost.here) for cost, text in each)]
        for heading, each in zip(_HEADINGS, zip(*map(cells_of, t.rows), strict=True), strict=True)
    ]

    def line(kind: type[Row], name: Box, cells: list[Box], grow: float = 0.0) -> Row:
        first = _Cell((name,), 0, of=tuple(names))
        rest = (
            _Cell((each,), 0, of=tuple(column), grow=1, may_go=n > 0)
            for n, (each, column) in enumerate(zip(cells, columns, strict=True))
        )
        return kind((Box(wide=6), first, *rest, Box(wide=6)), gap=0, grow=grow)

    def middle(*parts: Box) -> Column:
        return Column((Box(grow=1), *parts, Box(grow=1)), gap=0, grow=1)

    heads: list[Box] = [Text(each, "muted", RIGHT, size=11) for each in _HEADINGS]
    rows = []
    for row in t.rows:
        cells: list[Box] = [
            middle(Text(text(cost.here), align=RIGHT, high=_LINE), *powers)
            for cost, text in cells_of(row)
            for powers in [[_Power(exponent_text(cost), may_go=True)] if cost.power else []]
        ]
        name = middle(*(Text(part, high=_LINE) for part in row.name.split(", ")))
        rows.append(line(_OwnRow if row.own else Row, name, cells, 1))
    head = line(Row, Text("variant", "muted", size=11), heads)
    return Column((head, _Rows(tuple(rows), gap=0, grow=1)), gap=0)


_AXES: tuple[Axis, ...] = get_args(Axis)
_NO_VARIANTS = (
    "Keys and values are one latent that all heads share; heads of other widths are not shown."
)


@dataclass(frozen=True, slots=True, eq=False)
class Swept:
    """Figures of a workload at other sizes, and the quantity that is shown."""

    workload: Workload
    found: Sweep | TilingMap | VariantTable | None  # None: no variants of a latent
    quantity: Quantity = "bytes"

    def plot(self) -> PlotModel | None:
        """Return curves or a map; None for a table."""
        w, found = self.workload, self.found
        if isinstance(found, TilingMap):
            return map_plot(found, w.as_algorithm(found.algorithm), self.quantity)
        return sweep_plot(found, w, self.quantity) if isinstance(found, Sweep) else None


class SweepStudy(Study[Swept, Swept]):
    """Other sizes and tiles of the scenario; a click on a point makes it the scenario."""

    name, title, doing, choices = "sweep", "Sweep", "sweeping sizes", CHOICES
    pictured, room = "variants", QSizeF(440, 250)

    def said(self, trace: Trace) -> Chosen:
        return {"algorithm": trace.workload.algorithm}

    def lesson(self, said: Chosen) -> Chosen:
        return said

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        over, out = chosen["over"], {"algorithm", "tiles"}
        out -= {"tiles"} if over in ("N", "d") else {"algorithm"} if over == MAP else set()
        return frozenset(out | {"quantity"} if over == VARIANTS else out)

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        over = chosen["over"]
        timed = chosen["quantity"] == "time" and over in _AXES
        kernels = chosen["tiles"] == KERNELS and over in ("N", "d")
        return over, chosen["algorithm"] if over == MAP else "", timed, kernels

    def compute(self, trace: Trace, needs: Any, report: Report) -> Swept:
        w, (over, algorithm, timed, kernels) = trace.workload, needs
        w = in_kernel_tiles(w) if kernels else w
        if over == VARIANTS:
            return Swept(w, None if w.latent else variant_table(w))
        if over == MAP:
            of = w.as_algorithm(ALGORITHMS[algorithm].name)
            sizes = map_sizes(w.seqlen_q), map_sizes(w.seqlen_k)
            return Swept(w, tiling_map(of, *sizes, report))
        axis = one_of(_AXES, over)
        return Swept(w, sweep(w, axis, axis_values(w, axis), report, timed=timed))

    def state(self, found: Swept, chosen: Chosen, before: Swept | None, changed: str) -> Swept:
        return Swept(found.workload, found.found, one_of(QUANTITIES, chosen["quantity"]))

    def proposes(self, state: Swept, at: Hashable) -> tuple[Scenario, str] | None:
        w, found = state.workload, state.found
        if isinstance(found, Sweep) and isinstance(at, CurvePick):
            algorithm, scenario = at.algorithm, scenario_at(w, found.axis, at.value)
            words = f"{found.axis} = {count_text(at.value)}"
        elif isinstance(found, TilingMap) and isinstance(at, tuple):
            rows, cols = (round(size) for size in at)
            algorithm, scenario = found.algorithm, tiles_scenario(w, rows, cols)
            words = f"tiles {count_text(rows)} × {count_text(cols)}"
        else:
            return None
        if algorithm == w.algorithm:
            return scenario, words
        changed = with_values(scenario, {"attention": {"algorithm": algorithm}})
        return changed, f"{algorithm}, {words}"

    def plot(self, state: Swept) -> PlotModel | None:
        return state.plot()

    def picture(self, state: Swept) -> Box | None:
        return variants_picture(state.found) if isinstance(state.found, VariantTable) else None

    def words(self, state: Swept) -> Words:
        if state.found is None:
            return Words("No variants", sentences=(_NO_VARIANTS,))
        if not isinstance(state.found, VariantTable):
            return Words("")
        return variants_words(state.found, state.workload)

    def described(self, state: Swept) -> tuple[str, ...]:
        rows = state.found.rows if isinstance(state.found, VariantTable) else ()
        said = (
            f"{row.name}: "
            + ", ".join(
                f"{heading} {text(cost.here)}"
                + (f", as N to the {exponent_text(cost)}" if cost.power else "")
                for heading, (cost, text) in zip(_HEADINGS, cells_of(row), strict=True)
            )
            for row in rows
        )
        return *super().described(state), *said


SWEEP = SweepStudy()
