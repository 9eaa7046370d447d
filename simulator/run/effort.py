"""How many errors of rows are computed in float64, and for how many of these a view waits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of


@dataclass(frozen=True, slots=True)
class Effort:
    """Bounds of the computation."""

    step: int = 2**28  # products of float64 that a view may wait for: tens of milliseconds
    step_tiles: int = 1024  # tiles that a view may wait for: small tiles take mostly Python's time
    # small, small_tiles: products and tiles up to which a head is computed together with the view
    small: int = 2**25
    small_tiles: int = 100
    # scores of a head up to which all row blocks are computed; a larger head has as many scores
    # computed, spread over it
    scores: int = 2**26
    # scores of all heads up to which naive, which stores S and P, is searched for a wrong step
    searched: int = 2**27

    def is_small(self, w: Workload) -> bool:
        """Return whether a head is computed together with the view."""
        cost = w.grid.Tr * w.rows * w.seqlen_k * (w.head_dim + w.value_dim)
        return cost <= self.small and w.grid.Tr * w.grid.Tc <= self.small_tiles

    def tiles_of_step(self, w: Workload) -> int:
        """Return how many tiles a view may wait for."""
        return min(self.step_tiles, self.step // (w.rows * w.cols * (w.head_dim + w.value_dim)))

    def row_blocks(self, w: Workload) -> NDArray[np.int64]:
        """Return the row blocks of a head that are to be computed, ascending."""
        if w.seqlen_q * w.seqlen_k <= self.scores:
            return np.arange(w.grid.Tr)
        some = max(2, self.scores // (w.rows * w.seqlen_k))
        return np.linspace(0, w.grid.Tr - 1, some).round().astype(np.int64)

    def searches(self, w: Workload) -> bool:
        """Return whether a run is searched for a wrong step."""
        scores = w.heads * w.seqlen_q * w.seqlen_k
        return scores <= self.searched or not algorithm_of(w).stores_scores


EFFORT = Effort()  # the bounds that the window uses
