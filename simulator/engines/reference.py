"""Attention in float64 from its definition: the reference of all engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from simulator.base.dtypes import F64
from simulator.base.matmul import matmul
from simulator.problem.features import FeatureMap
from simulator.problem.filling import CHECKED_SCORES, PART
from simulator.problem.workload import Inputs, Workload


def reference_rows(workload: Workload, inputs: Inputs, head: int, rows: range) -> tuple[F64, F64]:
    """Return O and LSE of some rows of a head.

    Returns
    -------
    o : ndarray
        (rows, dv) float64; 0 for a row that sees nothing.
    lse : ndarray
        (rows,) float64; -inf for a row that sees nothing. In linear attention ln of the sum of the
        weights.
    """
    parts = [
        _softmax_times(workload, inputs, head, part)
        for part in _parts(rows, max(1, CHECKED_SCORES // workload.seqlen_k))
    ]
    return np.concatenate([o for o, _ in parts]), np.concatenate([lse for _, lse in parts])


def gated(w: Workload, inputs: Inputs, head: int, rows: range, o: F64) -> F64:
    """Return O of some rows times their gate, if there is one."""
    if not w.gated:
        return o
    assert inputs.output_gate is not None
    return o * inputs.output_gate[head, rows.start : rows.stop].astype(np.float64)


def reference_gradients(
    workload: Workload, inputs: Inputs, head: int, rows: range
) -> tuple[F64, F64, F64]:
    """Return dQ of some rows of a head, and what these rows add to dK and dV of its KV head.

    With P the weights of a row, ``dV = Pᵀ dO`` and ``dP = dO Vᵀ``; the Jacobian of a softmax is
    ``diag(P) - P Pᵀ``, so ``dS = P ∘ dP - P (P · dP)``; and a score is ``scale · q·k``, soft-capped
    or not. O and the log-sum-exp are not needed.

    Returns
    -------
    dq : ndarray
        (rows, d) float64.
    dk, dv : ndarray
        (Nk, d) and (Nk, dv) float64.
    """
    w, kv_head = workload, workload.kv_head_of[head]
    assert inputs.upstream is not None
    k, v = inputs.k[kv_head].astype(np.float64), inputs.v[kv_head].astype(np.float64)
    dk, dv, parts = np.zeros_like(k), np.zeros_like(v), []
    for part in _parts(rows, max(1, CHECKED_SCORES // w.seqlen_k)):
        own = slice(part.start, part.stop)
        q = inputs.q[head, own].astype(np.float64)
        upstream = inputs.upstream[head, own].astype(np.float64)
        scaled = w.scoring.of(matmul(q, k.T))
        scores = w.changed(head, part, range(w.seqlen_k), scaled)
        weights = _weights(w, head, part, scores)
        dp = matmul(upstream, v.T)
        ds = weights * dp - weights * (weights * dp).sum(axis=1)[:, None]
        ds *= w.scoring.slope(scaled)
        dk += w.scoring.factor * matmul(ds.T, q)
        dv += matmul(weights.T, upstream)
        parts.append(w.scoring.factor * matmul(ds, k))
    return np.concatenate(parts), dk, dv


def _weights(w: Workload, head: int, rows: range, scores: F64) -> F64:
    """Return the softmax of some rows, 0 in rows that see nothing."""
    scores = np.where(w.mask.of_head(head).visible(rows, range(w.seqlen_k)), scores, -np.inf)
    sink = w.start(head, rows)[0] if w.sinks is not None else np.full(len(rows), -np.inf)
    top = np.maximum(scores.max(axis=1), sink)
    top = np.where(np.isneginf(top), 0.0, top)
    weights = np.exp(scores - top[:, None])
    total = weights.sum(axis=1) + np.exp(sink - top)
    return weights / np.where(total == 0, 1.0, total)[:, None]


def _softmax_times(w: Workload, inputs: Inputs, head: int, rows: range) -> tuple[F64, F64]:
    q = inputs.q[head, rows.start : rows.stop].astype(np.float64)
    keys, kv_head = range(w.seqlen_k), w.kv_head_of[head]
    if w.feature_map is not None:
        k, v = inputs.k[kv_head].astype(np.float64), inputs.v[kv_head].astype(np.float64)
        return _state_times(w, w.feature_map, inputs, head, rows, q, k, v)
    each = max(1, PART // max(w.head_dim, w.value_dim))
    parts = [slice(part.start, part.stop) for part in _parts(keys, each)]
    products = [matmul(q, inputs.k[kv_head, part].astype(np.float64).T) for part in parts]
    scores = w.changed(head, rows, keys, w.scoring.of(np.concatenate(products, axis=1)))
    del products
    scores = np.where(w.mask.of_head(head).visible(rows, keys), scores, -np.inf)
    top = scores.max(axis=1)
    sink = None if w.sinks is None else w.start(head, rows)[0]
    if sink is not None:  # one more key, of value 0
        top = np.maximum(top, sink)
    finite_top = np.where(np.isneginf(top), 0.0, top)
    scores -= finite_top[:, None]
    weights = np.exp(scores, out=scores)
    total = weights.sum(axis=1)
    if sink is not None:
        total = total + np.exp(sink - finite_top)
    blind = total == 0
    total = np.where(blind, 1.0, total)
    lse = np.where(blind, -np.inf, finite_top + np.log(total))
    o = sum(matmul(weights[:, part], inputs.v[kv_head, part].astype(np.float64)) for part in parts)
    return gated(w, inputs, head, rows, np.asarray(o) / total[:, None]), lse


def _state_times(
    w: Workload, phi: FeatureMap, inputs: Inputs, head: int, rows: range, q: F64, k: F64, v: F64
) -> tuple[F64, F64]:
    """Return O and LSE from the weights of all pairs, divided by their sum if the rule has one.

    Without a sum LSE is NaN.
    """
    assert w.rule is not None
    gate = None if inputs.gate is None else inputs.gate[w.kv_head_of[head]].astype(np.float64)
    of_pairs = w.rule.weights(
        phi.of(q, inputs.projection), phi.of(k, inputs.projection), gate, rows
    )
    weights = np.where(w.mask.visible(rows, range(w.seqlen_k)), of_pairs, 0.0)
    if not w.rule.sums:
        return matmul(weights, v), np.full(len(rows), np.nan)
    total = weights.sum(axis=1)
    blind = total == 0
    lse = np.log(total, out=np.full_like(total, -np.inf), where=~blind)
    return matmul(weights, v) / np.where(blind, 1.0, total)[:, None], lse


def _parts(rows: range, size: int) -> Iterator[range]:
    for start in range(rows.start, rows.stop, size):
        yield range(start, min(start + size, rows.stop))


def error_rows(workload: Workload, limit: int = 2**28) -> Iterable[int]:
    """Return the row blocks that are compared with the reference.

    These are all row blocks if there are at most `limit` scores in all heads. Otherwise they are
    fewer, with at most `limit` scores, evenly spread; always the first and the last.
    """
    blocks = workload.grid.Tr
    per_block = workload.heads * workload.rows * workload.seqlen_k
    keep = max(2, min(blocks, limit // per_block))
    return sorted({round(n * (blocks - 1) / max(keep - 1, 1)) for n in range(keep)})
