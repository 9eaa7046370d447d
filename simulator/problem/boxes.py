"""Which tiles a mask of several conditions leaves visible, by arithmetic on boxes.

A box is some rows next to each other and some keys next to each other of one document and one row
of the block mask. Inside a box, only the distance of a pair decides. The keys that some row of a
box sees, and the keys that all its rows see, are a few intervals, so no pair and no tile is looked
at. Only a mask that lists single pairs has no such intervals: its pairs are looked at, as many at
once as fit a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simulator.base.errors import SCENARIO, refuse
from simulator.problem.intervals import I64, Intervals, sums

if TYPE_CHECKING:
    from simulator.problem.masks import Mask

MOST_TEETH = 2**24  # most intervals that a dilated window may have: more would take gigabytes

Parts = Sequence[tuple[I64, I64]]
"""Some rows of each row block, as the keys that their first and last row are aligned with."""


class _OpenRows(NamedTuple):
    """Rows to which the same documents and blocks are open."""

    block: I64  # row block of each
    # first, last: the keys that the first and last of these rows are aligned with
    first: I64
    last: I64


class _Spans(NamedTuple):
    """Keys `start` to ``stop - 1`` of entry `of` in some `_OpenRows`."""

    of: I64
    start: I64
    stop: I64


def visited(mask: Mask, parts: Parts, cols: int) -> Intervals:
    """Return the column blocks in which each row block sees anything."""
    rows = _cut(mask, parts)
    seen = _seen(mask, rows, _open(mask, rows), cols, every=False)
    some = seen.start < seen.stop  # an empty span inside a block must not become that block
    seen = _Spans(*(each[some] for each in seen))
    blocks = len(parts[0][0])
    return _merged(rows.block[seen.of], seen.start // cols, -(-seen.stop // cols), blocks)


def full(mask: Mask, parts: Parts, cols: int) -> Intervals:
    """Return the column blocks that every row of each row block sees in full."""
    rows = _cut(mask, parts)
    seen = _seen(mask, rows, _open(mask, rows), cols, every=True)
    held = _merged(seen.of, seen.start, seen.stop, len(rows.block))
    of = np.repeat(np.arange(len(held)), np.diff(held.offsets))
    start, stop = held.bounds.T
    ends = np.where(stop >= mask.seqlen_k, -(-mask.seqlen_k // cols), stop // cols)
    whole = _Spans(of, -(-start // cols), ends)
    return _in_all(rows.block, whole, len(parts[0][0]))


PAIRS_AT_ONCE = 2**20  # pairs that are looked at together, unless a row block has more


def seen(mask: Mask, rows: int, cols: int, *, every: bool) -> Intervals:
    """Return the column blocks where each row block sees a pair; `every`: all, in all heads."""
    join = np.logical_and if every else np.logical_or
    keys, starts = range(mask.seqlen_k), np.arange(0, mask.seqlen_k, cols)
    step = rows * max(1, PAIRS_AT_ONCE // (rows * mask.seqlen_k))
    out = []
    for first in range(0, mask.seqlen_q, step):
        own = range(first, min(first + step, mask.seqlen_q))
        pairs = mask.visible(own, keys, every=every)
        if rows > 1:
            pairs = join.reduceat(pairs, np.arange(0, len(own), rows), axis=0)
        out.append(join.reduceat(pairs, starts, axis=1) if cols > 1 else pairs)
    return Intervals.where(np.concatenate(out))


_FAR = np.iinfo(np.int64)


def _cut(mask: Mask, parts: Parts) -> _OpenRows:
    """Return the rows of each row block, cut where the conditions on their keys change."""
    begins = [np.zeros(0, dtype=np.int64), mask.document_starts]
    if mask.documents:
        begins.append(np.array([mask.seqlen_k]))
    if mask.window and mask.global_tokens:
        begins.append(np.array([mask.global_tokens]))
    if mask.blocks is not None:
        size = mask.blocks.size
        begins.append(np.arange(0, len(mask.blocks.table) * size, size) + mask.shift)
    cuts = np.unique(np.concatenate(begins))
    out = []
    for first, last in parts:
        low, high = (np.searchsorted(cuts, each, side="right") for each in (first, last))
        number = high - low + 1
        block = np.repeat(np.arange(len(first)), number)
        nth = np.arange(len(block)) - np.repeat(sums(number)[:-1], number)
        at = low[block] + nth
        starts = np.concatenate([[_FAR.min], cuts, [_FAR.max]])  # also beyond the cuts
        begin = np.maximum(starts[at], first[block])
        end = np.minimum(starts[at + 1] - 1, last[block])
        out.append((block, begin, end))
    return _OpenRows(*(np.concatenate(each) for each in zip(*out, strict=True)))


def _open(mask: Mask, rows: _OpenRows) -> _Spans:
    """Return the keys that documents and blocks leave open to rows."""
    of = np.arange(len(rows.block))
    low, high = np.zeros_like(of), np.full_like(of, mask.seqlen_k)
    if mask.documents:
        starts = np.append(mask.document_starts, mask.seqlen_k)
        own = np.searchsorted(starts, rows.first, side="right") - 1
        # A row before the first key, or after the last one, is in no document.
        inside = (own >= 0) & (own < len(mask.documents))
        own = np.where(inside, own, 0)
        low, high = (np.where(inside, starts[own + n], 0) for n in (0, 1))
    if mask.blocks is None:
        return _Spans(of, low, high)
    held, size = mask.blocks.open, mask.blocks.size
    line = (rows.first - mask.shift) // size
    number = np.diff(held.offsets)[line]
    of = np.repeat(of, number)
    at = np.arange(len(of)) + np.repeat(held.offsets[line] - sums(number)[:-1], number)
    start, stop = held.bounds[at].T * size
    return _Spans(of, np.maximum(start, low[of]), np.minimum(stop, high[of]))


def _seen(mask: Mask, rows: _OpenRows, opened: _Spans, cols: int, *, every: bool) -> _Spans:
    """Return the open keys that any of the rows sees; `every`: that all of the rows see."""
    some = opened.start < opened.stop
    of, low, high = (each[some] for each in opened)
    first, last = rows.first[of], rows.last[of]
    end = np.minimum(high, (first if every else last) + 1) if mask.causal else high
    if not mask.window:
        return _Spans(of, low, end)
    free = max(mask.sinks, mask.global_tokens)
    reach = np.minimum(end, free)
    if mask.global_tokens:
        reach = np.where(last < mask.global_tokens, end, reach)
    out = [(of, low, reach)]
    if mask.dilation > 1:
        out.append(_combs(mask, (of, first, last, low, high), cols, every=every))
    else:
        before, far = (last, first) if every else (first, last)
        left, right = mask.reach
        start, stop = before - left, far + right + 1
        out.append((of, np.maximum(start, low), np.minimum(stop, high)))
    return _Spans(*(np.concatenate(each) for each in zip(*out, strict=True)))


def _combs(
    mask: Mask, boxes: tuple[I64, I64, I64, I64, I64], cols: int, *, every: bool
) -> tuple[I64, I64, I64]:
    """Return the keys that a dilated window shows: teeth as wide as the rows, `dilation` apart.

    If no column block fits between two teeth, both are one interval: only blocks are asked for.
    """
    n, (most, least) = mask.dilation, (each // mask.dilation for each in mask.reach)
    least = -least
    alone = boxes[1] == boxes[2]
    if every:  # rows next to each other have no key in common
        boxes = (boxes[0][alone], boxes[1][alone], boxes[2][alone], boxes[3][alone],
                 boxes[4][alone])  # fmt: skip
    of, first, last, low, high = boxes
    if every and cols > 1:
        # No tooth fills a block, unless it continues the free keys or is the last key.
        out = []
        for key in dict.fromkeys((max(mask.sinks, mask.global_tokens), mask.seqlen_k - 1)):
            step, rest = np.divmod(first - key, n)
            here = (rest == 0) & (least <= step) & (step <= most) & (low <= key) & (key < high)
            place = np.full(int(here.sum()), key)
            out.append((of[here], place, place + 1))
        a, b, c = (np.concatenate(each) for each in zip(*out, strict=True))
        return a, b, c
    begin = np.maximum(-((high - 1 - first) // n), least)
    end = np.minimum((last - low) // n, most)
    wide = last - first + 1
    dense = (wide >= n) | (cols > n - wide)
    number = np.maximum(end - begin + 1, 0)
    once = np.where(dense, np.minimum(number, 1), number)
    if int(once.sum()) > MOST_TEETH:
        expected = "larger tiles or a smaller window: its gaps lie between too many tiles"
        raise refuse(SCENARIO, "mask.dilation", n, expected)
    box = np.repeat(np.arange(len(of)), once)
    tooth = begin[box] + np.arange(len(box)) - np.repeat(sums(once)[:-1], once)
    start = first[box] - np.where(dense, end, 0)[box] * n - np.where(dense[box], 0, tooth) * n
    stop = last[box] - tooth * n + 1
    return of[box], np.maximum(start, low[box]), np.minimum(stop, high[box])


def _merged(outer: I64, start: I64, stop: I64, blocks: int) -> Intervals:
    """Return the intervals, given in any order; intervals that touch become one."""
    some = start < stop
    outer, start, stop = outer[some], start[some], stop[some]
    if not len(outer):
        return Intervals(np.zeros(blocks + 1, dtype=np.int64), np.zeros((0, 2), dtype=np.int64))
    reach = int(stop.max()) + 1
    begins = outer * reach + start
    order = np.argsort(begins, kind="stable")
    begins = begins[order]
    ends = np.maximum.accumulate((outer * reach + stop)[order])
    new = begins[1:] > ends[:-1]
    begins, ends = begins[np.append(True, new)], ends[np.append(new, True)]
    offsets = sums(np.bincount(begins // reach, minlength=blocks))
    return Intervals(offsets, np.stack([begins, ends], axis=1) % reach)


def _in_all(block: I64, spans: _Spans, blocks: int) -> Intervals:
    """Return the intersection of the spans of all rows of a block; `block`: each row's block."""
    some = spans.start < spans.stop
    of, start, stop = (each[some] for each in spans)
    wanted = np.bincount(block, minlength=blocks)
    reach = 1 + int(stop.max()) if len(stop) else 1
    places = np.concatenate([block[of] * reach + start, block[of] * reach + stop])
    steps = np.repeat(np.array([1, -1]), len(of))
    order = np.argsort(places, kind="stable")
    places, here = places[order], np.cumsum(steps[order])
    outer = places[:-1] // reach
    held = (here[:-1] == wanted[outer]) & (places[:-1] < places[1:])
    at = places[:-1][held]
    return _merged(at // reach, at % reach, places[1:][held] % reach, blocks)
