"""FlashAttention's online softmax along one row block, many tiles per NumPy call.

The running statistics of a row, (m, l, O), combine associatively: two stretches of keys may be
walked independently and merged afterwards.  A row block is therefore walked in two passes:

1. ``_fold_chunk`` treats every chunk (a few tiles, small enough to stay in cache) as if the row
   had seen nothing before it.  Chunks are independent, so two threads can share them and the
   result does not depend on how they do.
2. ``_join`` merges the chunks in order, turning their own statistics into the statistics of a
   tile-by-tile walk after each tile.

Scores are kept transposed, (keys, rows): reductions over a tile then read whole rows of memory,
whatever the tile width.

References
----------
.. [1] T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work
   Partitioning", 2023, Algorithm 1, lines 8-10 (per tile) and 12 (log-sum-exp).
.. [2] M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018,
   Section 3 (the recurrence) and 3.1 (its associativity).
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.engines.numerics import Change, Span, Visible, change_in, mask_into, scores_into
from simulator.program.ops import kept_unless_larger, log_sum_exp, over

CHUNK_KEYS = 2048
"""Keys per chunk: its scores stay in cache, and a checkpoint follows every chunk."""

CHUNK_TILES = 64
"""Most tiles per chunk, hence per step between checkpoints."""

SAFE_LEVEL = np.float32(40.0)
"""Largest |running maximum| in a chunk (in logits) up to which its exponentials need no shift.

exp(-40) is 4e-18. Even a tile whose scores are all that low is summed at full relative accuracy,
because float32 numbers are normal down to exp(-87); and no sum of terms up to exp(40) comes near
overflow.
"""

LOWEST = np.finfo(np.float32).min  # the lowest finite number


@dataclass(frozen=True, slots=True)
class RowBlockWalk:
    """The results of the online softmax of one row block; every array is read-only."""

    # ndarray of float32, shape (rows, Tc): running maximum of the scaled scores after column block
    # j; -inf before any visible pair
    m: F32
    # ndarray of float32, shape (rows, Tc): running sum of exponentials relative to ``m[:, j]``; 0
    # before any visible pair
    l: F32
    o: F32  # ndarray of float32, shape (rows, dv): normalised output; 0 for a row that saw nothing
    # ndarray of float32, shape (rows,): log-sum-exp of the visible scaled scores, m + ln l; -inf
    # for a row that saw nothing
    lse: F32
    # ndarray of float32, shape (n, rows, dv): unnormalised accumulator, relative to the running
    # maximum, after ``checkpoint_at`` tiles
    checkpoints: F32
    # ndarray of int64, shape (n,): numbers of visited tiles, ascending from 0 to all of them
    checkpoint_at: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in self.__slots__:
            getattr(self, name).flags.writeable = False


@np.errstate(all="ignore")  # weights become 0, numbers too large for float32 infinite or NaN
def walk_row_block(
    q: F32,
    k: F32,
    v: F32,
    scale: float,
    cols: int,
    spans: Sequence[Span],
    visible: Visible,
    threads: int = 1,
    change: Change | None = None,
    start: tuple[F32, F32] | None = None,
    keeps: float | None = None,
) -> RowBlockWalk:
    """Walk one row block over its visited column blocks [1]_, [2]_.

    q: ndarray of float32, shape (rows, d): queries of the row block, valid rows only.
    k, v: ndarray of float32, shapes (Nk, d) and (Nk, dv): all keys and values, C-contiguous.
    scale: factor from q.k to the logit, temperature included.
    cols: column block width Bc in keys; the last block may be narrower.
    spans: visited column blocks j as disjoint ascending intervals.
    visible: ``visible(k0, k1)`` gives the mask of keys k0..k1-1, bool of shape (rows, k1 - k0), or
        None if every pair is visible.  Called from worker threads if ``threads`` > 1.
    change: makes scores of scaled products, as `numerics.change_in` takes it.
    start: (rows,) float32 each, m and l before the first tile: a sink is a key that has been seen.
    keeps: by how much m must grow to move; without it, by anything.
    threads: threads that share the chunks; more than one pays only with BLAS limited to one thread.
    Returns: statistics after every column block, output and checkpoints.
    """
    rows, n_keys = q.shape[0], k.shape[0]
    cols = min(cols, max(n_keys, CHUNK_KEYS))  # one tile of as many keys as there are
    runs = [np.arange(*span, dtype=np.int64) for span in spans]
    visited = np.concatenate(runs) if runs else np.zeros(0, dtype=np.int64)
    per_chunk = max(1, min(CHUNK_KEYS // cols, CHUNK_TILES))
    at = np.append(np.arange(0, visited.size, per_chunk), visited.size)

    scaled_q_t = (q * np.float32(scale)).T
    m = np.full((visited.size + 1, rows), -np.inf, dtype=np.float32)  # after 0, 1, ... tiles
    l = np.zeros_like(m)
    if start is not None:
        m[0], l[0] = start
    acc = np.zeros((at.size, rows, v.shape[1]), dtype=np.float32)

    @np.errstate(all="ignore")  # a thread begins without its caller's errstate
    def work(chunks: Iterator[int]) -> None:
        scratch = np.empty((min(per_chunk, visited.size) * cols, rows), dtype=np.float32)
        for c in chunks:
            a, b = at[c], at[c + 1]
            pieces = _key_ranges(visited[a:b], cols, n_keys)
            x = scratch[: (b - a) * cols]
            filled = scores_into(x, scaled_q_t, k, pieces)
            change_in(x, pieces, change)
            mask_into(x, pieces, visible)
            x[filled:] = -np.inf  # keys that the last tile lacks, if it is narrower
            after = slice(a + 1, b + 1)
            _fold_chunk(x.reshape(-1, cols, rows), v, pieces, m[after], l[after], acc[c + 1])

    todo = iter(range(at.size - 1))  # shared: each thread takes the next chunk when it is free
    if min(threads, at.size - 1) > 1:
        with ThreadPoolExecutor(threads - 1) as pool:
            others = [pool.submit(work, todo) for _ in range(threads - 1)]
            work(todo)
        for other in others:
            other.result()
    else:
        work(todo)

    if at.size > 2 or start is not None:  # a single chunk needs no joining, unless with a sink
        _join(m, l, acc, at)
    if keeps is not None:
        kept = _kept(m, keeps)
        grown = np.where(np.isneginf(kept), np.float32(1), np.exp(m - _finite(kept)))
        m, l, acc = kept, l * grown, acc * grown[at][:, :, None]
    lse, o = log_sum_exp(m[-1], l[-1]), over(acc[-1], l[-1][:, None])
    blocks = np.arange(len(range(0, n_keys, cols)))
    seen = np.searchsorted(visited, blocks, side="right")  # tiles seen after each block
    m, l = np.ascontiguousarray(m[seen].T), np.ascontiguousarray(l[seen].T)
    return RowBlockWalk(m, l, o, lse, acc, at)


def _key_ranges(tiles: NDArray[np.int64], cols: int, n_keys: int) -> list[Span]:
    """Contiguous key ranges that make up the given ascending column blocks."""
    if tiles[-1] - tiles[0] == tiles.size - 1:  # the usual case has a short cut
        return [(int(tiles[0]) * cols, min(int(tiles[-1] + 1) * cols, n_keys))]
    gap = np.diff(tiles) != 1
    first, last = tiles[np.append(True, gap)], tiles[np.append(gap, True)]
    stops = np.minimum((last + 1) * cols, n_keys)
    return list(zip((first * cols).tolist(), stops.tolist(), strict=True))


def _fold_chunk(x: F32, v: F32, pieces: list[Span], m: F32, l: F32, acc: F32) -> None:
    """Fold one chunk alone; x, (tiles, cols, rows), is overwritten.

    Writes the running statistics m and l after each tile, (tiles, rows), and the accumulator
    after the last, (rows, dv), relative to the last m.
    """
    tiles, cols, rows = x.shape
    fold = gcd(cols, 4)  # longer runs of memory make the maximum cheaper
    x.reshape(tiles, cols // fold, -1).max(axis=1).reshape(tiles, fold, rows).max(axis=1, out=m)
    np.maximum.accumulate(m, out=m)
    level = np.where(m > -np.inf, m, np.float32(0))
    moderate = np.abs(level).max() <= SAFE_LEVEL
    if not moderate:
        x -= level[:, None]
    np.exp(x, out=x)
    matmul(np.ones(cols, dtype=np.float32), x, out=l)
    if moderate:  # so far relative to 0, which saves two passes over x
        np.cumsum(l, axis=0, out=l)
        l *= np.exp(-level)
    else:  # the textbook form: every tile relative to its own running maximum
        for j in range(1, tiles):
            l[j] += l[j - 1] * np.exp(m[j - 1] - level[j])
        x *= np.exp(m - level[-1])[:, None]
    keys, at = x.reshape(-1, rows), 0
    for k0, k1 in pieces:
        part = keys[at : at + k1 - k0].T
        if at == 0:
            matmul(part, v[k0:k1], out=acc)
        else:
            acc += matmul(part, v[k0:k1])
        at += k1 - k0
    if moderate:
        acc *= np.exp(-level[-1])[:, None]


def _join(m: F32, l: F32, acc: F32, at: NDArray[np.int64]) -> None:
    """Make chunk-local m, l and acc cumulative, in place; chunk c is tiles at[c] to at[c + 1] - 1.

    m and l are (tiles + 1, rows) and acc (chunks + 1, rows, dv), with the blank start first.
    """
    now = np.maximum.accumulate(m)
    base = _finite(now)
    own = np.exp(m - base)
    before = np.exp(np.repeat(now[at[:-1]], np.diff(at), axis=0) - base[1:])
    l *= own
    for c in range(1, at.size):
        a, b = at[c - 1], at[c]
        l[a + 1 : b + 1] += before[a:b] * l[a]
        acc[c] *= own[b][:, None]
        acc[c] += acc[c - 1] * before[b - 1][:, None]
    m[:] = now


def _kept(m: F32, by: float) -> F32:
    """Return the maxima that are kept in place of the maxima so far, (tiles + 1, rows).

    A kept maximum is at most `by` below the maximum so far, and when it moves, it becomes the
    maximum so far.
    """
    out = m.copy()
    for n in range(1, len(m)):
        out[n] = kept_unless_larger(out[n - 1], m[n], by)
    return out


def _finite(m: F32) -> F32:
    """Return the maximum to subtract: finite where m is -inf, so exp(-inf - maximum) is 0."""
    return np.maximum(m, LOWEST)
