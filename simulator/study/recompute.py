"""Store or compute again: what a forward and its backward pass move, compute and keep together.

A backward pass needs P. It finds all of P in HBM, or it computes P again from Q, K and one number
of each row: that takes FLOPs, and saves the bytes and the memory of a matrix of Nq × Nk.

References
----------
Dao et al. 2022, section 3.1 ("Recomputation") and Theorem 2; Chen et al. 2016, "Training Deep Nets
with Sublinear Memory Cost", arXiv 1604.06174.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from simulator.problem.scenario import Algorithm
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.tile_program import Counters, TileProgram
from simulator.program.traffic import stored_bytes
from simulator.study.sweep import rule_tiles, workload_at


@dataclass(frozen=True, slots=True)
class Passes:
    """A forward pass and the backward pass after it."""

    forward: Algorithm  # forward, backward: their algorithms
    backward: Algorithm
    counters: tuple[Counters, Counters]  # requests and FLOPs of each of the two
    # bytes of the tensors that the first leaves for the second, beside inputs and dO
    kept: Mapping[str, int]
    scores: int  # FLOPs of S in the forward pass

    @property
    def bytes(self) -> int:
        """Requested bytes of both passes."""
        return sum(each.bytes for each in self.counters)

    @property
    def kept_bytes(self) -> int:
        """Bytes of all tensors that are kept between the passes."""
        return sum(self.kept.values())


@dataclass(frozen=True, slots=True)
class Trade:
    """A forward and its backward pass in two ways: P stored, or computed again."""

    stored: Passes  # stored, again: the passes that keep P, and those that compute it again
    again: Passes

    @property
    def both(self) -> tuple[Passes, Passes]:
        """Both ways, the one that stores P first."""
        return self.stored, self.again

    @property
    def saved(self) -> int:
        """Bytes that the backward pass requests less if P is computed again; below 0: more."""
        return self.stored.counters[1].bytes - self.again.counters[1].bytes

    @property
    def paid(self) -> int:
        """FLOPs that this backward pass adds; below 0 if skipped tiles save more than S costs."""
        return self.again.counters[1].flops - self.stored.counters[1].flops


def kept_bytes(program: TileProgram) -> dict[str, int]:
    """Return the bytes of each tensor that a forward pass leaves in HBM for its backward pass."""
    return stored_bytes(program.workload, program.kept)


def passes_of(w: Workload, backward: Algorithm) -> Passes:
    """Return a backward pass and its forward pass on a workload.

    Raises InputError: the algorithms cannot run the workload.
    """
    forward = ALGORITHMS[backward].forward
    assert forward is not None
    first, second = (tile_program(w.as_algorithm(name)) for name in (forward, backward))
    counters, own = (first.totals, second.totals), first.workload
    # Of the two products of a tile, S has `head_dim` terms for each pair and O `value_dim`.
    scores = counters[0].flops * own.head_dim // (own.head_dim + own.value_dim)
    return Passes(forward, backward, counters, kept_bytes(second), scores)


LENGTHS = tuple(2**power for power in range(8, 18))
"""N of the curves."""


@lru_cache(maxsize=4)
def over_lengths(w: Workload) -> tuple[tuple[int, Trade], ...]:
    """Return the trade at other N, in the tiles of published kernels; nothing where N is fixed."""
    if w.mask.of_these_lengths:
        return ()
    rows, cols = rule_tiles(w)["fa2"]
    return tuple(
        (keys, trade_of(workload_at(replace(w, rows=rows, cols=cols), "N", keys)))
        for keys in LENGTHS
    )


@lru_cache(maxsize=16)
def trade_of(w: Workload) -> Trade:
    """Return the trade of storing P or computing it again on a workload."""
    names = [each.name for each in ALGORITHMS.values() if each.backward]
    (stored,) = (name for name in names if ALGORITHMS[name].passes_pairs)
    (again,) = (name for name in names if not ALGORITHMS[name].passes_pairs)
    return Trade(passes_of(w, stored), passes_of(w, again))
