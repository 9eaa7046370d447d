"""The cost of a smaller cache: the error of a layer's O against bytes, with few tokens or few bits.

The error is the norm of the difference of O over the norm of O, all rows of all heads, as for heads
that share (`simulator.study.latent.sharing`); O is computed in float64 from what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from simulator.base.dtypes import F64
from simulator.engines.reference import reference_rows
from simulator.problem.workload import Inputs, Workload
from simulator.study.generation.steps import shipped_run, suits
from simulator.study.kv_cache.decoding import Decoded, DecodedLayer, decoded, layer_of
from simulator.study.kv_cache.policies import POLICIES, Policy
from simulator.study.kv_cache.quantise import GRAINS, SMALL, Grain, Small, rounded, stored_bytes

Progress = Callable[[float], object]
MOST_PAIRS = 2**22
"""Pairs of all heads beyond which a run is not decoded: their scores are held in memory."""
LEAST_TOKENS = 64
"""Tokens below which a run is not shown: nobody has to evict one of so few."""
SHARES = (32, 16, 8, 4, 2)
"""Budgets are these parts of the tokens, and three quarters of them."""


@dataclass(frozen=True, slots=True)
class Evicted:
    """A cache that keeps few tokens."""

    policy: Policy  # which tokens leave
    budget: int  # tokens that a KV head keeps
    bytes: int  # of the cache when it is full
    error: float  # of O, relative


@dataclass(frozen=True, slots=True)
class Rounded:
    """A cache of few bits."""

    dtype: Small  # dtype, grain: element type, and the part with a scale of its own
    grain: Grain
    bytes: int  # of elements and scales
    error: float  # of O, relative


@dataclass(frozen=True, eq=False)
class Pressure:
    """A layer and the smaller caches that were tried."""

    layer: DecodedLayer  # the layer
    exact: F64  # (heads, N, dv) float64: its O with the whole cache
    bytes: int  # of the whole cache
    evicted: tuple[Evicted, ...]  # of each policy, the smallest budget first
    rounded: tuple[Rounded, ...]  # of each element type, one scale for all first

    def of_policy(self, policy: Policy) -> tuple[Evicted, ...]:
        """Return the caches of a policy."""
        return tuple(each for each in self.evicted if each.policy == policy)

    def of_type(self, dtype: Small) -> tuple[Rounded, ...]:
        """Return the caches of an element type."""
        return tuple(each for each in self.rounded if each.dtype == dtype)

    def decoded(self, policy: Policy, budget: int) -> tuple[Decoded, Evicted]:
        """Return a decoding of the layer, and its cost."""
        found = decoded(self.layer, policy, budget)
        error = relative_error(found.o, self.exact)
        return found, Evicted(policy, budget, found.bytes, error)


def shown_run(w: Workload, inputs: Inputs) -> tuple[Workload, Inputs]:
    """Return a run if its layer could have been generated, else a shipped layer."""
    fits = w.seqlen_k >= LEAST_TOKENS and w.heads * w.seqlen_k**2 <= MOST_PAIRS
    own = w.file is not None and suits(w) and fits
    return (w, inputs) if own else shipped_run()


def budgets_of(tokens: int) -> tuple[int, ...]:
    """Return the budgets that are tried, smallest first."""
    parts = (tokens // share for share in SHARES)
    return tuple(sorted({max(n, 1) for n in (*parts, 3 * tokens // 4)}))


def relative_error(o: F64, exact: F64) -> float:
    """Return the norm of the difference over the norm; 0 if both are 0."""
    off, whole = float(np.linalg.norm(o - exact)), float(np.linalg.norm(exact))
    return off / whole if whole else off


def pressure(w: Workload, inputs: Inputs, progress: Progress | None = None) -> Pressure:
    """Return the costs of smaller caches for a layer.

    w: as many queries as keys; its mask is made causal.
    progress: told the share done.
    """
    found = unpressed(w, inputs)
    layer = found.layer
    tried = [(policy, n) for policy in POLICIES for n in budgets_of(layer.tokens)]
    evicted: list[Evicted] = []
    for policy, budget in tried:
        evicted.append(found.decoded(policy, budget)[1])
        if progress:
            progress(len(evicted) / (len(tried) + 1))
    rounded = tuple(quantised(found, dtype, grain) for dtype in SMALL for grain in GRAINS)
    if progress:
        progress(1.0)
    return replace(found, evicted=tuple(evicted), rounded=rounded)


def unpressed(w: Workload, inputs: Inputs) -> Pressure:
    """Return a layer for which no smaller cache has been tried yet; its mask is made causal."""
    layer = layer_of(w, inputs)
    return Pressure(layer, _output(layer, layer.inputs), layer.row_bytes * layer.tokens, (), ())


def weight_gone(layer: DecodedLayer, kept: Decoded, budget: int) -> float:
    """Return the weight of tokens that have left, had they stayed: a mean over rows after that."""
    if budget >= layer.tokens:
        return 0.0
    later = layer.scores[:, budget:]
    starts = layer.starts[:, budget:, None]
    top = np.maximum(later.max(-1, keepdims=True), starts)
    weights = np.exp(later - top)
    weights /= weights.sum(-1, keepdims=True) + np.exp(starts - top)
    stays = kept.kept[list(layer.workload.kv_head_of), budget:]
    return float(np.where(stays, 0.0, weights).sum(-1).mean())


def quantised(found: Pressure, dtype: Small, grain: Grain) -> Rounded:
    """Return the cost of K and V in an element type."""
    inputs = found.layer.inputs
    k, v = (rounded(x.astype(np.float64), dtype, grain) for x in (inputs.k, inputs.v))
    given = replace(inputs, k=k.astype(np.float32), v=v.astype(np.float32))
    size = sum(stored_bytes(x.shape, dtype, grain) for x in (k, v))
    return Rounded(dtype, grain, size, relative_error(_output(found.layer, given), found.exact))


def _output(layer: DecodedLayer, inputs: Inputs) -> F64:
    """Return O of all heads with the whole cache."""
    w, rows = layer.workload, range(layer.tokens)
    return np.stack([reference_rows(w, inputs, head, rows)[0] for head in range(w.heads)])
