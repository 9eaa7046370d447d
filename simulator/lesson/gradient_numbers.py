"""Numbers of a backward pass that a lesson's text may ask for; they join `FUNCTIONS`."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.dtypes import F32
from simulator.base.errors import refuse
from simulator.engines.finite_difference import STEP, difference_of
from simulator.lesson.numbers import Numbers, known
from simulator.problem.scenario import Scenario
from simulator.run.trace import simulate
from simulator.study.merge.gradient_sums import Orders, adds_to_rows, random_orders
from simulator.study.recompute import Passes, trade_of


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


@known
def gradient(n: Numbers, tensor: str, row: int, col: int) -> float:
    """A number of dQ, dK or dV as the run has it, of the head at the cursor."""
    made = _gradients(n.scenario).get(f"d{tensor}")
    head = n.head if tensor == "q" else n.workload.kv_head_of[n.head]
    if made is None or not (0 <= row < made.shape[1] and 0 <= col < made.shape[2]):
        raise refuse("", "number", f"{tensor}[{row}, {col}]", "a number of q, k or v of this run")
    return float(made[head, row, col])


@known
def difference(n: Numbers, tensor: str, row: int, col: int, part: str = "slope") -> float:
    """A gradient from the loss: its "slope", the loss "up" or "down", or the "number" moved."""
    head = n.head if tensor == "q" else n.workload.kv_head_of[n.head]
    found = difference_of(n.workload, n.trace.inputs, tensor, (head, row, col))
    parts = {"slope": found.slope, "up": found.up, "down": found.down, "number": found.number}
    if part not in parts:
        raise refuse("", "part", part, f"one of {', '.join(parts)}")
    return parts[part]


@known
def nudge(_: Numbers) -> float:
    """By how much a number is moved for it."""
    return STEP


@known
def kept_between(n: Numbers, way: str) -> int:
    """Bytes between forward and backward pass, if P is "stored" or computed "again"."""
    return _way(n, way).kept_bytes


@known
def both_passes(n: Numbers, way: str) -> int:
    """Bytes that both passes request together."""
    return _way(n, way).bytes


@known
def scores_again(n: Numbers) -> int:
    """FLOPs of computing S a second time."""
    return trade_of(n.workload).again.scores


def _way(n: Numbers, way: str) -> Passes:
    trade = trade_of(n.workload)
    ways = {"stored": trade.stored, "again": trade.again}
    if way not in ways:
        raise refuse("", "way", way, f"one of {', '.join(ways)}")
    return ways[way]


@lru_cache(maxsize=4)
def _gradients(scenario: Scenario) -> dict[str, F32]:
    return simulate(scenario).arrays()
