"""Attention weights of the heads of a layer, as the inspector shows them.

Q and K are read once and made into float64 scores; the settings of the sliders (temperature,
causal, window, sinks) are applied to these. The weights that are returned are float32 and differ
from the softmax in float64 by less than 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, frozen
from simulator.base.errors import refuse
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask, Window
from simulator.problem.packing import unpacked
from simulator.problem.scores import Scoring
from simulator.problem.workload import Inputs, Workload
from simulator.study.attention_part import LIMITS, Limits, MapPart

F64 = NDArray[np.float64]
Ints = NDArray[np.intp]

_KEYS = 2**13
"""Keys whose values are read at a time."""
_NOTHING = -110.0
"""Below this exponent float32 has no number but 0."""


@dataclass(frozen=True, slots=True)
class MapSettings:
    """Settings that may change without Q, K and V being read again."""

    temperature: float = 1.0  # divides the scaled scores
    causal: bool = False  # whether a row sees no later key
    window: Window = 0  # how far a row sees; 0 for no window
    sinks: int = 0  # first keys that the window never hides
    # alignment and the other conditions: dilation, global tokens, documents, blocks and the file's
    # pairs; None for none
    rest: Mask | None = None

    def mask(self, seqlen_q: int, seqlen_k: int) -> Mask:
        """Return the mask that the settings make of so many rows and keys."""
        mask = (self.rest or Mask(0, 0)).of_lengths(seqlen_q, seqlen_k)
        return replace(mask, causal=self.causal, window=self.window, sinks=self.sinks)

    @property
    def open(self) -> MapSettings:
        """These settings without a mask."""
        return MapSettings(self.temperature)


@dataclass(frozen=True, slots=True)
class RowWeights:
    """One row of one head."""

    # head, row: which one
    head: int
    row: int
    weights: F32  # (Nk,) float32, the same numbers as in the map
    visible: int  # keys that the mask leaves; with 0 all weights are 0
    # (k,) int, visible keys by descending weight; of equal ones the earlier comes first
    strongest: Ints
    # In bits; 0 for a row that sees nothing. It is of the keys' weights, without a sink's.
    entropy: float


@dataclass(frozen=True, slots=True)
class Lookup:
    """The output of one row as a mean of values, beside a lookup of the strongest key."""

    key: int  # the strongest key, the first of equal ones; -1 for a row that sees nothing
    weight: float  # its weight
    soft: F64  # (dv,) float64, ``weights @ V``; zeros for a row that sees nothing
    hard: F64  # (dv,) float64, V of the strongest key; zeros likewise
    distance: float  # Euclidean distance of the two


@dataclass(frozen=True, slots=True)
class HeadDifference:
    """Two heads on the same rows."""

    # first, second: the heads
    first: int
    second: int
    weights: F32  # (rows, Nk) float32, weights of the first less the second's, -1 to 1
    # (rows,) float64, half the sum of the absolute differences: the share of the weight that is on
    # other keys, 0 for the same row and 1 for rows with no key in common
    moved: F64


@dataclass(frozen=True, slots=True)
class AttentionMaps:
    """Weights of some heads, all under the same settings; arrays are read-only."""

    settings: MapSettings  # the settings of these maps
    # the visible pairs under the settings; `Mask.of_head` has the mask of a head of the workload
    mask: Mask
    heads: tuple[int, ...]  # the query heads, in the order of the first axis
    rows: range  # the query rows, in the order of the second axis
    # (heads, rows, Nk) float32: ``softmax(Q K^T * scale / temperature)`` over the visible keys, 0
    # for hidden ones. A row that sees nothing is all 0.
    weights: F32
    entropy: F64  # (heads, rows) float64, ``-sum p log2 p`` in bits; 0 for a row that sees nothing
    visible: Ints  # (heads, rows) int, keys that each row sees

    def of(self, head: int) -> F32:
        """Return the weights of a head, (rows, Nk) float32."""
        out: F32 = self.weights[self.heads.index(head)]
        return out

    def row(self, head: int, row: int, most: int = 5) -> RowWeights:
        """Return a row with its `most` strongest keys, or fewer if it sees fewer."""
        at, local = self.heads.index(head), self.rows.index(row)
        weights, visible = self.weights[at, local], int(self.visible[at, local])
        entropy = float(self.entropy[at, local])
        # A visible key may have weight 0, as hidden keys do.
        mask = self.mask.of_head(head)
        seen = np.flatnonzero(mask.visible(range(row, row + 1), range(weights.size))[0])
        order = _largest(weights[seen], most)
        return RowWeights(
            head=head,
            row=row,
            weights=weights,
            visible=visible,
            strongest=frozen(seen[order]),
            entropy=entropy,
        )

    def lookup(self, head: int, row: int, v: F32) -> Lookup:
        """Return the lookup of a row in V.

        v: (Nk, dv) float32, values of the head's KV head.
        """
        found = self.row(head, row, most=1)
        if not found.visible:
            nothing = frozen(np.zeros(v.shape[1]))
            return Lookup(-1, 0.0, nothing, nothing, 0.0)
        key = int(found.strongest[0])
        used = np.flatnonzero(found.weights)
        soft = np.zeros(v.shape[1])
        for start in range(0, len(used), _KEYS):  # painters ask: V of 100 000 keys is 100 MiB
            some = used[start : start + _KEYS]
            soft += matmul(found.weights[some].astype(np.float64), v[some].astype(np.float64))
        hard = v[key].astype(np.float64)
        distance = float(np.linalg.norm(soft - hard))
        return Lookup(key, float(found.weights[key]), frozen(soft), frozen(hard), distance)

    def difference(self, first: int, second: int) -> HeadDifference:
        """Return the difference of two heads: the weights of the first less the second's."""
        weights = self.of(first) - self.of(second)
        moved = np.abs(weights).sum(axis=1, dtype=np.float64) / 2
        return HeadDifference(first, second, frozen(weights), frozen(moved))

    def pooled(self, rows: int, cols: int) -> F32:
        """Return the largest weight of each block, for pictures smaller than the map.

        rows, cols: most rows and columns of the result: blocks are `pool_block` of them long.
        Returns: (heads, blocks of rows, blocks of keys) float32.
        """
        _, all_rows, keys = self.weights.shape
        return frozen(_pooled(self.weights, pool_block(all_rows, rows), pool_block(keys, cols)))


class HeadScores:
    """Scores of some heads in float64, from which maps are made again and again.

    part: heads and rows; all of them if None.
    Raises InputError: the part has more than `Limits.weights` weights.
    """

    def __init__(
        self,
        workload: Workload,
        inputs: Inputs,
        part: MapPart | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        w = workload
        self._limits = limits
        self.part = part or MapPart(tuple(range(w.heads)), range(w.seqlen_q))
        self.settings = settings_of(w)
        self._shape = (len(self.part.heads), len(self.part.rows), w.seqlen_k)
        self._workload, self._scale = w, w.scale
        count = math.prod(self._shape)
        if count > limits.weights:
            shape = " x ".join(map(str, self._shape))
            expected = f"at most {limits.weights} of them at once"
            raise refuse("inspector", "weights", shape, expected)
        self._raw = np.empty(self._shape)
        rows = slice(self.part.rows.start, self.part.rows.stop)
        step = max(1, limits.product // w.head_dim)
        for at, head in enumerate(self.part.heads):
            q, k = inputs.q[head, rows].astype(np.float64), inputs.k[w.kv_head_of[head]]
            for start in range(0, w.seqlen_k, step):
                keys = slice(start, start + step)
                matmul(q, k[keys].T.astype(np.float64), out=self._raw[at, :, keys])

    def maps(
        self, settings: MapSettings | None = None, heads: Sequence[int] | None = None
    ) -> AttentionMaps:
        """Return the weights of the heads, or of some of them, under `settings`.

        settings: None for the workload's settings.
        heads: some heads of the part; None for all.
        Raises InputError: a temperature that leaves no usable scale, or a negative window or count
            of sinks.
        """
        settings = settings or self.settings
        factor = self._factor(settings)
        picked = self.part.heads if heads is None else tuple(heads)
        places = [self.part.heads.index(head) for head in picked]
        _, rows, keys = self._shape
        mask = settings.mask(self._workload.seqlen_q, keys)
        weights = np.empty((len(places), rows, keys), dtype=np.float32)
        entropy = np.empty((len(places), rows))
        visible = np.full((len(places), rows), keys, dtype=np.intp)
        step = max(1, min(rows, self._limits.block // keys))
        room = np.empty((step, keys))
        for start in range(0, rows, step):
            block = slice(start, min(start + step, rows))
            scores = room[: block.stop - block.start]
            hidden: F64 | None = None
            shown: Mask | None = None
            for at, place in enumerate(places):
                np.multiply(self._raw[place, block], factor, out=scores)
                head, own = self.part.heads[place], self.part.rows[block]
                scores[:] = self._workload.changed(head, own, range(keys), scores)
                if mask.hides and shown is not (other := mask.of_head(head)):
                    shown = other
                    seen = shown.visible(own, range(keys))
                    visible[at:, block] = np.count_nonzero(seen, axis=1)
                    hidden = np.where(seen, 0.0, -np.inf)
                if hidden is not None:
                    scores += hidden
                sinks = self._workload.start(head, own)[0] if self._workload.sink_logits else None
                entropy[at, block] = _softmax_into(weights[at, block], scores, sinks)
        return AttentionMaps(
            settings=settings,
            mask=mask,
            heads=picked,
            rows=self.part.rows,
            weights=frozen(weights),
            entropy=frozen(entropy),
            visible=frozen(visible),
        )

    def _factor(self, settings: MapSettings) -> float:
        """Return the factor of Q K^T, after checking that the settings can be used."""
        for key in ("window", "sinks"):
            value = getattr(settings, key)
            if isinstance(value, int) and value < 0:
                raise refuse("inspector", key, value, "0 or more")
        limits, t = np.finfo(np.float32), settings.temperature
        if t > 0:
            factor = Scoring(self._scale, t).factor
            if float(limits.tiny) <= factor <= float(limits.max):
                return factor
        raise refuse("inspector", "temperature", t, "a number above 0 that keeps scores finite")


def settings_of(workload: Workload) -> MapSettings:
    """Return the settings of a workload."""
    mask = unpacked(workload.mask)
    rest = replace(mask, causal=False, window=0, sinks=0)
    more = None if rest == Mask(mask.seqlen_q, mask.seqlen_k) else rest
    return MapSettings(workload.temperature, mask.causal, mask.window, mask.sinks, more)


def pooled_maps(
    workload: Workload,
    inputs: Inputs,
    settings: MapSettings,
    size: tuple[int, int],
    progress: Callable[[float], None] = lambda share: None,
    limits: Limits = LIMITS,
) -> F32:
    """Return small maps of all heads, however many weights they have, one part after another.

    size: most rows and columns of each map.
    progress: told the share done, 0 to 1; may raise to stop.
    Returns: (heads, blocks of rows, blocks of keys) float32, the largest weight of each block,
        equal to `AttentionMaps.pooled` of all rows.
    Raises InputError: there are more than `Limits.pooled` weights, or the settings cannot be used.
    """
    w = workload
    if w.heads * w.seqlen_q * w.seqlen_k > limits.pooled:
        shape = f"{w.heads} x {w.seqlen_q} x {w.seqlen_k}"
        expected = f"at most {limits.pooled} to make small maps of"
        raise refuse("inspector", "weights", shape, expected)
    tall, wide = pool_block(w.seqlen_q, size[0]), pool_block(w.seqlen_k, size[1])
    # Whole blocks of rows, as many as fit into a quarter of the limit.
    step = tall * max(1, limits.weights // 4 // (tall * w.seqlen_k))
    out = []
    for head in range(w.heads):
        for start in range(0, w.seqlen_q, step):
            part = MapPart((head,), range(start, min(start + step, w.seqlen_q)))
            maps = HeadScores(w, inputs, part, limits).maps(settings)
            out.append(_pooled(maps.weights, tall, wide)[0])
            progress((head + part.rows.stop / w.seqlen_q) / w.heads)
    return frozen(np.concatenate(out).reshape(w.heads, -1, out[0].shape[1]))


def pool_block(length: int, most: int) -> int:
    """Return how many rows or keys one block of a pooled map takes; the last may be shorter."""
    return math.ceil(length / most)


def _largest(values: F32, most: int) -> Ints:
    """Return the places of the `most` largest values, largest first, of equal ones the first."""
    if 0 < most < values.size:
        least = -np.partition(-values, most - 1)[most - 1]
        places = np.flatnonzero(values >= least)
        if len(places) >= most:  # fewer if some are NaN
            return places[np.argsort(-values[places], kind="stable")[:most]]
    return np.argsort(-values, kind="stable")[:most]


def _softmax_into(out: F32, scores: F64, sinks: F64 | None = None) -> F64:
    """Fill `out` with the softmax of each row of `scores`; return the entropies in bits.

    If rows have `sinks`, (rows,), the denominator includes them; the entropies are of the keys'
    weights alone.

    Differences from the maximum are computed in float64, so that float32 rounds only small numbers:
    an exponent x is off by at most x 2**-24, and so x exp(x) by less than 1e-7. `scores` is
    overwritten.
    """
    top = scores.max(axis=1, keepdims=True)
    blind = np.isneginf(top)
    scores -= np.where(blind, 0.0, top)
    exponents = np.maximum(scores, _NOTHING, out=scores).astype(np.float32)
    np.exp(exponents, out=out)
    total = out.sum(axis=1, keepdims=True)
    total[blind] = 1.0
    out *= 1 / total
    # log p is the exponent minus the log of the sum; p sums to 1, except if nothing is seen.
    mean = np.einsum("ij,ij->i", out, exponents).astype(np.float64)
    bits: F64 = (np.log(total[:, 0].astype(np.float64)) - mean) / math.log(2)
    if sinks is not None:
        with np.errstate(over="ignore"):  # then the keys weigh nothing
            beside = np.exp(sinks[:, None] - np.where(blind, 0.0, top)) / total
        out *= (1 / (1 + beside)).astype(np.float32)
    return np.maximum(bits, 0.0)


def _pooled(weights: F32, tall: int, wide: int) -> F32:
    # Rows first: they are contiguous in memory, and less is left to read in strides.
    out = weights[:, ::tall].copy()
    for n in range(1, tall):
        more = weights[:, n::tall]
        np.maximum(out[:, : more.shape[1]], more, out=out[:, : more.shape[1]])
    weights, out = out, out[:, :, ::wide].copy()
    for n in range(1, wide):
        more = weights[:, :, n::wide]
        np.maximum(out[:, :, : more.shape[2]], more, out=out[:, :, : more.shape[2]])
    return out
