"""Sums over the visits of a launch against the accesses that the cache sees one by one."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.scenario import Scenario
from simulator.timing.accesses import works
from simulator.timing.run_time import why_no_time
from tests.helpers.runs import program_of, scenarios


@given(scenarios(longest=40), st.integers(1, 7))
def test_requested_bytes_and_visits_are_those_of_all_accesses(
    chosen: Scenario, shares: int
) -> None:
    program = program_of(chosen)
    if why_no_time(program):
        return
    found = works([program], 4, shares)
    for work in found:
        assert work.requested == work.accesses.bytes
        assert sorted(work.turn.tolist()) == list(range(len(work.visits)))
    if found[0].fused:  # of naive's softmax each tile counts
        assert [int(work.visits.sum()) for work in found] == list(program.sizes)
