"""A layer that decodes token by token with a cache that keeps so many tokens of each KV head.

Every token comes as a step of its own, from the first. When the cache is full, one token leaves
each KV head before the new one joins; then the query attends to what is there, itself included.
A token that has left is gone for all later queries. With grouped queries a KV head keeps the same
tokens for all its query heads, because K and V are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F64, STATISTIC_WIDTH, frozen
from simulator.base.errors import refuse
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import USUAL
from simulator.study.kv_cache.policies import Full, Policy

SEED = 0
"""Seed of random evictions."""


@dataclass(frozen=True, eq=False)
class DecodedLayer:
    """A layer whose tokens come one by one."""

    workload: Workload  # as many queries as keys, causal
    inputs: Inputs  # Q, K and V
    scores: F64  # (heads, N, N) float64; -inf where a key comes after its query
    starts: F64  # (heads, N) float64: a learned logit in a row's sum, -inf where there is none
    values: F64  # (kv_heads, N, dv) float64

    @property
    def tokens(self) -> int:
        """Tokens in all."""
        return self.workload.seqlen_k

    @property
    def row_bytes(self) -> int:
        """Bytes of K and V of one token, all KV heads, in the run's dtype."""
        w = self.workload
        return w.kv_heads * (w.head_dim + w.value_dim) * w.width


@dataclass(frozen=True, eq=False)
class Decoded:
    """A layer after all steps with a small cache."""

    # (kv_heads, N, N) bool: which tokens (columns) are read at each step (rows)
    kept: NDArray[np.bool_]
    o: F64  # (heads, N, dv) float64
    bytes: int  # of the cache when it is full, with the sums of a policy that keeps some


def layer_of(w: Workload, inputs: Inputs) -> DecodedLayer:
    """Return the layer of a run with as many queries as keys; its mask is made causal."""
    w, inputs = w.as_algorithm(USUAL.name).ungated, w.as_algorithm(USUAL.name).posed(inputs)
    n = w.seqlen_k
    w = replace(w, mask=Mask(n, n, True, w.mask.window, w.mask.sinks))
    rows = range(n)
    seen = w.mask.visible(rows, rows)
    scores = np.empty((w.heads, n, n))
    for head in range(w.heads):
        q, k = (x.astype(np.float64) for x in (inputs.q[head], inputs.k[w.kv_head_of[head]]))
        products = w.changed(head, rows, rows, w.scoring.of(matmul(q, k.T)))
        scores[head] = np.where(seen, products, -np.inf)
    starts = np.full((w.heads, n), -np.inf)
    if w.sinks is not None:
        starts = np.stack([w.start(head, rows)[0] for head in range(w.heads)])
    return DecodedLayer(
        w, inputs, frozen(scores), frozen(starts), frozen(inputs.v.astype(np.float64))
    )


def decoded(layer: DecodedLayer, policy: Policy, budget: int, seed: int = SEED) -> Decoded:
    """Return a layer's decoding with a cache of `budget` tokens of each KV head.

    budget: tokens that a KV head keeps at most, at least 1.
    Raises InputError: the budget is below 1.
    """
    if budget < 1:
        raise refuse("eviction", "budget", budget, "1 or more tokens")
    w, n = layer.workload, layer.tokens
    owner, heads = np.array(w.kv_head_of), np.arange(w.kv_heads)
    rng = np.random.default_rng(seed)
    kept, mass = np.zeros((w.kv_heads, n), dtype=bool), np.zeros((w.kv_heads, n))
    read = np.zeros((w.kv_heads, n, n), dtype=bool)
    weights = np.zeros((w.heads, n, n))
    for step in range(n):
        if step >= budget:
            draw = rng.random(kept.shape)
            kept[heads, policy.leaves(Full(kept, mass, budget, step, draw))] = False
        kept[:, step] = True
        read[:, step] = kept
        upto = slice(step + 1)
        scores = np.where(kept[owner, upto], layer.scores[:, step, upto], -np.inf)
        start = layer.starts[:, step]
        top = np.maximum(scores.max(axis=1), start)
        own = np.exp(scores - top[:, None])
        own /= (own.sum(axis=1) + np.exp(start - top))[:, None]
        weights[:, step, upto] = own
        if policy.sums:
            np.add.at(mass[:, upto], owner, own)
    o = np.stack([matmul(weights[head], layer.values[owner[head]]) for head in range(w.heads)])
    beside = w.kv_heads * STATISTIC_WIDTH * policy.sums
    return Decoded(frozen(read), frozen(o), min(budget, n) * (layer.row_bytes + beside))
