"""One stage of a layer at large: what it takes and what it makes, with the sum of one number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter

from simulator.base.dtypes import F32, frozen
from simulator.run.whole_layer import LayerRun
from ui.kit.boxes import Box, Column, Placed
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, outline
from ui.look.theme import Style
from ui.look.units import tick_text
from ui.panels.layer.matrices import Matrix, MatrixName, MatrixPart, band_of, number_font, rows_box
from ui.panels.layer.model import COLOURS, WEIGHTS, Bools, LayerModel, heads_of, matrix
from ui.panels.layer.words import (
    MOST_TERMS,
    NAMES,
    biases_of,
    cell_words,
    sum_text,
    term_count,
    title_of,
)

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

    @property
    def plain(self) -> str:
        """The matrix's name in a line of text."""
        return self.latex.replace(r"\mathrm{softmax}", "softmax").replace("^T", "ᵀ")


@dataclass(frozen=True, slots=True, eq=False)
class ProductState:
    """A stage at a cursor."""

    model: LayerModel  # the layer
    stage: str  # the stage
    head: int  # the head whose attention is shown
    row: int  # row, col: of what the stage makes: the number that is explained
    col: int
    items: tuple[Item, ...]  # its matrices from left to right; the last is what it makes


def product_state(
    model: LayerModel, stage: str, row: int | None = None, col: int = 0
) -> ProductState:
    """Return a stage of the layer of a model that has one; `row` None: that of the run."""
    run = model.run
    assert run is not None
    make = {"o": _tiles, "concat": _concat}.get(stage)
    items = _product(model, run, stage) if make is None else make(model, run)
    rows, cols = items[-1].values.shape
    at = min(model.row if row is None else row, rows - 1)
    return ProductState(model, stage, model.head, at, min(col, cols - 1), items)


def _product(model: LayerModel, run: LayerRun, stage: str) -> tuple[Item, ...]:
    """Return the matrices of a product with a weight."""
    one, given = run.stage(stage), run.layer.weights
    landed = None if one.takes[0] == "x" else model.whole
    items: list[Item] = []
    for name in one.takes:
        bias = _is_bias(run, name)
        values = matrix(run, name)
        items.append(
            Item(
                NAMES[name], COLOURS[WEIGHTS[stage]] if bias else COLOURS.get(name, name),
                values[None, :] if bias else values,
                "" if not items else "+" if bias else "×",
                () if bias else heads_of(run, name), name == "wo",
                None if name in given else landed,
                "column" if name in given else "row",
            )
        )  # fmt: skip
    last = Item(NAMES[stage], COLOURS.get(stage, stage), matrix(run, stage), "=",
                heads_of(run, stage), rows=landed, marks="cell")  # fmt: skip
    return (*items, last)


def _concat(model: LayerModel, run: LayerRun) -> tuple[Item, ...]:
    """Return O of each head, or of all of them if they are many, and the concat."""
    few = run.heads <= _APART
    parts = [
        Item(f"O_{{{head}}}", COLOURS["o"], o, slices=(range(head, head + 1),), marks="row",
             rows=model.finished[head])
        for head, o in enumerate(run.arrays["o"])
    ]  # fmt: skip
    whole = Item(NAMES["concat"], COLOURS["concat"], matrix(run, "concat"), "→",
                 heads_of(run, "concat"), rows=model.whole, marks="cell")  # fmt: skip
    joined = replace(whole, latex=NAMES["o"], before="", marks="row")
    return (*(parts if few else [joined]), whole)


def _is_bias(run: LayerRun, name: str) -> bool:
    return len(run.shapes[name]) == 1


def _tiles(model: LayerModel, run: LayerRun) -> tuple[Item, ...]:
    """Return Q, Kᵀ, the weights, V and O of the head at work."""
    head, shared = model.head, model.head // run.group
    own = (range(head, head + 1),)
    q, k, v = (run.arrays[name] for name in "qkv")
    items = [
        Item(r"Q_h", COLOURS["q"], q[head], slices=own, marks="row"),
        Item(r"K_h^T", COLOURS["k"], k[shared].T, "×", own, by_rows=True),
    ]
    weights, made = head_weights(model, run), model.finished[head]
    if weights is not None:
        name = r"\mathrm{softmax}"
        items.append(Item(name, "P", weights, "→", rows=made, marks="row", positive=True))
    return (
        *items,
        Item(r"V_h", COLOURS["v"], v[shared], "×", own, marks="column"),
        Item(r"O_h", COLOURS["o"], run.arrays["o"][head], "=", own, rows=made, marks="cell"),
    )


def head_weights(model: LayerModel, run: LayerRun) -> F32 | None:
    """Return the softmax of the head at work, (N, N) float32; None where a run is too large."""
    now = model.snapshot
    if now.head is None:
        return None
    rows = run.shapes["x"][0]
    start = model.head % now.program.workload.group * rows
    scores = now.head.s[start : start + rows]
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - run.statistics["lse"][model.head][:, None])
    return frozen(np.nan_to_num(weights, nan=0.0).astype(np.float32))


def total_words(state: ProductState) -> tuple[str, ...]:
    """Return how one number is made, longest first."""
    run = state.model.run
    assert run is not None
    last, row, col = state.items[-1], state.row, state.col
    if last.rows is not None and not last.rows[row]:
        return f"row {row} is not there yet: the tiles make it", "not there yet"
    if state.stage == "o":
        said = f"a row of O is the average of the rows of V with the weights of row {row}"
        return *_average_words(state), said, f"row {row}: V averaged", ""
    short = f"{NAMES[state.stage]}[{row}, {col}] = {tick_text(float(last.values[row, col]))}"
    count = term_count(run, state.stage)
    if not count:
        return f"{short}, from head {col // run.shapes['o'][2]}", short, ""
    biased = " and a bias" if biases_of(run, state.stage) else ""
    biased += ", turned by its place" if run.layer.turns(state.stage) else ""
    written = sum_text(run, state.stage, row, col)
    sums = (written, f"{short}, a sum of {count} products{biased}", short)
    return *filter(None, sums), ""


def _average_words(state: ProductState) -> list[str]:
    """Return how a number of O is made, if it is a sum of few terms."""
    made, values, before = (item.values for item in reversed(state.items[-3:]))
    if not state.items[-3].positive or len(values) > MOST_TERMS:
        return []
    terms = [f"{cell_words(float(a))}·{cell_words(float(b))}"
             for a, b in zip(before[state.row], values[:, state.col], strict=True)]  # fmt: skip
    value = cell_words(float(made[state.row, state.col]))
    return [f"O[{state.row}, {state.col}] = {' + '.join(terms)} = {value}"]


def title_words(state: ProductState) -> tuple[str, ...]:
    """Return what the stage does."""
    assert state.model.run is not None
    said = title_of(state.model.run, state.stage)
    return (f"{said}: head {state.head}", said, "") if state.stage == "o" else (said, "")


def product_words(state: ProductState) -> str:
    """Return the picture in words, for screen readers."""
    return f"{title_words(state)[0]}. {total_words(state)[0]}"


def product_picture(state: ProductState) -> Box:
    """Return a stage at large."""
    return Column((
        Text(title_words(state), size=13, bold=True, high=22),
        _Items(state, grow=1),
        Text(total_words(state), size=13, high=22),
    ), gap=0)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Items(Box):
    """Matrices from left to right, as large as their shapes say, with signs between them."""

    state: ProductState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        px, band, items = style.px, band_of(style), self.state.items
        rect = rect.adjusted(0, px(30), 0, -px(10))
        shapes = [item.values.shape for item in items]
        rows, cols = (max(shape[axis] for shape in shapes) for axis in (0, 1))
        wide = [max(float(each / cols), _LEAST) for _, each in shapes]
        tall = [max(float(each / rows), _LEAST * (each > 1)) for each, _ in shapes]
        gap, edge = px(36), band + px(3)
        room = rect.width() - gap * (len(items) - 1) - 2 * edge
        across = min(room / sum(wide), cols * px(_CELL.width()))
        down = min(rect.height(), rows * px(_CELL.height()))
        x, places = rect.x() + edge + (room - across * sum(wide)) / 2, []
        for w, h in zip(wide, tall, strict=True):
            high = max(down * h, px(20))
            y = rect.center().y() - high / 2
            places.append(QRectF(round(x), round(y), round(across * w), round(high)))
            x += across * w + gap
        fonts = [number_font(each.values, style, p) for each, p in zip(items, places, strict=True)]
        for item, place in zip(items, places, strict=True):
            part = MatrixPart(item.rows, positive=item.positive, written=None not in fonts)
            yield Placed(
                Matrix(item.values, item.colour, item.plain, part, item.slices, item.by_rows,
                       over=partial(_paint_mark, self.state, item),
                       id="cell" if item is items[-1] else None),
                place,
            )  # fmt: skip
            middle = place.center().x()
            half = min((place.width() + gap - edge) / 2, middle - rect.x(), rect.right() - middle)
            name = QRectF(middle - half, place.y() - px(24) - band, 2 * half, px(22))
            shape = "×".join(map(str, item.values.shape))
            yield Placed(MatrixName(item.latex, style.theme.tensor(item.colour), shape), name)
            sign = QRectF(place.x() - gap, place.center().y() - px(14), gap - edge, px(28))
            yield Placed(Text(item.before, align=CENTRE, size=17), sign)


def mark_box(state: ProductState, item: Item, box: QRectF) -> QRectF:
    """Return what of a matrix goes into the number that is explained; null if nothing does."""
    rows, cols = item.values.shape
    wide, line = box.width() / cols, rows_box(box, range(state.row, state.row + 1), rows)
    col = state.col
    if item.marks == "row":
        own = state.stage == "concat" and cols < state.items[-1].values.shape[1]
        elsewhere = own and item.slices[0].start != col // cols
        return QRectF() if elsewhere else line
    if item.marks == "column":
        return QRectF(box.x() + col * wide, box.y(), wide, box.height())
    return QRectF(line.x() + col * wide, line.y(), wide, line.height()) if item.marks else QRectF()


def _paint_mark(
    state: ProductState, item: Item, painter: QPainter, style: Style, box: QRectF
) -> None:
    """Frame what goes into the number that is explained."""
    place = mark_box(state, item, box)
    if not place.isNull():
        outline(painter, place.adjusted(-2, -2, 2, 2), style.theme.current, max(style.px(2), 2))
