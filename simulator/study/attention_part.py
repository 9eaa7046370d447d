"""Which of a workload's attention weights are kept and shown at once, and why not all of them."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.base.errors import spaced
from simulator.problem.workload import Workload


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept, shown and computed at once."""

    # most weights of all heads kept at once: 64 MiB of scores in float64, 32 MiB of weights
    weights: int = 2**23
    # most weights of one head that are shown at once: with more, a slider would not move smoothly
    of_a_head: int = 2**20
    fewest_rows: int = 16  # rows of a head that are shown even if they have more weights
    # most weights that are made, and forgotten, for pooled maps: a few seconds of work
    pooled: int = 2**28
    block: int = 2**16  # scores that are computed at a time, few enough for a core's cache
    product: int = 2**22  # elements of K that are converted to float64 at a time


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class MapPart:
    """Heads and rows of a workload that fit into `Limits.weights`, and why others are left out."""

    heads: tuple[int, ...]  # query heads, ascending
    rows: range  # query rows
    reason: str = ""  # why this is not all, in words; empty where it is


def fitting_part(workload: Workload, head: int, row: int, limits: Limits = LIMITS) -> MapPart:
    """Return the part of a workload that is shown at once: all, a head, or its rows near `row`."""
    heads, rows, keys = workload.heads, workload.seqlen_q, workload.seqlen_k
    if rows * keys > limits.of_a_head:
        some = min(rows, max(limits.fewest_rows, limits.of_a_head // keys))
        start = min(max(row - some // 2, 0), rows - some)
        limit = f"more than the {spaced(limits.of_a_head)} shown at once"
        around = f"head {head}, rows {spaced(start)} to {spaced(start + some - 1)}"
        reason = f"{spaced(rows)} × {spaced(keys)} weights of a head are {limit}: {around}"
        return MapPart((head,), range(start, start + some), reason)
    if heads * rows * keys <= limits.weights:
        return MapPart(tuple(range(heads)), range(rows))
    limit = f"more than the {spaced(limits.weights)} kept at once"
    reason = f"{heads} × {spaced(rows)} × {spaced(keys)} weights are {limit}: head {head} alone"
    return MapPart((head,), range(rows), reason)
