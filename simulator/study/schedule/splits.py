"""Keys dealt out to splits, and query heads packed into rows: the effect of each on a schedule."""

from __future__ import annotations

from dataclasses import replace

from simulator.problem.scenario import with_values
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, USUAL, algorithm_of, tile_program

PACKS_BELOW = 0.9
"""FlashAttention-3 packs heads if tiles without packing would be used less than this share of their
use with packing (hopper/heuristics.h, ``should_pack_gqa``)."""


def splitting(w: Workload) -> Workload:
    """Return the same problem for an algorithm that deals keys out to splits, maybe its own.

    Raises InputError: its heads cannot be packed.
    """
    if algorithm_of(w).splits:
        return w
    return w.as_algorithm(next(each.name for each in ALGORITHMS.values() if each.splits))


def with_splits(w: Workload, splits: int) -> Workload:
    """Return a workload with another number of splits, all of equal size."""
    said = {"splits": splits, "split_size": None}
    return replace(w, scenario=with_values(w.scenario, {"tiling": said}))


def packing_reasons(w: Workload) -> tuple[str, ...]:
    """Return the changes by packing the query heads of a KV head; empty if no heads share one."""
    if w.group == 1:
        return ()
    whole = with_splits(w, 1)
    alone = whole.as_algorithm(USUAL.name)
    rows = {each: each.seqlen_q / (each.rows * each.grid.Tr) for each in (whole, alone)}
    blocks = {each: each.heads * each.grid.Tr for each in rows}
    moved = {each: tile_program(each).totals.bytes for each in rows}
    packs = rows[alone] < PACKS_BELOW * rows[whole]
    return (
        f"packing: {w.group} query heads share each KV head; their queries, {w.queries} of each, "
        f"are {w.seqlen_q} rows of one block",
        f"thread blocks before splits: {blocks[whole]} packed, {blocks[alone]} not packed",
        f"rows of tiles in use: {rows[whole]:.3f} packed, {rows[alone]:.3f} not packed, so "
        f"FlashAttention-3 {'packs' if packs else 'does not pack'}",
        f"bytes: {moved[alone] / moved[whole]:.2f} times as many not packed",
    )
