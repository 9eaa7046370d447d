"""Pages of a cache: which place in HBM has which tokens of a sequence.

K and V of a sequence are cut into pages of equally many tokens. Pages lie wherever there was room,
and a block table says where: page `p` of the sequence is at the place ``table[p]``, in K and in V
and for all KV heads.

References: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
PagedAttention", section 4.1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, frozen
from simulator.base.errors import SCENARIO, refuse
from simulator.problem.input_files import WHOLE, InputFile, read_kind
from simulator.problem.intervals import I64
from simulator.problem.scenario import Scenario
from simulator.problem.values import MAX_SEQLEN

I32 = NDArray[np.int32]
TABLE = "table"  # the tensor of an input file that says where pages lie; a file need not have it
USUAL_PAGE = 16  # tokens of a page if a scenario does not say: as in vLLM
_DRAWN = 2  # follows the scenario's seed: the table is drawn apart from other numbers


class PageTable:
    """Where the pages of a sequence lie.

    tokens: tokens of the sequence; its last page may be partly empty.
    entries: (pages or more,) int32: the place of each page; entries after the last page's are never
        read. HBM has as many places as there are entries, or more if a page has a larger place.
    owners: (places,) int64: which sequence of a batch has each place; None: the sequence is alone.
    """

    def __init__(self, size: int, tokens: int, entries: I32, owners: I64 | None = None) -> None:
        self.size = size
        self.tokens = tokens
        self.entries = entries
        self.owners = owners
        entries.flags.writeable = False
        self.name = sha256(entries.tobytes()).hexdigest()
        self._same = size, tokens, self.name
        self._page_at = np.full(self.places, -1, dtype=np.int64)
        self._page_at[self.used] = np.arange(self.pages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PageTable) and self._same == other._same

    def __hash__(self) -> int:
        return hash(self._same)

    @property
    def pages(self) -> int:
        """How many pages the sequence has."""
        return pages_of(self.tokens, self.size)

    @property
    def places(self) -> int:
        """How many pages there is room for."""
        return max(len(self.entries), int(self.used.max(initial=-1)) + 1)

    @property
    def used(self) -> I32:
        """The places of the sequence's pages, in their order, (pages,) int32."""
        return self.entries[: self.pages]

    def page_at(self, place: int) -> int | None:
        """Return which page lies at a place; None if it is free."""
        page = int(self._page_at[place])
        return None if page < 0 else page

    @property
    def others(self) -> frozenset[int]:
        """The places that other sequences have."""
        if self.owners is None:
            return frozenset()
        return frozenset(range(self.places)) - frozenset(self.used.tolist())

    def pages_with(self, tokens: range) -> range:
        """Return the pages that have some of these tokens."""
        return range(tokens.start // self.size, pages_of(tokens.stop, self.size))

    def tokens_at(self, places: I64) -> I64:
        """Return the token in each slot of some places, (places * size,); -1: none."""
        page = self._page_at[places]
        token = page[:, None] * self.size + np.arange(self.size)
        found: I64 = np.where((page[:, None] >= 0) & (token < self.tokens), token, -1).ravel()
        return found

    def scattered(self, tensor: F32) -> F32:
        """Return K or V as it lies in HBM, (kv_heads, places * size, width); NaN without a token.

        tensor: (kv_heads, tokens, width) float32, in the order of the tokens.
        """
        token = self.tokens_at(np.arange(self.places))
        out = np.full((len(tensor), len(token), tensor.shape[2]), np.nan, dtype=tensor.dtype)
        out[:, token >= 0] = tensor[:, token[token >= 0]]
        return out


class PagedTensor:
    """K or V in pages, copied when it is read, by place; `tensor`: (kv_heads, tokens, width)."""

    def __init__(self, tensor: NDArray[np.floating], table: PageTable) -> None:
        self._tensor = tensor
        self._table = table

    def rows_at(self, head: int, places: I64) -> NDArray[np.floating]:
        """Return the rows at some places, (places * size, width); NaN where no token lies."""
        token = self._table.tokens_at(places)
        rows: NDArray[np.floating] = self._tensor[head, np.maximum(token, 0)]
        if (token < 0).any():
            rows[token < 0] = np.nan
        return rows


def pages_of(tokens: int, size: int) -> int:
    """Return how many pages so many tokens take."""
    return -(-tokens // size)


def page_size_of(said: int | None, cols: int) -> int:
    """Return the tokens of a page: the largest divisor of `said` that divides `cols`, too."""
    return math.gcd(said or USUAL_PAGE, cols)


def check_pages(pages: PageTable | None, scenario: Scenario, cols: int) -> None:
    """Refuse pages that tiles of `cols` keys would cut, if there are pages."""
    said = scenario.tiling.page_size
    if pages and said and cols % said:
        expected = f"a divisor of Bc = {cols}: a tile is a whole number of pages"
        raise refuse(SCENARIO, "tiling.page_size", said, expected)


def batch_tables(lengths: tuple[int, ...], size: int, seed: int) -> tuple[PageTable, ...]:
    """Return where the pages of each sequence of a batch lie, in one cache that they fill."""
    return tuple(batch_table(lengths, size, seed, n) for n in range(len(lengths)))


def batch_table(lengths: tuple[int, ...], size: int, seed: int, sequence: int) -> PageTable:
    """Return where the pages of one sequence of a batch lie."""
    own, handed_out, owner = _shared_cache(lengths, size, seed)
    mine = own == sequence
    entries = np.concatenate([handed_out[mine], handed_out[~mine]])
    return PageTable(size, lengths[sequence], entries, owner)


@lru_cache(maxsize=4)
def _shared_cache(lengths: tuple[int, ...], size: int, seed: int) -> tuple[I64, I32, I64]:
    """Return the sequence and the place of each page, and the sequence of each place.

    Pages are handed out as if all sequences had grown token by token, at places that are shuffled
    by the seed.
    """
    own = _owners(tuple(pages_of(tokens, size) for tokens in lengths))
    handed_out = _shuffled(seed, len(own))
    owner = np.empty_like(own)
    owner[handed_out] = own
    return frozen(own), frozen(handed_out), frozen(owner)


def _owners(counts: tuple[int, ...]) -> I64:
    """Return the sequence of each page, if all sequences grow together: (all pages,) int64.

    The first pages of all sequences come first, then the second ones, and so on.
    """
    number = np.concatenate([np.arange(count) for count in counts])
    own = np.repeat(np.arange(len(counts)), counts)
    ordered: I64 = own[np.lexsort((own, number))]
    return ordered


def _shuffled(seed: int, pages: int) -> I32:
    return np.random.default_rng([seed, _DRAWN]).permutation(pages).astype(np.int32)


def page_table(scenario: Scenario, file: InputFile | None, size: int, tokens: int) -> PageTable:
    """Return where the pages of a sequence lie: as its file says, or shuffled by the seed."""
    seed, batch = scenario.input.seed, scenario.batch
    if batch.lengths and tokens == batch.lengths[batch.shown]:
        return batch_table(batch.lengths, size, seed, batch.shown)
    entries = read_kind(file.path, TABLE, WHOLE) if file and not file.computed else None
    if file is None or entries is None:
        return PageTable(size, tokens, _shuffled(seed, pages_of(tokens, size)))
    pages, path = pages_of(tokens, size), str(file.path)
    if entries.ndim != 1 or len(entries) < pages:
        expected = (
            f"one axis of at least {pages}: a place for each page of {size} of {tokens} tokens"
        )
        raise refuse(path, f"shape of {TABLE}", entries.shape, expected)
    used = entries[:pages]
    most = MAX_SEQLEN // size
    outside = np.flatnonzero((used < 0) | (used >= most))
    if len(outside):
        expected = f"places from 0 to {most - 1}, of a cache of at most {MAX_SEQLEN} tokens"
        raise refuse(path, f"{TABLE}[{outside[0]}]", int(used[outside[0]]), expected)
    _, first = np.unique(used, return_index=True)
    again = np.setdiff1d(np.arange(pages), first)
    if len(again):
        expected = "a place of its own for each page"
        raise refuse(path, f"{TABLE}[{again[0]}]", int(used[again[0]]), expected)
    return PageTable(size, tokens, entries)
