"""One stage of a layer at large: what it takes and what it makes, with the sum of one number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter

from simulator.base.dtypes import F32
from ui.kit.boxes import Box, Placed
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, outline
from ui.look.theme import Style
from ui.look.units import tick_text
from ui.panels.layer.matrices import Matrix, MatrixName, band_of, laid, number_font, rows_box
from ui.panels.layer.state import COLOURS, WEIGHTS, Bools, LayerState, heads_of, matrix
from ui.panels.layer.words import (
    MOST_TERMS,
    NAMES,
    biases_of,
    sum_text,
    sum_words,
    term_count,
    title_of,
)
from ui.panels.study import Words

_LEAST = 0.18
"""Least side of a matrix, as a share of the longest."""
_APART = 8
"""Heads up to which each has a matrix of its own before the concat."""
_CELL = QSizeF(110, 60)
"""Largest cells at scale 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A matrix of a stage."""

    latex: str  # its name
    colour: str  # the tensor whose colours it has
    values: F32
    before: str = ""  # the sign between it and the one before it, such as ``×``
    slices: tuple[range, ...] = ()  # the heads of its slices
    by_rows: bool = False  # whether these are rows
    rows: Bools | None = None  # those that exist; None: all
    marks: str = ""  # what goes into the explained number: its "row", its "column", the "cell"
    positive: bool = False  # whether its colours begin at 0


def items_of(state: LayerState) -> tuple[Item, ...]:
    """Return the matrices of a stage from left to right; the last is what it makes."""
    make = {"o": _tiles, "concat": _concat}.get(state.shown, _product)
    return tuple(make(state))


def cell_of(state: LayerState, items: tuple[Item, ...]) -> tuple[int, int]:
    """Return the number that is explained: the chosen one, or the first of the run's row."""
    rows, cols = items[-1].values.shape
    row, col = state.chosen_cell or (state.row, 0)
    return min(row, rows - 1), min(col, cols - 1)


def _product(state: LayerState) -> Iterator[Item]:
    """Yield the matrices of a product with a weight."""
    run, stage = state.run, state.shown
    takes = run.stage(stage).takes
    there = None if takes[0] == "x" else state.whole
    for name in takes:
        values, bias = matrix(run, name), name in biases_of(run, stage)
        weight = name in run.layer.weights
        yield Item(
            NAMES[name], COLOURS[WEIGHTS[stage]] if bias else COLOURS.get(name, name),
            values[None, :] if bias else values, "+" if bias else "×" if weight else "",
            () if bias else heads_of(run, name), name == "wo", None if weight else there,
            "column" if weight else "row",
        )  # fmt: skip
    yield Item(NAMES[stage], COLOURS.get(stage, stage), matrix(run, stage), "=",
               heads_of(run, stage), rows=there, marks="cell")  # fmt: skip


def _concat(state: LayerState) -> Iterator[Item]:
    """Yield O of each head, or of all of them if they are many, and the concat."""
    run = state.run
    whole = Item(NAMES["concat"], COLOURS["concat"], matrix(run, "concat"), "→",
                 heads_of(run, "concat"), rows=state.whole, marks="cell")  # fmt: skip
    if run.heads > _APART:
        yield replace(whole, latex=NAMES["o"], before="", marks="row")
    for head, o in enumerate(run.arrays["o"] if run.heads <= _APART else ()):
        yield Item(f"O_{{{head}}}", COLOURS["o"], o, slices=(range(head, head + 1),),
                   rows=state.finished[head], marks="row")  # fmt: skip
    yield whole


def _tiles(state: LayerState) -> Iterator[Item]:
    """Yield Q, Kᵀ, the weights, V and O of the head at work."""
    run, head = state.run, state.head
    own, shared, made = (range(head, head + 1),), head // run.group, state.finished[head]
    yield Item("Q_h", "Q", run.arrays["q"][head], slices=own, marks="row")
    yield Item("K_h^T", "K", run.arrays["k"][shared].T, "×", own, by_rows=True)
    if state.weights is not None:
        yield Item(r"\mathrm{softmax}", "P", state.weights, "→", rows=made, marks="row",
                   positive=True)  # fmt: skip
    yield Item("V_h", "V", run.arrays["v"][shared], "×", own, marks="column")
    yield Item("O_h", "O", run.arrays["o"][head], "=", own, rows=made, marks="cell")


def words_of_stage(state: LayerState) -> Words:
    """Return what a stage does, and how one number is made."""
    title, items = title_of(state.run, state.shown), items_of(state)
    titles = (f"{title}: head {state.head}", title) if state.shown == "o" else title
    return Words(titles, tuple(total_words(state, items, *cell_of(state, items))))


def total_words(state: LayerState, items: tuple[Item, ...], row: int, col: int) -> Iterator[str]:
    """Yield how one number is made, longest first."""
    run, stage, last = state.run, state.shown, items[-1]
    name = f"{NAMES[stage] if stage != 'o' else 'O'}[{row}, {col}]"
    if last.rows is not None and not last.rows[row]:
        yield f"row {row} is not there yet: the tiles make it"
        yield "not there yet"
    elif stage == "o":
        weights, values = items[-3], items[-2].values
        if weights.positive and len(values) <= MOST_TERMS:
            terms = zip(weights.values[row], values[:, col], strict=True)
            yield sum_words(name, terms, (), float(last.values[row, col]))
        yield f"a row of O is the average of the rows of V with the weights of row {row}"
        yield f"row {row}: V averaged"
    else:
        short, count = f"{name} = {tick_text(float(last.values[row, col]))}", term_count(run, stage)
        if written := sum_text(run, stage, row, col):
            yield written
        if count:
            more = " and a bias" if biases_of(run, stage) else ""
            more += ", turned by its place" if run.layer.turns(stage) else ""
            yield f"{short}, a sum of {count} products{more}"
        else:
            yield f"{short}, from head {col // run.shapes['o'][2]}"
        yield short


@dataclass(frozen=True, eq=False)
class StagePicture(Box):
    """Matrices from left to right, as large as their shapes say, with signs between them."""

    state: LayerState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        px, band, items = style.px, band_of(style), items_of(self.state)
        shapes = [item.values.shape for item in items]
        largest = max(rows for rows, _ in shapes), max(cols for _, cols in shapes)
        gap, row_col = min(px(36), 0.07 * rect.width()), cell_of(self.state, items)
        within = rect.adjusted(0, px(30), 0, -px(10))
        places = [place for place, in laid(
            [[each] for each in shapes], largest, style, within, cell=_CELL, least=_LEAST, gap=gap,
            edge=band + px(3),
        )]  # fmt: skip
        fonts = [number_font(item.values, style, place)
                 for item, place in zip(items, places, strict=True)]  # fmt: skip
        for item, place in zip(items, places, strict=True):
            said = item.latex.replace(r"\mathrm{softmax}", "softmax").replace("^T", "ᵀ")
            yield Placed(
                Matrix(item.values, item.colour, said, item.rows, item.slices, item.by_rows,
                       positive=item.positive, written=None not in fonts,
                       over=partial(_paint_mark, self.state.shown, items, item, *row_col),
                       id="cell" if item is items[-1] else None),
                place,
            )  # fmt: skip
            middle = place.center().x()
            half = min((place.width() + gap) / 2 - band, middle - rect.x(), rect.right() - middle)
            name = QRectF(middle - half, place.y() - px(24) - band, 2 * half, px(22))
            shape = "×".join(map(str, item.values.shape))
            yield Placed(MatrixName(item.latex, style.theme.tensor(item.colour), shape), name)
            sign = QRectF(place.x() - gap, place.center().y() - px(14), gap - band, px(28))
            yield Placed(Text(item.before, align=CENTRE, size=17), sign)


def mark_box(
    stage: str, items: tuple[Item, ...], item: Item, row: int, col: int, box: QRectF
) -> QRectF:
    """Return what of a matrix goes into the number that is explained; null if nothing does."""
    rows, cols = item.values.shape
    wide, line = box.width() / cols, rows_box(box, range(row, row + 1), rows)
    if item.marks == "row":
        own = stage == "concat" and cols < items[-1].values.shape[1]
        elsewhere = own and item.slices[0].start != col // cols
        return QRectF() if elsewhere else line
    if item.marks == "column":
        return QRectF(box.x() + col * wide, box.y(), wide, box.height())
    return QRectF(line.x() + col * wide, line.y(), wide, line.height()) if item.marks else QRectF()


def _paint_mark(
    stage: str, items: tuple[Item, ...], item: Item, row: int, col: int,
    painter: QPainter, style: Style, box: QRectF,
) -> None:  # fmt: skip
    """Frame what goes into the number that is explained."""
    place = mark_box(stage, items, item, row, col, box)
    if not place.isNull():
        outline(painter, place.adjusted(-2, -2, 2, 2), style.theme.current, max(style.px(2), 2))
