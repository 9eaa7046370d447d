"""Numbers of a backward pass that captions may ask for."""

from __future__ import annotations

from simulator.base.dtypes import F32
from simulator.base.errors import refuse
from simulator.engines.finite_difference import STEP, difference_of
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, known, named, once_a_run
from simulator.study.merge.gradient_sums import Orders, adds_to_rows, random_orders
from simulator.study.recompute import Passes, trade_of


@known
def order_numbers(n: Numbers) -> int:
    """How many numbers dQ has, of a backward pass whose tiles add to dQ in HBM."""
    return _orders(n).numbers


@known
def order_moves(n: Numbers) -> int:
    """How many of them have other bits in one of 20 random orders of the column blocks."""
    return _orders(n).moved


@known
def order_ulp(n: Numbers) -> int:
    """By how many units in the last place, at most."""
    return _orders(n).most_ulp


@known
def order_bytes(n: Numbers, shares: int = 0) -> int:
    """Bytes of HBM for the sums of dQ; with 1 for a share of each tile, to be added in order."""
    found = _orders(n)
    return found.share_bytes if shares else found.sum_bytes


def _orders(n: Numbers) -> Orders:
    if not adds_to_rows(n.trace):
        raise refuse("", "algorithm", n.workload.algorithm, "one whose tiles add to dQ in HBM")
    return _random_orders(n.trace)


@once_a_run
def _random_orders(trace: Trace) -> Orders:
    return random_orders(trace)


@known
def gradient(n: Numbers, tensor: str, row: int, col: int) -> float:
    """A number of the gradient of `q`, `k` or `v` as the run has it, of the head at the cursor."""
    made = _gradients(n.trace).get(f"d{tensor}")
    head = n.head if tensor == "q" else n.workload.kv_head_of[n.head]
    if made is None or not (0 <= row < made.shape[1] and 0 <= col < made.shape[2]):
        raise refuse("", "number", f"{tensor}[{row}, {col}]", "a number of q, k or v of this run")
    return float(made[head, row, col])


@known
def difference(n: Numbers, tensor: str, row: int, col: int, part: str = "slope") -> float:
    """The same from the loss Σ dO · O in float64 with that number moved both ways: its `slope`.

    Or the loss `up` or `down`, or the `number` that is moved.
    """
    head = n.head if tensor == "q" else n.workload.kv_head_of[n.head]
    found = difference_of(n.workload, n.trace.inputs, tensor, (head, row, col))
    parts = {"slope": found.slope, "up": found.up, "down": found.down, "number": found.number}
    return named("part", part, parts)


@known
def nudge(_: Numbers) -> float:
    """By how much a number is moved for it."""
    return STEP


@known
def kept_between(n: Numbers, way: str) -> int:
    """Bytes between forward and backward pass, with P `stored` or computed `again`."""
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
    return named("way", way, {"stored": trade.stored, "again": trade.again})


@once_a_run
def _gradients(trace: Trace) -> dict[str, F32]:
    return trace.arrays()
