"""The errors of Performer's random features against the softmax whose weights they estimate.

The mean of the features' products is exp(q·k / sqrt(d)), so the error falls as 1 / sqrt(r) once r
is large enough: the spread of the products grows with exp(|q + k|²), and trained heads have long q
and k.

References
----------
Choromanski et al. 2021, "Rethinking Attention with Performers", lemma 1 and section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from simulator.base.dtypes import F64, frozen
from simulator.base.matmul import matmul
from simulator.engines.reference import reference_rows
from simulator.problem.features import FeatureMap
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import BASELINE

Progress = Callable[[float], object]
"""Takes the share done, 0 to 1; may raise to stop."""


@dataclass(frozen=True, slots=True)
class FeatureErrors:
    """Errors of O of a head against the softmax, as shares of the length of all of O."""

    features: tuple[int, ...]  # numbers of random features, rising
    errors: F64  # (features, seeds) float64, of each number and of each draw of directions
    elu1: float  # the error of elu(x) + 1, which is no estimate of a softmax

    @property
    def means(self) -> F64:
        """Means over the seeds, (features,)."""
        return np.asarray(self.errors.mean(axis=1))

    @property
    def spreads(self) -> F64:
        """Standard deviations over the seeds, (features,)."""
        return np.asarray(self.errors.std(axis=1))

    @property
    def exponent(self) -> float:
        """The power of r with which the mean error changes, fitted; -1/2 for independent draws."""
        return float(np.polyfit(np.log(self.features), np.log(self.means), 1)[0])


def feature_errors(
    w: Workload,
    inputs: Inputs,
    head: int,
    features: Sequence[int],
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> FeatureErrors:
    """Return the errors of a head's O for each number of features and each draw, in float64.

    w: mask, scale and temperature; its algorithm does not matter.
    head: query head, of `w` without packing.
    progress: told the share done.
    """
    plain = w.as_algorithm(BASELINE.name).ungated
    inputs = plain.posed(inputs)
    rows, keys, kv = range(plain.seqlen_q), range(plain.seqlen_k), plain.kv_head_of[head]
    exact, _ = reference_rows(plain, inputs, head, rows)
    seen = plain.mask.of_head(head).visible(rows, keys)
    q, k, v = (x.astype(np.float64) for x in (inputs.q[head], inputs.k[kv], inputs.v[kv]))
    whole = float(np.linalg.norm(exact))

    def off(similar: F64) -> float:
        weights = np.where(seen, similar, 0.0)
        total = weights.sum(axis=1, keepdims=True)
        ours = matmul(weights, v) / np.where(total > 0, total, 1.0)
        # Where O is 0 everywhere, so is V: then nothing can be off.
        return float(np.linalg.norm(ours - exact)) / whole if whole else 0.0

    usual = FeatureMap("elu1", plain.head_dim, plain.head_dim)
    elu1 = off(matmul(usual.of(q, None), usual.of(k, None).T))
    # Performer's scale is 1 / sqrt(d): another one is shared out to queries and keys.
    factor = sqrt(plain.logit_scale * sqrt(plain.head_dim))
    q, k = q * factor, k * factor
    sizes, out = tuple(sorted(set(features))), []
    for n, size in enumerate(sizes):
        out.append([off(_similar(q, k, size, seed)) for seed in seeds])
        if progress:
            progress((n + 1) / len(sizes))
    return FeatureErrors(sizes, frozen(np.array(out)), elu1)


def _similar(q: F64, k: F64, size: int, seed: int) -> F64:
    """Return φ(q)·φ(k), with factors for each row and for all keys, which the division takes out.

    The factors keep a row's features from being all 0 if the row is far from the directions.
    """
    depth = q.shape[1]
    directions = FeatureMap("performer", size, depth).drawn(seed).astype(np.float64)
    ours, theirs = (_exponents(x / depth**0.25, directions) for x in (q, k))
    return matmul(np.exp(ours - ours.max(axis=1, keepdims=True)), np.exp(theirs - theirs.max()).T)


def _exponents(y: F64, directions: F64) -> F64:
    return np.asarray(matmul(y, directions.T) - np.square(y).sum(axis=1, keepdims=True) / 2)
