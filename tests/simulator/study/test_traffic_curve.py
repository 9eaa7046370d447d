"""Curves of requested bytes: every point equals the counters, and the ops added up."""

import numpy as np
import pytest
from hypothesis import given, settings

from simulator.program.algorithms import ALGORITHMS
from simulator.program.traffic import compulsory_bytes
from simulator.study.traffic_curve import POINTS, curve, run_traffic
from tests.helpers.runs import fitted, program_of, scenario, scenarios


@settings(max_examples=settings.default.max_examples * 2 // 3)
@given(scenarios(longest=12))
def test_points_are_the_ops_added_up(chosen):
    program = program_of(chosen)
    if not len(program):
        return
    found = curve(program)
    assert found.visits.dtype == found.bytes.dtype == np.int64  # floats round beyond 2**53
    assert found.visits[0] == 0
    assert found.visits[-1] == found.length == len(program)
    sums = dict.fromkeys(program.tensors, 0)
    points = dict(zip(found.visits.tolist(), found.bytes.T.tolist(), strict=True))
    assert points[0] == [0] * len(sums)
    for visit in range(len(program)):
        for op in program.ops(visit):
            for move in op.moves:
                sums[move.tensor] += move.bytes
        if visit + 1 in points:
            assert points[visit + 1] == list(sums.values())
    assert found.end == program.totals.bytes


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_a_million_visits_take_few_points(algorithm):
    mask = {"causal": True}
    said = fitted(algorithm, nq=131072, d=128, rows=128, cols=128, dtype="float16", mask=mask)
    program = program_of(scenario(algorithm, **said))
    found = curve(program)
    assert len(found.visits) <= POINTS + len(program.launches)
    assert (np.diff(found.visits) > 0).all()
    assert (np.diff(found.bytes, axis=1) >= 0).all()
    for n in (1, len(found.visits) // 2, -2):
        counters = program.counters(int(found.visits[n]))
        each = [counters.read[t] + counters.write[t] for t in found.tensors]
        assert found.bytes[:, n].tolist() == each
        assert found.totals[n] == counters.bytes
    # Launches begin at points, so that no line cuts a corner.
    sizes = [launch.per_head for launch in program.launches]
    assert set(np.cumsum(sizes).tolist()) <= set(found.visits.tolist())


def test_a_run_beside_the_others():
    program = program_of(scenario("flash1", 64, d=8))
    traffic = run_traffic(program)
    assert traffic is run_traffic(program)
    assert traffic.own.algorithm == "flash1"
    assert [other.algorithm for other in traffic.others] == ["naive", "flash2"]
    for other in traffic.others:
        assert other.end == program_of(scenario(other.algorithm, 64, d=8)).totals.bytes
    assert traffic.compulsory == compulsory_bytes(program.workload)
    assert not traffic.own.bytes.flags.writeable
    assert traffic.dram is None
