"""The costs of variants of attention, and the powers of N with which they grow.

Every figure is one of a sweep: `figures_of` a workload that differs from the scenario's in its
algorithm, its KV heads or its window. The exponents are fitted to such figures, not stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.base.errors import refuse
from simulator.problem.filling import MAX_BLOCKS
from simulator.problem.masks import Window, window_text
from simulator.problem.scenario import Algorithm
from simulator.problem.values import MAX_SEQLEN
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, BASELINE, USUAL, algorithm_of
from simulator.program.traffic import stored_bytes
from simulator.study.heads.sharing import kv_head_counts
from simulator.study.sweep import figures_of, workload_at

HEADS = 8
"""Heads that are compared if the input has a single one: a single head shares nothing."""
DOUBLINGS = 4
"""Doublings of N over which an exponent is fitted."""
_FROM = 2**12
"""The N at which fits begin if the scenario is shorter, so that the fastest growth dominates."""


@dataclass(frozen=True, slots=True)
class Power:
    """A law ``y = c · N^exponent`` fitted to some points."""

    exponent: float  # slope of log y over log N, by least squares
    off: float  # largest factor by which a point is above or below the law, 1 or more


@dataclass(frozen=True, slots=True)
class VariantCost:
    """One cost of a variant: at the scenario's N, and how it grows."""

    here: float  # seconds, bytes or weights
    power: Power | None  # over N; None where the mask is of this N alone


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of attending, with its costs for all heads of one layer."""

    name: str  # ``MHA``, ``GQA 8:2``, ``MQA``, ``window 16``
    algorithm: Algorithm  # the algorithm that runs it
    kv_heads: int  # kv_heads, window: where variants differ; window 0 for none
    window: Window
    own: bool  # whether the scenario runs this variant
    seconds: VariantCost  # estimated time on the workload's GPU
    held: VariantCost  # bytes of all tensors in HBM
    # bytes that a decoder keeps: K and V, or the state where there is no softmax
    cached: VariantCost
    parameters: VariantCost  # weights of W_Q, W_K, W_V and W_O


@dataclass(frozen=True, slots=True)
class VariantTable:
    """The variants of a scenario."""

    rows: tuple[Variant, ...]  # MHA first, then cheaper variants
    heads: int  # query heads of each
    width: int  # D, the width of x: the input's, or heads times head dimension
    # N at which the exponents were fitted; empty where the mask is of this N alone
    lengths: tuple[int, ...]


def fitted_power(xs: Sequence[float], ys: Sequence[float]) -> Power:
    """Fit ``y = c · x^exponent`` by least squares on the logarithms.

    xs, ys: two points or more, above 0.
    Raises InputError: there are fewer than two different x, or a number is not above 0.
    """
    if len(set(xs)) < 2 or min(*xs, *ys) <= 0:
        raise refuse("fit", "points", str(list(zip(xs, ys, strict=True))), "two x or more above 0")
    across, up = np.log(np.array(xs, float)), np.log(np.array(ys, float))
    from_mean = across - across.mean()
    slope = float((from_mean * (up - up.mean())).sum() / (from_mean**2).sum())
    rest = up - up.mean() - slope * from_mean
    return Power(slope, float(np.exp(np.abs(rest).max())))


def variant_table(w: Workload) -> VariantTable:
    """Return the variants of a scenario with their costs.

    w: the scenario: its lengths, dimensions, tiles, mask, dtype and GPU hold for all variants.
    """
    heads = w.input_heads[0] if w.input_heads[0] > 1 else HEADS
    stored = dict(w.file.stored) if w.file else {}
    D = stored["x"].shape[1] if "x" in stored else heads * w.head_dim
    own_kv, own_window = w.input_heads[1] if heads == w.input_heads[0] else heads, w.mask.window
    counts = kv_head_counts(heads)
    some = own_kv if 1 < own_kv < heads else next((n for n in counts if 1 < n <= heads // 4), 0)
    own = algorithm_of(w)
    usual = w.algorithm if own.softmax and not own.stores_scores else USUAL.name
    chosen: list[tuple[str, Algorithm, int, Window]] = [
        (f"MHA, {BASELINE.label}", BASELINE.name, heads, 0),
        (f"MHA, {ALGORITHMS[usual].label}", usual, heads, 0),
    ]
    if some:
        chosen.append((f"GQA {heads}:{some}", usual, some, 0))
    chosen.append(("MQA", usual, 1, 0))
    window = own_window or _some_window(w.seqlen_k)
    words = f"window {window_text(window)}"
    chosen.append((words, usual, heads, window))
    if some:
        chosen.append((f"GQA {heads}:{some}, {words}", usual, some, window))
    takes = not w.mask.of_these_lengths  # without a softmax there are no documents or blocks
    if takes and (w.queries == w.seqlen_k or not w.mask.causal):
        chosen += [
            (each.title, each.name, heads, 0)
            for each in ALGORITHMS.values()
            if not each.softmax and (each.forms or each is own)
        ]
    lengths = _lengths(w)
    rows = tuple(
        _variant(name, _shared(w, algorithm, heads, kv, limit), D, lengths,
                 own=(algorithm, kv, limit) == (w.algorithm, own_kv, own_window))
        for name, algorithm, kv, limit in chosen
    )  # fmt: skip
    return VariantTable(rows, heads, D, lengths)


def _some_window(keys: int) -> int:
    """Return a power of two near an eighth of the keys, 16 at least."""
    return int(max(16, 2 ** round(math.log2(max(keys / 8, 1)))))


def _lengths(w: Workload) -> tuple[int, ...]:
    """Return several N, each twice the one before, from the scenario's N if that is long enough.

    Documents and blocks say nothing of other lengths: then there are no N.
    """
    if w.mask.of_these_lengths:
        return ()
    most = min(MAX_SEQLEN, MAX_BLOCKS * min(w.rows, w.cols))
    last = min(max(w.seqlen_k, _FROM) * 2**DOUBLINGS, most)
    return tuple(last // 2**n for n in range(DOUBLINGS, -1, -1))


def _shared(
    w: Workload, algorithm: Algorithm, heads: int, kv_heads: int, window: Window
) -> Workload:
    """Return a workload with other heads and another window, all else as it is."""
    plain = w.as_algorithm(BASELINE.name)  # its heads one by one
    sinks = plain.mask.sinks if window else 0
    mask = plain.mask if heads == plain.heads else plain.mask.of_any_heads
    mask = replace(mask, window=window, sinks=sinks)
    if not window:  # there is nothing that these could be exceptions from
        mask = replace(mask, dilation=1, global_tokens=0)
    return replace(
        plain,
        heads=heads,
        kv_heads=kv_heads,
        kv_head_of=tuple(head * kv_heads // heads for head in range(heads)),
        picked=tuple(range(heads)),
        input_heads=(heads, kv_heads),
        mask=mask,
    ).as_algorithm(algorithm)


def _variant(name: str, w: Workload, width: int, lengths: tuple[int, ...], *, own: bool) -> Variant:
    figures = figures_of(w)
    at = [workload_at(w, "N", n) for n in lengths]
    grown = [figures_of(each) for each in at]

    def cost(here: float, along: Sequence[float]) -> VariantCost:
        return VariantCost(here, fitted_power(lengths, along) if lengths else None)

    weights = parameters(w, width)
    return Variant(
        name=name,
        algorithm=w.algorithm,
        kv_heads=w.input_heads[1],
        window=w.mask.window,
        own=own,
        seconds=cost(figures.seconds, [each.seconds for each in grown]),
        held=cost(figures.held, [each.held for each in grown]),
        cached=cost(cached_bytes(w), [cached_bytes(each) for each in at]),
        parameters=cost(weights, [parameters(each, width) for each in at]),
    )


def cached_bytes(w: Workload) -> int:
    """Return the bytes that a decoder keeps: K and V of all keys, or of sinks and the window.

    Without a softmax the decoder keeps the state, whatever the number of keys.
    """
    if not algorithm_of(w).softmax:
        return sum(stored_bytes(w, algorithm_of(w).left).values())
    return sum(stored_bytes(replace(w, seqlen_k=w.mask.kept), ("K", "V")).values())


def parameters(w: Workload, width: int) -> int:
    """Return the weights of W_Q, W_K, W_V and W_O, without biases, for x of so many numbers.

    References
    ----------
    Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023, section 2.2.
    """
    heads, kv_heads = w.input_heads
    return width * (heads + kv_heads) * (w.head_dim + w.value_dim)
