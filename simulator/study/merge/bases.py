"""A prefix and a suffix of a row's keys, merged with LSE in one base, and with its bases mixed.

A prompt whose beginning is cached leaves two partials: one of the prefix, one of the new tokens.
FlashInfer returns LSE as a logarithm of 2, and what merges them may take powers of e: whichever is
larger weighs too much.

References
----------
sgl-project/sglang #40903 (a prefix of 3072 keys, a suffix of 64); vllm-project/vllm #52796.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.problem.workload import Inputs, Workload
from simulator.run.row_sums import added, blank_sums, over, pair_scores
from simulator.study.merge.merging import (
    Partial,
    distance,
    empty_like,
    in_base_2,
    joining_ops,
    merged,
)

PREFIX, SUFFIX = 3072, 64
"""Keys of both in the report."""
_CHUNK = 8192
"""Keys whose scores are computed at a time."""


@dataclass(frozen=True, eq=False)
class TwoStates:
    """A prefix and a suffix of the keys that a row sees, in float64."""

    keys: tuple[int, int]  # how many each has
    states: tuple[Partial, Partial]

    @property
    def right(self) -> Partial:
        """What they merge to."""
        return merged(self.states, joining_ops())

    @property
    def mixed(self) -> Partial:
        """What they merge to if LSE is in base 2 and taken as in base e."""
        return merged([in_base_2(each) for each in self.states], joining_ops())

    @property
    def shares(self) -> tuple[float, float]:
        """By how much the suffix counts, right and mixed."""
        suffix = self.states[1]
        right = np.exp(suffix.lse - self.right.lse)
        wrong = np.exp(in_base_2(suffix).lse - self.mixed.lse)
        return float(right[0]), float(wrong[0])

    @property
    def off(self) -> float:
        """How far O is off if bases are mixed, as a share of its length."""
        return distance(self.mixed.o, self.right.o)

    @property
    def empty_stays_empty(self) -> bool:
        """Whether two states of no keys merge to one: O = 0 and LSE = -inf, not NaN."""
        nothing = empty_like(self.states[0])
        both = merged([nothing, nothing], joining_ops())
        return bool(np.isneginf(both.lse).all()) and not both.o.any()


def two_states(w: Workload, inputs: Inputs, head: int, row: int) -> TwoStates | None:
    """Return the states of a row whose suffix is as in the report; None if it sees fewer than two.

    It has 64 keys, or the same share of them where the row sees fewer.
    """
    one, kv_head = range(row, row + 1), w.kv_head_of[head]
    seen = np.flatnonzero(w.mask.of_head(head).visible(one, range(w.seqlen_k))[0])
    if len(seen) < 2:
        return None
    suffix = min(SUFFIX, max(1, round(len(seen) * SUFFIX / (PREFIX + SUFFIX))))
    q = inputs.q[head, row : row + 1].astype(np.float64)
    states = []
    for keys in (seen[:-suffix], seen[-suffix:]):
        sums = blank_sums(w, head, one, 1)
        for start in range(int(keys[0]), int(keys[-1]) + 1, _CHUNK):
            part = range(start, min(start + _CHUNK, int(keys[-1]) + 1))
            own = keys[np.searchsorted(keys, part.start) : np.searchsorted(keys, part.stop)]
            k = inputs.k[kv_head, part.start : part.stop].astype(np.float64)
            scores = pair_scores(w, q, k, inputs.projection, head, one, part)
            sums = added(sums, scores[:, own - part.start], inputs.v[kv_head, own])
        states.append(Partial(sums.m + np.log(sums.l), over(sums.o, sums.l)))
    return TwoStates((len(seen) - suffix, suffix), (states[0], states[1]))
