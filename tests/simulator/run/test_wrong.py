"""Which numbers are marked as wrong: those that differ from float64 by more than rounding."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.engines.op_engine import OpEngine
from simulator.problem.scenario import parse_scenario, with_values
from simulator.program.faults import FAULTS
from simulator.run.trace import Trace, simulate
from simulator.run.wrong import exact_engine, wrong_numbers
from tests.helpers.demos import every_op
from tests.helpers.faulty_runs import NAMES, causal, faulty
from tests.helpers.runs import ALGORITHMS, trace_of
from tests.helpers.tiles import with_state


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("fault", NAMES)
def test_what_is_marked_differs_and_what_is_not_agrees(fault: str, algorithm: str) -> None:
    chosen = causal(algorithm, dtype="float16")
    trace, right = faulty(chosen, fault), trace_of(chosen)
    spec = next(each for each in FAULTS if each.name == fault)
    ever = False
    for now in every_op(trace):
        good = right.snapshot(now.cursor.visit, now.cursor.op)
        assert now.wrong is not None
        assert now.head is not None
        assert good.head is not None
        for name in ("s", "p", "m", "l", "o"):
            marks = getattr(now.wrong, name)
            ours, theirs = getattr(now.head, name), getattr(good.head, name)
            ever |= bool(marks.any())
            there = ~np.isnan(theirs)
            assert not marks[~there].any()
            with np.errstate(invalid="ignore"):
                off = np.where(ours == theirs, 0.0, np.abs(ours - theirs))
            assert (off[there & ~marks] < 2e-3).all()
            assert (off[there & marks] > 1e-6).all()
    assert ever == (algorithm in spec.algorithms)


def test_a_run_without_faults_marks_nothing() -> None:
    assert all(now.wrong is None for now in every_op(trace_of(causal("flash2"))))


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("fault", NAMES)
def test_large_problems_mark_the_current_rows_as_small_ones_do(fault: str, algorithm: str) -> None:
    chosen = with_values(causal(algorithm, temperature=0.3), {"faults": {fault: True}})
    trace = trace_of(chosen)
    w, inputs = trace.workload, trace.inputs
    marked = Trace(trace.program, OpEngine(w, inputs), inputs)
    exact = Trace(trace.program, exact_engine(w, inputs), inputs)
    for visit in range(2, len(trace), 7):
        now, right = marked.snapshot(visit), exact.snapshot(visit)
        rows = slice(now.visit.rows.start, now.visit.rows.stop)
        small = wrong_numbers(now, right)
        large = wrong_numbers(replace(now, head=None), replace(right, head=None))
        assert small.s is not None
        assert large.s is large.p is None
        # The tolerance of a large problem is that of the tile's largest score, not of the head's.
        pairs = [(small.tile_s, large.tile_s), (small.tile_p, large.tile_p)]
        if algorithm != "naive":
            own = (small.m[rows], small.l[rows], small.o[rows])
            pairs += zip(own, (large.m, large.l, large.o), strict=True)
        for one, other in pairs:
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert one.shape == other.shape
                assert not (one & ~other).any()


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
@pytest.mark.parametrize("algorithm", ["naive", "flash2"])
def test_rounding_of_what_is_stored_is_no_mistake(algorithm: str, dtype: str, unit: float) -> None:
    trace = trace_of(causal(algorithm, dtype=dtype))
    exact = Trace(trace.program, exact_engine(trace.workload, trace.inputs), trace.inputs)
    now, right = (t.snapshot(len(trace) - 1, 0) for t in (trace, exact))  # rows before are stored
    assert now.head is not None
    assert not wrong_numbers(now, right).o.any()
    stored = slice(0, now.visit.rows.start)
    for units, marked in ((0.9, False), (1.1, True)):
        o = right.head.o.astype(np.float64) * (1 + units * unit)
        moved = replace(now, head=replace(now.head, o=o.astype(np.float32)))
        marks = wrong_numbers(moved, right).o
        size = np.abs(right.head.o[stored])
        # A unit of smaller ones is less than float32 may be off in the sum before it is divided.
        assert (marks[stored][size > 0.2] == marked).all()
        # On chip nothing has been rounded.
        assert marks[now.visit.rows.start :][
            np.abs(right.head.o[now.visit.rows.start :]) > 0.2
        ].all()


# --- by how much -------------------------------------------------------------------------------


def exact_run(algorithm: str, **more: Any) -> Trace:
    trace = trace_of(causal(algorithm, **more))
    return Trace(trace.program, exact_engine(trace.workload, trace.inputs), trace.inputs)


def largest(values: np.ndarray) -> float:
    return max(1.0, float(np.abs(values[np.isfinite(values)]).max()))


def moved(values: np.ndarray, by: float) -> Any:
    """Return numbers off by a share of their tolerance, which grows with them."""
    wide = values.astype(np.float64)
    return wide + np.where(np.isfinite(wide), 2.0**-20 * by * (1 + np.abs(wide)), 0.0)


def check_marks(marks: np.ndarray | None, exact: np.ndarray | None, marked: bool) -> None:
    """All numbers are marked or none is; what is no number agrees."""
    assert (marks is None) == (exact is None)
    if marks is not None and exact is not None:
        assert (marks[np.isfinite(exact)] == marked).all()
        assert not marks[~np.isfinite(exact)].any()


@pytest.mark.parametrize("temperature", [0.3, 30.0])  # scores above 1 and below
def test_a_number_is_wrong_beyond_its_tolerance(temperature: float) -> None:
    """2**-20 for each unit of the largest score, and for O of the terms it is a sum of."""
    for algorithm in ALGORITHMS:
        right = exact_run(algorithm, temperature=temperature)
        launch = len(right.program.launches) - 1
        index = right.program.index(0, 1, 1, launch) or 0
        names = [op.name for op in right.program.ops(index)]
        now = right.snapshot(index, names.index("accumulate"))
        head = now.head
        q, k = (np.abs(x.astype(np.float64)) for x in (now.q, now.k))
        products = q @ k.T * right.workload.scoring.factor  # scores may be less than their terms
        own = products[now.visit.rows.start : now.visit.rows.stop,
                       now.visit.cols.start : now.visit.cols.stop]  # fmt: skip
        for part, marked in ((0.99, False), (1.01, True)):
            by = largest(products) * part
            terms = largest(now.v) * (largest(head.l) if algorithm == "flash2" else 1.0)
            ours = replace(
                head, s=moved(head.s, by), p=moved(head.p, by), m=moved(head.m, by),
                l=moved(head.l, by), o=moved(head.o, by * terms),
            )  # fmt: skip
            tile_too = {n: moved(now.state[n], by) for n in ("S", "P") if n in now.state}
            found = wrong_numbers(with_state(replace(now, head=ours), **tile_too), now)
            for name in ("s", "p", "m", "l", "o"):
                check_marks(getattr(found, name), getattr(head, name), marked)
            check_marks(found.tile_s, now.scores, marked)
            check_marks(found.tile_p, now.weights, marked)
            # Of a large problem only the current tile and its rows are compared.
            by = largest(own) * part
            terms = largest(now.v) * (largest(now.l) if algorithm == "flash2" else 1.0)
            other = {n: moved(now.state[n], by) for n in ("S", "P") if n in now.state}
            other |= {"m": moved(now.m, by), "l": moved(now.l, by), "O": moved(now.o, by * terms)}
            large = replace(now, head=None)
            found = wrong_numbers(with_state(large, **other), large)
            assert found.s is found.p is None
            for name in ("m", "l", "o"):
                check_marks(getattr(found, name), getattr(now, name), marked)
            check_marks(found.tile_s, now.scores, marked)
            check_marks(found.tile_p, now.weights, marked)


def test_scores_whose_terms_cancel_are_not_wrong() -> None:
    """With a soft-cap of 0.5 scores are small, and as far off as their terms are large."""
    trace = simulate(parse_scenario({
        "attention": {"heads": 2, "seqlen_q": 48, "seqlen_k": 31, "head_dim": 24, "scale": 2.5,
                      "dtype": "float16"},
        "scores": {"softcap": 0.5}, "tiling": {"rows": 8, "cols": 31},
        "faults": {"forget_alpha": True},
    }))  # fmt: skip
    for visit in range(0, len(trace), 3):
        found = trace.snapshot(visit, len(trace.program.ops(visit)) - 1)
        right = trace.exact(found)
        marks = wrong_numbers(found, right).s
        assert not marks.any()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("dtype", "unit"), [("float32", 0.0), ("float16", 2.0**-10), ("bfloat16", 2.0**-7)]
)
def test_a_stored_o_may_be_off_by_a_unit_in_the_last_place(dtype: str, unit: float) -> None:
    for algorithm in ALGORITHMS:
        right = exact_run(algorithm, dtype=dtype)
        now = right.snapshot(len(right) - 1, 0)
        one = replace(now.head, o=np.ones_like(now.head.o))
        stored = np.zeros(24, dtype=bool)
        stored[: now.visit.rows.start] = algorithm != "flash1" and dtype != "float32"
        for off in (unit or 2.0**-7, -unit or -(2.0**-7)):
            for more, kept in ((1.0, stored), (1.01, np.zeros_like(stored))):
                ours = replace(now.head, o=one.o + off * more)
                marks = wrong_numbers(replace(now, head=ours), replace(now, head=one)).o
                assert (marks == ~kept[:, None]).all()
