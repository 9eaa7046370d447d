"""One stage of a layer at large: its inputs and its output, with the sum of one number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSizeF

from simulator.run.whole_layer import LayerRun
from ui.kit.boxes import Box, Placed
from ui.kit.shapes import Text
from ui.look.draw import CENTRE
from ui.look.theme import Style
from ui.look.units import tick_text
from ui.panels.layer.matrices import Matrix, MatrixName, band_of, laid, number_font
from ui.panels.layer.state import COLOURS, Bools, LayerState, Pictured, heads_of, matrix
from ui.panels.layer.words import MOST_TERMS, NAMES, sum_text, sum_words, title_of, weight_of
from ui.panels.study import Words

_LEAST = 0.18
"""Least side of a matrix, as a share of the longest."""
_APART = 8
"""Heads up to which each has a matrix of its own before the concat."""
_CELL = QSizeF(110, 60)
"""Largest cells at scale 1."""


class Item(NamedTuple):
    """A matrix of a stage."""

    latex: str  # its name
    matrix: Matrix
    before: str = ""  # the sign before the matrix, such as ``×``
    marks: str = ""  # the part marked for the explained number: "row", "column" or "cell"


def items_of(state: LayerState) -> tuple[Item, ...]:
    """Return the matrices of a stage from left to right; the last is the output."""
    make = {"o": _tiles, "concat": _concat}.get(state.shown, _product)
    return tuple(make(state))


def cell_of(state: LayerState, items: tuple[Item, ...]) -> tuple[int, int]:
    """Return the number that is explained: the chosen one, or the first of the run's row."""
    rows, cols = items[-1].matrix.values.shape
    row, col = state.chosen_cell or (state.row, 0)
    return min(row, rows - 1), min(col, cols - 1)


def _item(
    run: LayerRun, name: str, rows: Bools | None, before: str = "", marks: str = "row"
) -> Item:
    """Return a tensor of a layer as an item."""
    of = Matrix(matrix(run, name), COLOURS.get(name, name), NAMES[name], rows, heads_of(run, name),
                name == "wo")  # fmt: skip
    return Item(NAMES[name], of, before, marks)


def _product(state: LayerState) -> Iterator[Item]:
    """Yield the matrices of a product with a weight."""
    run, stage = state.run, state.shown
    taken, weight, *biases = run.stage(stage).takes
    there = None if taken == "x" else state.whole
    yield _item(run, taken, there)
    yield _item(run, weight, None, "×", "column")
    for name in biases:
        bias = Matrix(matrix(run, name)[None, :], COLOURS[weight], NAMES[name])
        yield Item(NAMES[name], bias, "+", "column")
    yield _item(run, stage, there, "=", "cell")


def _concat(state: LayerState) -> Iterator[Item]:
    """Yield O of each head, or of all heads together if they are many, and the concat."""
    run = state.run
    if run.heads > _APART:
        yield _item(run, "o", state.whole)
    else:
        wide = run.shapes["o"][2]
        own = cell_of(state, (_item(run, "concat", None),))[1] // wide
        for head, o in enumerate(run.arrays["o"]):
            of = Matrix(o, "O", f"O_{head}", state.finished[head], (range(head, head + 1),))
            yield Item(f"O_{{{head}}}", of, marks="row" if head == own else "")
    yield _item(run, "concat", state.whole, "→", "cell")


def _tiles(state: LayerState) -> Iterator[Item]:
    """Yield Q, Kᵀ, the weights, V and O of the head at work."""
    arrays, head = state.run.arrays, state.head
    own, shared, made = (range(head, head + 1),), head // state.run.group, state.finished[head]
    yield Item("Q_h", Matrix(arrays["q"][head], "Q", "Q_h", slices=own), marks="row")
    yield Item("K_h^T", Matrix(arrays["k"][shared].T, "K", "K_hᵀ", None, own, True), "×")
    if state.weights is not None:
        weights = Matrix(state.weights, "P", "softmax", made, positive=True)
        yield Item(r"\mathrm{softmax}", weights, "→", "row")
    yield Item("V_h", Matrix(arrays["v"][shared], "V", "V_h", slices=own), "×", "column")
    yield Item("O_h", Matrix(arrays["o"][head], "O", "O_h", made, own), "=", "cell")


def words_of_stage(state: LayerState) -> Words:
    """Return what a stage does, and how one number is made."""
    items, head = items_of(state), f": head {state.head}" * (state.shown == "o")
    made = total_words(state, items, *cell_of(state, items))
    return Words(title_of(state.run, state.shown) + head, made)


def total_words(state: LayerState, items: tuple[Item, ...], row: int, col: int) -> str:
    """Return how one number is made."""
    run, stage, last = state.run, state.shown, items[-1].matrix
    name = f"{'O' if stage == 'o' else NAMES[stage]}[{row}, {col}]"
    if last.rows is not None and not last.rows[row]:
        return f"row {row} is not there yet: the tiles make it"
    if stage == "o":
        values = items[-2].matrix.values
        if state.weights is None or len(values) > MOST_TERMS:
            return f"a row of O is the average of the rows of V with the weights of row {row}"
        terms = zip(state.weights[row], values[:, col], strict=True)
        return sum_words(name, terms, (), float(last.values[row, col]))
    if written := sum_text(run, stage, row, col):
        return written
    more = " and a bias" if len(run.stage(stage).takes) > 2 else ""
    more += ", turned by its place" if run.layer.turns(stage) else ""
    weight, made = weight_of(run, stage), f"from head {col // run.shapes['o'][2]}"
    if weight is not None:
        made = f"a sum of {len(weight)} products{more}"
    return f"{name} = {tick_text(float(last.values[row, col]))}, {made}"


@dataclass(frozen=True, eq=False)
class StagePicture(Box):
    """Matrices from left to right, as large as their shapes say, with signs between them."""

    state: LayerState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        px, band, items = style.px, band_of(style), items_of(self.state)
        row, col = cell_of(self.state, items)
        shapes = [item.matrix.values.shape for item in items]
        gap, within = min(px(36), 0.07 * rect.width()), style.inset(rect, 0, 30, 0, 10)
        largest = max(rows for rows, _ in shapes), max(cols for _, cols in shapes)
        places = [place for place, in laid(
            [[each] for each in shapes], largest, style, within, cell=_CELL, least=_LEAST, gap=gap,
            edge=band + px(3),
        )]  # fmt: skip
        both = list(zip(items, places, strict=True))
        written = None not in [
            number_font(each.matrix.values, style, place) for each, place in both
        ]
        for (latex, of, before, marks), place in both:
            rows, cols = of.values.shape
            frames = {"row": (range(row, row + 1), range(cols)),
                      "column": (range(rows), range(col, col + 1)),
                      "cell": (range(row, row + 1), range(col, col + 1))}  # fmt: skip
            yield Placed(
                replace(of, written=written, frames=(frames[marks],) if marks else (),
                        id="cell" if marks == "cell" else None),
                place,
            )  # fmt: skip
            middle = place.center().x()
            half = min((place.width() + gap) / 2 - band, middle - rect.x(), rect.right() - middle)
            name = QRectF(middle - half, place.y() - px(24) - band, 2 * half, px(22))
            yield Placed(MatrixName(latex, style.theme.tensor(of.colour), f"{rows}×{cols}"), name)
            sign = QRectF(place.x() - gap, place.center().y() - px(14), gap - band, px(28))
            yield Placed(Text(before, align=CENTRE, size=17), sign)


STAGE_VIEW = Pictured(words_of_stage, StagePicture)
