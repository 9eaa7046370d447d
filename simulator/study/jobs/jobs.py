"""Jobs of heads: how much weight each gives to keys of a certain kind, and how unlike heads are.

References
----------
Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits": previous-token heads and
induction heads of two layers. Olsson et al. 2022, "In-context Learning and Induction Heads": the
score of induction (there "prefix matching"), and that such heads appear at once while a model
learns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F64, frozen
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask

Pairs = NDArray[np.bool_]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Job:
    """One thing that a head may do."""

    name: str  # in figures
    title: str  # title, short: in a table, and where there is little room
    short: str
    tip: str  # which keys count, in one sentence
    # from the places of some rows, (rows,), and of all keys, (keys,), and whether their tokens are
    # the same, (rows, keys), to the pairs that count, (rows, keys)
    pairs: Callable[[Places, Places, Pairs], Pairs]
    by_place: bool = False  # whether the job needs the row's own place among the keys


def _induction(rows: Places, keys: Places, same: Pairs) -> Pairs:
    out = np.zeros_like(same)
    out[:, 1:] = same[:, :-1]
    return out & (keys < rows[:, None])


JOBS = (
    Job("previous", "previous token", "previous", "The key before the row's own place.",
        lambda rows, keys, same: keys == rows[:, None] - 1, by_place=True),
    Job("next", "next token", "next", "The key after the row's own place.",
        lambda rows, keys, same: keys == rows[:, None] + 1, by_place=True),
    Job("first", "first token", "first", "Key 0, where a head rests that finds nothing to do.",
        lambda rows, keys, same: np.broadcast_to(keys == 0, same.shape)),
    Job("self", "itself", "itself", "The key at the row's own place.",
        lambda rows, keys, same: keys == rows[:, None], by_place=True),
    Job("same", "same token before", "same before", "Earlier keys of the same token.",
        lambda rows, keys, same: same & (keys < rows[:, None])),
    Job("induction", "induction", "induction",
        "Keys after an earlier occurrence of the row's token: they say what comes next, if it "
        "comes again (Olsson et al. 2022).", _induction),
)  # fmt: skip
JOB_NAMES = tuple(job.name for job in JOBS)


@dataclass(frozen=True, slots=True)
class HeadJobs:
    """Scores of some heads; arrays are read-only."""

    # (heads, jobs) float64, 0 to 1: the weight on the keys of a job, a mean over the rows that
    # count. NaN if no row does.
    scores: F64
    # (jobs,) float64, the same for a head that reads all visible keys alike; a mean over heads if
    # they see different keys
    even: F64
    # (jobs,) int, how many rows count: the rows that see a key of the job, and another key. If
    # heads see different keys, it is the largest number.
    rows: Places

    def of(self, name: str) -> F64:
        """Return the scores of one job, (heads,)."""
        out: F64 = self.scores[:, JOB_NAMES.index(name)]
        return out


def head_jobs(
    weights: NDArray[np.floating],
    mask: Mask,
    rows: range,
    tokens: Sequence[str] = (),
    *,
    placed: bool = True,
    heads: Sequence[int] = (),
) -> HeadJobs:
    """Return the scores of heads in all jobs.

    weights: (heads, rows, keys), each row a softmax over the keys that it sees.
    mask: which keys a row sees, and where the row stands among the keys.
    tokens: one for each key; empty: jobs that need them have no score.
    placed: whether a row has a place of its own among the keys; queries of another text have none,
        and jobs that need it have no score.
    heads: which heads these are, if each may see other keys.
    """
    if heads and mask.of_head(heads[0]) is not mask:
        alone = [
            head_jobs(weights[n : n + 1], mask.of_head(head), rows, tokens, placed=placed)
            for n, head in enumerate(heads)
        ]
        evens = np.array([each.even for each in alone])
        counted = ~np.isnan(evens)
        even = np.where(counted, evens, 0.0).sum(axis=0)
        even = np.where(counted.any(axis=0), even / np.maximum(counted.sum(axis=0), 1), np.nan)
        scores = np.concatenate([each.scores for each in alone])
        most = np.max([each.rows for each in alone], axis=0)
        return HeadJobs(frozen(scores), frozen(even), frozen(most))
    places, keys = mask.positions(rows), np.arange(weights.shape[2])
    seen = mask.visible(rows, range(weights.shape[2]))
    same = _same(places, tokens) if tokens else np.zeros(seen.shape, dtype=np.bool_)
    visible = np.count_nonzero(seen, axis=1)
    scores = np.full((len(weights), len(JOBS)), np.nan)
    even, count = np.full(len(JOBS), np.nan), np.zeros(len(JOBS), dtype=np.intp)
    known = places >= 0 if placed else np.ones(len(places), dtype=np.bool_)
    for n, job in enumerate(JOBS):
        if job.by_place and not placed:
            continue
        pairs = job.pairs(places, keys, same) & seen
        counted = pairs.any(axis=1) & (visible > 1) & known
        count[n] = np.count_nonzero(counted)
        if count[n]:
            chosen = pairs[counted]
            even[n] = np.mean(chosen.sum(axis=1) / visible[counted])
            for head, of_head in enumerate(weights):
                scores[head, n] = np.where(chosen, of_head[counted], 0.0).sum() / count[n]
    return HeadJobs(frozen(scores), frozen(even), frozen(count))


def _same(places: Places, tokens: Sequence[str]) -> Pairs:
    """Return whether the tokens of rows and keys are the same; a row before key 0 has no token."""
    numbers = {token: n for n, token in enumerate(dict.fromkeys(tokens))}
    of_keys = np.array([numbers[token] for token in tokens])
    same: Pairs = of_keys[np.maximum(places, 0)][:, None] == of_keys
    return same & (places >= 0)[:, None]


def head_distances(
    weights: NDArray[np.floating], progress: Callable[[float], None] = lambda share: None
) -> F64:
    """Return how unlike heads are, (heads, heads), 0 to 1.

    This is the Jensen–Shannon divergence of two heads' weights in bits (Lin 1991), a mean over the
    rows: 0 for the same map, 1 for heads that share no key in any row.

    weights: (heads, rows, keys), each row a softmax, or all 0 where it sees nothing.
    progress: told the share done, 0 to 1; may raise to stop.
    """
    entropy = [_entropy(of_head) for of_head in weights]
    out = np.zeros((len(weights), len(weights)))
    for a in range(len(weights)):
        for b in range(a):
            both = _entropy((weights[a].astype(np.float64) + weights[b]) / 2)
            out[a, b] = out[b, a] = max(both - (entropy[a] + entropy[b]) / 2, 0.0)
        progress(((a + 1) / len(weights)) ** 2)
    return frozen(out)


def _entropy(weights: NDArray[np.floating]) -> float:
    """Return the mean entropy of the rows in bits."""
    p = weights.astype(np.float64)
    return float(-(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1).mean())


def shares_of_y(
    o: NDArray[np.floating], wo: NDArray[np.floating], bias: NDArray[np.floating] | float = 0.0
) -> F64:
    """Return by how much Y moves when one head is switched off, for each head alone, (heads,).

    A head that is off gives zeros to the concat: Y loses its share, and nothing else changes in
    this layer. The result is the length of this share over the length of Y, both over all rows.

    o: (heads, N, dv), O of all heads.
    wo: (heads dv, D), W_O.
    bias: (D,), added to Y.
    """
    heads, _, depth = o.shape
    parts = matmul(o.astype(np.float64), wo.astype(np.float64).reshape(heads, depth, -1))
    whole = float(np.linalg.norm(parts.sum(axis=0) + bias))
    gone = np.sqrt((parts**2).sum(axis=(1, 2)))
    return frozen(gone / whole if whole > 0 else np.full(heads, np.nan))
