"""The NumPy engine against the float64 interpreter, visit by visit, and against a textbook."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.dtypes import round_to
from simulator.engines.interpreter import Interpreter
from simulator.engines.numpy_engine import NumpyEngine
from simulator.engines.protocol import RowBlock, Tile
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import Scenario
from simulator.problem.workload import Inputs, Workload
from simulator.program.tile_program import Visit
from simulator.run.trace import Trace
from tests.helpers.runs import (
    ALGORITHMS,
    check_close,
    pairs_of,
    rounding,
    scenario,
    scenarios,
    scored,
    textbook,
    trace_of,
)

HALF_ULP = {"float32": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Largest relative error of rounding to nearest."""


def frozen(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Inputs:
    """Return inputs of these numbers."""
    tensors = [np.ascontiguousarray(t, dtype=np.float32) for t in (q, k, v)]
    for tensor in tensors:
        tensor.flags.writeable = False
    return Inputs(*tensors)


# --- every visit ---------------------------------------------------------------------------


def run_in_float64(trace: Trace) -> Iterator[tuple[Visit, dict[str, np.ndarray]]]:
    """Run the interpreter; yield after each visit what was on chip when it mattered.

    That is O before the visit works on it (``o_prev``), O after the product and before the
    division by l, and for the rest what the last op that made it left.
    """
    interpreter = Interpreter(trace.program, trace.inputs)
    chip, seen = interpreter.state.chip, {}
    last: int | None = None
    for visit, number, op in interpreter.steps():
        if visit.index != last:
            seen, last = {}, visit.index
        seen |= {key: chip[key].copy() for key in KEEP.get(op.name, ()) if key in chip}
        if op.name in ("initialise", "load") and "O" in chip:
            seen["o_prev"] = chip["O"].copy()
        if number == len(trace.program.ops(visit.index)) - 1:
            yield visit, seen


KEEP = {
    "load": ("P",),
    "row max": ("m", "m_prev", "m_tile", "alpha"),
    "exponentials": ("P",),
    "row sum": ("l", "l_tile"),
    "combine": ("m", "l", "m_prev", "l_prev", "alpha", "beta"),
    "accumulate": ("O",),
    "normalise": ("P",),
}


def expected_names(w: Workload, visit: Visit) -> dict[str, str]:
    """Return which attribute of a tile stands for which of the interpreter's arrays."""
    if w.algorithm == "naive":
        return (
            {},
            {"m": "m", "l": "l", "m_tile": "m_tile", "l_tile": "l_tile"},
            {"p": "P", "o": "O", "o_prev": "o_prev"},
        )[visit.launch]
    shared = ("m", "m_prev", "l", "m_tile", "l_tile", "alpha")
    names = {name: name for name in shared} | {"p": "P", "o": "O", "o_prev": "o_prev"}
    return names if w.algorithm == "flash2" else names | {"beta": "beta", "l_prev": "l_prev"}


def check_tile(
    trace: Trace, visit: Visit, tile: Tile, exact: dict[str, np.ndarray], eps: float
) -> None:
    """Compare one visit's numbers with the interpreter's."""
    w = trace.workload
    rows, cols = slice(*indices(visit.rows)), slice(*indices(visit.cols))
    np.testing.assert_array_equal(tile.seen, pairs_of(w).matrix()[rows, cols])
    group = w.kv_head_of[visit.head]
    scores = trace.inputs.q[visit.head, rows].astype(float) @ trace.inputs.k[group, cols].T
    check_close(tile.s, scores * w.logit_scale, eps, "s")
    biggest = float(np.abs(trace.inputs.v).max())
    # l counts keys of weight at most 1; O as a sum weighs V with them.
    scale = {"l": w.seqlen_k, "l_prev": w.seqlen_k, "l_tile": w.seqlen_k}
    total = biggest if w.algorithm in ("flash1", "naive") else biggest * w.seqlen_k
    scale |= {"o": total, "o_prev": total}
    for ours, theirs in expected_names(w, visit).items():
        tolerance = eps * max(1.0, scale.get(ours, 1.0))
        check_close(getattr(tile, ours), exact[theirs], tolerance, f"{ours} at {visit}")
    if w.algorithm == "naive" and visit.launch == 1:
        p = np.divide(tile.p, tile.l[:, None], out=np.zeros_like(tile.p), where=tile.p > 0)
        check_close(p, exact["P"], eps, "p")
    if w.algorithm == "flash2":
        check_close(tile.l_prev, exact_l_prev(tile, exact), eps * w.seqlen_k, "l_prev")


def exact_l_prev(tile: Tile, exact: dict[str, np.ndarray]) -> np.ndarray:
    """Return l before the visit, from ``l = alpha l_prev + l_tile``; ours where alpha is 0."""
    alpha = exact["alpha"]
    rest = exact["l"] - exact["l_tile"]
    known = tile.l_prev.astype(float)
    return np.divide(rest, alpha, out=known, where=alpha > 1e-6)


def indices(r: range) -> tuple[int, int]:
    return r.start, r.stop


def check_every_visit(trace: Trace, eps: float | None = None) -> None:
    """Compare all visits, then the output and its statistics, with float64."""
    count, eps = 0, eps or rounding(trace.workload, trace.inputs)
    for visit, exact in run_in_float64(trace):
        check_tile(trace, visit, trace.snapshot(visit.index).tile, exact, eps)
        count += 1
    assert count == len(trace)
    check_output(trace, eps)


def check_output(trace: Trace, eps: float) -> None:
    """Compare O, lse, m and l with the interpreter, the reference and the textbook."""
    w, arrays = trace.workload, trace.arrays()
    interpreter = Interpreter(trace.program, trace.inputs)
    interpreter.run()
    biggest = float(np.abs(trace.inputs.v).max())
    stored = "float32" if w.algorithm == "flash1" else w.dtype
    tolerance = eps * max(1, biggest) + HALF_ULP[stored] * biggest
    for head in range(w.heads):
        o, lse = textbook(w, trace.inputs, head)
        check_close(arrays["o"][head], o, tolerance, "o")
        near = eps * (1 + np.log(w.seqlen_k)) + 2**-23 * np.abs(lse[lse > -np.inf]).max()
        check_close(arrays["lse"][head], lse, near, "lse")
        # The oracles agree among themselves far more closely than float32 could; large
        # scores, of which the exponential takes the absolute error, are the worst of it.
        exact = 1e-9 * max(1, biggest)
        check_close(interpreter.output[head], o, exact, "interpreter")
        rows = reference_rows(w, trace.inputs, head, range(w.seqlen_q))
        check_close(rows[0], o, exact, "reference")
        check_close(rows[1], lse, 1e-9, "reference lse")
    if w.algorithm == "naive":
        assert set(arrays) == {"o", "lse"}
    else:
        check_running(trace, arrays, eps)
    np.testing.assert_array_equal(trace.output, arrays["o"])
    np.testing.assert_array_equal(trace.lse, arrays["lse"])
    np.testing.assert_array_equal(round_to(arrays["o"], stored), arrays["o"])


def check_running(trace: Trace, arrays: dict[str, np.ndarray], eps: float) -> None:
    """Compare m and l after every column block with sums over the keys seen by then."""
    w, seen = trace.workload, pairs_of(trace.workload).matrix()
    for head, j in np.ndindex(w.heads, w.grid.Tc):
        q, k = trace.inputs.q[head], trace.inputs.k[w.kv_head_of[head]]
        keys = min((j + 1) * w.cols, w.seqlen_k)
        scores = q.astype(float) @ k[:keys].T * w.scale / w.temperature
        scores = scored(w, head, range(w.seqlen_q), range(keys), scores)
        scores = np.where(seen[:, :keys], scores, -np.inf)
        if w.sink_logits:  # a key that every row sees first
            sinks = np.full((w.seqlen_q, 1), w.sink_logits[head])
            scores = np.concatenate([sinks, scores], axis=1)
        m = scores.max(axis=1)
        check_close(arrays["m"][head, :, j], m, eps, "m")
        l = np.exp(scores - np.where(np.isinf(m), 0, m)[:, None]).sum(axis=1)
        check_close(arrays["l"][head, :, j], l, eps * w.seqlen_k, "l")


@pytest.mark.long
@given(scenarios())
def test_every_visit_is_the_interpreters(chosen: Scenario) -> None:
    check_every_visit(trace_of(chosen))


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("shape", "mask"),
    [
        ({"nq": 9, "nk": 7, "rows": 1, "cols": 1}, {"causal": True}),
        ({"nq": 7, "nk": 7, "rows": 64, "cols": 64}, {"causal": True}),
        ({"nq": 1, "nk": 17, "rows": 1, "cols": 4}, {}),
        ({"nq": 17, "nk": 1, "rows": 4, "cols": 1}, {"causal": True}),  # 16 rows see nothing
        ({"nq": 20, "nk": 5, "rows": 3, "cols": 2}, {"window": 2}),
        ({"nq": 13, "nk": 13, "rows": 4, "cols": 3}, {"causal": True, "window": 3, "sinks": 2}),
        ({"nq": 6, "nk": 30, "rows": 4, "cols": 7}, {"window": 4, "sinks": 9}),
        ({"nq": 8, "nk": 8, "heads": 6, "kv_heads": 2, "head": [5, 0, 3]}, {}),
        # More tiles than lie between two checkpoints of the walk, with a gap among them.
        ({"nq": 5, "nk": 150, "rows": 5, "cols": 1}, {"window": 70, "sinks": 3}),
        # So many sinks that a chunk begins among them and ends in the window.
        ({"nq": 3, "nk": 150, "rows": 3, "cols": 1}, {"causal": True, "window": 5, "sinks": 70}),
    ],
)
def test_every_visit_of_corner_cases(
    algorithm: str, shape: dict[str, Any], mask: dict[str, Any]
) -> None:
    check_every_visit(trace_of(scenario(algorithm, mask=mask, **shape)))


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("largest", [200, 10_000])
@pytest.mark.parametrize("order", ["rising", "falling", "mixed"])
def test_large_logits(algorithm: str, largest: int, order: str) -> None:
    # Whole numbers below 2**24 are exact in float32, so the scores are, and only the
    # exponentials round; exp overflows float32 at 89.
    nq, nk = 7, 12
    ladder = np.linspace(-largest, largest, nk).round()
    if order != "rising":
        ladder = (
            ladder[::-1] if order == "falling" else np.random.default_rng(1).permutation(ladder)
        )
    q = np.ones((1, nq, 2))
    q[0, ::2, 0] = -1
    k = np.stack([ladder, np.arange(nk) % 3], axis=1)[None]
    v = np.random.default_rng(2).standard_normal((1, nk, 3))
    chosen = scenario(
        algorithm, nq=nq, nk=nk, d=2, dv=3, rows=3, cols=2, scale=1.0, mask={"causal": True}
    )
    trace = trace_of(chosen, frozen(q, k, v))
    check_every_visit(trace, eps=2 * (nk + 16) * 2.0**-24)


@pytest.mark.sweep(keep=6)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("mask", [{}, {"causal": True}, {"window": 40, "sinks": 3}])
def test_many_tiles(algorithm: str, dtype: str, mask: dict[str, Any]) -> None:
    # Long enough for several chunks of the walk and several stretches between checkpoints.
    chosen = scenario(
        algorithm, nq=37, nk=4500, d=16, dv=8, rows=16, cols=48, dtype=dtype, mask=mask, heads=2,
        kv_heads=1, seed=5,
    )  # fmt: skip
    trace = trace_of(chosen)
    w, eps = trace.workload, rounding(trace.workload, trace.inputs)
    stored = "float32" if algorithm == "flash1" else dtype
    for head in range(2):
        o, lse = reference_rows(w, trace.inputs, head, range(w.seqlen_q))
        biggest = float(np.abs(trace.inputs.v).max())
        check_close(trace.output[head], o, eps * biggest + HALF_ULP[stored] * biggest, "o")
        check_close(trace.lse[head], lse, eps * 10, "lse")
    # A tile in the middle starts from a checkpoint; the last one must end in the output.
    for index in np.random.default_rng(3).integers(0, len(trace), 20).tolist():
        tile = trace.snapshot(index).tile
        assert np.isfinite(tile.o).all()
        if algorithm == "flash2":
            step = tile.alpha[:, None] * tile.o_prev
            visit = trace.program.visit(index)
            v = trace.inputs.v[w.kv_head_of[visit.head], visit.cols.start : visit.cols.stop]
            limit = eps * biggest * w.seqlen_k
            check_close(tile.o, (step + tile.p @ v).astype(np.float64), limit, "o")


# --- what must not matter ------------------------------------------------------------------


@pytest.mark.long
@given(scenarios(algorithms=("flash1", "flash2")), st.integers(-6, 6))
def test_a_constant_added_to_a_row_of_scores_moves_m_and_lse_alone(
    chosen: Scenario, shift: int
) -> None:
    # What is added before a cap is capped, too, and nothing is added to a sink.
    scores = chosen.scores.model_copy(update={"softcap": None, "sink_logits": None})
    chosen = chosen.model_copy(update={"scores": scores})
    plain = trace_of(chosen)
    w, inputs = plain.workload, plain.inputs
    # One more dimension, 1 in Q and a constant in K, adds that to every score.
    said = chosen.attention.model_copy(
        update={"head_dim": w.head_dim + 1, "scale": w.scale, "dtype": "float32"}
    )
    wider = chosen.model_copy(update={"attention": said})
    extra = [np.full((*t.shape[:2], 1), n) for t, n in ((inputs.q, 1), (inputs.k, shift))]
    q, k = (np.concatenate(p, axis=2) for p in zip((inputs.q, inputs.k), extra, strict=True))
    moved = trace_of(wider, frozen(q, k, inputs.v))
    a, b, by = plain.arrays(), moved.arrays(), shift * w.scale / w.temperature
    eps = rounding(w, inputs) + rounding(moved.workload, moved.inputs)
    biggest = max(1.0, float(np.abs(inputs.v).max()))
    stored = "float32" if w.algorithm == "flash1" else w.dtype
    check_close(b["o"], a["o"].astype(float), (eps + HALF_ULP[stored]) * biggest, "o")
    check_close(b["m"], a["m"].astype(float) + by, eps + 1e-6 * abs(by), "m")
    check_close(b["l"], a["l"].astype(float), eps * w.seqlen_k, "l")
    check_close(b["lse"], a["lse"].astype(float) + by, eps * 4 + 1e-6 * abs(by), "lse")


@given(scenarios(), st.integers(1, 9), st.integers(1, 9))
def test_tiling_and_algorithm_do_not_change_the_output(chosen: Scenario, Br: int, Bc: int) -> None:
    first = trace_of(chosen)
    w = first.workload
    eps = rounding(w, first.inputs) * max(1.0, float(np.abs(first.inputs.v).max()))
    for algorithm in ALGORITHMS:
        said = chosen.attention.model_copy(update={"algorithm": algorithm, "dtype": "float32"})
        tiles = chosen.tiling.model_copy(update={"rows": Br, "cols": Bc})
        other = trace_of(
            chosen.model_copy(update={"attention": said, "tiling": tiles}), first.inputs
        )
        stored = "float32" if w.algorithm == "flash1" else w.dtype
        limit = eps * 2 + HALF_ULP[stored] * float(np.abs(first.inputs.v).max())
        check_close(other.output, first.output.astype(np.float64), limit, algorithm)


# --- the checks themselves -----------------------------------------------------------------


class WrongEngine(NumpyEngine):
    """Right but for the first number of O."""

    factor = 1.0

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        first, *others = super().row_blocks(head)
        o = first.o.copy()
        o[0, 0] *= self.factor
        yield from (replace(first, o=o), *others)


@pytest.mark.parametrize("factor", [-1, 1.001, np.nan])
def test_the_comparison_sees_a_wrong_output(factor: float) -> None:
    trace = trace_of(scenario("flash2", nq=6, d=3))
    engine = WrongEngine(trace.workload, trace.inputs)
    engine.factor = factor
    wrong = Trace(trace.program, engine, trace.inputs)
    with pytest.raises(AssertionError, match="o: "):
        check_output(wrong, rounding(trace.workload, trace.inputs))
    error = wrong.summary()["max_abs_error"]
    assert error is None if np.isnan(factor) else error > 1e-5  # JSON has no NaN


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_row_blocks_of_a_head_are_those_asked_for_one_by_one(algorithm: str) -> None:
    # Two ways to share the work between threads must not give two sets of numbers.
    chosen = scenario(
        algorithm, nq=50, nk=5000, d=8, rows=7, cols=64, heads=2, mask={"causal": True}
    )
    trace = trace_of(chosen)
    for head in range(2):
        for i, block in enumerate(trace.engine.row_blocks(head)):
            alone = trace.engine.row_block(head, i)
            for name in ("m", "l", "o", "lse"):
                np.testing.assert_array_equal(getattr(block, name), getattr(alone, name))
        assert i == trace.workload.grid.Tr - 1
