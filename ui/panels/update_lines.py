"""The lines of the update with one row's numbers in them, as each algorithm computes it.

A line is made of pieces: words, and numbers that know their cells. The softmax panel writes the
pieces as text, the Formula panel makes every number a link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.program.algorithms import TENSORS
from simulator.program.faults import fault_note
from simulator.program.gate_ops import ApplyGate
from simulator.program.ops import exp_shift
from simulator.program.state_ops import MapFeatures
from simulator.program.tensors import symbol
from simulator.run.after_sum import before_gate
from simulator.run.cell_values import cell_name
from simulator.run.provenance import growth, maximum_of_tile
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Cell, Snapshot
from ui.board.middle import (
    Gradients,
    GradientsOfRows,
    JoinedSplits,
    Middle,
    RunningState,
    StateOfKeys,
    StoredScores,
    TokenState,
    middle_at,
)
from ui.look.units import number_text, plural

NOT_YET = "·"
OUTPUT = "O"
_EXPRESSION = 22
"""Letters before the equals sign of a line of scalars, so that the signs stand in a column."""


@dataclass(frozen=True, slots=True)
class LinePiece:
    """Words, or a number of a cell."""

    text: str  # what is written
    cell: Cell | None = None  # the cell of the number; None for words
    hint: str = ""  # the name of the number
    # letters kept for the number, so that the words after it stand still from step to step
    width: int = 0

    @property
    def padded(self) -> str:
        """The text, at the right of the letters that are kept for it."""
        return self.text.rjust(self.width)


Pieces = tuple[LinePiece, ...]
VectorOf = Callable[[F32, int, str], Pieces]
"""Makes the first components of a row of numbers, of S or of O."""


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """One line of the update."""

    latex: str  # the formula
    # the formula with this row's numbers, longest first; `NOT_YET` while they do not exist
    choices: tuple[Pieces, ...]
    # reached, current: whether the line is done in this visit; whether the current op does it
    reached: bool
    current: bool
    tall: bool = False  # whether the formula needs more height than a line of text
    sums: bool = False  # whether it is about the running sum
    part: str = ""  # the beginning of the formula that the op is about, if not the whole

    @property
    def texts(self) -> tuple[str, ...]:
        """The choices as plain text, equals signs of scalars in a column."""
        return tuple(_plain(pieces) for pieces in self.choices)


def softmax_lines(snapshot: Snapshot, report: RowReport) -> tuple[UpdateLine, ...]:
    """Return the lines of the algorithm's update with the row's numbers at the cursor."""
    lines = _LINES[type(middle_at(snapshot))]
    return tuple(lines(_LineRow(snapshot, report.row)))


def plain(*parts: LinePiece | str) -> Pieces:
    """Return pieces, words for each string."""
    return tuple(LinePiece(part) if isinstance(part, str) else part for part in parts)


def number(
    value: float, cell: Cell, hint: str, digits: int = 3, *, minus: bool = False
) -> LinePiece:
    """Return a number as a piece; in brackets where it is negative and has to be."""
    text = number_text(value, digits)
    if minus and text.startswith("−"):
        text = f"({text})"
    return LinePiece(text, cell, hint, digits + (6 if minus else 4))


def line(
    snapshot: Snapshot,
    ops: str | tuple[str, ...],
    latex: str,
    *choices: Pieces,
    tall: bool = False,
    sums: bool = False,
    part: tuple[str, str] = ("", ""),
) -> UpdateLine:
    """Return a line that the first of `ops` fills and all of them work on.

    part: one of these ops, and the beginning of the formula that the op is about.
    """
    names = (ops,) if isinstance(ops, str) else ops
    reached = names[0] in snapshot.done
    shown = choices if reached else (plain(NOT_YET),)
    own = part[1] if snapshot.op.name == part[0] else ""
    return UpdateLine(latex, shown, reached, snapshot.op.name in names, tall, sums, own)


def _plain(pieces: Pieces) -> str:
    text = "".join(piece.text for piece in pieces)
    # An equation of scalars ends in " = " and its result.
    if len(pieces) > 2 and pieces[-2].text == _EQUALS and pieces[-1].cell is not None:
        expression = "".join(piece.text for piece in pieces[:-2])
        return f"{expression:<{_EXPRESSION}} = {pieces[-1].text:>6}"
    return text


_EQUALS = " = "


class _LineRow:
    """The numbers of one row of the current tile, as pieces."""

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self.snapshot = snapshot
        self.row = row
        self.r = row - snapshot.visit.rows.start
        self.m, self.l = Cell("m", row, 0), Cell("l", row, 0)
        self.line = partial(line, snapshot)

    @property
    def skips(self) -> bool:
        """Whether the row's rescale is skipped though its maximum has grown."""
        grown = growth(self.snapshot, self.row)
        tile = self.snapshot.tile
        return grown > 0 and tile.m[self.r] == tile.m_prev[self.r]

    @property
    def top(self) -> Cell:
        """The largest score of the row in the current tile."""
        return maximum_of_tile(self.snapshot, self.row).cell

    def number(self, values: F32, cell: Cell, hint: str, *, minus: bool = False) -> LinePiece:
        return number(float(values[self.r]), cell, f"{hint}, row {self.row}", minus=minus)

    def scores(self, values: F32, count: int, name: str = "P") -> Pieces:
        first = self.snapshot.visit.cols.start
        cells = [Cell("S", self.row, first + n) for n in range(count)]
        return vector(values, cells, name)

    def outputs(self, values: F32, count: int, name: str) -> Pieces:
        return vector(values, [Cell("O", self.row, n) for n in range(count)], name)

    def weights(self, values: F32) -> tuple[Pieces, ...]:
        return tuple(self.scores(values, count) for count in (4, 3, 2, 1))

    def joined(self, old: LinePiece, tile_top: LinePiece) -> Pieces:
        """Return how the running maximum comes about, or how a fault takes it."""
        w = self.snapshot.program.workload
        if note := fault_note(w, "m"):
            return plain(note)
        if w.faults.drop_previous_maximum:
            return plain(tile_top, ", not ", old)
        if self.skips:
            grown = growth(self.snapshot, self.row)
            return plain(f"kept: 2^{number_text(grown)} ≤ 2^{w.threshold or 0.0:g}")
        return plain("max(", old, ", ", tile_top, ")")

    def largest(self, scores: F32) -> Pieces:
        """Return how the maximum of some scores alone comes about, or how a fault takes it."""
        if note := fault_note(self.snapshot.program.workload, "m"):
            return plain(note)
        return plain("max ", *self.scores(scores, 2, "S"))

    def divided(self, latex: str, values: F32, divided: F32, of: VectorOf, name: str) -> UpdateLine:
        """Return the line that divides by l."""
        by = self.number(self.snapshot.tile.l, self.l, "ℓ")
        choices = [
            plain(*of(values, n, name), " / ", by, _EQUALS, *of(divided, n, name))
            for n in (3, 2, 1)
        ]
        return self.line("normalise", latex, *choices, of(divided, 2, name), plain("…"))

    def product(self) -> F32:
        """Return the row's components of ``P V`` of this tile."""
        cols = self.snapshot.visit.cols
        with np.errstate(all="ignore"):  # a fault may have made P infinite
            return matmul(
                self.snapshot.tile.p_used[self.r], self.snapshot.v[cols.start : cols.stop]
            )


def _equation(expression: Sequence[LinePiece | str], result: LinePiece) -> tuple[Pieces, Pieces]:
    return plain(*expression, _EQUALS, result), plain("= ", result)


def vector(values: F32, cells: Sequence[Cell], name: str) -> Pieces:
    """Return the first components of a row of numbers, one for each cell."""
    count = min(len(cells), len(values))
    out: list[LinePiece] = [LinePiece("[")]
    for n, cell in enumerate(cells[:count]):
        # Beside 1.0e−28 an exact zero would look rounded with places behind the point.
        text = f"{number_text(float(values[n]), 2) if values[n] else '0':>5}"
        hint = f"{name}[{cell.row}, {cell.col}]" if cell.split is None else cell_name(cell)
        out += [LinePiece(" ")] * (n > 0) + [LinePiece(text, cell, hint, 6)]
    return (*out, LinePiece(" …]" if len(values) > count else "]"))


def _sum(
    row: _LineRow, old: Pieces, prev: F32, new: Pieces, product: F32, total: F32, done: bool
) -> tuple[Pieces, ...]:
    """Return ``old × prev + new × product = total``; only its first term until `done`."""
    o, added = "O before", "P V"
    out = []
    for count in (3, 2, 1):
        pieces = (*old, *row.outputs(prev, count, o))
        if done:
            pieces += plain(" + ", *new, *row.outputs(product, count, added), _EQUALS)
            pieces += row.outputs(total, count, "O")
        out.append(pieces)
    cell = Cell("O", row.row, 0)

    def first(values: F32, name: str, *, minus: bool = True) -> LinePiece:
        return number(float(values[0]), cell, f"{name}, row {row.row}", 2, minus=minus)

    short = (*old, first(prev, o))
    if done:
        short += plain(" + ", *new, first(product, added), _EQUALS, first(total, "O", minus=False))
    shortest = row.outputs(total if done else prev, 2, "O")
    return (*out, (*short, LinePiece(" …")), shortest, plain("…"))


_LARGER = r"m \leftarrow \max(m_{\mathrm{old}},\, \max S)"
_KEPT = _LARGER + r"\;(\mathrm{by} > \tau)"
_WEIGHTS = r"P \leftarrow \exp(S - m)"
_ADDED = r"O \leftarrow O + P V"
_DIVIDED = r"O \leftarrow O / \ell"


def _at_the_end_lines(row: _LineRow) -> list[UpdateLine]:
    snapshot, t = row.snapshot, row.snapshot.tile
    old, top = row.number(t.m_prev, row.m, "m before"), row.number(t.m, row.m, "m")
    tile_top = row.number(t.m_tile, row.top, "maximum of this tile")
    alpha = row.number(t.alpha, row.m, "α")
    carried = row.number(snapshot.carried, row.m, "α")
    shift: tuple[LinePiece | str, ...] = ("no key seen",)
    if t.m[row.r] > -np.inf:
        shift = ("exp(", old, " − ", row.number(t.m, row.m, "m", minus=True), ")")
    before, added = row.number(t.l_prev, row.l, "ℓ before"), row.number(t.l_tile, row.l, "Σ P")
    grown = (carried, " × ", before, " + ", added)
    larger = _LARGER if snapshot.program.workload.threshold is None else _KEPT
    lines = [
        row.line("row max", larger, *_equation(row.joined(old, tile_top), top)),
        row.line("row max", r"\alpha \leftarrow \exp(m_{\mathrm{old}} - m)",
                 *_equation(shift, alpha)),
        row.line("exponentials", _WEIGHTS, *row.weights(t.p[row.r])),
        row.line("row sum", r"\ell \leftarrow \alpha\,\ell + \Sigma P",
                 *_equation(grown, row.number(t.l, row.l, "ℓ")), sums=True),
    ]  # fmt: skip
    if snapshot.normalised:
        return [*lines, *_last_lines(row)]
    done = snapshot.made("O")
    texts = _sum(row, plain(carried, " × "), t.o_prev[row.r], (), row.product(), t.o[row.r], done)
    ops, shrunk = ("rescale", "accumulate"), r"O \leftarrow \alpha\,O"
    return [*lines, row.line(ops, f"{shrunk} + P V", *texts, part=(ops[0], shrunk))]


def _last_lines(row: _LineRow) -> list[UpdateLine]:
    """Return the lines that divide O by l and, where O has a gate, multiply O by the gate."""
    made, ready = row.snapshot.tile.o[row.r], before_gate(row.snapshot)[row.r]
    return [row.divided(_DIVIDED, made, ready, row.outputs, OUTPUT), *_gate_lines(row)]


def _gate_lines(row: _LineRow) -> list[UpdateLine]:
    """Return the line that multiplies O by its gate, in a visit with this op."""
    snapshot, r = row.snapshot, row.r
    if not any(isinstance(op, ApplyGate) for op in snapshot.ops):
        return []
    own, gate = before_gate(snapshot)[r], snapshot.tile.last("gate")
    assert gate is not None
    choices = [
        plain(
            *row.outputs(own, n, OUTPUT), " × ",
            *vector(gate[r], [Cell("gate", row.row, col) for col in range(n)], "gate"),
            _EQUALS, *row.outputs(snapshot.o[r], n, OUTPUT),
        )
        for n in (3, 2, 1)
    ]  # fmt: skip
    short = row.outputs(snapshot.o[r], 2, OUTPUT)
    return [row.line("gate", r"O \leftarrow O \odot \mathrm{gate}", *choices, short, plain("…"))]


def _chip_lines(row: _LineRow) -> list[UpdateLine]:
    """Return the lines of a tile of scores that stays on chip."""
    each = row.snapshot.program.algorithm.normalises_each_tile
    return _each_tile_lines(row) if each else _at_the_end_lines(row)


def _each_tile_lines(row: _LineRow) -> list[UpdateLine]:
    snapshot, t, r = row.snapshot, row.snapshot.tile, row.r
    old, top = row.number(t.m_prev, row.m, "m before"), row.number(t.m, row.m, "m")
    tile_top = row.number(t.m_tile, row.top, "maximum of this tile")
    alpha, beta = row.number(t.alpha, row.m, "α"), row.number(t.beta, row.m, "β")
    carried = row.number(snapshot.carried, row.m, "α")
    before, added = row.number(t.l_prev, row.l, "ℓ before"), row.number(t.l_tile, row.l, "Σ P")
    factor = row.number(snapshot.rescale_factor, row.l, "α ℓ before / ℓ")
    share = np.divide(t.beta, t.l, out=np.zeros_like(t.l), where=t.l != 0)
    part = row.number(share, row.l, "β / ℓ")
    scores = snapshot.masked_scores[r]
    shrunk = r"O \leftarrow \dfrac{\alpha\ell}{\ell_{\mathrm{new}}} O"
    new, grown = r"m_{\mathrm{new}}", (carried, " × ", before, " + ", beta, " × ", added)
    total = _sum(
        row, plain(factor, " × "), t.o_prev[r], plain(part, " × "), row.product(), t.o[r],
        snapshot.made("O"),
    )  # fmt: skip
    return [
        row.line("row max", r"\tilde{m} \leftarrow \max S",
                 *_equation(row.largest(scores), tile_top)),
        row.line("exponentials", r"\tilde{P} \leftarrow \exp(S - \tilde{m})",
                 *row.weights(t.p[r])),
        row.line("row sum", r"\tilde{\ell} \leftarrow \Sigma \tilde{P}",
                 *_equation(("Σ ", *row.scores(t.p[r], 2)), added)),
        row.line("combine", new + r" \leftarrow \max(m, \tilde{m})",
                 *_equation(row.joined(old, tile_top), top)),
        row.line("combine",
                 rf"\alpha, \beta \leftarrow e^{{m - {new}}}\!,\, e^{{\tilde{{m}} - {new}}}",
                 plain(alpha, ", ", beta)),
        row.line("combine", r"\ell_{\mathrm{new}} \leftarrow \alpha\,\ell + \beta\,\tilde{\ell}",
                 *_equation(grown, row.number(t.l, row.l, "ℓ")), sums=True),
        row.line(("rescale", "accumulate"),
                 shrunk + r" + \dfrac{\beta}{\ell_{\mathrm{new}}} \tilde{P} V", *total, tall=True,
                 part=("rescale", shrunk)),
        *_gate_lines(row),
    ]  # fmt: skip


def _whole_rows_lines(row: _LineRow) -> list[UpdateLine]:
    snapshot, t, r = row.snapshot, row.snapshot.tile, row.r
    scores = snapshot.scores[r] if snapshot.scores is not None else t.s[r]
    top, total = row.number(t.m, row.m, "m"), row.number(t.l, row.l, "ℓ")
    sink = snapshot.tile.last("sink")
    largest, larger = row.largest(scores), r"m \leftarrow \max S"
    summed, sums = plain("Σ ", *row.scores(t.p[r], 2)), r"\ell \leftarrow \Sigma P"
    if sink is not None:
        logit = number(float(sink[0]), row.m, "sink logit")
        largest = plain("max(", *largest, ", ", logit, ")")
        larger = r"m \leftarrow \max(\max S,\, \mathrm{sink})"
        weight = number(float(exp_shift(sink, t.m[r : r + 1])[0]), row.l, "exp(sink − m)")
        summed, sums = plain(*summed, " + ", weight), sums + r" + e^{\mathrm{sink} - m}"
    weights = snapshot.weights[r] if snapshot.weights is not None else t.p[r]
    changes = (op.name for op in snapshot.ops if op.change)
    lines = (
        (0, row.line(("scores", *changes),
                     r"S \leftarrow Q K^{\top}\!\cdot \mathrm{scale}",
                     *(row.scores(scores, n, "S") for n in (4, 3, 2, 1)))),
        (1, row.line("row max", larger, *_equation(largest, top))),
        (1, row.line("exponentials", _WEIGHTS, *row.weights(t.p[r]))),
        (1, row.line("row sum", sums, *_equation(summed, total))),
        (1, row.divided(r"P \leftarrow P / \ell", t.p_used[r], weights, row.scores, "P")),
        (2, row.line("accumulate", _ADDED,
                     *_sum(row, (), t.o_prev[r], (), row.product(), t.o[r], True))),
        *((2, own) for own in _gate_lines(row)),
    )  # fmt: skip
    names = [each.name for each in snapshot.program.launches]
    return [
        made
        if launch == snapshot.visit.launch
        else UpdateLine(
            made.latex, (plain(f"in launch {launch + 1}, {names[launch]}"),), False, False
        )
        for launch, made in lines
    ]


def _token_lines(row: _LineRow) -> list[UpdateLine]:
    """Return a line for each op of a token that has a formula, with the number that it makes."""
    snapshot, lines = row.snapshot, list[UpdateLine]()
    phi = snapshot.program.workload.feature_map
    assert phi is not None
    for op in (each for each in snapshot.ops if each.latex):
        numbers = snapshot.tile.last(op.shows) if op.shows else None
        if isinstance(op, MapFeatures):
            shown = [plain(f"φ: {phi.words}"), plain("…")]
        elif numbers is None:
            shown = [plain("one outer product is added"), plain("one product"), plain("…")]
        elif op.shows == OUTPUT:
            made = snapshot.tile.first(op.shows)[row.r]
            shown = [row.outputs(made, n, op.shows) for n in (4, 3, 2, 1)]
        else:
            shown = [_first_numbers(row, op.shows, numbers[0], n) for n in (4, 3, 2, 1)]
        lines.append(row.line(op.name, op.latex, *shown))
    if snapshot.program.algorithm.sums:
        made, ready = snapshot.tile.first(OUTPUT)[row.r], snapshot.o[row.r]
        lines.append(row.divided(_DIVIDED, made, ready, row.outputs, OUTPUT))
    return lines


def _gradient_lines(row: _LineRow) -> list[UpdateLine]:
    """Return a line for each op of a visit that has a formula, with the numbers that it makes.

    A tensor of rows shows the row's own numbers; a tensor of keys, the tile's first key.
    """
    snapshot, lines = row.snapshot, list[UpdateLine]()
    for op, state in zip(snapshot.ops, snapshot.tile.states[1:], strict=True):
        made = op.recorded or op.changed
        if op.latex and made:
            name, numbers = made[-1], state[made[-1]]
            lines.append(row.line(op.name, op.latex, *_components(row, name, numbers)))
    return lines


def _components(row: _LineRow, name: str, numbers: F32) -> list[Pieces]:
    """Return the first numbers of a row, or of the first key of the tile, longest first."""
    visit = row.snapshot.visit
    if numbers.ndim == 1:
        return [plain(f"{symbol(name)} = ", row.number(numbers, Cell(name, row.row, 0), name))]
    spec, of_key = TENSORS[name], TENSORS[name].axes[0] == "key"
    first = visit.cols.start if spec.of_pairs else 0
    at, own = (visit.cols.start, numbers[0]) if of_key else (row.row, numbers[row.r])
    tensor = name if spec.at else "S"  # P stands where S does
    cells = [Cell(tensor, at, first + n) for n in range(4)]
    lead = plain(f"key {at}: ") if of_key else ()
    called = symbol(row.snapshot.program.algorithm.called(name))
    return [(*lead, *vector(own, cells[:n], called)) for n in (4, 3, 2, 1)] + [plain("…")]


def _first_numbers(row: _LineRow, name: str, values: F32, count: int) -> Pieces:
    """Return the first numbers of a token's gate, or of a tensor in the place of its value."""
    own = name if name in row.snapshot.inputs else row.snapshot.program.algorithm.rows[0]
    cells = [Cell(own, row.row, n) for n in range(count)]
    return (*plain(f"{symbol(name)} = "), *vector(values, cells, symbol(name)))


def _key_lines(row: _LineRow) -> list[UpdateLine]:
    """Return the lines of keys that are added to a state: their features, and their products."""
    keys, phi = row.snapshot.visit.cols, row.snapshot.program.workload.feature_map
    assert phi is not None
    count = plural(len(keys), "outer product")
    added = f"keys {keys.start} to {keys.stop - 1}" if len(keys) > 1 else f"key {keys.start}"
    adds = row.line(
        "update state", r"\mathrm{state} \leftarrow \mathrm{state} + \phi(K)^{\top} [V, 1]",
        plain(f"{added} added, {count}"), plain(count), plain("…"),
    )  # fmt: skip
    words = f"φ: {phi.words}", f"{phi.features} features", "…"
    return [row.line("features", r"\phi(Q),\, \phi(K)", *map(plain, words)), adds]


def _state_lines(row: _LineRow) -> list[UpdateLine]:
    """Return the lines of linear attention: reading the state, and adding the chunk."""
    snapshot, t, r = row.snapshot, row.snapshot.tile, row.r
    maps, adds = _key_lines(row)
    o, l = t.first("O")[r], row.number(t.first("l"), row.l, "ℓ of the keys in the state")
    given = [plain(*row.outputs(o, n, "O"), ",  ℓ = ", l) for n in (4, 3, 2, 1)]
    reads = row.line("read state", r"[O, \ell] \leftarrow \phi(Q)\, \mathrm{state}",
                     *given, row.outputs(o, 2, "O"), plain("…"))  # fmt: skip
    lines = [maps, reads]
    if snapshot.launch.carries:
        added = (l, " + ", row.number(t.l_tile, row.l, "Σ P"))
        lines += [
            row.line(("similarities", "mask"), r"P \leftarrow \phi(Q)\, \phi(K)^{\top}",
                     *row.weights(t.p_used[r]), part=("mask", "P")),
            row.line("row sum", r"\ell \leftarrow \ell + \Sigma P",
                     *_equation(added, row.number(t.l, row.l, "ℓ")), sums=True),
            row.line("accumulate", _ADDED,
                     *_sum(row, (), o, (), row.product(), t.o[r], snapshot.made("O"))),
            adds,
        ]  # fmt: skip
    return [*lines, row.divided(_DIVIDED, t.o[r], snapshot.o[r], row.outputs, "O")]


def _joined_lines(row: _LineRow) -> list[UpdateLine]:
    snapshot, partials = row.snapshot, row.snapshot.partials
    t, r = snapshot.tile, row.r
    weights = t.last("w")
    assert partials is not None
    assert weights is not None
    splits = len(partials.stored)
    left = [Cell("LSE_partial", row.row, 0, split) for split in range(splits)]
    counts = range(min(splits, 4), 0, -1)
    lse = [vector(partials.lse[:, r], left[:count], "LSE") for count in counts]
    shares = [vector(weights[:, r], [row.l] * count, "w") for count in counts]
    top, total = row.number(t.m, row.m, "m"), row.number(t.l, row.l, "ℓ")
    made = t.o[r]
    return [
        row.line("row max", r"m \leftarrow \max_s \mathrm{LSE}_s",
                 *(plain("max ", *pieces, _EQUALS, top) for pieces in lse), plain("= ", top)),
        row.line("exponentials", r"w_s \leftarrow \exp(\mathrm{LSE}_s - m)", *shares),
        row.line("row sum", r"\ell \leftarrow \Sigma_s\, w_s",
                 *(plain("Σ ", *pieces, _EQUALS, total) for pieces in shares), plain("= ", total)),
        row.line("accumulate", r"O \leftarrow \Sigma_s\, w_s\, O_s",
                 *(row.outputs(made, n, "O") for n in (4, 3, 2, 1))),
        *_last_lines(row),
    ]  # fmt: skip


_LINES: dict[type[Middle], Callable[[_LineRow], list[UpdateLine]]] = {
    Middle: _chip_lines, StoredScores: _whole_rows_lines, JoinedSplits: _joined_lines,
    Gradients: _gradient_lines, GradientsOfRows: _gradient_lines, RunningState: _state_lines,
    StateOfKeys: _key_lines, TokenState: _token_lines,
}  # fmt: skip
