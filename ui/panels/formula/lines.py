"""The text of the Formula panel: the lines of the update at this op, the source of a number."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from simulator.base.dtypes import F32
from simulator.problem.positions import Turning
from simulator.program.algorithms import TENSORS
from simulator.program.op import Op
from simulator.program.ops import InitialiseWithSink, StoreSinks
from simulator.program.tensors import symbol
from simulator.run.cell_values import cell_name
from simulator.run.explanation import Explanation, Number, Part, Term, TermSum
from simulator.run.provenance import explain
from simulator.run.rescales import rescales
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Cell, Snapshot
from ui.look.formula import typeset
from ui.look.lit import typeset_alpha
from ui.look.names import move_name, op_label
from ui.look.units import exact_text, number_text
from ui.panels.update_lines import (
    LinePiece,
    Pieces,
    UpdateLine,
    line,
    number,
    plain,
    softmax_lines,
    vector,
)

_SCORES = r"S \leftarrow Q K^{\top}\!\cdot \mathrm{scale}"
_GIVEN = r"Q,\; K"
_LSE = r"\mathrm{LSE} \leftarrow m + \ln \ell"


@dataclass(frozen=True, slots=True)
class FormulaModel:
    """The contents of the Formula panel."""

    title: tuple[str, ...]  # op, tile and row, longest first
    cites: tuple[str, ...]  # the op's place in the paper, longest first
    lines: tuple[UpdateLine, ...]  # the update; lines of the current op are marked


def formula_model(snapshot: Snapshot, report: RowReport) -> FormulaModel:
    """Return the panel's contents for a row at a cursor, and typeset its formulas."""
    op, w, visit = snapshot.op, snapshot.program.workload, snapshot.visit
    where = "before the tiles" if op.before_tiles else snapshot.launch.where(visit.i, visit.j)
    name = op_label(op, w)
    title = (f"{name} · {where} · row {report.row}", f"{name} · row {report.row}", name)
    parts = op.cites.split(", ")
    cites = tuple(", ".join(parts[n:]) for n in range(len(parts)))
    model = FormulaModel(title, cites, formula_lines(snapshot, report))
    typeset(one.latex for one in model.lines)
    if rescales(snapshot):
        typeset(one.part for one in model.lines if one.part)
        typeset_alpha(one.latex for one in model.lines)
    return model


def formula_lines(snapshot: Snapshot, report: RowReport) -> tuple[UpdateLine, ...]:
    """Return the lines of the update at this op, with the row's numbers.

    These are the lines of `softmax_lines`, with S and its mask before and LSE after, and another
    line for an op that moves tiles or starts a row block. Before the tiles, the lines show a pair
    that a position turns.
    """
    if snapshot.op.before_tiles:
        return _turning_lines(snapshot, report.row)
    lines = list(softmax_lines(snapshot, report))
    row, r = report.row, report.row - snapshot.visit.rows.start
    if snapshot.launch.combines:
        if snapshot.normalised:
            lines.append(_lse_line(snapshot, row, r))
    elif not (snapshot.stores_scores or snapshot.launch.carries) and any(
        op.makes_scores for op in snapshot.ops
    ):  # S is made and used at once
        scores = _some_scores(snapshot, row, snapshot.tile.s[r])
        lines[:0] = [line(snapshot, "scores", _SCORES, *scores), *_change_lines(snapshot, row, r)]
        if snapshot.normalised:
            lines.append(_lse_line(snapshot, row, r))
    elif snapshot.stores_scores and snapshot.op.change:
        changes = _change_lines(snapshot, row, r)
        lines[:1] = [replace(lines[0], current=False), *(one for one in changes if one.current)]
    if not any(one.current for one in lines):
        lines.insert(0, _moving_line(snapshot, row))
    return tuple(lines)


def _turning_lines(snapshot: Snapshot, row: int) -> tuple[UpdateLine, ...]:
    """Return how the fastest pair of a row, or of the key at its position, is turned."""
    turning, turns = snapshot.turned_now, snapshot.op.turns is not None
    if turning is None:
        return (UpdateLine(_GIVEN, (plain(snapshot.op.says), plain("…")), True, True),)
    if "key" in TENSORS[turning.tensor].axes:
        place = int(snapshot.program.workload.mask.positions(range(row, row + 1))[0])
        row = min(max(place, 0), len(turning.before) - 1)
    first = Cell(turning.tensor, row, 0)
    pair, theta, width = (
        turning.pair(first.row, first.col),
        turning.rotary.theta,
        turning.rotary.width,
    )
    assert pair is not None  # the first number is always turned
    angle = number(pair.angle, first, "the angle of pair 0, in radians")
    lines = [
        UpdateLine(
            rf"\varphi \leftarrow \mathrm{{place}} \cdot {theta:g}^{{-2n/{width}}}",
            (plain(f"pair 0: {pair.place} · {theta:g}^(−0/{width}) = ", angle), plain(angle)),
            turns,
            turns,
        ),
        _turned_line(turning, first, turns=turns),
        _turned_line(turning, replace(first, col=pair.partner), turns=turns),
    ]
    if not turns:
        pieces = [_input_pieces(turning.tensor, row, turning.before[row], n) for n in (4, 2, 1)]
        lines.insert(0, UpdateLine(_GIVEN, (*pieces, plain("…")), True, True))
    return tuple(lines)


def _turned_line(turning: Turning, cell: Cell, *, turns: bool) -> UpdateLine:
    """Return how a number of pair 0 is turned; before it is turned, the number alone."""
    pair, rotary = turning.pair(cell.row, cell.col), turning.rotary
    assert pair is not None
    is_first, letter = cell.col < pair.partner, turning.tensor.lower()
    names = ("2n", "2n+1") if rotary.interleaved else ("n", f"n+{rotary.width // 2}")
    own, other = names if is_first else names[::-1]
    sign = "-" if is_first else "+"
    latex = (
        rf"{letter}'_{{{own}}} \leftarrow {letter}_{{{own}}} \cos\varphi {sign} "
        rf"{letter}_{{{other}}} \sin\varphi"
    )
    name, partner = cell_name(cell, letter), replace(cell, col=pair.partner)
    was = number(pair.own, cell, f"{name}, before it is turned")
    if not turns:
        return UpdateLine(latex, (plain(was),), False, False)
    with_it = number(
        -pair.other if is_first else pair.other, partner,
        f"{cell_name(partner, letter)}, before it is turned", minus=True,
    )  # fmt: skip
    cos = number(math.cos(pair.angle), cell, "cos φ", minus=True)
    sin = number(math.sin(pair.angle), cell, "sin φ", minus=True)
    made = number(pair.turned, cell, f"{name}, turned")
    minus = "−" if is_first else "+"
    whole = plain(was, " · ", cos, f" {minus} ", with_it, " · ", sin, " = ", made)
    return UpdateLine(latex, (whole, plain(was, " → ", made), plain(made)), True, True)


def _some_scores(snapshot: Snapshot, row: int, values: F32) -> tuple[Pieces, ...]:
    first = snapshot.visit.cols.start
    return tuple(
        vector(values, [Cell("S", row, first + n) for n in range(count)], "S")
        for count in (6, 4, 3, 2, 1)
    )


def _change_lines(snapshot: Snapshot, row: int, r: int) -> list[UpdateLine]:
    """Return the lines of the changes to S after the product: soft-cap, bias, mask."""
    states = snapshot.tile.states[1:]
    return [
        line(snapshot, op.name, op.change, *_some_scores(snapshot, row, state["S"][r]))
        for op, state in zip(snapshot.ops, states, strict=True)
        if op.change
    ]


def _lse_line(snapshot: Snapshot, row: int, r: int) -> UpdateLine:
    m, l = snapshot.tile.m[r], snapshot.tile.l[r]
    with np.errstate(all="ignore"):
        lse = float(m + np.log(l)) if l > 0 else float("-inf")
    cell = Cell("l", row, 0)
    return line(
        snapshot, "normalise", _LSE,
        plain(number(float(m), Cell("m", row, 0), f"m, row {row}"), " + ln ",
              number(float(l), cell, f"ℓ, row {row}"), " = ",
              number(lse, cell, f"LSE, row {row}")),
        plain("= ", number(lse, cell, f"LSE, row {row}")),
    )  # fmt: skip


_LATEX = {
    "l": r"\ell",
    "LSE": r"\mathrm{LSE}",
    "state": r"\mathrm{state}",
    "sink": r"\mathrm{sink}",
    "gate": r"\mathrm{gate}",
    "O_partial": r"O_{\mathrm{partial}}",
    "LSE_partial": r"\mathrm{LSE}_{\mathrm{partial}}",
    "dQ_acc": r"dQ_{\mathrm{acc}}",
}


def _moving_line(snapshot: Snapshot, row: int) -> UpdateLine:
    """Return a line for an op that moves tiles or starts a row block."""
    op, w = snapshot.op, snapshot.program.workload
    if op.starts:
        names = dict.fromkeys([tile.name for tile in op.allocates] or [m.tensor for m in op.moves])
        starts = {snapshot.program.algorithm.called(n): _starts_at(op, n) for n in names}
        words = ", ".join(f"{symbol(n)} = {start[0]}" for n, start in starts.items())
        latex = r",\; ".join(
            _LATEX.get(n, n) + r" \leftarrow " + start[1] for n, start in starts.items()
        )
        return UpdateLine(latex, (plain(words), plain("…")), True, True)
    arrow = r"\;\leftarrow\; \mathrm{HBM}" if op.loads else r"\;\rightarrow\; \mathrm{HBM}"
    tensors = r",\, ".join(_LATEX.get(move.tensor, move.tensor) for move in op.moves)
    counts = (4, 2, 1)
    # Numbers of all tiles; if too wide, only of input tiles.
    choices = [_loaded(snapshot, row, count) for count in counts]
    choices += [_loaded(snapshot, row, count, computed=False) for count in counts]
    moved = " ".join(move_name(move, w) for move in op.moves)
    verb = "from" if op.loads else "to"
    shown = dict.fromkeys(pieces for pieces in choices if pieces)
    return UpdateLine(
        tensors + arrow, (*shown, plain(f"{moved} {verb} HBM"), plain("…")), True, True
    )


def _loaded(snapshot: Snapshot, row: int, count: int, *, computed: bool = True) -> Pieces:
    """Return the first numbers of a row, or of the first key, of each tile that the op loads."""
    pieces: list[LinePiece] = []
    for move in snapshot.op.moves if snapshot.op.loads else ():
        name, axes = move.tensor, TENSORS[move.tensor].axes
        if name in snapshot.inputs:
            at = row if "row" in axes else snapshot.visit.cols.start
            pieces += _input_pieces(name, at, snapshot.inputs[name][at], count)
        elif computed and axes[0] == "row" and name in snapshot.state:
            pieces += _computed_pieces(snapshot, name, row, count)
    return tuple(pieces)


def _computed_pieces(snapshot: Snapshot, name: str, row: int, count: int) -> Pieces:
    """Return a row's first numbers in a tensor that an earlier launch or visit left in HBM."""
    spec, visit = TENSORS[name], snapshot.visit
    own = np.atleast_1d(snapshot.state[name][row - visit.rows.start])
    first = visit.cols.start if spec.of_pairs else 0
    tensor = name if spec.at or not spec.of_pairs else "S"  # P stands where S does
    cells = [Cell(tensor, row, first + n) for n in range(count)]
    if len(spec.axes) == 1:
        shown = plain(number(float(own[0]), cells[0], f"{symbol(name)}, row {row}"))
    else:
        shown = vector(own, cells, symbol(name))
    return plain(f"{symbol(name)} = ", *shown, "  ")


def _starts_at(op: Op, name: str) -> tuple[str, str]:
    """Return the value of rows that have seen no key, in words and typeset."""
    spec = TENSORS[name]
    if isinstance(op, InitialiseWithSink | StoreSinks) and spec.with_sink != "empty":
        return ("1", "1") if spec.with_sink == "one" else ("sink", r"\mathrm{sink}")
    return ("−∞", r"-\infty") if spec.empty else ("0", "0")


def _input_pieces(tensor: str, at: int, values: F32, count: int) -> Pieces:
    cells = [Cell(tensor, at, n) for n in range(count)]
    return plain(f"{tensor.lower()}{at} = ", *vector(values, cells, tensor), "  ")


# --- where a number came from ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExplanationText:
    """An explanation in pieces."""

    title: tuple[Pieces, ...]  # the cell and its value, longest first
    state: str  # what has been done to the cell
    lines: tuple[Pieces, ...]  # sentences and equations
    terms: tuple[Pieces, ...] = ()  # terms of the sum, all of one width
    count: int = 0  # number of terms in all
    total: Pieces = ()  # the sum of all terms; empty if there is none


def explanation_text(snapshot: Snapshot, cell: Cell) -> ExplanationText:
    """Return where a cell's number came from, in pieces."""
    found = explain(snapshot, cell)
    sums = found.sum
    return ExplanationText(
        _title(found),
        found.value.state,
        tuple(tuple(_piece(part) for part in parts) for parts in found.lines),
        tuple(_term(term, sums) for term in sums.terms) if sums else (),
        sums.count if sums else 0,
        _total(sums, cell) if sums else (),
    )


def _title(found: Explanation) -> tuple[Pieces, ...]:
    value = found.value
    if value.value is None:
        return (plain(value.name),)
    shown = number(value.value, value.cell, value.name)
    text = exact_text(value.value)
    if text.lstrip("−") in ("∞", number_text(abs(value.value))):
        return (plain(f"{value.name} = ", shown),)
    return (
        plain(f"{value.name} = ", shown, f"  (exactly {text})"),
        plain(f"{value.name} = ", shown),
    )


def _piece(part: Part) -> LinePiece:
    return LinePiece(part) if isinstance(part, str) else _number(part)


def _number(found: Number) -> LinePiece:
    if found.full and np.isfinite(found.value):
        text = f"{found.value:.9g}".replace("-", "−")
        return LinePiece(text, found.cell, found.name, 12)
    return number(found.value, found.cell, found.name)


def _term(term: Term, sums: TermSum) -> Pieces:
    """Return one term: its index, its factors and their product."""
    letters = len(str(sums.terms[-1].index))
    out: list[LinePiece | str] = [f"{term.index:>{letters}}: ", _number(term.factors[0])]
    if len(term.factors) > 1:
        product = LinePiece(number_text(term.product), width=7)
        out += [" × ", _number(term.factors[1]), " = ", product]
    return plain(*out)


def _total(sums: TermSum, cell: Cell) -> Pieces:
    return plain(f"{sums.name} = ", number(sums.total, cell, f"{sums.name}, in float64"))
