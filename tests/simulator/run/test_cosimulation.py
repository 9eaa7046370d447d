"""`verify`: silent on a right engine, and naming the first number that differs on a wrong one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator import Trace
from simulator.engines.numpy_engine import NumpyEngine, Tile
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs
from simulator.program.tile_program import Visit
from simulator.run.cosimulation import MAX_VISITS, verify, visits_to_check
from tests.helpers.runs import ALGORITHMS, program_of, scenario, trace_of
from tests.helpers.tiles import with_number


def test_whole_row_blocks_may_be_more_than_were_to_be_checked() -> None:
    trace, told = trace_of(scenario(nq=3, nk=20, d=1, rows=1, cols=1)), []
    assert verify(trace, told.append, 8).visits == 20
    assert told == [1.0, 1.0]


class WrongEngine(NumpyEngine):
    """Right but for one array of one visit."""

    def __init__(self, trace: Trace, visit: int, name: str, value: float) -> None:
        super().__init__(trace.workload, trace.inputs)
        self.fault = (visit, name, value)

    def tile(self, visit: Visit, block: Any) -> Tile:
        tile = super().tile(visit, block)
        at, name, value = self.fault
        if visit.index != at:
            return tile
        wrong = getattr(tile, name).copy()
        wrong[(1,) * wrong.ndim] += value
        return with_number(tile, name, wrong)


@pytest.mark.sweep(keep=10)
@pytest.mark.parametrize("value", [1e-3, -1e-3, np.nan, np.inf])
@pytest.mark.parametrize(
    ("algorithm", "name", "op", "quantity"),
    [
        ("flash2", "s", "scores", "S[1, 1]"),
        ("flash2", "m", "row max", "m[1]"),
        ("flash2", "alpha", "row max", "alpha[1]"),
        ("flash2", "p", "exponentials", "P[1, 1]"),
        ("flash2", "l", "row sum", "l[1]"),
        ("flash2", "o", "accumulate", "O[1, 1]"),
        ("flash1", "m_tile", "row max", "m of the tile[1]"),
        ("flash1", "beta", "combine", "beta[1]"),
        ("flash1", "o", "accumulate", "O[1, 1]"),
        ("naive", "s", "scores", "S[1, 1]"),
    ],
)
def test_the_first_difference_is_named(
    algorithm: str, name: str, op: str, quantity: str, value: float
) -> None:
    chosen = scenario(algorithm, nq=12, rows=4, cols=4)
    honest = trace_of(chosen)
    wrong = WrongEngine(honest, 5, name, value)
    verdict = verify(Trace(honest.program, wrong, honest.inputs))
    found = verdict.difference
    assert (found.visit.index, found.op, found.quantity) == (5, op, quantity)
    assert verdict.visits == 6
    visit = honest.program.visit(5)
    start = f"differs first at visit 5 (head 0, row block {visit.i}, column block {visit.j}), {op}:"
    assert str(verdict).startswith(f"{start} {quantity} = ")


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_long_runs_are_checked_in_part(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, nq=160, d=1, rows=1, cols=2))
    assert len(trace) > MAX_VISITS
    verdict = verify(trace)
    assert verdict.difference is None, str(verdict)
    assert 0.9 * MAX_VISITS <= verdict.visits < len(trace)
    assert str(verdict) == f"{verdict.visits} of {len(trace)} visits agree with float64"


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_checked_in_part_is_spread_over_the_run(causal: bool) -> None:
    chosen = scenario(nq=2**15, d=1, heads=2, rows=64, cols=64, mask={"causal": causal})
    program = program_of(chosen)
    places = list(visits_to_check(program))
    assert places == sorted(set(places))
    assert len(places) < 2 * MAX_VISITS
    firsts = [place for place in places if program.visit(place).first]
    gaps = np.diff([*firsts, len(program)])
    assert gaps.max() < len(program) / 4


def test_long_runs_are_checked_in_whole_row_blocks_evenly_apart() -> None:
    """Fifteen row blocks of three visits each; six visits are two of them, 22 visits apart."""
    program = program_of(scenario(nq=15, nk=3, d=1, rows=1, cols=1))
    assert list(visits_to_check(program, 6)) == [0, 1, 2, 21, 22, 23]
    assert list(visits_to_check(program, 7)) == [0, 1, 2, 21, 22, 23, 42, 43, 44]
    shorter = program_of(scenario(nq=14, nk=3, d=1, rows=1, cols=1))
    assert list(visits_to_check(shorter, 7)) == [0, 1, 2, 21, 22, 23]
    # Row blocks of none, for 36 of 40, then of one to four visits: fewer than one in the mean.
    late = program_of(scenario(nq=40, nk=4, d=1, rows=1, cols=1, mask={"causal": True}))
    assert list(visits_to_check(late, 6)) == list(range(6))
    assert list(visits_to_check(program, 45)) == list(range(45))
    growing = program_of(scenario(nq=9, nk=9, d=1, rows=1, cols=1, mask={"causal": True}))
    assert list(visits_to_check(growing, 45)) == list(range(45))
    assert list(visits_to_check(program, 2)) == [0, 1, 2]
    # Column blocks outside, or launches one after another: what comes first is checked.
    for algorithm in ("flash1", "naive"):
        program = program_of(scenario(algorithm, nq=15, nk=3, d=1, rows=1, cols=1))
        assert list(visits_to_check(program, 4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("scale", "values"), [(0.01, 0.1), (8.0, 5.0)])
def test_the_tolerance_is_sixteen_units_of_the_terms_of_scores_and_of_o(
    algorithm: str, scale: float, values: float
) -> None:
    """2**-20 of the largest Σ |q k|, for O of its largest value and row sum, of 1 at least."""
    program = program_of(scenario(algorithm, nq=3, nk=4, d=3, rows=3, cols=4, scale=scale))
    inputs = read_inputs(program.workload)
    inputs = replace(inputs, v=np.float32(values) * inputs.v)
    honest = Trace(program, NumpyEngine(program.workload, inputs), inputs)
    q, k, v = (t[0].astype(np.float64) for t in (inputs.q, inputs.k, inputs.v))
    s = q @ k.T * scale
    weights = np.exp(s - s.max(axis=1, keepdims=True))
    total = weights.sum(axis=1)
    o = weights @ v
    size = max(1.0, (np.abs(q) @ np.abs(k).T * scale).max())
    terms = size * max(1.0, np.abs(v).max())
    if algorithm == "flash2":  # O is a sum over all weights, divided at the end
        terms *= total.max()
    else:
        o /= total[:, None]
    for name, exact, expected in (("s", s, size), ("o", o, terms)):
        for visit in range(len(program)):
            found = verify(Trace(program, WrongEngine(honest, visit, name, 1.0), inputs)).difference
            if found is not None:
                break
        assert found.exact == pytest.approx(exact[1, 1])
        assert found.allowed == pytest.approx(2**-20 * expected * (1 + abs(exact[1, 1])))


TERMS_CANCEL: tuple[dict[str, Any], ...] = (
    {"attention": {"seqlen_q": 48, "head_dim": 64, "scale": 1.0}, "tiling": {"rows": 1, "cols": 1}},
    {"attention": {"seqlen_q": 48, "seqlen_k": 31, "heads": 2, "head_dim": 24, "scale": 2.5,
                   "dtype": "float16"},
     "scores": {"softcap": 0.5}, "tiling": {"rows": 8, "cols": 31}},
)  # fmt: skip
"""Runs whose scores are much smaller than the terms that they are sums of."""


@pytest.mark.long
@pytest.mark.parametrize("tables", TERMS_CANCEL)
def test_scores_whose_terms_cancel_raise_no_alarm(tables: dict[str, Any]) -> None:
    assert verify(trace_of(parse_scenario(tables))).difference is None


@pytest.mark.parametrize(("share", "agrees"), [(0.5, True), (1.5, False)])
def test_what_is_within_the_tolerance_agrees(share: float, agrees: bool) -> None:
    honest = trace_of(scenario(nq=4, nk=4))
    wrong = WrongEngine(honest, 0, "s", 1.0)
    found = verify(Trace(honest.program, wrong, honest.inputs)).difference
    slip = found.exact - (found.engine - 1.0) + share * found.allowed
    verdict = verify(Trace(honest.program, WrongEngine(honest, 0, "s", slip), honest.inputs))
    assert (verdict.difference is None) == agrees
    assert verdict.largest == pytest.approx(share, abs=0.1)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_whole_tolerance_may_be_used(algorithm: str) -> None:
    """Where all scores are 0 the tolerance is 2**-20, a number of float32."""
    program = program_of(scenario(algorithm, nq=2, nk=2, d=1))
    inputs = read_inputs(program.workload)
    inputs = replace(inputs, q=np.zeros_like(inputs.q))
    honest = Trace(program, NumpyEngine(program.workload, inputs), inputs)
    for value, agrees in ((2.0**-20, True), (2.0**-20 + 2.0**-40, False)):
        verdict = verify(Trace(program, WrongEngine(honest, 0, "s", value), inputs))
        assert (verdict.difference is None) == agrees
        assert verdict.largest == value * 2**20
