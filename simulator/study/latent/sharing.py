"""The cost of sharing a layer's cache, without retraining: pooled heads, or a latent.

There are two ways to keep fewer numbers of a token than all KV heads have. The mean of neighbouring
heads replaces their K and V, as grouped-query attention begins (Ainslie et al. 2023, section 2.1);
or a latent of r numbers replaces all K and V of a token, side by side: their share in the r
directions in which they vary most (a truncated singular value decomposition). Both are trained
further where they are used; here nothing is trained, so the errors say what the layer as it is
would lose.

References
----------
Ainslie et al. 2023, "GQA"; Liu et al. 2024, "DeepSeek-V2"; Eckart and Young 1936.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from simulator.base.dtypes import F64
from simulator.base.matmul import matmul
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import USUAL
from simulator.study.heads.sharing import kv_head_counts

Family = Literal["pooled", "latent"]
Progress = Callable[[float], object]
SHIPPED = "passage-layer1"
"""The capture that is shown if a run does not have several trained heads."""
MOST_TOKENS = 1024
"""Keys beyond which a layer is not shown: a decomposition takes the square of them."""
ENOUGH = 2
"""Most numbers of a token, over the number of tokens: fewer tokens lie in few directions."""


@dataclass(frozen=True, slots=True)
class SmallerCache:
    """A smaller cache of a layer."""

    family: Family  # ``pooled`` heads or a ``latent``
    size: int  # KV heads that are left, or numbers of the latent
    numbers: int  # numbers that are kept of a token
    bytes: int  # the bytes of these numbers in the run's dtype
    error: float  # norm of the difference of O over the norm of O, all rows of all heads


@dataclass(frozen=True, slots=True)
class SharedLayer:
    """A layer and the smaller caches that were tried."""

    name: str  # which layer
    kv_heads: int  # kv_heads, head_dim: its KV heads, each with a key and a value
    head_dim: int
    numbers: int  # numbers, bytes: what the layer itself keeps of a token
    bytes: int
    kept: tuple[SmallerCache, ...]  # the pooled ones, then the latents, each with the largest first

    def family(self, family: Family) -> tuple[SmallerCache, ...]:
        """Return the caches of one family, largest first."""
        return tuple(each for each in self.kept if each.family == family)

    def one(self, family: Family, size: int) -> SmallerCache:
        """Return the cache of a family and a size."""
        return next(each for each in self.family(family) if each.size == size)


def is_shown(w: Workload) -> bool:
    """Return whether a run has several heads of a trained layer, and is neither short nor long."""
    trained = w.file is not None and bool(w.file.said.model)
    numbers = w.kv_heads * (w.head_dim + w.value_dim)
    fits = numbers <= ENOUGH * w.seqlen_k and w.seqlen_k <= MOST_TOKENS
    return trained and not w.latent and w.kv_heads > 1 and fits


def shared_layer(w: Workload, inputs: Inputs, progress: Progress | None = None) -> SharedLayer:
    """Return the errors of a layer's O with smaller caches.

    progress: told the share done.
    """
    w, inputs = w.as_algorithm(USUAL.name).ungated, w.as_algorithm(USUAL.name).posed(inputs)
    k, v = inputs.k.astype(np.float64), inputs.v.astype(np.float64)
    exact = _output(w, inputs, k, v)
    own = w.kv_heads * (w.head_dim + w.value_dim)
    groups = [n for n in kv_head_counts(w.kv_heads) if n < w.kv_heads]
    sizes = [n * (w.head_dim + w.value_dim) for n in range(w.kv_heads - 1, 0, -1)]
    left, right = _directions(k, v)
    out: list[SmallerCache] = []

    def keep(family: Family, size: int, numbers: int, k: F64, v: F64) -> None:
        off = float(np.linalg.norm(_output(w, inputs, k, v) - exact) / np.linalg.norm(exact))
        out.append(SmallerCache(family, size, numbers, numbers * w.width, off))
        if progress:
            progress(len(out) / (len(groups) + len(sizes)))

    for count in groups:
        numbers = count * (w.head_dim + w.value_dim)
        keep("pooled", count, numbers, *(_pooled(x, count) for x in (k, v)))
    for rank in (size for size in sizes if size <= left.shape[1]):
        both = matmul(left[:, :rank], right[:rank])
        keep("latent", rank, rank, *_apart(both, w))
    assert w.file is not None
    return SharedLayer(w.file.title, w.kv_heads, w.head_dim, own, own * w.width, tuple(out))


@cache
def shipped_layer() -> SharedLayer:
    """Return the errors of the shipped capture."""
    w = resolve(parse_scenario({"input": {"source": "capture", "name": SHIPPED}}))
    return shared_layer(w, read_inputs(w))


def _output(w: Workload, inputs: Inputs, k: F64, v: F64) -> F64:
    """Return O of all heads in float64, with other keys and values as float32 has them."""
    other = replace(inputs, k=k.astype(np.float32), v=v.astype(np.float32))
    rows = range(w.seqlen_q)
    return np.stack([reference_rows(w, other, head, rows)[0] for head in range(w.heads)])


def _pooled(x: F64, groups: int) -> F64:
    """Return K or V, (heads, keys, n), with the mean of each group of heads for all of them."""
    heads, keys, width = x.shape
    means = x.reshape(groups, heads // groups, keys, width).mean(axis=1)
    return np.repeat(means, heads // groups, axis=0)


def _directions(k: F64, v: F64) -> tuple[F64, F64]:
    """Return factors whose first r columns and rows are the nearest matrix of rank r.

    The matrix has a row for each token: K of all heads, then V of all.
    """
    rows = np.concatenate([*k, *v], axis=1)
    u, s, right = np.linalg.svd(rows, full_matrices=False)
    return u * s, right


def _apart(rows: F64, w: Workload) -> tuple[F64, F64]:
    """Return K and V, (heads, keys, n) each, from a matrix with both of a token side by side."""
    keys, values = np.split(rows, [w.kv_heads * w.head_dim], axis=1)
    return (
        keys.reshape(w.seqlen_k, w.kv_heads, w.head_dim).transpose(1, 0, 2),
        values.reshape(w.seqlen_k, w.kv_heads, w.value_dim).transpose(1, 0, 2),
    )
