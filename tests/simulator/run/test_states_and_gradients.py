"""What is said of states and of gradients, against the numbers that their ops have left."""

from itertools import pairwise

import numpy as np
import pytest

from simulator import Snapshot, Trace
from simulator.code.code_lines import exemplars
from simulator.problem.facts import RULES
from simulator.run.cell_values import cell_value, why_not_formed
from simulator.run.explanation import Number
from simulator.run.linear_state import added_to_state
from simulator.run.provenance import explain
from simulator.run.snapshot import Cell
from tests.helpers.runs import fitted, scenario, trace_of
from tests.simulator.run.test_provenance import numbers_of, words_of

# --- states ---------------------------------------------------------------------------------------


def traces(algorithm: str) -> list[Trace]:
    return [trace_of(program.workload) for program in exemplars(algorithm)]


@pytest.mark.parametrize("algorithm", RULES)
def test_what_is_said_to_be_added_is_by_how_much_the_state_grows(algorithm: str) -> None:
    grown = 0
    for trace in traces(algorithm):
        for index in range(len(trace)):
            states = trace.tile(index).states
            for op, (before, after) in enumerate(pairwise(states)):
                now = trace.snapshot(index, op)
                if trace.program.ops(index)[op].name == "update state":
                    added = added_to_state(now)
                    assert added is not None
                    change = after["state"] - before["state"]
                    np.testing.assert_allclose(added, change, atol=2e-6)
                    grown += 1
                elif "phi_K" not in now.state:
                    assert added_to_state(now) is None
    assert grown > 3


@pytest.mark.parametrize("algorithm", RULES)
def test_rows_of_a_state_are_explained_by_what_adds_up_to_them(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, **fitted(algorithm, nq=10, nk=10, mask={"causal": True})))
    sums = RULES[algorithm].sums
    for index in range(len(trace)):
        now = trace.snapshot(index)
        for row in now.visit.rows:
            for cell in (*(Cell("O", row, col) for col in (0, 3)), *((Cell("l", row, 0),) * sums)):
                found = explain(now, cell)
                value = cell_value(now, cell).value
                assert value is not None
                numbers = {part.name: part.value for part in numbers_of(found)}
                names = list(numbers)
                first = next(name for name in names if name.endswith("of the keys in the state"))
                if "of the keys of the chunk, in float64" not in numbers:
                    whole = numbers[first]
                else:
                    own = numbers["of the keys of the chunk, in float64"]
                    whole = next(numbers[name] for name in names if name.endswith(" as a sum"))
                    assert numbers[first] + own == pytest.approx(whole, abs=1e-5)
                if sums and cell.tensor == "O":
                    divided = whole / numbers[f"ℓ, row {row}"]
                    assert divided == pytest.approx(value, abs=1e-5)
                else:
                    assert whole == pytest.approx(value, abs=1e-5)


def test_a_similarity_is_a_sum_over_features_and_counts_nothing_where_it_is_hidden() -> None:
    trace = trace_of(scenario("linear", nq=10, d=4, mask={"causal": True}))
    index = trace.program.index(0, 1, 1)
    assert index is not None
    op = next(n for n, op in enumerate(trace.program.ops(index)) if "P" in op.makes)
    seen, hidden = (explain(trace.snapshot(index, op), Cell("S", 5, key)) for key in (4, 7))
    assert words_of(seen) == "φ(q5) · φ(k4), a sum over 4 features: #"
    assert words_of(hidden).startswith(
        "φ(q5) · φ(k7), a sum over 4 features: #hidden by the mask, "
    )
    assert "so it counts 0 (causal: row 5" in words_of(hidden)


def test_only_a_chunk_with_itself_forms_similarities() -> None:
    trace = trace_of(scenario("linear", nq=10, mask={"causal": True}))
    now = trace.snapshot(len(trace) - 1)
    assert why_not_formed(now, Cell("S", 9, 8)) == ""
    assert why_not_formed(now, Cell("S", 9, 2)).endswith("is in the state that this row reads")
    assert why_not_formed(now, Cell("S", 2, 9)) == "hidden by the mask"
    whole = trace_of(scenario("linear", nq=10)).snapshot(0)
    assert why_not_formed(whole, Cell("S", 0, 0)).endswith("a state that all keys are added to")
    softmax = trace_of(scenario("flash2", nq=10)).snapshot(0)
    assert why_not_formed(softmax, Cell("S", 0, 0)) == ""
    rows = trace_of(scenario("gla", nq=10, mask={"causal": True})).snapshot(9)
    assert why_not_formed(rows, Cell("S", 3, 3)).endswith("is in the state that this row reads")


# --- gradients ------------------------------------------------------------------------------------


def backward() -> Trace:
    return trace_of(
        scenario("flash2-backward", nq=7, nk=6, d=3, dv=2, heads=2, kv_heads=1, rows=3, cols=4,
                 mask={"causal": True})
    )  # fmt: skip


def told(now: Snapshot, tensor: str, row: int, col: int = 0) -> tuple[list[Number], str]:
    """Return what is said of a cell that has a number."""
    found = explain(now, Cell(tensor, row, col))
    assert found.value.value is not None, (tensor, row, col)
    return numbers_of(found), words_of(found)


def exact(now: Snapshot, name: str) -> np.ndarray:
    values = now.tile.first(name)
    return values.astype(np.float64)


def test_pairs_of_a_backward_pass_are_explained_by_their_factors() -> None:
    trace, checked = backward(), 0
    for index in range(len(trace)):
        now = trace.snapshot(index)
        if not now.launch.forms:
            continue
        rows, cols = now.visit.rows, now.visit.cols
        p, dp, d, ds = (exact(now, name) for name in ("P", "dP", "D", "dS"))
        for r, c in np.argwhere(now.tile.seen).tolist():
            row, key = rows[r], cols[c]
            (of_dp, *_), words = told(now, "dP", row, key)
            want = sum(a * b for a, b in zip(exact(now, "dO")[r], exact(now, "V")[c], strict=True))
            assert of_dp.value == pytest.approx(want, abs=1e-5)
            assert words.startswith(f"dP = dO[{row}] · v{key} = ")
            assert "units" not in words or float(words.split(", ")[-1].split()[0]) < 9
            numbers, words = told(now, "dS", row, key)
            weight, change, mean, result, _ = (part.value for part in numbers)
            assert (weight, change, mean) == (p[r, c], dp[r, c], d[r])
            assert result == ds[r, c] == pytest.approx(weight * (change - mean), abs=1e-6)
            assert "units" not in words or float(words.split(", ")[-1].split()[0]) < 9
            checked += 1
    assert checked > 20


def test_sums_of_a_backward_pass_are_explained_by_what_a_tile_adds() -> None:
    trace, checked = backward(), 0
    for index in range(len(trace)):
        now = trace.snapshot(index)
        if not now.launch.forms:
            continue
        rows, cols = now.visit.rows, now.visit.cols
        p, ds = exact(now, "P"), exact(now, "dS")
        sums = (
            ("dV", p.T @ exact(now, "dO"), cols), ("dK", ds.T @ exact(now, "Q"), cols),
            ("dQ_acc", ds @ exact(now, "K"), rows),
        )  # fmt: skip
        for tensor, adds, own in sums:
            for n, place in enumerate(own):
                for col in range(adds.shape[1]):
                    numbers, _ = told(now, tensor, place, col)
                    added = next(each for each in numbers if each.name.endswith("], in float64"))
                    assert added.value == pytest.approx(adds[n, col], abs=1e-6)
                    value = cell_value(now, Cell(tensor, place, col)).value
                    assert value in [each.value for each in numbers]
                    checked += 1
    assert checked > 40


@pytest.mark.long
def test_rows_of_a_backward_pass_are_explained_by_their_sums() -> None:
    trace = backward()
    w = trace.workload
    for index in range(len(trace)):
        now = trace.snapshot(index)
        if now.launch.forms:
            continue
        for r, row in enumerate(now.visit.rows):
            if now.visit.launch == 0:
                (dots, again), _ = told(now, "D", row)
                want = (exact(now, "dO")[r] * exact(now, "O")[r]).sum()
                assert dots.value == again.value == pytest.approx(want, abs=1e-6)
                continue
            for col in range(w.head_dim):
                (total, scaled, _), words = told(now, "dQ", row, col)
                assert total.value * w.scoring.factor == pytest.approx(scaled.value, abs=1e-6)
                assert words.startswith(f"dQ = scale · Σ dS k = {w.scoring.factor:.6g} × ")
