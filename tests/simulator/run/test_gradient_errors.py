"""The errors of gradients against a reference that knows nothing about ops."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.base.dtypes import F32, F64, round_to
from simulator.problem.scenario import with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.run.exactness import RowError
from simulator.run.gradient_errors import gradient_errors
from simulator.run.trace import Trace, simulate
from tests.helpers.runs import scenario

BACKWARD = [name for name, own in ALGORITHMS.items() if own.backward]


def run(algorithm: str, **more: object) -> Trace:
    shape = {"nq": 13, "nk": 18, "d": 8, "heads": 4, "kv_heads": 2, "rows": 4, "cols": 5}
    return simulate(scenario(algorithm, **{**shape, "mask": {"causal": True}, **more}))


def gradients(trace: Trace, head: int) -> tuple[F64, F64, F64]:
    """Return dQ of a causal head, and what its rows add to dK and dV, by the formulas.

    O is read as the forward pass has stored it, where it is read at all.
    """
    w, inputs, kv = trace.workload, trace.inputs, trace.workload.kv_head_of[head]
    q, k, v = (x.astype(np.float64) for x in (inputs.q[head], inputs.k[kv], inputs.v[kv]))
    do = inputs.upstream[head].astype(np.float64)
    seen = np.tri(w.seqlen_q, w.seqlen_k, w.seqlen_k - w.seqlen_q, dtype=bool)
    p = np.where(seen, np.exp(w.scale * q @ k.T), 0)
    p /= p.sum(axis=1, keepdims=True)
    o = p @ v
    if not trace.program.algorithm.reads_weights:
        o = round_to(o.astype(np.float32), w.dtype)
    ds = p * (do @ v.T - (do * o).sum(axis=1, keepdims=True))
    return w.scale * ds @ k, w.scale * ds.T @ q, p.T @ do


def in_units(ours: F32, exact: F64) -> F64:
    unit = np.spacing(np.abs(exact).max().astype(np.float32))
    return np.asarray(np.abs(ours - exact).max(axis=1) / unit)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("algorithm", BACKWARD)
def test_at_the_end_they_are_those_of_the_whole_gradients(algorithm: str, dtype: str) -> None:
    trace = run(algorithm, dtype=dtype)
    now = trace.snapshot(len(trace) - 1)
    head, w, found = now.visit.head, trace.workload, gradient_errors(trace, now)
    arrays = trace.run(keep_arrays=True)[1]
    kv = w.kv_head_of[head]
    group = [n for n in range(w.heads) if w.kv_head_of[n] == kv]
    parts = {n: gradients(trace, n) for n in group}
    dk, dv = (sum(parts[n][of] for n in group) for of in (1, 2))
    np.testing.assert_allclose(
        found.now.ulp, in_units(arrays["dq"][head], parts[head][0]), rtol=1e-3, atol=0.5
    )
    of_keys = [in_units(arrays[name][kv], own) for name, own in (("dk", dk), ("dv", dv))]
    np.testing.assert_allclose(found.half.ulp, np.maximum(*of_keys), rtol=1e-3, atol=0.5)
    assert (found.now.states == RowError.KNOWN).all()
    assert (found.half.states == RowError.KNOWN).all()
    assert found.now.ulp.max() > 0.01
    assert (found.rounding is None) == (dtype == "float32")
    if found.rounding is None:
        assert max(found.now.ulp.max(), found.half.ulp.max()) < 64
    assert not found.missing


@pytest.mark.parametrize("algorithm", BACKWARD)
def test_what_has_not_been_made_has_no_error(algorithm: str) -> None:
    trace = run(algorithm)
    for visit in (0, len(trace) // 3, len(trace) // 2):
        now = trace.snapshot(visit)
        found = gradient_errors(trace, now)
        for strip, names in ((found.now, found.gradients[0]), (found.half, found.gradients[1])):
            there = [~np.isnan(now.head.others[name]).any(axis=1) for name in names]
            made = np.logical_or.reduce(there)
            np.testing.assert_array_equal(strip.states == RowError.EMPTY, ~made)
            assert (strip.ulp[~made] == 0).all()


@pytest.mark.parametrize("algorithm", BACKWARD)
def test_a_fault_is_seen(algorithm: str) -> None:
    whole = run(algorithm).workload.scenario
    trace = simulate(with_values(whole, {"faults": {"forget_dots": True}}))
    assert gradient_errors(trace, trace.snapshot(len(trace) - 1)).now.ulp.max() > 1e4


def test_a_run_that_is_too_large_to_be_drawn_whole_is_not_compared() -> None:
    trace = run(BACKWARD[-1], nq=2048, nk=2048, rows=512, cols=512)
    found = gradient_errors(trace, trace.snapshot(2))
    assert (found.now.states == RowError.UNKNOWN).all()
    assert (found.half.states == RowError.UNKNOWN).all()
