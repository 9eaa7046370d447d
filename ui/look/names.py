"""Names of things in pictures, with real block numbers, and the choice of words that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QFont

from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.op import Op
from simulator.program.ops import Normalise
from simulator.program.state import ChipTile, TileMove
from simulator.program.state_ops import MapFeatures
from simulator.program.tensors import symbol
from simulator.program.tile_program import TileAlgorithm, TileProgram, Visit
from ui.look.draw import text_width
from ui.look.theme import LABEL, Style
from ui.look.units import bytes_text, count_text

_GROWTH = 1.35
_ROOM_TO_GROW = 0.62

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_PER_ROW_BLOCK = ("Q", "O", "LSE")
_PER_COLUMN_BLOCK = ("K", "V", "C")
_SQUARE = ("S", "P")


def tensor_names(name: str) -> tuple[str, ...]:
    """Return a tensor's names, the longest first."""
    return symbol(name), name.replace("_partial", " part"), name.partition("_")[0]


def subscript(*indices: int) -> str:
    """Return block numbers as subscripts: ``₂₁``, with a comma where that would be unclear."""
    return ("" if max(indices) < 10 else ",").join(str(n).translate(_SUBSCRIPTS) for n in indices)


def move_name(move: TileMove, w: Workload) -> str:
    """Return the name of a moved tile: ``K₁``; without a number if it spans several blocks."""
    name = symbol(move.tensor)
    if move.tensor in _SQUARE and move.cols is not None:
        i = move.rows.start // w.rows
        if len(move.cols) > w.cols:
            return name + subscript(i)
        return name + subscript(i, move.cols.start // w.cols)
    size = w.cols if move.tensor in _PER_COLUMN_BLOCK else w.rows
    if move.tensor not in _PER_ROW_BLOCK + _PER_COLUMN_BLOCK or len(move.rows) > size:
        return name
    return name + subscript(move.rows.start // size)


def chip_name(tile: ChipTile, visit: Visit, w: Workload, *, whole_rows: bool) -> str:
    """Return the name of a tile on chip: ``Q₂``, ``S₂₁``, ``m``; ``S row`` in naive's softmax."""
    name = symbol(algorithm_of(w).called(tile.name))
    if tile.name in _SQUARE:
        return f"{name} row" if whole_rows else name + subscript(visit.i, visit.j)
    if tile.name in _PER_ROW_BLOCK:
        return name + subscript(visit.i)
    return name + subscript(visit.j) if tile.name in _PER_COLUMN_BLOCK else name


def op_label(op: Op, w: Workload) -> str:
    """Return the words on an op's chip: ``load K₁ V₁``, ``O += PV``."""
    if isinstance(op, MapFeatures):
        return " ".join(symbol(name) for name in op.makes)
    if op.label:
        algorithm, label = algorithm_of(w), op.label
        for spec in algorithm.chip:
            label = label.replace(spec.name, algorithm.called(spec.name))
        return (op.tile_label if algorithm.normalises_each_tile else "") or label
    if isinstance(op, Normalise):
        return f"{op.tensor} / ℓ"
    if op.moves:
        return " ".join([op.name, *(move_name(move, w) for move in op.moves)])
    return " ".join(["start", *(symbol(tile.name) for tile in op.allocates)])


def short_op_label(op: Op, w: Workload) -> str:
    """Return as few letters as still name the op, for narrow chips."""
    if op.short_label:
        return op.short_label
    computes = bool(op.label) or isinstance(op, Normalise)
    return op_label(op, w).split(" = " if computes else None)[0]


def outer_block_word(by_rows: bool) -> str:
    """Return the kind of block that the outer loop goes over."""
    return "row block" if by_rows else "column block"


def op_words(op: Op, w: Workload) -> str:
    """Return an op's words, its place in the paper and its cost, for a tooltip."""
    words = [f"{op_label(op, w)}: {op.cites}"]
    for verb, count in (("read", op.read_bytes), ("written", op.write_bytes)):
        if count:
            words.append(f"{bytes_text(count)} {verb}")
    if op.flops:
        words.append(f"{count_text(op.flops)} FLOPs")
    return " · ".join(words)


def head_words(w: Workload, head: int) -> str:
    """Return a head by its number in the input, or the heads that are packed into it."""
    return f"head{'s' * (w.group > 1)} {w.head_name(head)}"


def row_label(w: Workload, row: int) -> str:
    """Return a row of queries in one word: its token, or its number."""
    return w.query_token(row) or count_text(row)


def key_label(w: Workload, key: int) -> str:
    """Return a key in one word: its token, or its number."""
    return w.key_token(key) or count_text(key)


def row_name(w: Workload, row: int) -> str:
    """Return a row of queries in words: ``row 8 “it”``."""
    return f"row {count_text(row)}" + (f" “{token}”" if (token := w.query_token(row)) else "")


def key_name(w: Workload, key: int) -> str:
    """Return a key in words: ``key 8 “it”``."""
    return f"key {count_text(key)}" + (f" “{token}”" if (token := w.key_token(key)) else "")


def weights_words(algorithm: TileAlgorithm) -> tuple[str, ...]:
    """Return where a backward pass gets P from, longest first."""
    if algorithm.reads_weights:
        return ("P is that of the forward pass", "P is stored")
    return ("P = exp(S − LSE), with the LSE of the forward pass", "P = exp(S − LSE)")


def visit_words(program: TileProgram, index: int) -> str:
    """Return the words for a visit, for a tooltip: ``visit 5: head 0, tile (2, 1), partial``."""
    visit = program.visit(index)
    words = [f"visit {count_text(index + 1)}:"]
    if len(program.launches) > 1:
        words.append(f"{program.launches[visit.launch].name},")
    if program.workload.heads > 1:
        words.append(f"{head_words(program.workload, visit.head)},")
    words.append(program.launches[visit.launch].where(visit.i, visit.j))
    if words[-1].startswith("tile"):
        words[-1] += f", {visit.kind.name.lower()}"
    return " ".join(words)


def fitting(style: Style, rect: QRectF, smallest: QSizeF) -> Style:
    """Return the style at the text scale that suits `rect`.

    Text is smaller if the place is too small for its scale, and a little larger if there is much
    space.

    smallest: size that the picture needs at scale 1.
    """
    room = min(rect.width() / smallest.width(), rect.height() / smallest.height())
    wanted = min(max(style.scale, _ROOM_TO_GROW * room), _GROWTH * style.scale)
    return replace(style, scale=min(wanted, room))


def readable(fitted: Style, label: float = LABEL) -> Style:
    """Return a fitted style in which letters of a size, at scale 1, are not below the least."""
    return replace(fitted, scale=max(fitted.scale, fitted.least / label))


def first_that_fits(texts: Sequence[str], width: float, font: QFont) -> str:
    """Return the first text that is at most `width` wide, else the last; longest first."""
    return next((text for text in texts if text_width(font, text) <= width), texts[-1])


def font_that_fits(fonts: Sequence[QFont], text: str, width: float) -> QFont:
    """Return the first font in which `text` is at most `width` wide, else the last."""
    return next((font for font in fonts if text_width(font, text) <= width), fonts[-1])
