"""The effect of a soft-cap on the scores of a row: ``s = c · tanh(s / c)``.

References
----------
Gemma Team 2024, "Gemma 2", section 2 (50 for the scores of attention).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.base.matmul import matmul
from simulator.problem.workload import Inputs, Workload

SUPPOSED = 50.0
"""The cap of a run that has none."""
_MOST = 256
"""Most keys that are shown; of more, evenly spread ones."""


@dataclass(frozen=True, eq=False)
class CappedRow:
    """Scores of a row before and after the cap, of keys that the row sees."""

    workload: Workload  # the run, heads one by one
    row: int
    cap: float
    keys: tuple[int, ...]
    before: NDArray[np.float64]  # (keys,) float64, q·k times the scale
    after: NDArray[np.float64]  # (keys,) float64, with the cap

    @property
    def own(self) -> bool:
        """Whether the cap is the run's own."""
        return bool(self.workload.softcap)


def capped_row(w: Workload, inputs: Inputs, head: int, row: int) -> CappedRow:
    """Return a row's scores before and after the run's cap, or after the supposed cap.

    w: shapes, mask and scale, its heads one by one.
    """
    seen = w.mask.of_head(head).visible(range(row, row + 1), range(w.seqlen_k))[0]
    keys = np.flatnonzero(seen)
    if len(keys) > _MOST:
        keys = keys[np.linspace(0, len(keys) - 1, _MOST).astype(int)]
    q = inputs.q[head, row].astype(np.float64)
    k = inputs.k[w.kv_head_of[head]][keys].astype(np.float64)
    scoring = replace(w.scoring, softcap=w.softcap or SUPPOSED)
    before = scoring.of(matmul(k, q[:, None])[:, 0])
    return CappedRow(w, row, scoring.softcap, tuple(keys.tolist()), before, scoring.capped(before))
