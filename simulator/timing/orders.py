"""Orders in which the thread blocks of a launch are started, and when each begins."""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from simulator.problem.intervals import I64

Number = TypeVar("Number", bound=np.number[Any])
Order = Literal["model", "index", "longest", "persistent"]
"""model: head by head, the longest of a head first, as current kernels do under a causal mask.
index: in the order of the grid. longest: longest first. persistent: n thread blocks, as many as
fit; each takes every n-th piece, even if another is free earlier (FlashAttention-3's static
scheduler)."""
ORDERS: tuple[Order, ...] = get_args(Order)


def turn_of(lengths: NDArray[Number], heads: I64, order: Order) -> I64:
    """Return the numbers of the pieces of work in the order in which they are started.

    lengths, heads: (pieces,) each, in the order of the grid: length and head, heads ascending.
    """
    if order == "model":
        return np.lexsort((-lengths, heads))
    if order == "longest":
        return np.argsort(-lengths, kind="stable")  # equal pieces stay in the order of the grid
    return np.arange(len(lengths))


def begins(lengths: NDArray[Number], places: int, order: Order = "model") -> NDArray[Number]:
    """Return when each piece of work begins, in steps or seconds: a free place takes the next.

    lengths: (pieces,) in the order in which they are started.
    """
    if lengths.min() == lengths.max():  # whole waves
        return np.asarray(np.arange(len(lengths)) // places * lengths[0])
    if order == "persistent":
        rounds = np.zeros((-(-len(lengths) // places), places), lengths.dtype)
        rounds.ravel()[: len(lengths)] = lengths
        return np.asarray((rounds.cumsum(axis=0) - rounds).ravel()[: len(lengths)])
    begin = np.zeros_like(lengths)
    free = lengths[:places].tolist()
    heapify(free)
    for number, length in enumerate(lengths[places:].tolist(), places):
        begin[number] = free[0]
        heapreplace(free, free[0] + length)
    return begin
