"""How many heads: what stays and what multiplies when they divide the same width."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from simulator.run.whole_layer import LayerRun
from simulator.study.layer_heads import HeadCount, head_counts
from ui.look.draw import LEFT, RIGHT, draw_text, hairline, mixed, outline
from ui.look.names import first_that_fits, fitting
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, factor_text

MIN_SIZE = QSizeF(480, 250)


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


def title_words(state: CountState) -> list[str]:
    """Return what is supposed, longest first."""
    now = state.now
    one = f"D = {now.width} in {count_text(now.heads)} head{'s' * (now.heads > 1)} of {now.depth}"
    run = "as many as this layer has" if now.heads == state.own else f"this layer has {state.own}"
    return [f"{one} ({run}), supposing that each has its own K and V and none is masked",
            f"{one} ({run})", one]  # fmt: skip


def count_words(state: CountState) -> str:
    """Return the picture in words, for screen readers."""
    said = [f"{line.names[0]} {count_text(line.value)}, {factor_text(line.factor)} that of one head"
            for line in lines(state)]  # fmt: skip
    return f"{title_words(state)[0]}: {'; '.join(said)}"


@dataclass(frozen=True, slots=True)
class CountLayout:
    """Places: title, the sliced weight, the maps, and the lines of figures."""

    style: Style
    title: QRectF
    weight: QRectF
    maps: QRectF
    lines: tuple[QRectF, ...]


def count_layout(style: Style, rect: QRectF) -> CountLayout:
    """Return the places of everything."""
    style = fitting(style, rect, MIN_SIZE)
    px, line = style.px, style.px(24)
    title = QRectF(rect.x(), rect.y(), rect.width(), px(20))
    table = 5 * line
    top, low = title.bottom() + px(26), rect.bottom() - table - px(10)
    side = max(min(low - top, 0.4 * rect.width()), 0.0)
    weight = QRectF(rect.x() + px(4), top, side, side)
    left = weight.right() + px(60)
    maps = QRectF(left, top, max(rect.right() - left, 1.0), side)
    rows = tuple(QRectF(rect.x(), low + px(10) + n * line, rect.width(), line) for n in range(5))
    return CountLayout(style, title, weight, maps, rows)


def paint_counts(painter: QPainter, state: CountState, style: Style, rect: QRectF) -> None:
    """Draw what more heads cost."""
    lay = count_layout(style, rect)
    style, theme, px = lay.style, lay.style.theme, lay.style.px
    bold = style.text_font(13, bold=True)
    title = first_that_fits(title_words(state), lay.title.width(), bold)
    draw_text(painter, lay.title, title, bold, theme.text)
    now, font = state.now, style.text_font(LABEL)
    for box, texts in (
        (lay.weight, (f"W_Q, W_K, W_V: {now.heads} × {now.depth} columns", "weights")),
        (lay.maps, (f"{count_text(now.heads)} score map{'s' * (now.heads > 1)} of "
                    f"{now.rows} × {now.rows}", "score maps")),
    ):  # fmt: skip
        label = QRectF(
            box.x(), box.y() - px(20), max(box.width(), px(60)) + px(50), px(17)
        ).intersected(rect)
        text = first_that_fits(texts, label.width(), font)
        draw_text(painter, label, text, font, theme.muted)
    _paint_weight(painter, now, style, lay.weight)
    _paint_maps(painter, now, style, lay.maps)
    for line, place in zip(lines(state), lay.lines, strict=True):
        _paint_line(painter, line, style, place)


def _paint_weight(painter: QPainter, now: HeadCount, style: Style, box: QRectF) -> None:
    """Draw one weight as the slices of its heads: always the same square."""
    theme, wide = style.theme, box.width() / now.heads
    for head in range(now.heads):
        part = QRectF(box.x() + head * wide, box.y(), wide, box.height())
        painter.fillRect(part, mixed(theme.panel, theme.head(head), 0.55))
        if wide > style.px(4):
            outline(painter, part, theme.panel)
    outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid, hairline(style))


def columns_of(count: int, box: QRectF) -> int:
    """Return in how many columns so many squares are largest in a box."""

    def size(across: int) -> float:
        return min(box.width() / across, box.height() / -(-count // across))

    return max(range(1, count + 1), key=size)


def _paint_maps(painter: QPainter, now: HeadCount, style: Style, box: QRectF) -> None:
    """Draw the map of each head, all of one size: as large as the most of them let it be."""
    theme, across = style.theme, columns_of(now.width, box)
    step = min(box.width() / across, box.height() / -(-now.width // across))
    size = max(step - min(style.px(3), 0.25 * step), 1.0)
    for head in range(now.heads):
        x, y = box.x() + head % across * step, box.y() + head // across * step
        place = QRectF(x, y, size, size)
        painter.fillRect(place, mixed(theme.panel, theme.head(head), 0.55))
        outline(painter, place, theme.head(head))


def _paint_line(painter: QPainter, line: CountLine, style: Style, box: QRectF) -> None:
    theme, px = style.theme, style.px
    font, code = style.text_font(12), style.code_font(12)
    stays = line.factor == 1
    name = box.adjusted(0, 0, -0.68 * box.width(), 0)
    draw_text(painter, name, first_that_fits(line.names, name.width() - px(4), font), font,
              theme.text, LEFT)  # fmt: skip
    rule = QRectF(name.right(), box.y(), 0.1 * box.width(), box.height())
    draw_text(painter, rule, line.formula, font, theme.muted, LEFT)
    value = QRectF(rule.right(), box.y(), 0.17 * box.width(), box.height())
    said = first_that_fits([count_text(line.value), f"{line.value:.2e}"], value.width(), code)
    draw_text(painter, value, said, code, theme.text, RIGHT)
    bar = QRectF(value.right() + px(10), box.y() + px(6),
                 box.right() - value.right() - px(76), box.height() - px(12))  # fmt: skip
    painter.fillRect(bar, QColor(theme.field))
    filled = QRectF(bar.x(), bar.y(), max(bar.width() * line.share, 1.0), bar.height())
    painter.fillRect(filled, QColor(theme.muted if line.share == 1 and stays else theme.current))
    outline(painter, bar, theme.grid)
    words = factor_text(line.factor) if not stays else "1×"
    place = QRectF(bar.right() + px(6), box.y(), px(60), box.height())
    draw_text(painter, place, words, font, theme.text, LEFT)
