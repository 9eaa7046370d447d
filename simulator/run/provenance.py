"""Where the number in a cell came from: the terms of its sum, the maxima in its factors.

Every number is the engine's own. Sums that are computed here again, in float64, are only shown
beside the engine's result.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from simulator.problem.filling import done_after_words
from simulator.program.algorithms import TENSORS, algorithm_of
from simulator.program.tensors import OUTPUT, symbol
from simulator.run.after_sum import lines_after_sum
from simulator.run.cell_values import CellValue, cell_name, cell_value, in_current_tile
from simulator.run.explanation import (
    MOST_TERMS,
    Explanation,
    Number,
    Part,
    Term,
    TermSum,
    beside,
    products,
)
from simulator.run.gradients import explain_gradient, is_gradient, weight_again
from simulator.run.joined import explain_joined
from simulator.run.linear_state import explain_result, explain_score
from simulator.run.snapshot import Cell, Snapshot


def explain(snapshot: Snapshot, cell: Cell) -> Explanation:
    """Return where the number in a cell of the current head came from.

    cell: a cell of Q, K, V, S (or of P in its place), m, l or O.

    References: Dao et al. 2022, Algorithm 1; Dao 2023, Algorithm 1; Milakov and Gimelshein 2018,
    section 3.
    """
    found = _explained(snapshot, cell)
    if cell.split is not None or cell.tensor != OUTPUT.name:
        return found
    words = done_after_words(snapshot.program.workload.file)
    return replace(found, lines=((words,), *found.lines)) if words else found


def _explained(snapshot: Snapshot, cell: Cell) -> Explanation:
    if cell.split is not None:
        return _explain_partial(snapshot, cell, cell.split)
    if cell.tensor in snapshot.inputs:
        return _explain_input(snapshot, cell)
    if is_gradient(snapshot, cell):
        return explain_gradient(snapshot, cell)
    if cell.spec.of_pairs:
        return _explain_score(snapshot, cell)
    value = cell_value(snapshot, cell)
    if cell.row not in snapshot.visit.rows or value.value is None:
        return Explanation(value, _elsewhere(snapshot, value))
    if snapshot.launch.combines:
        return explain_joined(snapshot, value)
    if not snapshot.program.algorithm.softmax:
        return explain_result(snapshot, value)
    make = {"m": _explain_maximum, "l": _explain_sum, "O": _explain_output}[cell.tensor]
    return make(snapshot, value)


# --- Q, K, V ----------------------------------------------------------------------------------


def _explain_input(snapshot: Snapshot, cell: Cell) -> Explanation:
    w = snapshot.program.workload
    if w.file and w.typed:
        source = f"computed by the {w.file.title}"
    elif w.file:
        source = f"read from {w.file.path.name}"
    else:
        source = f"drawn at random, seed {w.scenario.seed}"
    lines = _explain_turn(snapshot, cell)
    lines.append((f"an input, {source}, {w.dtype}",))
    if "key" in cell.at and w.kv_heads < w.heads:
        group = [str(w.picked[h]) for h, kv in enumerate(w.kv_head_of) if kv == _kv_head(snapshot)]
        lines.append((f"KV head {_kv_head(snapshot)}, read by the query heads {', '.join(group)}",))
    return Explanation(cell_value(snapshot, cell), tuple(lines))


def _explain_turn(snapshot: Snapshot, cell: Cell) -> list[tuple[Part, ...]]:
    """Return how positions turn a number of Q or K, with the other number of its pair."""
    w, turning = snapshot.program.workload, snapshot.turning(cell.tensor)
    if w.position is None or "depth" not in cell.at:
        return []
    pair = None if turning is None else turning.pair(cell.row, cell.col)
    if turning is None or pair is None:
        is_one = cell.col < w.position.width
        return [("turned by its position, and rounded again (RoPE)",)] if is_one else []
    own, made = cell_name(cell, cell.tensor.lower()), cell_name(cell, f"{cell.tensor.lower()}′")
    other = replace(cell, col=pair.partner)
    name = cell_name(other, cell.tensor.lower())
    first = cell.col < pair.partner
    done = snapshot.is_turned(cell.tensor)
    power = f"{w.position.theta:g}^(−{2 * pair.number}/{w.position.width})"
    sign = "−" if first else "+"
    lines: list[tuple[Part, ...]] = [
        (f"{made} = {own} cos φ {sign} {name} sin φ = ",
         Number(pair.own, cell, f"{own}, before it is turned"), " · ",
         Number(math.cos(pair.angle), cell, "cos φ"), f" {sign} ",
         Number(-pair.other if first else pair.other, other, f"{name}, before it is turned"), " · ",
         Number(math.sin(pair.angle), cell, "sin φ"), " = ",
         Number(pair.turned, cell, "the same in float64", full=True)),
        (f"φ = {pair.place} · {power} = ", Number(pair.angle, cell, "the angle, in radians"),
         f": pair {pair.number} {'is' if done else 'will be'} turned by its place (RoPE)"),
    ]  # fmt: skip
    if done:
        now = float(snapshot.inputs[cell.tensor][cell.row, cell.col])
        lines.insert(1, (f"rounded to {w.dtype}: ", Number(now, cell, made, full=True)))
    return lines


def _kv_head(snapshot: Snapshot) -> int:
    return snapshot.program.workload.kv_head_of[snapshot.visit.head]


# --- what splits leave ------------------------------------------------------------------------


def _explain_partial(snapshot: Snapshot, cell: Cell, split: int) -> Explanation:
    keys = snapshot.program.workload.split_keys(split)
    words = f"of the keys {keys[0]} to {keys[-1]} alone" if keys else "of no key"
    made = "Σ P V / ℓ" if "value" in cell.at else "m + ln ℓ"
    return Explanation(cell_value(snapshot, cell), ((f"{made} {words}, in float32",),))


# --- S and P ----------------------------------------------------------------------------------


def _explain_score(snapshot: Snapshot, cell: Cell) -> Explanation:
    value, w = cell_value(snapshot, cell), snapshot.program.workload
    lines: list[tuple[Part, ...]] = []
    why = w.mask.of_head(snapshot.visit.head).why_hidden(cell.row, cell.col)
    if not snapshot.program.algorithm.softmax:
        return explain_score(snapshot, value, why)
    if value.value is None:
        return Explanation(value, ((f"hidden by the mask: {why}",),) if why else ())
    dot = product_sum(snapshot, cell)
    here = in_current_tile(snapshot, cell)
    score = _engine_score(snapshot, cell)
    factor = w.scoring_before_softmax.factor
    scaled = dot.total * factor
    lines.append((f"S = scale · {dot.name} = {factor:.6g} × ",
                  Number(dot.total, cell, f"{dot.name}, in float64"),
                  " = ", Number(scaled, cell, "the same in float64", full=True)))  # fmt: skip
    if score is not None and (here or not w.changes_scores):
        lines.append(beside(snapshot, Number(score, cell, cell_name(cell)), scaled))
    lines += _explain_changes(snapshot, cell, scaled if score is None or not here else score)
    if score is not None and here:
        score = _changed(snapshot, cell, score)
    if why:
        masks = not here or value.value == -np.inf or value.tensor == "P"
        words = "hidden by the mask, so −∞ from there on" if masks else "the mask will hide it"
        lines.append((f"{words} ({why})",))
    if value.tensor == "P":
        lines += _explain_weight(snapshot, value, None if why else score)
    return Explanation(value, tuple(lines), dot)


def _changed(snapshot: Snapshot, cell: Cell, score: float) -> float:
    """Return the score that belongs to the scaled product of a cell."""
    rows, keys = range(cell.row, cell.row + 1), range(cell.col, cell.col + 1)
    one, w = np.array([[score]], dtype=np.float32), snapshot.program.workload
    return float(w.changed(snapshot.visit.head, rows, keys, one)[0, 0])


def _explain_changes(snapshot: Snapshot, cell: Cell, scaled: float) -> list[tuple[Part, ...]]:
    """Return the lines on the changes of a scaled product before the mask."""
    w, lines = snapshot.program.workload, list[tuple[Part, ...]]()
    now, cap, bias = scaled, w.scoring.softcap, w.bias(snapshot.visit.head)
    if cap:
        was, now = now, float(w.scoring.capped(np.array(now)))
        lines.append((f"soft-cap: {cap:g} · tanh(", Number(was, cell, "the scaled product"),
                      f" / {cap:g}) = ", Number(now, cell, cell_name(cell))))  # fmt: skip
    if bias is not None:
        rows, keys = range(cell.row, cell.row + 1), range(cell.col, cell.col + 1)
        lost, was = float(bias.of(rows, keys)[0, 0]), now
        later = cell.col - int(w.mask.positions(rows)[0])
        if bias.table is None:
            slope = f"{lost / abs(later):.4g} · {abs(later)}" if later else "0"
            words, sign, change = f"bias: slope · |i′ − j| = {slope}, ", " − ", lost
        else:
            words, sign, change = f"bias of distance j − i′ = {later}: ", " + ", -lost
        lines.append((words, Number(was, cell, "before it"), sign,
                      Number(change, cell, "the bias"), " = ",
                      Number(was - lost, cell, cell_name(cell))))  # fmt: skip
    return lines


def product_sum(snapshot: Snapshot, cell: Cell) -> TermSum:
    """Return q · k of a cell of S, term by term."""
    q, k = snapshot.q[cell.row], snapshot.k[cell.col]
    rows = [Cell("Q", cell.row, n) for n in range(min(len(q), MOST_TERMS))]
    keys = [
        Cell(snapshot.program.algorithm.keys, cell.col, n) for n in range(min(len(q), MOST_TERMS))
    ]
    return products(f"q{cell.row} · k{cell.col}", "n", q, k, rows, keys, range(len(q)))


def _engine_score(snapshot: Snapshot, cell: Cell) -> float | None:
    """Return S of a cell before the mask as the engine has it; None if it keeps none."""
    if in_current_tile(snapshot, cell):
        visit = snapshot.visit
        return float(snapshot.tile.s[cell.row - visit.rows.start, cell.col - visit.cols.start])
    if snapshot.head is None:
        return None
    score = float(snapshot.head.s[cell.row, cell.col])
    return score if np.isfinite(score) else None


def _explain_weight(
    snapshot: Snapshot, value: CellValue, score: float | None
) -> list[tuple[Part, ...]]:
    """Return where P came from; `score` is None if the mask hides it."""
    cell, w, tile = value.cell, snapshot.program.workload, snapshot.tile
    assert value.value is not None
    p = Number(value.value, cell, cell_name(cell, "P"))
    if score is None:
        return [("P = exp(−∞) = ", p)]
    s = Number(score, cell, cell_name(cell))
    if algorithm_of(w).backward:
        return [weight_again(snapshot, p, s)]
    if not in_current_tile(snapshot, cell):
        if snapshot.stores_scores:
            return [("P = exp(S − m) / ℓ = ", p, ", with m and ℓ of the whole row")]
        which = (
            "m̃ of its own tile"
            if algorithm_of(w).normalises_each_tile
            else "m as it was at its tile"
        )
        return [("P = exp(S − m) = ", p, f", relative to {which}")]
    r = cell.row - snapshot.visit.rows.start
    row = f"row {cell.row}"
    m = Number(float(tile.m[r]), Cell("m", cell.row, 0), f"m, {row}")
    if algorithm_of(w).normalises_each_tile:
        m = maximum_of_tile(snapshot, cell.row)
        m = Number(float(tile.m_tile[r]), m.cell, f"m̃, maximum of this tile, {row}")
        return [("P̃ = exp(S − m̃) = exp(", s, " − ", m, ") = ", p)]
    divided = snapshot.visit.launch == 2 or snapshot.normalised
    if not snapshot.stores_scores or not divided:
        return [("P = exp(S − m) = exp(", s, " − ", m, ") = ", p)]
    l = Number(float(tile.l[r]), Cell("l", cell.row, 0), f"ℓ, {row}")
    out: tuple[Part, ...] = ("P = exp(S − m) / ℓ = exp(", s, " − ", m, ") / ", l, " = ", p)
    words = ("written to HBM by launch 2, read back here",)
    return [out, words] if snapshot.visit.launch == 2 else [out]


# --- m ----------------------------------------------------------------------------------------


def maximum_of_tile(snapshot: Snapshot, row: int) -> Number:
    """Return the largest score of a row in the current tile, with the cell that holds it."""
    visit, tile = snapshot.visit, snapshot.tile
    r = row - visit.rows.start
    largest = int(np.argmax(snapshot.masked_scores[r]))
    cell = Cell("S", row, visit.cols.start + largest)
    return Number(float(tile.m_tile[r]), cell, f"maximum of this tile, held by key {cell.col}")


def growth(snapshot: Snapshot, row: int) -> float:
    """Return by how much the current tile would raise a row's m, in log2; 0 from -inf."""
    tile, r = snapshot.tile, row - snapshot.visit.rows.start
    old, top = float(tile.m_prev[r]), float(tile.m_tile[r])
    return max(0.0, top - old) / math.log(2) if old > -np.inf else 0.0


def _before(snapshot: Snapshot, row: int, name: str) -> Number:
    value = float(snapshot.tile.before(name)[row - snapshot.visit.rows.start])
    return Number(value, Cell(name, row, 0), f"{symbol(name)} before this tile, row {row}")


def _explain_maximum(snapshot: Snapshot, value: CellValue) -> Explanation:
    row, w = value.cell.row, snapshot.program.workload
    assert value.value is not None
    now = Number(value.value, value.cell, f"m, row {row}")
    if snapshot.stores_scores:
        if snapshot.visit.launch == 2:
            return Explanation(value, (("m = max S over all keys = ", now, ", from launch 2"),))
        if w.sink_logits:
            top, sink = maximum_of_tile(snapshot, row), _sink(snapshot, value.cell)
            line: tuple[Part, ...] = ("m = max(max S, sink) = max(", top, ", ", sink, ") = ", now)
            return Explanation(value, (line, _SINK_LINE))
        return Explanation(value, (("m = max S = ", now, _held_by(snapshot, row)),))
    top, old = maximum_of_tile(snapshot, row), _before(snapshot, row, "m")
    lines: list[tuple[Part, ...]] = []
    if algorithm_of(w).normalises_each_tile and snapshot.made("m_tile"):
        lines.append(("m̃ = max S of this tile = ", top, _held_by(snapshot, row)))
    if not snapshot.made("m"):
        lines.append((*_not_moved(snapshot, "m", now), ": this tile has not been joined in yet"))
        return Explanation(value, tuple(lines))
    if w.threshold is not None and now.value == old.value < top.value:
        grown = f"2^{growth(snapshot, row):.3g}"
        lines.append(("the maximum of this tile, ", top, f", is larger by a factor {grown} only:"))
        lines.append((f"at most 2^{w.threshold:g}, so m is kept = ", now, ", and P may be above 1"))
    else:
        lines.append(
            ("m = max(m before, maximum of this tile) = max(", old, ", ", top, ") = ", now)
        )
    lines += _began_with_sink(snapshot)
    if algorithm_of(w).normalises_last:
        lines.append(("the maximum of this tile is ", top, _held_by(snapshot, row)))
    lines.append(_shift_line(snapshot, row, "α"))
    if algorithm_of(w).normalises_each_tile:
        lines.append(_shift_line(snapshot, row, "β"))
    return Explanation(value, tuple(lines))


_SINK_LINE = ("the sink logit: a key of value 0 that every row of the head sees first",)


def _sink(snapshot: Snapshot, cell: Cell) -> Number:
    """Return the sink logit of a row's head."""
    w, rows = snapshot.program.workload, range(cell.row, cell.row + 1)
    return Number(float(w.start(snapshot.visit.head, rows)[0][0]), cell, "sink logit")


def _began_with_sink(snapshot: Snapshot) -> list[tuple[Part, ...]]:
    """Return the line on the sink with which m and l begin, in a row's first tile; else none."""
    w, visit = snapshot.program.workload, snapshot.visit
    before = w.grid.visited_columns.before(visit.i, visit.j)
    return [_SINK_LINE] if w.sink_logits and not visit.split and not before else []


def _held_by(snapshot: Snapshot, row: int) -> str:
    top = maximum_of_tile(snapshot, row)
    if top.value == -np.inf:
        return ": the row sees no key of it"
    return f", held by key {top.cell.col}"


def _not_moved(snapshot: Snapshot, name: str, now: Number) -> tuple[Part, ...]:
    first = snapshot.program.algorithm.normalises_last and snapshot.visit.first
    words = ", as it starts" if first else ", as the tiles before left it"
    sink = _began_with_sink(snapshot) and TENSORS[name].with_sink != "empty"
    return (f"{symbol(name)} = ", now, f"{words}: with a sink logit" if sink else words)


def _shift_line(snapshot: Snapshot, row: int, which: str) -> tuple[Part, ...]:
    """Return α = exp(m before − m) or β = exp(m̃ − m) with the two maxima that it comes from."""
    tile, r = snapshot.tile, row - snapshot.visit.rows.start
    now = Number(float(tile.m[r]), Cell("m", row, 0), f"m, row {row}")
    factor = Number(shift_factor(snapshot, row, which), Cell("m", row, 0), f"{which}, row {row}")
    top = _before(snapshot, row, "m") if which == "α" else maximum_of_tile(snapshot, row)
    said = "m before" if which == "α" else "m̃"
    if now.value == -np.inf:
        return (f"{which} = ", factor, ": the row has seen no key yet")
    line: tuple[Part, ...] = (f"{which} = exp({said} − m) = exp(", top, " − ", now, ") = ", factor)
    if which == "α" and snapshot.program.workload.faults.forget_alpha:
        used = Number(float(snapshot.carried[r]), Cell("m", row, 0), "the factor that is used")
        return (*line, ", but the fault uses ", used)
    return line


def shift_factor(snapshot: Snapshot, row: int, which: str) -> float:
    """Return α or β of a row of the current tile."""
    values = snapshot.tile.alpha if which == "α" else snapshot.tile.beta
    return float(values[row - snapshot.visit.rows.start])


# --- l ----------------------------------------------------------------------------------------


def weight_sum(snapshot: Snapshot, row: int) -> TermSum:
    """Return the row sum of P of the current tile, term by term.

    Once whole rows have been divided by l, the terms are no longer P and have another name.
    """
    visit = snapshot.visit
    p = snapshot.tile.p[row - visit.rows.start]
    divided = snapshot.in_softmax_launch and snapshot.normalised

    def name(cell: Cell) -> str:
        return f"exp({cell_name(cell)} − m)" if divided else cell_name(cell, "P")

    terms = tuple(
        Term(key, (Number(float(p[n]), cell, name(cell)),), float(p[n]))
        for n, key in enumerate(visit.cols[:MOST_TERMS])
        for cell in [Cell("S", row, key)]
    )
    tilde = "̃" if snapshot.program.algorithm.normalises_each_tile else ""
    title = "Σ exp(S − m)" if divided else f"Σ P{tilde}"
    return TermSum(title, "key", terms, len(p), float(p.sum(dtype=np.float64)))


def _explain_sum(snapshot: Snapshot, value: CellValue) -> Explanation:
    row, w, tile = value.cell.row, snapshot.program.workload, snapshot.tile
    r = row - snapshot.visit.rows.start
    assert value.value is not None
    now = Number(value.value, value.cell, f"ℓ, row {row}")
    if snapshot.stores_scores and snapshot.visit.launch == 2:
        return Explanation(value, (("ℓ = Σ exp(S − m) over all keys = ", now, ", from launch 2"),))
    added = Number(float(tile.l_tile[r]), value.cell, f"row sum of this tile, row {row}")
    if snapshot.stores_scores and w.sink_logits:
        sums, sink = weight_sum(snapshot, row), _sink(snapshot, value.cell)
        weight = float(np.exp(sink.value - float(tile.m[r])))
        total = sums.total + weight
        line: tuple[Part, ...] = (
            f"ℓ = {sums.name} + exp(sink − m) = ", Number(sums.total, value.cell, "in float64"),
            " + ", Number(weight, value.cell, "exp(sink − m)"), " = ",
            Number(total, value.cell, "in float64", full=True),
        )  # fmt: skip
        return Explanation(value, (line, beside(snapshot, now, total), _SINK_LINE), sums)
    if snapshot.stores_scores:
        sums = weight_sum(snapshot, row)
        line = (f"ℓ = {sums.name} = ", Number(sums.total, value.cell, "in float64", full=True))
        return Explanation(value, (line, beside(snapshot, now, sums.total)), sums)
    lines: list[tuple[Part, ...]] = []
    sums_now = weight_sum(snapshot, row) if snapshot.made("l_tile") else None
    if sums_now is not None:
        name = (
            sums_now.name
            if algorithm_of(w).normalises_last
            else f"ℓ of this tile = {sums_now.name}"
        )
        lines.append((f"{name} = ", added, f" over {sums_now.count} keys"))
    if not snapshot.made("l"):
        lines.append((*_not_moved(snapshot, "l", now), ": this tile has not been joined in yet"))
        return Explanation(value, tuple(lines), sums_now)
    alpha = Number(float(snapshot.carried[r]), Cell("m", row, 0), f"α, row {row}")
    old = _before(snapshot, row, "l")
    if algorithm_of(w).normalises_each_tile:
        beta = Number(float(tile.beta[r]), Cell("m", row, 0), f"β, row {row}")
        exact = alpha.value * old.value + beta.value * added.value
        lines.append(("ℓ = α ℓ before + β ℓ of this tile = ", alpha, " × ", old, " + ",
                      beta, " × ", added, " = ",
                      Number(exact, value.cell, "in float64", full=True)))  # fmt: skip
    else:
        exact = alpha.value * old.value + added.value
        lines.append(("ℓ = α ℓ before + Σ P = ", alpha, " × ", old, " + ", added, " = ",
                      Number(exact, value.cell, "in float64", full=True)))  # fmt: skip
    lines += [beside(snapshot, now, exact), _shift_line(snapshot, row, "α")]
    lines += _began_with_sink(snapshot)
    return Explanation(value, tuple(lines), sums_now)


# --- O ----------------------------------------------------------------------------------------


def value_sum(snapshot: Snapshot, cell: Cell) -> TermSum:
    """Return the sum of p · v that the current tile adds to a cell of O, term by term."""
    visit = snapshot.visit
    p = snapshot.tile.p_used[cell.row - visit.rows.start]
    v = snapshot.v[visit.cols.start : visit.cols.stop, cell.col]
    keys = visit.cols[:MOST_TERMS]
    weights = [Cell("S", cell.row, key) for key in keys]
    values = [Cell(snapshot.program.algorithm.values, key, cell.col) for key in keys]
    return products(f"Σ p · v[·, {cell.col}]", "key", p, v, weights, values, visit.cols)


def _explain_output(snapshot: Snapshot, value: CellValue) -> Explanation:
    cell, w, tile = value.cell, snapshot.program.workload, snapshot.tile
    r = cell.row - snapshot.visit.rows.start
    assert value.value is not None
    now = Number(value.value, cell, cell_name(cell))
    before = Number(float(tile.o_prev[r, cell.col]), cell, f"{cell_name(cell)} before this tile")
    if not snapshot.rescaled and not snapshot.made("O"):
        line = (*_not_moved(snapshot, "O", now), ": this tile has not been added yet")
        return Explanation(value, (line,))
    factor, words, lines = _factor(snapshot, cell.row)
    old = factor.value * before.value if factor else before.value
    scaled: tuple[Part, ...] = (factor, " × ", before) if factor else (before,)
    if not snapshot.made("O"):
        line = (f"O = {words} O before = ", *scaled, " = ", now)
        return Explanation(value, (line, *lines))
    sums, share = value_sum(snapshot, cell), 1.0
    added = Number(sums.total, cell, f"{sums.name}, in float64")
    extra: tuple[Part, ...] = (added,)
    if algorithm_of(w).normalises_each_tile:
        share = float(tile.beta[r] / tile.l[r]) if tile.l[r] > 0 else 0.0
        part = Number(share, Cell("l", cell.row, 0), f"β / ℓ, row {cell.row}")
        extra = (part, " × ", added)
    exact = old + share * sums.total
    tilde = "β / ℓ Σ p̃ v" if algorithm_of(w).normalises_each_tile else "Σ p v"
    left = f"{words} O before" if factor else "O before"
    total = Number(float(tile.o[r, cell.col]), cell, f"{cell_name(cell)} as a sum")
    out: tuple[tuple[Part, ...], ...] = (
        *lines_after_sum(snapshot, now, total),
        (f"O = {left} + {tilde} = ", *scaled, " + ", *extra, " = ",
         Number(exact, cell, "in float64", full=True)),
        beside(snapshot, total, exact),
        *lines,
    )  # fmt: skip
    return Explanation(value, out, sums)


def _factor(
    snapshot: Snapshot, row: int
) -> tuple[Number | None, str, tuple[tuple[Part, ...], ...]]:
    """Return the factor of the old O, its formula, and the lines on its origin."""
    if snapshot.stores_scores:
        return None, "", ()
    r = row - snapshot.visit.rows.start
    value = float(snapshot.rescale_factor[r])
    if snapshot.program.algorithm.normalises_last:
        alpha = Number(value, Cell("m", row, 0), f"α, row {row}")
        return alpha, "α", (_shift_line(snapshot, row, "α"),)
    tile = snapshot.tile
    name = "α ℓ before / ℓ"
    factor = Number(value, Cell("l", row, 0), f"{name}, row {row}")
    alpha = Number(float(snapshot.carried[r]), Cell("m", row, 0), f"α, row {row}")
    now = Number(float(tile.l[r]), Cell("l", row, 0), f"ℓ, row {row}")
    line = (f"{name} = ", alpha, " × ", _before(snapshot, row, "l"), " / ", now, " = ", factor)
    return factor, f"({name})", (line,)


# --- other row blocks --------------------------------------------------------------------------


def _elsewhere(snapshot: Snapshot, value: CellValue) -> tuple[tuple[Part, ...], ...]:
    """Return the lines on m, l or O outside the current row block, or before the number exists."""
    w, cell = snapshot.program.workload, value.cell
    i = cell.row // w.rows
    if value.value is None:
        return ()
    number = Number(value.value, cell, cell_name(cell))
    if cell.tensor == "m" and value.value == -np.inf:
        return ((f"row {cell.row} has seen no key so far",),)
    words = f"; go to a tile of row block {i} to see its sum"
    return ((f"{symbol(cell.tensor)} = ", number, words),)
