"""Published sparse patterns as masks of a run, and what each would cost and change.

Every pattern leaves a row about the same number of blocks of keys, so they can be compared. All
heads share one mask: a choice that depends on scores takes the scores of all heads together.

References
----------
Beltagy et al. 2020 (Longformer); Zaheer et al. 2020 (BigBird); Raffel et al. 2020, section 3.2.1
(prefix-LM); Yuan et al. 2025, "Native Sparse Attention" (NSA); DeepSeek-AI 2025,
"DeepSeek-V3.2-Exp" (DSA: the lightning indexer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from simulator.base.dtypes import F64
from simulator.base.matmul import matmul
from simulator.base.parts import Map
from simulator.base.softmax import softmax_rows
from simulator.problem.intervals import I64, Bools
from simulator.problem.masks import BlockMask, Mask
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import BASELINE, USUAL, algorithm_of, tile_program
from simulator.study.sweep import Figures, figures_of
from simulator.timing.duration import duration_of, rough_duration

MOST_SCORES = 2**27
"""Most scores of all heads for which indexers run and errors of O are computed."""
MOST_PAIRS = 2**22
"""Pairs of a head up to which a mask of single pairs is made."""
_MOST_COUNTED = 2**24
"""Pairs of a head up to which visible ones are counted: some masks have an interval for each."""
_AT_ONCE = 2**20
"""Scores of all heads that a part of the work on errors computes."""
SEED = 0
"""Seed of random blocks and of the lengths of documents."""

NAMES = (
    "dense", "window", "Longformer", "Longformer, dilated", "BigBird", "packed documents",
    "prefix-LM", "NSA, selected", "NSA, selected + window", "DSA, top k",
)  # fmt: skip
"""The names of all patterns, in order; a long run has not all of them."""

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Knobs:
    """The parameters of the sparse patterns."""

    block: int  # rows and keys of a block
    k: int  # blocks of keys that a row of blocks sees, about


@dataclass(frozen=True, slots=True)
class Pattern:
    """A mask with a name."""

    name: str  # as its paper calls it
    words: str  # what it leaves visible
    mask: Mask  # of the rows of one head
    # whether its columns are the keys of the run; otherwise they were made of several keys each,
    # and no run can have it as its mask
    of_keys: bool = True


@dataclass(frozen=True, slots=True)
class Priced:
    """A pattern, with the cost of a run and the change of O."""

    pattern: Pattern  # the mask
    visited: int  # tiles of all heads that are visited
    figures: Figures  # bytes and FLOPs
    pairs: float | None  # share of the pairs that are visible without it; None: too many to count
    # ``|O − O_dense| / |O_dense|`` over all heads and rows, in float64; None: too long a run
    error: float | None
    seconds: float  # by model; where there is none the least that the data sheet allows
    modelled: bool


def usual_knobs(w: Workload) -> Knobs:
    """Return blocks as wide as a tile, and a quarter of them for each row."""
    block = max(w.cols, -(-w.seqlen_k // 1024))
    return Knobs(block, max(2, round(blocks_of(w, block) / 4)))


def blocks_of(w: Workload, block: int) -> int:
    """Return how many blocks of keys there are."""
    return -(-w.seqlen_k // block)


def dense_mask(w: Workload) -> Mask:
    """Return the mask that patterns are compared with: causal if the run is, and nothing else."""
    return Mask(w.queries, w.seqlen_k, w.mask.causal, align=w.mask.align)


def patterns(w: Workload, inputs: Inputs, knobs: Knobs) -> tuple[Pattern, ...]:
    """Return the patterns that fit a run, dense first."""
    single = w.as_algorithm(BASELINE.name)
    return tuple(_patterns(single, single.posed(inputs), knobs))


def _patterns(w: Workload, inputs: Inputs, knobs: Knobs) -> Iterator[Pattern]:
    dense, keys = dense_mask(w), knobs.k * knobs.block
    yield Pattern("dense", "every pair" if not dense.causal else "every key so far", dense)
    window = keys if dense.causal else max(keys // 2, 1)
    around = f"a window of {window} keys"
    yield Pattern("window", f"{around}, as NSA's third branch", replace(dense, window=window))
    yield Pattern(
        "Longformer", f"{around}, one global token", replace(dense, window=window, global_tokens=1)
    )
    yield Pattern(
        "Longformer, dilated", f"one key in 2 of a window of {2 * window}, one global token",
        replace(dense, window=2 * window, dilation=2, global_tokens=1),
    )  # fmt: skip
    grid = _Blocks(w, knobs)
    blocks = f"blocks of {knobs.block}"
    yield grid.pattern("BigBird", f"{blocks}: the first, neighbours, the rest at random",
                       grid.bigbird())  # fmt: skip
    lengths = _document_lengths(w.seqlen_k, keys)
    yield Pattern("packed documents", f"{len(lengths)} documents in one sequence",
                  replace(dense, documents=lengths))  # fmt: skip
    if w.queries * w.seqlen_k <= MOST_PAIRS:
        at, j = dense.aligned(range(w.queries))[:, None], np.arange(w.seqlen_k)[None, :]
        seen = (j <= at) | (j < keys)
        yield Pattern("prefix-LM", f"the first {keys} keys, and then those so far",
                      replace(dense, causal=False, blocks=BlockMask(1, seen)))  # fmt: skip
    if len(w.picked) * w.queries * w.seqlen_k > MOST_SCORES:
        return
    chosen = grid.top(_nsa_scores(w, inputs, knobs.block), local=2)
    yield grid.pattern("NSA, selected", f"{blocks}: the best by their mean keys, its first branch",
                       chosen)  # fmt: skip
    yield grid.pattern("NSA, selected + window", f"{blocks}: those and a window as wide",
                       chosen | grid.near(knobs.k))  # fmt: skip
    chosen = grid.top(_dsa_scores(w, inputs, knobs.block), local=1, first=False)
    yield grid.pattern("DSA, top k", f"{blocks}: the best {knobs.k} by Σ ReLU(q·k), own among them",
                       chosen)  # fmt: skip


class _Blocks:
    """The blocks of a run: which are at and before each row of blocks."""

    def __init__(self, w: Workload, knobs: Knobs) -> None:
        self.mask, self.k, size = dense_mask(w), knobs.k, knobs.block
        self.size = size
        first = np.arange(0, w.queries, size)
        last = np.minimum(first + size, w.queries) - 1
        shift = self.mask.shift
        across = -(-w.seqlen_k // size)
        self.low = np.clip((first + shift) // size, 0, across - 1)[:, None]
        self.high = np.clip((last + shift) // size, 0, across - 1)[:, None]
        self.places = np.arange(across)[None, :]
        self.open = self.places <= self.high if self.mask.causal else self.places >= 0
        self.open = np.broadcast_to(self.open, (len(first), across))

    def pattern(self, name: str, words: str, table: Bools) -> Pattern:
        return Pattern(name, words, replace(self.mask, blocks=BlockMask(self.size, table.copy())))

    def near(self, blocks: int, *, both: bool = False) -> Bools:
        """Return the blocks of each row's own keys and neighbours, `blocks` in all."""
        after = (blocks - 1) // 2 if both and not self.mask.causal else 0
        before = blocks - 1 - after
        table: Bools = (self.places >= self.low - before) & (self.places <= self.high + after)
        table &= self.open
        return table

    def bigbird(self) -> Bools:
        """Return the first row and column of blocks, neighbours, and random ones up to k."""
        fixed = self.near(3, both=True) | (self.places == 0)
        fixed[0] = True
        order = np.random.default_rng(SEED).random(self.open.shape)
        return self._filled(fixed, order)

    def top(self, scores: F64, *, local: int, first: bool = True) -> Bools:
        """Return the k blocks of each row with the highest scores, some always among them."""
        fixed = self.near(local)
        if first:
            fixed |= self.places == 0
        return self._filled(fixed, scores)

    def _filled(self, fixed: Bools, scores: F64) -> Bools:
        """Return the fixed blocks, and the best others until there are k in a row."""
        ranked = np.where(fixed, np.inf, np.where(self.open, scores, -np.inf))
        rank: I64 = np.argsort(np.argsort(-ranked, kind="stable"), kind="stable")
        table: Bools = ((rank < self.k) | fixed) & self.open
        return table


def _document_lengths(keys: int, mean: int) -> tuple[int, ...]:
    """Return lengths around a mean that add up to all keys."""
    rng, out, left = np.random.default_rng(SEED), list[int](), keys
    while left:
        length = min(left, max(1, round(mean * rng.uniform(0.5, 1.5))))
        out.append(length if left - length >= mean // 4 else left)
        left -= out[-1]
    return tuple(out)


def _nsa_scores(w: Workload, inputs: Inputs, block: int) -> F64:
    """Return how much weight the rows of a block give to the mean key of each block, all heads.

    NSA compresses a block with a trained function; here the mean takes its place.
    """
    mask, starts = dense_mask(w), np.arange(0, w.seqlen_k, block)
    ends = np.minimum(starts + block, w.seqlen_k)
    seen = mask.aligned(range(w.queries))[:, None] >= ends - 1 if mask.causal else np.True_
    total = np.zeros((w.queries, len(starts)))
    for head, kv in enumerate(w.kv_head_of):
        k = np.add.reduceat(inputs.k[kv].astype(np.float64), starts, axis=0)
        k /= (ends - starts)[:, None]
        s = w.scoring.of(matmul(inputs.q[head].astype(np.float64), k.T))
        total += softmax_rows(np.where(seen, s, -np.inf))
    return np.add.reduceat(total, np.arange(0, w.queries, block), axis=0)


def _dsa_scores(w: Workload, inputs: Inputs, block: int) -> F64:
    """Return the largest ``Σ ReLU(q·k)`` over heads of the visible pairs of each pair of blocks."""
    mask, starts = dense_mask(w), np.arange(0, w.seqlen_k, block)
    out = []
    for first in range(0, w.queries, block):
        rows = range(first, min(first + block, w.queries))
        score = np.zeros((len(rows), w.seqlen_k))
        for head, kv in enumerate(w.kv_head_of):
            q = inputs.q[head, rows.start : rows.stop].astype(np.float64)
            score += np.maximum(matmul(q, inputs.k[kv].astype(np.float64).T), 0.0)
        score = np.where(mask.visible(rows, range(w.seqlen_k)), score, -np.inf)
        out.append(np.maximum.reduceat(score.max(axis=0), starts))
    return np.array(out)


def priced(
    w: Workload,
    inputs: Inputs,
    found: tuple[Pattern, ...],
    progress: Progress = lambda share: None,
    *,
    errors: bool = True,
    done: Map = map,
) -> tuple[Priced, ...]:
    """Return the price of each pattern, and how far O is from O without it.

    w: heads, tiles, GPU; naive, which visits every tile whatever the mask, counts as the usual
        algorithm.
    progress: told the share done; may raise to stop.
    errors: whether the errors are computed, which takes longest.
    done: runs the parts: a price of each pattern, and errors on some rows at once.
    """
    single = w.as_algorithm(BASELINE.name)
    exact = errors and single.heads * single.seqlen_q * single.seqlen_k <= MOST_SCORES
    step = max(1, _AT_ONCE // (single.heads * single.seqlen_k))
    starts = range(0, single.seqlen_q, step) if exact else ()
    parts = [*range(len(found)), *(range(n, min(n + step, single.seqlen_q)) for n in starts)]
    rows: list[Priced] = []
    size, apart = 0.0, np.zeros(len(found))
    for n, part in enumerate(done(partial(part_priced, w, inputs, found), parts)):
        if isinstance(part, Priced):
            rows.append(part)
        else:
            size, apart = size + part[0], apart + part[1]
        progress((n + 1) / len(parts))
    off = np.sqrt(apart / max(size, 1e-300))
    return tuple(
        replace(row, error=float(error)) if exact else row
        for row, error in zip(rows, off, strict=True)
    )


def part_priced(
    w: Workload, inputs: Inputs, found: tuple[Pattern, ...], part: int | range
) -> Priced | tuple[float, F64]:
    """Return a part of the work of `priced`: the price of a pattern, or errors on some rows.

    Errors are ``|O_dense|^2`` and ``|O - O_dense|^2`` of each pattern, all heads together.
    """
    single = w.as_algorithm(BASELINE.name)
    if isinstance(part, range):
        return _apart(single, single.posed(inputs), [each.mask for each in found], part)
    own, each, dense = algorithm_of(w), found[part], dense_mask(w)
    name = w.algorithm if own.softmax and not own.stores_scores else USUAL.name
    pairs = dense.pairs if single.seqlen_q * single.seqlen_k <= _MOST_COUNTED else None
    run = replace(single, mask=each.mask).as_algorithm(name)
    time = (duration_of if run == w else rough_duration)(tile_program(run))
    return Priced(
        each, run.heads * int(run.grid.visited_columns.sums[-1]), figures_of(run),
        each.mask.pairs / pairs if pairs else None, None,
        time.seconds, time.model is not None,
    )  # fmt: skip


def _apart(w: Workload, inputs: Inputs, masks: list[Mask], rows: range) -> tuple[float, F64]:
    """Return the square of dense O's size, and of its distance from O with each mask."""
    size, apart, keys = 0.0, np.zeros(len(masks)), range(w.seqlen_k)
    open_to = dense_mask(w).visible(rows, keys)
    seen = [mask.visible(rows, keys) for mask in masks]
    for head, kv in enumerate(w.kv_head_of):
        q, k, v = (each.astype(np.float64) for each in (
            inputs.q[head, rows.start : rows.stop], inputs.k[kv], inputs.v[kv]))  # fmt: skip
        s = w.changed(head, rows, keys, w.scoring.of(matmul(q, k.T)))
        sink = w.scoring.sink(head)
        dense = attended(s, open_to, v, sink)
        size += float(np.square(dense).sum())
        for n, each in enumerate(seen):
            if each is open_to or np.array_equal(each, open_to):
                continue
            apart[n] += float(np.square(attended(s, each, v, sink) - dense).sum())
    return size, apart


def attended(s: F64, seen: Bools, v: F64, sink: float | None) -> F64:
    """Return the softmax of the visible scores times V; 0 for a row that sees nothing."""
    return np.asarray(matmul(softmax_rows(np.where(seen, s, -np.inf), sink), v))
