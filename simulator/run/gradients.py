"""The gradients of a backward pass: the numbers so far, and where each number came from.

A number comes from the current visit, or from the last earlier visit that wrote the number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from simulator.base.dtypes import F32, frozen, round_to
from simulator.program.algorithms import TENSORS
from simulator.program.gradient_ops import WeightedMeans
from simulator.program.op import Op
from simulator.program.state import Values
from simulator.program.tensors import TensorSpec, symbol
from simulator.program.tile_program import TileProgram, Visit
from simulator.run.cell_values import cell_value, tile_of
from simulator.run.explanation import Explanation, Number, Part, TermSum, beside, products
from simulator.run.snapshot import Cell, Snapshot

LeftBy = Callable[[int, str], F32]
"""Returns a number as a visit leaves it, from the visit and the number's name."""


def made_so_far(now: Snapshot, left_by: LeftBy) -> dict[str, F32]:
    """Return the numbers that a backward pass has made of all rows and keys of the current head.

    Numbers that were dropped after their visit are included, as m and l are in a forward pass.

    now: the state at the cursor, with the numbers of the current rows and keys.
    Returns: (Nq, n) or (Nk, n) float32 each, float64 in a run in float64, by the name of the final
        tensor; NaN where there is nothing yet. Until a tensor is final, its sum in HBM or on chip
        stands there.
    """
    algorithm, w = now.program.algorithm, now.program.workload
    given = {spec.name for spec in algorithm.gates}
    names = {*algorithm.outside.values(), *algorithm.columns} - given
    out = {}
    made = dict.fromkeys((*algorithm.tensors, *algorithm.chip))
    for spec in made:
        if spec.name not in names:
            continue
        # A sum stands in the place of the tensor that it becomes later.
        forms = [spec, *(own for own in made if own.at == spec.name)]
        of_keys = "key" in spec.axes
        shape = [w.sizes[axis] for axis in spec.axes]
        count, range_of = (
            (w.grid.Tc, w.grid.col_range) if of_keys else (w.grid.Tr, w.grid.row_range)
        )
        blocks = [
            (own, _newest(now, forms, n, own, left_by))
            for n, own in enumerate(map(range_of, range(count)))
        ]
        found = [(own, part) for own, part in blocks if part is not None]
        kind = np.result_type(np.float32, *(part.dtype for _, part in found))
        values = np.full((*shape, 1)[:2], np.nan, kind)
        for own, part in found:
            values[own.start : own.stop] = np.reshape(part, (-1, 1)) if part.ndim == 1 else part
        out[spec.name] = frozen(values)
    return out


def _newest(
    now: Snapshot, forms: list[TensorSpec], block: int, own: range, left_by: LeftBy
) -> Values | np.float32 | None:
    """Return the newest numbers of a block of rows or keys, in the first of `forms` that exists."""
    visit, program = now.visit, now.program
    of_keys = "key" in forms[0].axes
    for spec in forms:
        values = now.state.get(spec.name)
        if (visit.j if of_keys else visit.i) == block and values is not None:
            return _in_hbm(now, spec, values) if now.stored(spec.name) else values
        if _clears(now.past, spec, own):
            return np.float32(spec.empty)
    for number in range(visit.launch, -1, -1):
        for spec in forms:
            launch = program.launches[number]
            if spec.name not in launch.writes and spec.name not in launch.makes:
                continue
            index = _last_writer(program, number, visit, block, of_keys=of_keys)
            if index is not None and _clears(program.ops(index), spec, own):
                return np.float32(spec.empty)
            if index is not None:
                return _in_hbm(now, spec, left_by(index, spec.name))
    return None


def _in_hbm(now: Snapshot, spec: TensorSpec, values: F32) -> F32:
    """Return numbers as they are stored; float64 numbers are references and stay exact."""
    if spec.width != "dtype" or values.dtype == np.float64:
        return values
    with np.errstate(all="ignore"):  # a fault may have made them too large for the dtype
        return round_to(values.astype(np.float32), now.program.workload.dtype)


def _clears(ops: tuple[Op, ...], spec: TensorSpec, own: range) -> bool:
    moves = (move for op in ops if op.starts and op.stores for move in op.moves)
    return any(move.tensor == spec.name and own.start in move.rows for move in moves)


def _last_writer(
    program: TileProgram, number: int, now: Visit, block: int, *, of_keys: bool
) -> int | None:
    """Return the last visit of a launch before the current one that wrote a block; or None."""
    launch, head = program.launches[number], now.head
    if of_keys == launch.by_rows:  # each visit writes: the last of them that has been done
        outer = np.arange(now.j + 1 if number == now.launch else len(launch.visits))
        seen = reversed(outer[launch.visits.contains(outer, block)].tolist())
        found = (_index(program, number, head, each, block) for each in seen)
        return next((index for index in found if index is not None and index < now.index), None)
    if not launch.count(block):  # nobody sees the block: the launch's first visit has cleared it
        index = list(program.opening(head))[number]
    else:
        inner = launch.visits.nth(block, 0)
        first = _index(program, number, head, block, inner)
        assert first is not None
        index = program.block_bounds(first)[1] - 1
    return index if index < now.index else None


def _index(program: TileProgram, number: int, head: int, outer: int, inner: int) -> int | None:
    by_rows = program.launches[number].by_rows
    i, j = (outer, inner) if by_rows else (inner, outer)
    return program.index(head, i, j, number)


# --- where a number came from -------------------------------------------------------------------


def is_gradient(snapshot: Snapshot, cell: Cell) -> bool:
    """Return whether a cell has a number that a backward pass makes, or a row number it reads."""
    algorithm = snapshot.program.algorithm
    made = _made(snapshot) | {*algorithm.columns}
    return algorithm.backward and (cell.tensor in made or cell_value(snapshot, cell).tensor in made)


def _made(snapshot: Snapshot) -> set[str]:
    """Return the names of numbers that the pass makes."""
    algorithm = snapshot.program.algorithm
    return {spec.name for spec in (*algorithm.tensors, *algorithm.chip)}


def explain_gradient(snapshot: Snapshot, cell: Cell) -> Explanation:
    """Return where a number came from: the terms of this visit, and the number before.

    References: Dao 2023, Algorithm 2; Dao et al. 2022, Algorithms 3 and 4.
    """
    value = cell_value(snapshot, cell)
    if value.value is None:
        return Explanation(value, ())
    now = Number(value.value, cell, value.name)
    makes = any(value.tensor in op.makes for op in snapshot.ops)
    if not makes or not _is_here(snapshot, cell):
        return Explanation(value, (_elsewhere(snapshot, now, value.tensor),))
    lines, sums = _LINES[value.tensor](snapshot, now)
    return Explanation(value, lines, sums)


def weight_again(snapshot: Snapshot, p: Number, s: Number) -> tuple[Part, ...]:
    """Return P as a backward pass computes it again, from the LSE of the forward pass."""
    row = p.cell.row
    lse = cell_value(snapshot, Cell("LSE", row, 0)).value
    if lse is None:
        return ("P = exp(S − LSE) = ", p, ", computed again")
    left = Number(lse, Cell("LSE", row, 0), f"LSE, row {row}")
    return ("P = exp(S − LSE) = exp(", s, " − ", left, ") = ", p, ", computed again")


Lines = tuple[tuple[tuple[Part, ...], ...], TermSum | None]


def _is_here(snapshot: Snapshot, cell: Cell) -> bool:
    """Return whether a cell is of the rows, the keys or the pairs of the current visit."""
    visit = snapshot.visit
    along = ("row" not in cell.at or cell.at["row"] in visit.rows,
             "key" not in cell.at or cell.at["key"] in visit.cols)  # fmt: skip
    return all(along) and snapshot.launch.forms >= ("key" in cell.at)


def _elsewhere(snapshot: Snapshot, now: Number, tensor: str) -> tuple[Part, ...]:
    """Return the line on a number of another visit."""
    if tensor not in _made(snapshot):
        return (f"{symbol(tensor)} = m + ln ℓ = ", now, ", left by the forward pass")
    i, j = tile_of(snapshot.program.workload, now.cell)
    where = f"column block {j}" if i is None else f"row block {i}"
    where = where if i is None or j is None else f"tile ({i}, {j})"
    called = symbol(snapshot.program.algorithm.called(tensor))
    return (f"{called} = ", now, f"; go to {where} to see its sum")


def _numbers(snapshot: Snapshot, name: str) -> F32:
    return np.asarray(snapshot.state[name])


def _local(snapshot: Snapshot, cell: Cell) -> tuple[int, int]:
    """Return a cell's row in the current tile, and its column: for pairs the tile's column."""
    visit = snapshot.visit
    own = visit.rows if "row" in cell.at else visit.cols
    return cell.row - own.start, cell.col - (visit.cols.start if cell.spec.of_pairs else 0)


def _product(snapshot: Snapshot, names: tuple[str, str], at: tuple[int, int], name: str) -> TermSum:
    """Return the product of a row of one matrix with a row of another, term by term."""
    visit, pair = snapshot.visit, list[tuple[F32, list[Cell]]]()
    for tensor, row in zip(names, at, strict=True):
        own = visit.cols if "key" in TENSORS[tensor].axes else visit.rows
        values = _numbers(snapshot, tensor)[row - own.start]
        pair.append((values, [Cell(tensor, row, n) for n in range(len(values))]))
    (a, first), (b, second) = pair
    return products(name, "n", a, b, first, second, range(len(a)))


def _dots(snapshot: Snapshot, now: Number) -> Lines:
    row = now.cell.row
    if any(isinstance(op, WeightedMeans) for op in snapshot.ops):
        r, along = row - snapshot.visit.rows.start, snapshot.visit.cols
        p, dp = (_numbers(snapshot, name)[r] for name in ("P", "dP"))
        first, second = ([Cell(name, row, key) for key in along] for name in ("S", "dP"))
        sums = products(f"P[{row}] · dP[{row}]", "key", p, dp, first, second, along)
    else:
        sums = _product(snapshot, ("dO", "O"), (row, row), f"dO[{row}] · O[{row}]")
    return ((f"D = {sums.name} = ", now), beside(snapshot, now, sums.total)), sums


def _of_weight(snapshot: Snapshot, now: Number) -> Lines:
    row, key = now.cell.row, now.cell.col
    sums = _product(snapshot, ("dO", "V"), (row, key), f"dO[{row}] · v{key}")
    return ((f"dP = {sums.name} = ", now), beside(snapshot, now, sums.total)), sums


def _of_score(snapshot: Snapshot, now: Number) -> Lines:
    r, c = _local(snapshot, now.cell)
    row, key = now.cell.row, now.cell.col
    p, dp, d = (_numbers(snapshot, name).astype(np.float64) for name in ("P", "dP", "D"))
    parts = (
        Number(float(p[r, c]), Cell("S", row, key), f"P[{row}, {key}]"),
        Number(float(dp[r, c]), Cell("dP", row, key), f"dP[{row}, {key}]"),
        Number(float(d[r]), Cell("D", row, 0), f"D[{row}]"),
    )
    name = cell_value(snapshot, now.cell).tensor
    before = Number(float(snapshot.tile.first(name)[r, c]), now.cell, now.name)
    exact = float(p[r, c] * (dp[r, c] - d[r]))
    line = ("dS = P · (dP − D) = ", parts[0], " · (", parts[1], " − ", parts[2], ") = ", before)
    lines: list[tuple[Part, ...]] = [line, beside(snapshot, before, exact)]
    for op in snapshot.past:
        if name in op.changed:
            lines.append((f"{op.says}: ", before, " → ", now))
    return tuple(lines), None


def _summed(weights: str, rows: str, words: str) -> Callable[[Snapshot, Number], Lines]:
    """Return the function that explains a sum: a tile's terms, its weights times its rows."""

    def lines(snapshot: Snapshot, now: Number) -> Lines:
        visit, (n, column) = snapshot.visit, _local(snapshot, now.cell)
        name = cell_value(snapshot, now.cell).tensor
        made, called = snapshot.made(name), symbol(snapshot.program.algorithm.called(name))
        which = _adding(snapshot, now.cell, made=made)
        if not made:
            return ((f"{called} = ", now, ": this tile has not been added yet"), (which,)), None
        over_keys = "row" in now.cell.at
        along = visit.cols if over_keys else visit.rows
        of_pairs = _numbers(snapshot, weights)
        own = of_pairs[n] if over_keys else of_pairs[:, n]
        pairs = [(now.cell.row, m) if over_keys else (m, now.cell.row) for m in along]
        sums = products(
            f"{words}[·, {column}]", "key" if over_keys else "row",
            own, _numbers(snapshot, rows)[:, column],
            [Cell(weights if TENSORS[weights].at else "S", *pair) for pair in pairs],
            [Cell(rows, m, column) for m in along], along,
        )  # fmt: skip
        op = next(n for n, op in enumerate(snapshot.ops) if name in op.makes)
        old = snapshot.tile.states[op].get(name)
        before = 0.0 if old is None else float(old[n, column])
        total = Number(float(snapshot.tile.states[op + 1][name][n, column]), now.cell, now.name)
        added = Number(sums.total, now.cell, f"{sums.name}, in float64")
        was = Number(before, now.cell, f"{now.name} before this tile")
        exact = before + sums.total
        out: list[tuple[Part, ...]] = [
            (f"{called} = before + {words} = ", was, " + ", added, " = ",
             Number(exact, now.cell, "in float64", full=True)),
            beside(snapshot, total, exact),
            (which,),
        ]  # fmt: skip
        for op_done in snapshot.past:
            if name in op_done.changed:
                out.insert(0, (f"{op_done.says}: ", total, " → ", now))
        return tuple(out), sums

    return lines


_MOST_TILES = 6  # tiles that are named: the last ones


def _adding(snapshot: Snapshot, cell: Cell, *, made: bool) -> str:
    """Return which tiles have added to a sum of the current rows or keys."""
    program, visit = snapshot.program, snapshot.visit
    every: Sequence[int] = range(*program.block_bounds(visit.index))
    if "row" in cell.at:
        own = program.of_row_block(visit.head, visit.i)
        every = [index for index in own if program.visit(index).launch == visit.launch]
    done = [program.visit(index) for index in every if index < visit.index + made]
    heads = len({program.visit(index).head for index in (every[0], every[-1])}) > 1
    named = [f"({v.i}, {v.j})" + f" of head {v.head}" * heads for v in done[-_MOST_TILES:]]
    more = ["…"] * (len(done) > len(named))
    return f"added by {len(done)} of {len(every)} tiles: {', '.join(more + named) or 'none yet'}"


def _scaled(snapshot: Snapshot, now: Number) -> Lines:
    r, column = _local(snapshot, now.cell)
    factor = snapshot.program.workload.scoring.factor
    total = float(_numbers(snapshot, "dQ_acc")[r, column])
    before = Number(total, Cell("dQ_acc", now.cell.row, now.cell.col), "the sum of all tiles")
    line = (f"dQ = scale · Σ dS k = {factor:.6g} × ", before, " = ", now)
    return (line, beside(snapshot, now, factor * total)), None


_LINES: dict[str, Callable[[Snapshot, Number], Lines]] = {
    "D": _dots,
    "dP": _of_weight,
    "dS": _of_score,
    "dV": _summed("P", "dO", "Σ P · dO"),
    "dK": _summed("dS", "Q", "Σ dS · q"),
    "dQ_acc": _summed("dS", "K", "Σ dS · k"),
    "dQ": _scaled,
}
