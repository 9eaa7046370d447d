"""Faults of a backward pass: each does what it says, is found at its first step, and is marked."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from simulator.engines.reference import reference_rows
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.program.faults import FAULTS, Fault, honest, without_effect
from simulator.run.cosimulation import verify
from simulator.run.trace import Trace
from simulator.run.wrong import exact_engine, wrong_numbers
from tests.helpers.faulty_runs import OF_GRADIENTS
from tests.helpers.runs import scenario, scenarios, trace_of

NAME = "flash2-backward"
BOTH = (NAME, "naive-backward")
OURS = tuple(fault for fault in FAULTS if fault.name in OF_GRADIENTS)
CHANGED = {
    "forget_dots": {"dq", "dk"},
    "weights_of_maximum": {"dq", "dk", "dv"},
    "unscaled_queries": {"dq"},
    "one_head_of_group": {"dk"},
}
"""What each makes wrong."""
FIRST = {
    "forget_dots": ("score gradient", "dS"),
    "weights_of_maximum": ("weights", "P"),
    "unscaled_queries": ("convert", "dQ"),
    "one_head_of_group": ("key gradient", "dK"),
}
"""The op and the number at which `verify` finds it."""
faults = pytest.mark.parametrize("fault", OURS, ids=lambda fault: fault.name)
algorithms = pytest.mark.parametrize("algorithm", BOTH)


def small(algorithm: str = NAME, **more: Any) -> Scenario:
    shape = {"nq": 12, "d": 4, "dv": 3, "heads": 4, "kv_heads": 2, "rows": 4, "cols": 5}
    return scenario(algorithm, **{**shape, "mask": {"causal": True}, **more})


def with_fault(fault: str, chosen: Scenario) -> Trace:
    return trace_of(with_values(chosen, {"faults": {fault: True}}))


def by_hand(trace: Trace, fault: str) -> dict[str, np.ndarray]:
    """Return the gradients with one fault, in float64, as its sentence says it."""
    w, inputs = trace.workload, trace.inputs
    rows, keys = range(w.seqlen_q), range(w.seqlen_k)
    seen = w.mask.visible(rows, keys)
    dq, dk, dv = (np.zeros(x.shape) for x in (inputs.q, inputs.k, inputs.v))
    for head, kv in enumerate(w.kv_head_of):
        q, k, v = (x.astype(np.float64) for x in (inputs.q[head], inputs.k[kv], inputs.v[kv]))
        upstream = inputs.upstream[head].astype(np.float64)
        o, lse = reference_rows(w, inputs, head, rows)
        s = np.where(seen, q @ k.T * w.scale, -np.inf)
        by = s.max(axis=1) if fault == "weights_of_maximum" else lse
        p = np.exp(s - by[:, None])
        d = 0 if fault == "forget_dots" else (upstream * o).sum(axis=1)[:, None]
        ds = p * (upstream @ v.T - d)
        dq[head] = ds @ k * (1 if fault == "unscaled_queries" else w.scale)
        dv[kv] += p.T @ upstream
        if fault != "one_head_of_group" or head == w.kv_head_of.index(kv):
            dk[kv] += ds.T @ q * w.scale
    return {"dq": dq, "dk": dk, "dv": dv}


@pytest.mark.sweep(keep=2)
@algorithms
@faults
def test_it_does_what_its_sentence_says(fault: Fault, algorithm: str) -> None:
    """Gradients as by hand with the mistake; visibly wrong, and nothing else is."""
    chosen = small(algorithm)
    wrong, right = with_fault(fault.name, chosen).arrays(), trace_of(chosen).arrays()
    makes = algorithm in fault.algorithms
    want = by_hand(trace_of(chosen), fault.name if makes else "")
    changed = CHANGED[fault.name] if makes else set()
    for name, exact in want.items():
        size = 1 + np.abs(exact).max()
        np.testing.assert_allclose(wrong[name], exact, atol=2e-5 * size, err_msg=name)
        off = np.abs(wrong[name] - right[name]).max() / np.abs(right[name]).max()
        assert off > 0.1 if name in changed else off == 0, (name, off)
    np.testing.assert_array_equal(wrong["o"], right["o"])


@pytest.mark.sweep(keep=2)
@algorithms
@faults
def test_the_first_wrong_step_is_named(fault: Fault, algorithm: str) -> None:
    chosen = small(algorithm)
    assert verify(trace_of(chosen)).difference is None
    found = verify(with_fault(fault.name, chosen)).difference
    if algorithm not in fault.algorithms:
        assert found is None
        assert without_effect(fault, resolve(chosen)) == "P is that of the forward pass"
        return
    assert (found.op, found.quantity.split("[")[0]) == FIRST[fault.name]


@pytest.mark.long
@algorithms
@faults
def test_what_is_wrong_is_marked(fault: Fault, algorithm: str) -> None:
    """At every cursor: what differs much from the right run is marked, what agrees is not."""
    chosen = small(algorithm, heads=2, kv_heads=1)
    wrong, right = with_fault(fault.name, chosen), trace_of(chosen)
    ever = set()
    for index in range(len(wrong)):
        for op in range(len(wrong.program.ops(index))):
            now, good = wrong.snapshot(index, op), right.snapshot(index, op)
            for name, marks in now.wrong.others.items():
                ours, theirs = now.head.results[name], good.head.results[name]
                there = ~np.isnan(theirs)
                assert not marks[~there].any()
                off = np.abs(ours - theirs)
                assert not marks[there & (off == 0)].any(), (now.cursor, name)
                assert marks[there & (off > 1e-2)].all(), (now.cursor, name)
                ever |= {name} if marks.any() else set()
    changed = CHANGED[fault.name] if algorithm in fault.algorithms else ()
    assert ever == {name[0] + name[1].upper() for name in changed}


@pytest.mark.long
@given(scenarios(algorithms=BOTH))
def test_rounding_is_no_mistake(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    other = with_fault("unscaled_queries", chosen)  # has what is compared with
    for index in sorted({0, len(trace) // 3, len(trace) // 2, len(trace) - 1}):
        now = trace.snapshot(index)
        exact = exact_of(other).snapshot(index)
        found = wrong_numbers(now, exact)
        for name, marks in found.others.items():
            assert not marks.any(), name
        assert found.newest is None or not found.newest.any()


def exact_of(trace: Trace) -> Trace:
    """Return the run in float64 without faults."""
    w = honest(trace.workload)
    return Trace(tile_program(w), exact_engine(w, trace.inputs), trace.inputs)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("fault", "said", "why"),
    [
        ("unscaled_queries", {"scale": 1.0}, "the scale is 1 here"),
        ("one_head_of_group", {"kv_heads": 4}, "no two heads share keys here"),
        ("one_head_of_group", {}, ""),
        ("forget_dots", {}, ""),
    ],
)
def test_why_it_does_nothing_here(fault: str, said: dict[str, Any], why: str) -> None:
    row = next(each for each in OURS if each.name == fault)
    chosen = small(**said)
    assert without_effect(row, resolve(chosen)) == why
    same = np.array_equal(with_fault(fault, chosen).arrays()["dk"], trace_of(chosen).arrays()["dk"])
    same &= np.array_equal(
        with_fault(fault, chosen).arrays()["dq"], trace_of(chosen).arrays()["dq"]
    )
    assert same == bool(why)


@faults
def test_a_forward_pass_cannot_make_it(fault: Fault) -> None:
    chosen = scenario("flash2", nq=8, heads=2, kv_heads=1)
    wrong = with_fault(fault.name, chosen)
    assert without_effect(fault, wrong.workload) == "it is a mistake of the backward pass"
    np.testing.assert_allclose(wrong.output, trace_of(chosen).output, atol=1e-6)
