"""Numbers of a backward pass that a lesson's text may ask for; they join `FUNCTIONS`."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.errors import refuse
from simulator.lesson.numbers import Numbers, known
from simulator.problem.scenario import Scenario
from simulator.run.trace import simulate
from simulator.study.merge.gradient_sums import Orders, adds_to_rows, random_orders


@known
def order_numbers(n: Numbers) -> int:
    """How many numbers dQ has."""
    return _orders(n).numbers


@known
def order_moves(n: Numbers) -> int:
    """How many numbers of dQ have other bits if column blocks add to it in another order."""
    return _orders(n).moved


@known
def order_ulp(n: Numbers) -> int:
    """By how many units in the last place, at most."""
    return _orders(n).most_ulp


@known
def order_bytes(n: Numbers, shares: bool = False) -> int:
    """Bytes of HBM for the sums of dQ, or for a share of each column block."""
    found = _orders(n)
    return found.share_bytes if shares else found.sum_bytes


def _orders(n: Numbers) -> Orders:
    if not adds_to_rows(n.trace):
        raise refuse("", "algorithm", n.workload.algorithm, "one whose tiles add to dQ in HBM")
    return _of_run(n.scenario)


@lru_cache(maxsize=8)
def _of_run(scenario: Scenario) -> Orders:
    return random_orders(simulate(scenario))
