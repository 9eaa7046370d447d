"""Kernel launches: two nested loops over blocks, their visits, and the costs of the visits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.problem.intervals import I64, Intervals, sums


@dataclass(frozen=True, slots=True)
class Cost:
    """The bytes that one launch requests of a tensor, as coefficients of sizes.

    All are in bytes (FLOPs for the entry ``flops``). `s` and `t` are the valid sizes of an outer
    and an inner block: `start` once for each head, ``first · s`` and ``last · s`` for each outer
    block that is visited, ``(inner + pair · s) · t`` for each visit. `once` for each sink logit
    that a visited outer block loads. `page` for each page of the inner block of each visit. `final`
    for each row of a row block, with the last visit of the launch to this row block.
    """

    start: int = 0
    first: int = 0
    inner: int = 0
    pair: int = 0
    last: int = 0
    once: int = 0
    page: int = 0
    final: int = 0

    def amount(self, other: Cost) -> int:
        """Return the sum of coefficients times sizes."""
        return (
            self.start * other.start
            + self.first * other.first
            + self.inner * other.inner
            + self.pair * other.pair
            + self.last * other.last
            + self.once * other.once
            + self.page * other.page
            + self.final * other.final
        )


class Launch:
    """One kernel launch: heads, then outer blocks, then the visited inner blocks.

    visits: visited inner blocks of each outer block; with `splits`, of each run of each outer
        block.
    whole_rows: whether a visit works on its whole row block at once; then there is one inner block.
    splits: into how many runs the inner blocks are divided; at the start of each run no key has
        been seen.
    run: inner blocks of each run; the last runs may have fewer, or none.
    continues: whether an outer block continues with the numbers that the previous launch left of
        its rows.
    combines: whether a visit joins the results that the splits of its row block have left in HBM.
    carries: whether the numbers that a row block leaves on chip go on to the next row block, so
        that a row block depends on all before it.
    of_keys: for a launch that works on keys alone, once for each KV head: the KV head of each query
        head. Its visits are in the first query head of each KV head, and in row block 0, though
        they have no rows.
    in_turn: whether one thread block works on all outer blocks of a head, one after the other.
    row_each: whether each row of an outer block is the work of a thread block of its own.
    forms: whether a visit forms a tile of scores; otherwise it works on rows alone.
    sinks: how many sink logits each outer block loads; none without it.
    page: keys of a page; a whole inner block has a whole number of pages.
    lasts: in a launch over column blocks, the last column block that visits each row block, -1 for
        none; only if costs depend on it.
    makes: numbers of every row that a visit makes on chip for itself alone.
    """

    def __init__(
        self,
        name: str,
        outer: tuple[int, int],
        inner: tuple[int, int],
        visits: Intervals,
        *,
        by_rows: bool,
        whole_rows: bool = False,
        splits: int = 1,
        run: int = 0,
        continues: bool = False,
        combines: bool = False,
        carries: bool = False,
        of_keys: Sequence[int] | None = None,
        in_turn: bool = False,
        row_each: bool = False,
        forms: bool = True,
        sinks: I64 | None = None,
        page: int = 1,
        lasts: I64 | None = None,
        makes: tuple[str, ...] = (),
        reads: Mapping[str, Cost],
        writes: Mapping[str, Cost],
        flops: Cost,
    ) -> None:
        self.name = name
        self.by_rows = by_rows
        self.whole_rows = whole_rows
        self.splits = splits
        self.continues = continues
        self.combines = combines
        self.carries = carries
        self.forms = forms
        self.of_keys = of_keys is not None
        self.in_turn = in_turn or carries
        self.row_each = row_each
        self._kv_head_of = of_keys or ()
        self.makes = makes
        self.reads = reads
        self.writes = writes
        self.flops = flops
        self._outer_len, self._outer_block = outer
        self._inner_len, self._inner_block = inner[0], max(inner[1], 1)
        self.inner_blocks = max(1, -(-self._inner_len // self._inner_block))  # maybe an empty one
        self.visits = visits
        self.run = run or self.inner_blocks
        start = np.arange(len(visits)) // splits * self._outer_block
        size = np.minimum(self._outer_block, self._outer_len - start)
        count = visits.counts
        # Inner sizes of all visits of an outer block: whole blocks, less the rows or keys that the
        # last block lacks.
        reaches_end = visits.ends == self.inner_blocks
        inner_size = count * self._inner_block - np.where(reaches_end, self._lacking, 0)
        self._size_before = sums(np.where(count > 0, size, 0))
        self._inner_before = sums(inner_size)
        self._pair_before = sums(inner_size * size)
        self._page = page
        # The last inner block may lack whole pages; one that lacks a part of a page still has it.
        lacking = np.where(reaches_end, self._lacking // page, 0)
        self._pages_before = sums(count * (self._inner_block // page) - lacking)
        logits = np.zeros_like(count) if sinks is None else sinks
        self._sinks_before = sums(np.where(count > 0, logits, 0))
        # The last visits to inner blocks, numbered as if every tile were visited, and how many of
        # their rows are done before each.
        found = np.flatnonzero(lasts >= 0) if lasts is not None else np.zeros(0, np.int64)
        at = found if lasts is None else lasts[found] * self.inner_blocks + found
        self._lasts, order = np.sort(at), np.argsort(at)
        self._ended_before = sums(self.inner_sizes[found[order]])
        self.per_head = int(visits.sums[-1])

    def where(self, i: int, j: int) -> str:
        """Return which block a visit works on, in words: ``tile (2, 1)``, ``row block 2``."""
        if self.of_keys:
            return f"column block {j}"
        if self.carries:
            return f"chunk {i}"
        return f"row block {i}" if self.whole_rows else f"tile ({i}, {j})"

    def mark(self, i: int, j: int) -> str:
        """Return the block of a visit as a cell of a strip says it: ``2,1``, ``2``."""
        return str(i) if self.whole_rows else f"{i},{j}"

    @property
    def writes_output(self) -> bool:
        """Whether it makes O of whole rows, not only scores or a part of O."""
        return "O" in self.writes

    @property
    def inner_sizes(self) -> I64:
        """Valid rows or keys of each inner block, (inner blocks,)."""
        sizes = np.full(self.inner_blocks, self._inner_block)
        sizes[-1] -= self._lacking
        return sizes

    @property
    def page(self) -> int:
        """Keys of a page."""
        return self._page

    @property
    def _lacking(self) -> int:
        """Rows or keys that the last inner block lacks of a whole block."""
        return self.inner_blocks * self._inner_block - self._inner_len

    def times(self, heads: int) -> int:
        """Return how often the launch goes through its blocks in a run of so many query heads."""
        return len(set(self._kv_head_of)) or heads

    def rounds(self, heads: int) -> Sequence[int]:
        """Return the first visit of each round (`times`), counted in the launch."""
        return [n * self.per_head for n in range(self.times(heads))]

    def total(self, heads: int) -> int:
        """Return how many visits the launch has in a run of so many query heads."""
        return self.per_head * self.times(heads)

    def place(self, index: int) -> tuple[int, int, int, int]:
        """Return (head, outer block, inner block, number of earlier visits of the block)."""
        head, rest = divmod(index, self.per_head)
        if self.of_keys:
            head = self._kv_head_of.index(head)
        return head, *self.visits.locate(rest)

    def owner(self, index: int) -> tuple[int, int]:
        """Return in which round (`times`) visit `index` is, and in which outer block."""
        time, rest = divmod(index, self.per_head)
        return time, self.visits.locate(rest)[0]

    def along(self, of_block: I64, heads: int) -> I64:
        """Return numbers of each outer block in the order in which the launch visits the blocks."""
        return np.tile(of_block, self.times(heads))

    def before(self, head: int) -> int:
        """Return how many visits of the launch come before the visits of a head."""
        return self.per_head * (self._kv_head_of[head] if self.of_keys else head)

    def needed(self, block: int) -> range:
        """Return the outer blocks that a row block depends on, in a launch by rows."""
        return range(1) if self.of_keys else range(0 if self.carries else block, block + 1)

    def count(self, block: int) -> int:
        """Return how many visits an outer block has in each query head."""
        return self.visits.count(block)

    def block_bounds(self, index: int) -> tuple[int, int]:
        """Return the first visit of the outer block that `index` is in, and of the next."""
        _, block, _, nth = self.place(index)
        return index - nth, index - nth + self.visits.count(block)

    def head_bounds(self, index: int) -> tuple[int, int]:
        """Return the first visit of the head that `index` is in, and of the next."""
        first = index - index % self.per_head
        return first, first + self.per_head

    def outer_size(self, block: int) -> int:
        """Return the valid rows or keys of an outer block."""
        start = block // self.splits * self._outer_block
        return min(self._outer_block, self._outer_len - start)

    def visited(self, block: int) -> I64:
        """Return the inner blocks that an outer block visits, in all its runs, in order."""
        runs = range(block * self.splits, (block + 1) * self.splits)
        return np.concatenate([self.visits.visited(run) for run in runs])

    def index(self, head: int, block: int, inner: int) -> int | None:
        """Return the index of a visit in this launch, or None if there is no such visit."""
        block = block * self.splits + (inner // self.run if self.splits > 1 else 0)
        nth = self.visits.place(block, inner) if 0 <= block < len(self.visits) else None
        return None if nth is None else self.before(head) + int(self.visits.sums[block]) + nth

    def cost_before(self, index: int) -> Callable[[Cost], int]:
        """Return the function that gives a cost's amount before visit `index`."""
        head, rest = divmod(index, self.per_head)
        block, at, nth = self.visits.locate(rest)
        done, inner, pair, pages = (int(a[block]) for a in self._sums)
        begun = done
        logits = int(self._sinks_before[block + (nth > 0)]) + head * int(self._sinks_before[-1])
        if nth:  # then the index is inside the block; otherwise it is at a block's start
            size = self.outer_size(block)
            seen = nth * self._inner_block  # none is the last inner block: one follows
            begun, inner, pair = begun + size, inner + seen, pair + size * seen
            pages += seen // self._page
        heads_begun = head + (rest > 0)
        whole = [head * int(a[-1]) for a in self._sums]
        done, inner, pair = done + whole[0], inner + whole[1], pair + whole[2]
        pages += whole[3]
        begun += whole[0]
        final = done
        if not self.by_rows:
            ended = np.searchsorted(self._lasts, block * self.inner_blocks + at)
            final = head * int(self._ended_before[-1]) + int(self._ended_before[ended])

        return Cost(heads_begun, begun, inner, pair, done, logits, pages, final).amount

    def amounts(self, cost: Cost, heads: int) -> I64:
        """Return a cost's amount in each outer block, (`times` of so many heads, outer blocks).

        A cost that counts once for a head is in the first visited block, as in the visits.
        """
        size, inner, pair, pages = (np.diff(before) for before in self._sums)
        out: I64 = (cost.first + cost.last) * size + cost.inner * inner + cost.pair * pair
        out += cost.page * pages
        out += cost.once * np.diff(self._sinks_before)
        if self.by_rows:
            out += cost.final * np.where(self.visits.counts > 0, size, 0)
        elif cost.final:
            starts = np.searchsorted(self._lasts, np.arange(len(out) + 1) * self.inner_blocks)
            out += cost.final * np.diff(self._ended_before[starts])
        if self.per_head:
            out[np.flatnonzero(self.visits.counts)[0]] += cost.start
        return np.broadcast_to(out, (self.times(heads), len(out)))

    @property
    def _sums(self) -> tuple[I64, I64, I64, I64]:
        return self._size_before, self._inner_before, self._pair_before, self._pages_before
