"""Common parts of backward passes: their tensors, the rows that move, and their errors."""

from __future__ import annotations

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.scores import ROUNDING
from simulator.problem.workload import Workload
from simulator.program.gradient_ops import RoundScoreGradient, StartGradients
from simulator.program.state import ChipTile, Numbers, TileMove
from simulator.program.tensors import TensorSpec
from simulator.program.tile_program import Visit

UPSTREAM = TensorSpec("dO", ("row", "value"), at="O")
DOTS = TensorSpec("D", ("row",), width="float32", at="O")
OF_WEIGHTS = TensorSpec("dP", ("row", "key"), at="P")
OF_SCORES = TensorSpec("dS", ("row", "key"), at="S")
OF_QUERIES = TensorSpec("dQ", ("row", "depth"), at="Q")
QUERY_SUM = TensorSpec("dQ_acc", ("row", "depth"), width="float32", at="dQ")
OF_KEYS = TensorSpec("dK", ("key", "depth"), at="K")
OF_VALUES = TensorSpec("dV", ("key", "value"), at="V")


def of_rows(w: Workload, visit: Visit, tensor: str, depth: int, width: int) -> TileMove:
    """Return the visit's rows of a query tensor: `depth` numbers a row, `width` bytes each."""
    return TileMove(tensor, visit.head, visit.rows, None, len(visit.rows) * depth * width)


def upstream(w: Workload, visit: Visit) -> TileMove:
    """Return the visit's rows of dO."""
    return of_rows(w, visit, UPSTREAM.name, w.value_dim, w.width)


def of_queries(w: Workload, visit: Visit) -> TileMove:
    """Return the visit's rows of dQ."""
    return of_rows(w, visit, OF_QUERIES.name, w.head_dim, w.width)


def of_keys(w: Workload, head: int, keys: range) -> TileMove:
    """Return dK of some keys."""
    return TileMove(OF_KEYS.name, w.kv_head_of[head], keys, None, len(keys) * w.head_dim * w.width)


def of_values(w: Workload, head: int, keys: range) -> TileMove:
    """Return dV of some keys."""
    return TileMove(
        OF_VALUES.name, w.kv_head_of[head], keys, None, len(keys) * w.value_dim * w.width
    )


def started(cites: str, *sums: tuple[str, int, int]) -> StartGradients:
    """Return the op that starts some sums: name, rows and width of a row of each."""
    held = tuple(
        ChipTile(name, rows * width * STATISTIC_WIDTH, "registers", stays=True)
        for name, rows, width in sums
    )
    return StartGradients(cites=cites, sums=sums, allocates=held)


def round_scores(w: Workload, cites: str) -> list[RoundScoreGradient]:
    """Return the op that rounds dS before its products; none where it stays float32."""
    if w.pair_dtype is None:
        return []
    return [RoundScoreGradient(cites=f"{cites}, {ROUNDING}", dtype=w.pair_dtype)]


def error_size(name: str, chip: Numbers, largest: float) -> float:
    """Return the size of a number's terms; `largest`: an upper bound of products of dO and V."""
    finite = np.abs(chip.get("S", np.ones((1, 1))))
    exponent = float(np.max(finite, initial=1.0, where=np.isfinite(finite)))
    of_dots = max(1.0, largest)
    # An error of a score is a relative error of its weight, and of all numbers made of it.
    of_pair = exponent * of_dots
    sizes = {"S": exponent, "P": exponent, "D": of_dots, "dP": of_dots, "dS": of_pair}
    for tensor, own in (("dV", "dO"), ("dK", "Q"), ("dQ_acc", "K"), ("dQ", "K")):
        if own in chip:
            rows = 1.0 if own == "K" else len(chip[own])  # the weights of a row add up to 1
            terms = exponent if own == "dO" else of_pair
            sizes[tensor] = terms * max(1.0, rows * float(np.abs(chip[own]).max()))
    return sizes.get(name, exponent)
