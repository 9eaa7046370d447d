"""How many heads: what stays and what multiplies when they divide the same width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.run.whole_layer import LayerRun
from simulator.study.layer_heads import HeadCount, head_counts
from ui.kit.boxes import Box, Canvas, Column, Row, ink
from ui.kit.shapes import Text
from ui.kit.table import FigureText
from ui.look.draw import RIGHT, hairline, mixed, outline
from ui.look.theme import Style
from ui.look.units import count_text, factor_text


@dataclass(frozen=True, slots=True)
class CountState:
    """Numbers of heads of a layer of one width."""

    counts: tuple[HeadCount, ...]  # from one head to one for each dimension
    at: int  # which of them is shown
    own: int  # how many heads the run has

    @property
    def now(self) -> HeadCount:
        """The one that is shown."""
        return self.counts[self.at]


def count_state(run: LayerRun, at: int | None = None) -> CountState:
    """Return the numbers of heads of a layer; `at` None: as many as it has, or the nearest."""
    rows, wide = run.shapes["x"]
    counts = head_counts(wide, rows)
    nearest = min(range(len(counts)), key=lambda n: abs(counts[n].heads - run.heads))
    return CountState(counts, nearest if at is None else min(at, len(counts) - 1), run.heads)


@dataclass(frozen=True, slots=True)
class CountLine:
    """A quantity: its name, its formula, its value, and how it compares with one head's."""

    names: tuple[str, ...]
    formula: str
    value: int
    factor: float
    share: float
    """Of the largest value that it has with any number of heads."""


def lines(state: CountState) -> tuple[CountLine, ...]:
    """Return what stays, then what multiplies."""

    def line(names: tuple[str, ...], formula: str, of: str) -> CountLine:
        values = [getattr(each, of) for each in state.counts]
        value = values[state.at]
        return CountLine(names, formula, value, value / values[0], value / max(values))

    return (
        line(("parameters of the four weights", "parameters"), "4 D²", "parameters"),
        line(("FLOPs of the projections", "projections"), "8 N D²", "projection_flops"),
        line(("FLOPs of QKᵀ and PV", "QKᵀ and PV"), "4 N² D", "tile_flops"),
        line(("scores, in h maps", "scores"), "h N²", "scores"),
        line(("exponentials", "exps"), "h N²", "exponentials"),
    )


def title_words(state: CountState) -> tuple[str, ...]:
    """Return what is supposed, longest first."""
    now = state.now
    one = f"D = {now.width} in {count_text(now.heads)} head{'s' * (now.heads > 1)} of {now.depth}"
    run = "as many as this layer has" if now.heads == state.own else f"this layer has {state.own}"
    return (
        f"{one} ({run}), supposing that each has its own K and V and none is masked",
        f"{one} ({run})",
    )


def count_words(state: CountState) -> str:
    """Return the picture in words, for screen readers."""
    said = [f"{line.names[0]} {count_text(line.value)}, {factor_text(line.factor)} that of one head"
            for line in lines(state)]  # fmt: skip
    return f"{title_words(state)[0]}: {'; '.join(said)}"


def count_picture(state: CountState) -> Box:
    """Return what more heads cost: a weight in slices, maps of scores, and figures."""
    now = state.now
    maps = f"{count_text(now.heads)} score map{'s' * (now.heads > 1)} of {now.rows} × {now.rows}"
    weight = f"W_Q, W_K, W_V: {now.heads} × {now.depth} columns"
    return Column((
        Text(title_words(state), size=13, bold=True, high=26),
        Row((
            Column((
                Text((weight, f"{now.heads} × {now.depth} columns", ""), "muted", wide=0, high=20),
                _Weight(now, grow=1),
            ), gap=0, share=0.4),
            Column((
                Text((maps, "score maps"), "muted", wide=0, high=20),
                Canvas(partial(_paint_maps, now), grow=1),
            ), gap=0, grow=1),
        ), gap=24, grow=1),
        *(_figures(line) for line in lines(state)),
    ), gap=0)  # fmt: skip


def _figures(line: CountLine) -> Box:
    """Return a quantity: its formula, its value, and how it compares with one head's."""
    stays = line.factor == 1
    bar = Canvas(partial(_paint_share, line), high=12, grow=1)
    return Row((
        Text(line.names, size=12, share=0.3, wide=0),
        Text(line.formula, "muted", size=12, share=0.1, wide=0),
        FigureText((count_text(line.value), f"{line.value:.2e}"), "text", RIGHT, 12, share=0.17,
               wide=0),
        Column((Box(grow=1), bar, Box(grow=1)), gap=0, grow=1),
        Text("1×" if stays else factor_text(line.factor), size=12, wide=54, high=24),
    ), gap=8)  # fmt: skip


def _paint_share(line: CountLine, painter: QPainter, style: Style, bar: QRectF) -> None:
    """Draw a value beside the largest that it has with any number of heads."""
    filled = QRectF(bar.x(), bar.y(), max(bar.width() * line.share, 1.0), bar.height())
    stays = line.factor == line.share == 1
    painter.fillRect(bar, ink(style, "field"))
    painter.fillRect(filled, ink(style, "muted" if stays else "current"))
    outline(painter, bar, style.theme.grid)


@dataclass(frozen=True, eq=False)
class _Weight(Box):
    """One weight as the slices of its heads: always the same square."""

    now: HeadCount

    def most_width(self, style: Style, height: float) -> float:
        return max(height, 0.0)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        theme, side = style.theme, min(rect.width(), rect.height())
        wide = side / self.now.heads
        for head in range(self.now.heads):
            part = QRectF(rect.x() + head * wide, rect.y(), wide, side)
            painter.fillRect(part, mixed(theme.panel, theme.head(head), 0.55))
            if wide > style.px(4):
                outline(painter, part, theme.panel)
        frame = QRectF(rect.x() - 1, rect.y() - 1, side + 2, side + 2)
        outline(painter, frame, theme.grid, hairline(style))


def columns_of(count: int, box: QRectF) -> int:
    """Return in how many columns so many squares are largest in a box."""

    def size(across: int) -> float:
        return min(box.width() / across, box.height() / -(-count // across))

    return max(range(1, count + 1), key=size)


def _paint_maps(now: HeadCount, painter: QPainter, style: Style, box: QRectF) -> None:
    """Draw the map of each head, all of one size: as large as the most of them let it be."""
    theme, across = style.theme, columns_of(now.width, box)
    step = min(box.width() / across, box.height() / -(-now.width // across))
    size = max(step - min(style.px(3), 0.25 * step), 1.0)
    for head in range(now.heads):
        x, y = box.x() + head % across * step, box.y() + head // across * step
        place = QRectF(x, y, size, size)
        painter.fillRect(place, mixed(theme.panel, theme.head(head), 0.55))
        outline(painter, place, theme.head(head))
