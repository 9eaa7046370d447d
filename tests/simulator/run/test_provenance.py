"""Explanations of cells: the engine's numbers, sums that add up, and nothing before it exists."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import Snapshot, simulate
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.cell_values import cell_name, cell_shape, cell_value, exists, moved_cell
from simulator.run.explanation import MOST_TERMS, Explanation, Number
from simulator.run.provenance import explain
from simulator.run.snapshot import Cell
from tests.helpers.demos import every_op
from tests.helpers.runs import ALGORITHMS, pairs_of, scenario, scenarios, trace_of
from tests.helpers.tiles import with_number

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def cells_of(now: Snapshot) -> Iterator[Cell]:
    """Yield cells of every tensor, inside and outside the current tile."""
    w = now.program.workload
    for tensor in "QKVSmlO":
        rows, cols = cell_shape(w, tensor)
        own = now.visit.cols if tensor in "KV" else now.visit.rows
        for row in {0, own.start, own.stop - 1, rows - 1}:
            for col in {0, min(now.visit.cols.start, cols - 1), cols - 1}:
                yield Cell(tensor, row, col)


def numbers_of(found: Explanation) -> list[Number]:
    return [part for line in found.lines for part in line if isinstance(part, Number)]


def words_of(found: Explanation) -> str:
    shown = (part if isinstance(part, str) else "#" for line in found.lines for part in line)
    return "".join(shown)


@pytest.mark.long
@given(scenarios(longest=9))
def test_every_number_of_every_explanation_is_one_of_the_snapshot(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    w = trace.workload
    for now in every_op(trace):
        for cell in cells_of(now):
            found = explain(now, cell)
            value = cell_value(now, cell)
            assert found.value == value
            assert value.state
            for number in numbers_of(found):
                assert exists(w, number.cell)
                assert not np.isnan(number.value)
                assert number.name
            if found.sum is not None:
                check_sum(found, now)


def check_sum(found: Explanation, now: Snapshot) -> None:
    """Hold that terms are made of the cells they name, and add up to the total."""
    sums = found.sum
    for term in sums.terms:
        assert term.product == np.prod([factor.value for factor in term.factors])
        for factor in term.factors:
            cell = factor.cell
            if cell.tensor in "QKV":
                held = {"Q": now.q, "K": now.k, "V": now.v}[cell.tensor][cell.row, cell.col]
                assert factor.value == float(held)
            else:
                r, c = cell.row - now.visit.rows.start, cell.col - now.visit.cols.start
                assert factor.value == float(now.tile.p[r, c])
    assert sums.count == len(sums.terms)
    assert sums.total == pytest.approx(sum(term.product for term in sums.terms), abs=1e-12)


def sides_of(line: tuple[Any, ...]) -> list[float]:
    """Return what each side of an equation comes to that is made of numbers alone."""
    numbers = [part for part in line if isinstance(part, Number)]
    count = iter(range(len(numbers)))
    text = "".join(part if isinstance(part, str) else f"#{next(count)}" for part in line)
    out = []
    for side in text.split(" = "):
        found = re.match(r"(?:exp|max|#\d+|[()×/−+ ]|, (?=#)|\d[\d.e+-]*(?= ×))*", side)
        sums = found.group().replace("×", "*").replace("−", "-").strip()
        if "#" in sums:
            places = {f"n{n}": np.float64(number.value) for n, number in enumerate(numbers)}
            known = {"exp": np.exp, "max": max, **places}
            with np.errstate(all="ignore"):  # of rows that see nothing
                out.append(float(eval(sums.replace("#", "n"), {"__builtins__": {}}, known)))
    return [side for side in out if not np.isnan(side)]


@pytest.mark.long
@settings(max_examples=settings.default.max_examples // 5)
@given(scenarios(longest=7, dtypes=("float32",)))
def test_every_equation_of_every_explanation_holds(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    said = 0
    for now in every_op(trace):
        for cell in cells_of(now):
            before: list[float] = []
            for line in explain(now, cell).lines:
                sides = sides_of(line)
                if str(line[0]).startswith("the engine ("):  # beside the sum in float64
                    assert line[1].value == pytest.approx(before[-1], rel=2e-5, abs=1e-6), line
                before = sides
                said += len(sides) > 1
                for side in sides[1:]:
                    assert side == pytest.approx(sides[0], rel=2e-5, abs=1e-6), line
    assert said


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_score_is_its_products(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, nq=8, d=6, temperature=2.0))
    now = next(n for n in every_op(trace) if "scores" in n.done and n.visit.j == 1)
    cell = Cell("S", now.visit.rows.start + 1, now.visit.cols.start + 2)
    found = explain(now, cell)
    assert found.sum.name == f"q{cell.row} · k{cell.col}"
    assert [t.index for t in found.sum.terms] == list(range(6))
    pairs = [(t.factors[0].cell, t.factors[1].cell) for t in found.sum.terms]
    assert pairs == [(Cell("Q", cell.row, n), Cell("K", cell.col, n)) for n in range(6)]
    exact = float(now.q[cell.row].astype(float) @ now.k[cell.col].astype(float))
    assert found.sum.total == pytest.approx(exact, abs=1e-14)
    _, scaled, engine = numbers_of(found)[:3]
    assert scaled.value == pytest.approx(exact * trace.workload.scale / 2.0, abs=1e-14)
    assert engine.value == float(now.tile.s[1, 2])
    assert "in the last place" in words_of(found) or "the same in float32" in words_of(found)


def test_a_term_of_l_is_called_what_it_is() -> None:
    """Once naive has divided P by l, what was summed is no longer what the cell of P shows."""
    for now in every_op(trace_of(scenario("naive", nq=8, d=4))):
        if now.visit.launch != 1 or "row sum" not in now.done or 7 not in now.visit.rows:
            continue
        found = explain(now, Cell("l", 7, 0)).sum
        for term in found.terms:
            (number,) = term.factors
            shown = cell_value(now, number.cell)
            if number.name == cell_name(number.cell, "P"):
                assert number.value == shown.value
            else:
                assert number.name == f"exp({cell_name(number.cell)} − m)"
                assert number.value == pytest.approx(shown.value * found.total, rel=1e-5)
        assert (found.name == "Σ P") is ("normalise" not in now.done)


@given(scenarios(longest=14))
def test_the_mask_is_named_for_hidden_pairs_alone(chosen: Scenario) -> None:
    w = resolve(chosen)
    pairs = pairs_of(w)
    for i in range(w.seqlen_q):
        for j in range(w.seqlen_k):
            why = w.mask.why_hidden(i, j)
            assert bool(why) is not pairs.sees(i, j)
            if why.startswith("causal"):
                assert w.mask.causal
                assert j > pairs.aligned(i)
            elif why.startswith("documents"):
                assert w.mask.documents
            elif why:
                assert why.startswith("window")
                assert w.mask.window


def test_a_long_sum_is_handed_out_in_part() -> None:
    trace = trace_of(scenario("naive", nq=2, nk=1200, rows=2, cols=600, d=2))
    now = next(n for n in every_op(trace) if n.op.name == "row sum")
    found = explain(now, Cell("l", 1, 0))
    assert len(found.sum.terms) == MOST_TERMS
    assert found.sum.count == 1200
    assert found.sum.total == pytest.approx(float(now.tile.p[1].astype(float).sum()), abs=1e-9)


def test_cells_move_as_the_board_draws_them() -> None:
    w = resolve(scenario(nq=8, nk=6, d=4))
    moves: list[tuple[Cell, tuple[int, int], Cell]] = [
        (Cell("S", 2, 3), (1, 0), Cell("S", 2, 4)),
        (Cell("S", 2, 5), (1, 0), Cell("S", 2, 5)),
        (Cell("K", 2, 3), (1, 0), Cell("K", 3, 3)),
        (Cell("K", 2, 3), (0, -1), Cell("K", 2, 2)),
        (Cell("V", 5, 0), (1, 0), Cell("V", 5, 0)),
        (Cell("m", 2, 0), (1, 0), Cell("m", 2, 0)),
        (Cell("O", 7, 0), (0, 1), Cell("O", 7, 0)),
        (Cell("S", 0, 0), (-1, 0), Cell("S", 0, 0)),
        (Cell("S", 1, 1), (-1, -1), Cell("S", 0, 0)),
        (Cell("S", 2, 3), (-9, 9), Cell("S", 7, 0)),
        (Cell("K", 1, 1), (-5, -5), Cell("K", 0, 0)),
        (Cell("V", 2, 1), (9, 9), Cell("V", 5, 3)),
    ]
    for cell, by, expected in moves:
        assert moved_cell(w, cell, *by) == expected


@pytest.mark.long
@given(scenarios(longest=10, dtypes=("float16",), algorithms=("flash2", "naive")), st.data())
def test_at_the_end_o_is_what_lies_in_hbm(chosen: Scenario, data: Any) -> None:
    trace = trace_of(chosen)
    now = trace.snapshot(len(trace) - 1)
    row = data.draw(st.sampled_from(list(now.visit.rows)))
    found = cell_value(now, Cell("O", row, 0))
    assert found.value == float(trace.output[now.visit.head, row, 0])


def test_a_number_that_a_fault_made_nan_is_a_number() -> None:
    chosen = scenario("flash2", nq=8, d=4, temperature=1e-4)
    trace = simulate(with_values(chosen, {"faults": {"no_maximum": True}}))
    now = trace.snapshot(len(trace) - 1)
    values = now.o.reshape(-1)
    row, col = divmod(int(np.flatnonzero(np.isnan(values))[0]), now.o.shape[1])
    found = cell_value(now, Cell("O", now.visit.rows.start + row, col))
    assert np.isnan(found.value)
    first = trace.snapshot(0, 0)
    assert cell_value(first, Cell("O", 0, 0)).value is None


def test_an_explanation_names_the_fault_that_is_on() -> None:
    chosen = scenario("flash2", nq=8, d=4, temperature=0.2, mask={"causal": True})
    trace = simulate(with_values(chosen, {"faults": {"forget_alpha": True}}))
    now = next(n for n in every_op(trace) if "accumulate" in n.done and n.visit.j == 1)
    for row in now.visit.rows:
        found = explain(now, Cell("O", row, 0))
        line = next(line for line in found.lines if line[0] == "α = exp(m before − m) = exp(")
        before, after, right, used = (part for part in line if isinstance(part, Number))
        r = row - now.visit.rows.start
        assert line[-2] == ", but the fault uses "
        assert (used.value, used.name) == (1.0, "the factor that is used")
        assert used.cell == Cell("m", row, 0)
        assert right.value == pytest.approx(np.exp(before.value - after.value), rel=1e-5)
        assert right.value == now.tile.alpha[r]
    assert (now.tile.alpha != 1.0).any()
    plain = simulate(chosen).snapshot(now.cursor.visit)
    assert "but the fault" not in words_of(explain(plain, Cell("O", 5, 0)))


def test_a_number_far_from_its_exact_sum_is_put_down_to_the_fault() -> None:
    chosen = scenario("flash2", nq=8, d=4, temperature=0.01)
    trace = simulate(with_values(chosen, {"faults": {"no_maximum": True}}))
    now = trace.snapshot(len(trace) - 1)
    said = [
        words_of(explain(now, Cell("O", row, col))) for row in now.visit.rows for col in range(4)
    ]
    assert any("a fault is on" in words for words in said)
    clean = simulate(chosen).snapshot(len(trace) - 1)
    assert "a fault" not in words_of(explain(clean, Cell("O", 7, 0)))


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_unit_in_the_last_place_is_told_as_one(algorithm: str) -> None:
    """The units are those of the larger of the engine's number and the exact one in float32."""
    trace = trace_of(scenario(algorithm, nq=12, d=24, seed=5))
    told = set()
    for now in (trace.snapshot(n) for n in range(len(trace))):
        if now.in_softmax_launch:
            continue
        for row in now.visit.rows:
            for key in now.visit.cols:
                found = explain(now, Cell("S", row, key))
                numbers = numbers_of(found)
                exact, ours = np.float32(numbers[1].value), np.float32(numbers[2].value)
                unit = np.spacing(max(abs(exact), abs(ours)))
                off = round(abs(float(exact) - float(ours)) / float(unit))
                words = words_of(found)
                told.add(off)
                if off == 0:
                    assert ", the same in float32" in words
                else:
                    count = "1 unit" if off == 1 else f"{off} units"
                    assert f"its own float32 sum, {count} in the last place away" in words
    assert {0, 1} <= told


def test_what_is_said_of_every_cell_from_op_to_op() -> None:
    """Words of the second row block, numbers as #, read once by eye against the algorithms.

    Left out is how far float32 is from float64: it depends on the processor.
    """
    told: list[str] = []
    for algorithm in ALGORITHMS:
        shape = {"nq": 8, "d": 4, "dtype": "float16", "seed": 3, "mask": {"causal": True}}
        seen = set()
        for now in every_op(trace_of(scenario(algorithm, **shape))):
            if now.visit.i != 1:
                continue
            at = f"{algorithm} launch {now.visit.launch + 1} tile (1, {now.visit.j})"
            for cell in (Cell("S", 5, 1), Cell("S", 5, 7), *(Cell(t, 5, 0) for t in "mlO")):
                found = explain(now, cell)
                head = f"{found.value.name} {found.value.state}"
                head += f"; {found.sum.name}" if found.sum else ""
                lines = [
                    "".join(part if isinstance(part, str) else "#" for part in line)
                    for line in found.lines
                ]
                words = "\n".join(["  " + each for each in lines if "the engine (" not in each])
                if (head, words) not in seen:
                    seen.add((head, words))
                    told += [f"{at} {now.op.name}: {head}", *words.splitlines()]
    kept = (GOLDEN / "explanations.txt").read_text(encoding="utf-8").splitlines()
    assert told == kept


def meant_by(now: Snapshot, at: Cell, number: Number) -> tuple[float, Cell]:
    """Return the value and the cell that a number of an explanation has by its name alone."""
    t, r, row, name = now.tile, at.row - now.visit.rows.start, at.row, number.name
    if found := re.fullmatch(r"exp\(S\[(\d+), (\d+)\] − m\)", name):
        cell = Cell("S", int(found[1]), int(found[2]))
        return float(t.p[r, cell.col - now.visit.cols.start]), cell
    if found := re.fullmatch(r"([SPOVqk])\[(\d+), (\d+)\]", name):
        tensor, cell = found[1], Cell(found[1].upper(), int(found[2]), int(found[3]))
        if tensor in "qkV":
            held = {"q": now.q, "k": now.k, "V": now.v}[tensor]
            return float(held[cell.row, cell.col]), cell
        cell = replace(cell, tensor={"P": "S"}.get(tensor, tensor))
        here = cell_value(now, cell)
        if tensor != "S" or (here.tensor == "S" and here.value != -np.inf):
            assert here.value is not None
            return here.value, cell
        c = cell.col - now.visit.cols.start
        inside = cell.row in now.visit.rows and cell.col in now.visit.cols
        return float(t.s[r, c] if inside else now.head.s[cell.row, cell.col]), cell
    if found := re.fullmatch(rf"([mℓ])(?:, row {row}|\[{row}\])", name):
        cell = Cell({"ℓ": "l"}.get(found[1], "m"), row, 0)
        here = cell_value(now, cell)
        assert here.value is not None
        return here.value, cell
    top = int(np.argmax(np.where(t.seen[r], t.s[r], -np.inf))) + now.visit.cols.start
    o, n = f"O[{row}, {at.col}]", min(at.col, t.o.shape[1] - 1)
    return {
        f"α, row {row}": (t.alpha[r], Cell("m", row, 0)),
        f"β, row {row}": (t.beta[r], Cell("m", row, 0)),
        f"β / ℓ, row {row}": (t.beta[r] / t.l[r] if t.l[r] else 0.0, Cell("l", row, 0)),
        f"α ℓ before / ℓ, row {row}": (now.rescale_factor[r], Cell("l", row, 0)),
        f"m before this tile, row {row}": (t.m_prev[r], Cell("m", row, 0)),
        f"ℓ before this tile, row {row}": (t.l_prev[r], Cell("l", row, 0)),
        f"maximum of this tile, held by key {top}": (t.m_tile[r], Cell("S", row, top)),
        f"m̃, maximum of this tile, row {row}": (t.m_tile[r], Cell("S", row, top)),
        f"row sum of this tile, row {row}": (t.l_tile[r], Cell("l", row, 0)),
        f"{o} before this tile": (t.o_prev[r, n], at),
        f"{o} as a sum": (t.o[r, n], at),
        f"{o}, normalised": (now.o[r, n], at),
    }[name]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_number_is_what_its_name_says(algorithm: str) -> None:
    """Row 5 sees its whole first tile and a part of the second; row 0 sees nothing."""
    shape = {"nq": 8, "nk": 7, "d": 3, "dtype": "float16", "seed": 3, "mask": {"causal": True}}
    names = set()
    for now in every_op(trace_of(scenario(algorithm, **shape))):
        for row in (0, 5, 7):
            for cell in (
                Cell("S", row, 1), Cell("S", row, 4), Cell("S", row, 6),
                Cell("m", row, 0), Cell("l", row, 0), Cell("O", row, 2),
            ):  # fmt: skip
                found = explain(now, cell)
                for line in found.lines:
                    numbers = [part for part in line if isinstance(part, Number)]
                    # Last places matter of the exact number and of the engine's beneath it.
                    engine = str(line[0]).startswith("the engine (")
                    for number in numbers:
                        exact = number.name in ("in float64", "the same in float64")
                        assert number.full == (engine or exact)
                        if number.name.endswith("in float64"):
                            assert number.cell == cell
                            continue
                        value, place = meant_by(now, cell, number)
                        assert (number.value, number.cell) == (pytest.approx(value), place)
                        names.add(re.sub(r"\d+", "#", number.name))
                for term in found.sum.terms if found.sum else ():
                    for factor in term.factors:
                        value, place = meant_by(now, cell, factor)
                        if cell.tensor == "l":  # P as it was summed, before naive divides it
                            at = row - now.visit.rows.start, term.index - now.visit.cols.start
                            value = now.tile.p[at]
                        assert (factor.value, factor.cell, factor.full) == (value, place, False)
    assert len(names) > {"naive": 4, "flash1": 12, "flash2": 10}[algorithm]


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_a_row_that_sees_no_key_is_told_so(algorithm: str) -> None:
    """Four rows and three keys: the first row comes before all keys, the second sees one."""
    trace = trace_of(scenario(algorithm, nq=4, nk=3, rows=2, cols=3, mask={"causal": True}))
    now = trace.snapshot(0)
    blind, seeing = (words_of(explain(now, Cell("m", row, 0))) for row in (0, 1))
    assert ": the row sees no key of it" in blind
    assert "α = #: the row has seen no key yet" in blind
    assert ", held by key 0" in seeing
    assert "no key" not in seeing
    later = trace.snapshot(1)
    assert words_of(explain(later, Cell("m", 0, 0))) == "row 0 has seen no key so far"
    for cell, name in ((Cell("m", 1, 0), "m"), (Cell("l", 0, 0), "ℓ"), (Cell("O", 0, 0), "O")):
        told = words_of(explain(later, cell))
        assert told == f"{name} = #; go to a tile of row block 0 to see its sum"


def test_an_input_names_the_query_heads_that_read_it() -> None:
    shape = {"nq": 4, "nk": 4, "heads": 6, "kv_heads": 2, "dtype": "bfloat16", "seed": 7}
    trace = trace_of(scenario("flash2", head=[1, 3, 5], **shape))
    source = "an input, drawn at random, seed 7, bfloat16"
    for visit, readers in enumerate(["KV head 0, read by the query heads 1",
                                     "KV head 1, read by the query heads 3, 5"]):  # fmt: skip
        now = trace.snapshot(visit)
        for tensor in "KV":
            assert explain(now, Cell(tensor, 0, 0)).lines == ((source,), (readers,))
        assert explain(now, Cell("Q", 0, 0)).lines == ((source,),)
    alone = trace_of(scenario("flash2", nq=4, nk=4, heads=2)).snapshot(0)
    assert len(explain(alone, Cell("K", 0, 0)).lines) == 1


@pytest.mark.long
def test_what_is_a_million_units_away_is_no_rounding() -> None:
    now = trace_of(scenario("flash2", nq=4, nk=4)).snapshot(0)
    cell = Cell("S", 1, 2)
    exact = np.float32(numbers_of(explain(now, cell))[1].value)
    toward_larger = np.spacing(exact)

    def told(units: int) -> str:
        s = now.tile.s.copy()
        s[1, 2] = exact + units * toward_larger
        changed = replace(now, tile=with_number(now.tile, "s", s))
        return words_of(explain(changed, cell))

    beside = "the engine (numpy) has #"
    assert f"{beside}, the same in float32" in told(0)
    assert f"{beside}: its own float32 sum, 1 unit in the last place away" in told(1)
    assert f"{beside}: its own float32 sum, 999999 units in" in told(999_999)
    assert told(1_000_000).split(beside)[1].startswith("P = ")


def test_a_bias_is_told_as_slope_times_distance() -> None:
    chosen = scenario("flash2", nq=4, heads=4, kv_heads=4, scores={"alibi": True})
    lines = explain(trace_of(chosen).snapshot(0), Cell("S", 0, 3)).lines
    told = next(line for line in lines if "slope" in str(line[0]))
    assert told[0] == "bias: slope · |i′ − j| = 0.25 · 3, "
