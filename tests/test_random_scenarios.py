"""Random scenarios of every feature: numbers agree with brute force, and `verify` agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.run.cosimulation import verify
from simulator.run.trace import simulate
from tests.helpers.brute_force import expected, shares
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.random_scenarios import ALGORITHMS, Case, random_case

HUNDREDS = 3
"""Of random scenarios; ten of them take four minutes of a processor."""


def faults(case: Case) -> list[str]:
    """Return what is wrong with a run: arrays that differ from brute force, alarms of `verify`.

    Counters are the sums over the ops before every visit, or an assertion fails.
    """
    trace = simulate(case.path)
    arrays = trace.arrays()
    exact, size = expected(case)
    found = []
    for name, numbers in exact.items():
        used = float(shares(case, name, arrays[name], numbers, size).max(initial=0))
        if not used <= 1:
            found.append(f"{name} is off by {used:.3g} of what it may be")
    report = verify(trace)
    if report.difference is not None:
        found.append(str(report))
    counted_by_ops(trace.program)
    return [f"seed {case.seed}, {case.algorithm}: {each}" for each in found]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_scenarios_agree_with_brute_force_and_raise_no_alarm(
    algorithm: str, tmp_path: Path
) -> None:
    found = []
    for seed in range(5):
        found += faults(random_case(seed, tmp_path, (algorithm,), longest=40))
    assert not found


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(HUNDREDS))
def test_hundreds_of_random_scenarios_agree_with_brute_force_and_raise_no_alarm(
    hundred: int, tmp_path: Path
) -> None:
    found = []
    for seed in range(hundred * 100, hundred * 100 + 100):
        found += faults(random_case(seed, tmp_path, longest=60))
    assert not found
