"""One stage of a layer at large: what it takes and what it makes, with the sum of one number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QPainter

from simulator.base.dtypes import F32, frozen
from simulator.run.whole_layer import LayerRun
from ui.look.draw import CENTRE, LEFT, draw_text, outline, text_width
from ui.look.formula import formula
from ui.look.names import first_that_fits, fitting
from ui.look.theme import LABEL, Style
from ui.look.units import tick_text
from ui.panels.layer.matrices import (
    MatrixPart,
    band_of,
    number_font,
    paint_matrix,
    paint_slices,
    rows_box,
)
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

MIN_SIZE = QSizeF(620, 250)
_LEAST = 0.18
"""Least side of a matrix, as a share of the longest."""
_APART = 8
"""Heads up to which each has a matrix of its own before the concat."""
_CELL = QSizeF(110, 60)
"""Largest cells at scale 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A matrix of a stage.

    Attributes
    ----------
    latex, colour : str
        Its name, and the tensor whose colours it has.
    values : ndarray
        (rows, columns) float32.
    before : str
        What stands between it and the one before it, such as ``×``.
    slices : tuple of range
        The heads of its slices.
    by_rows : bool
        Whether these are rows.
    rows : ndarray or None
        (rows,) bool, those that exist; None: all.
    marks : str
        What of it goes into the number that is explained: its ``row``, its ``column``, the ``cell``
        itself, or nothing.
    positive : bool
        Whether its colours begin at 0.
    """

    latex: str
    colour: str
    values: F32
    before: str = ""
    slices: tuple[range, ...] = ()
    by_rows: bool = False
    rows: Bools | None = None
    marks: str = ""
    positive: bool = False

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


@dataclass(frozen=True, slots=True)
class ProductLayout:
    """Places in the picture of a stage."""

    style: Style  # with the text scale that suits the place
    title: QRectF  # of what the stage does
    # boxes, names, signs: of each matrix, of its name above it, and of what stands before it
    boxes: tuple[QRectF, ...]
    names: tuple[QRectF, ...]
    signs: tuple[QRectF, ...]
    total: QRectF  # of the sum of one number
    written: bool  # whether all numbers can be read in their cells

    def cell_at(self, state: ProductState, point: QPointF) -> tuple[int, int, int] | None:
        """Return which number of which matrix is at a place."""
        for n, (item, box) in enumerate(zip(state.items, self.boxes, strict=True)):
            if box.contains(point):
                rows, cols = item.values.shape
                row = int((point.y() - box.y()) / box.height() * rows)
                col = int((point.x() - box.x()) / box.width() * cols)
                return n, min(row, rows - 1), min(col, cols - 1)
        return None


def product_layout(state: ProductState, style: Style, rect: QRectF) -> ProductLayout:
    """Return the places of everything."""
    style = fitting(style, rect, MIN_SIZE)
    px, line = style.px, style.px(22)
    title = QRectF(rect.x(), rect.y(), rect.width(), line)
    total = QRectF(rect.x(), rect.bottom() - line, rect.width(), line)
    top = title.bottom() + px(30)
    shapes = [item.values.shape for item in state.items]
    most_rows, most_cols = (max(shape[axis] for shape in shapes) for axis in (0, 1))
    wide = [max(float(cols / most_cols), _LEAST) for _, cols in shapes]
    tall = [max(float(rows / most_rows), _LEAST * (rows > 1)) for rows, _ in shapes]
    gap, edge = px(36), band_of(style) + px(3)
    room = rect.width() - gap * (len(shapes) - 1) - 2 * edge
    unit_w = min(room / sum(wide), most_cols * px(_CELL.width()))
    low = total.y() - px(10)
    unit_h = min(low - top, most_rows * px(_CELL.height()))
    x = rect.x() + edge + (room - unit_w * sum(wide)) / 2
    boxes, signs = [], []
    for across, down in zip(wide, tall, strict=True):
        high = max(unit_h * down, px(20))
        y = top + (low - top - high) / 2
        boxes.append(QRectF(round(x), round(y), round(unit_w * across), round(high)))
        signs.append(QRectF(x - gap, y + high / 2 - px(14), gap - edge, px(28)))
        x += unit_w * across + gap
    names = tuple(_name_box(style, box, rect, gap - edge) for box in boxes)
    written = all(
        number_font(item.values, style, box) is not None
        for item, box in zip(state.items, boxes, strict=True)
    )
    return ProductLayout(style, title, tuple(boxes), names, tuple(signs), total, written)


def _name_box(style: Style, box: QRectF, rect: QRectF, more: float) -> QRectF:
    """Return where a matrix is named: some pixels longer than it is wide, if there is room."""
    x = box.center().x()
    half = min(box.width() / 2 + more / 2, x - rect.x(), rect.right() - x)
    return QRectF(x - half, box.y() - style.px(24) - band_of(style), 2 * half, style.px(22))


def total_words(state: ProductState) -> list[str]:
    """Return how one number is made, longest first."""
    run = state.model.run
    assert run is not None
    values = state.items[-1].values
    if state.items[-1].rows is not None and not state.items[-1].rows[state.row]:
        return [f"row {state.row} is not there yet: the tiles make it", "not there yet"]
    if state.stage == "o":
        said = f"a row of O is the average of the rows of V with the weights of row {state.row}"
        return [*_average_words(state), said, f"row {state.row}: V averaged", ""]
    written = sum_text(run, state.stage, state.row, state.col)
    name, value = NAMES[state.stage], float(values[state.row, state.col])
    count = term_count(run, state.stage)
    short = f"{name}[{state.row}, {state.col}] = {tick_text(value)}"
    if not count:
        return [f"{short}, from head {state.col // run.shapes['o'][2]}", short, ""]
    biased = " and a bias" if biases_of(run, state.stage) else ""
    biased += ", turned by its place" if run.layer.turns(state.stage) else ""
    return [*([written] if written else []), f"{short}, a sum of {count} products{biased}", short,
            ""]  # fmt: skip


def _average_words(state: ProductState) -> list[str]:
    """Return how a number of O is made, if it is a sum of few terms."""
    made, values, before = (item.values for item in reversed(state.items[-3:]))
    if not state.items[-3].positive or len(values) > MOST_TERMS:
        return []
    terms = [f"{cell_words(float(a))}·{cell_words(float(b))}"
             for a, b in zip(before[state.row], values[:, state.col], strict=True)]  # fmt: skip
    value = cell_words(float(made[state.row, state.col]))
    return [f"O[{state.row}, {state.col}] = {' + '.join(terms)} = {value}"]


def title_words(state: ProductState) -> list[str]:
    """Return what the stage does."""
    assert state.model.run is not None
    said = title_of(state.model.run, state.stage)
    return [f"{said}: head {state.head}", said, ""] if state.stage == "o" else [said, ""]


def product_words(state: ProductState) -> str:
    """Return the picture in words, for screen readers."""
    return f"{title_words(state)[0]}. {total_words(state)[0]}"


def paint_product(painter: QPainter, state: ProductState, style: Style, rect: QRectF) -> None:
    """Draw a stage at large."""
    lay = product_layout(state, style, rect)
    style, theme = lay.style, lay.style.theme
    bold, text = style.text_font(13, bold=True), style.text_font(13)
    title = first_that_fits(title_words(state), lay.title.width(), bold)
    draw_text(painter, lay.title, title, bold, theme.text, LEFT)
    for item, box, name, sign in zip(state.items, lay.boxes, lay.names, lay.signs, strict=True):
        _paint_name(painter, item, style, name)
        part = MatrixPart(item.rows, positive=item.positive, written=lay.written)
        paint_matrix(painter, item.values, item.colour, style, box, part)
        if item.slices:
            paint_slices(painter, item.slices, style, box, along_rows=item.by_rows)
        _paint_mark(painter, state, item, style, box)
        if item.before:
            draw_text(painter, sign, item.before, style.text_font(17), theme.text, CENTRE)
    total = first_that_fits(total_words(state), lay.total.width(), text)
    draw_text(painter, lay.total, total, text, theme.text, LEFT)


def name_words(item: Item, style: Style, width: float) -> tuple[float, str]:
    """Return how wide the name of a matrix is, and its shape; that is "" if it does not fit."""
    wide = formula(item.latex, style.px(15)).width
    rows, cols = item.values.shape
    shape = f"  {rows}×{cols}"
    fits = wide + text_width(style.text_font(LABEL), shape) <= width
    return wide, shape if fits else ""


def _paint_name(painter: QPainter, item: Item, style: Style, box: QRectF) -> None:
    theme, font = style.theme, style.text_font(LABEL)
    wide, shape = name_words(item, style, box.width())
    x = box.center().x() - (wide + text_width(font, shape)) / 2
    colour = theme.tensor(item.colour)
    formula(item.latex, style.px(15)).draw(painter, x, box.bottom() - style.px(6), colour)
    rest = QRectF(x + wide, box.y(), max(box.right() - x - wide, 0.0), box.height())
    draw_text(painter, rest, shape, font, theme.muted)


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
    painter: QPainter, state: ProductState, item: Item, style: Style, box: QRectF
) -> None:
    """Frame what goes into the number that is explained."""
    place = mark_box(state, item, box)
    if not place.isNull():
        outline(painter, place.adjusted(-2, -2, 2, 2), style.theme.current, max(style.px(2), 2))
