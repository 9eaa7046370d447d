"""Which query row sees which key: everything that is asked about a mask.

`Mask` says which pairs are visible, in which blocks they lie, where they end, why a pair is hidden,
and which arguments tell the kernels the same. `Mask` of kernels/cuda/common.cuh does the same on a
GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.base.errors import SCENARIO, refuse
from simulator.problem import boxes
from simulator.problem.intervals import I64, Bools, Intervals, sums

Align = Literal["bottom-right", "top-left"]
"""The corner of the matrix where the diagonal of a mask ends or begins."""
Window = int | tuple[int, int]
"""One number: how many keys a row sees to either side, its own key included; 0 for no window. Two
numbers: how far a row sees to the left and to the right of its own key; -1 for no bound."""
FAR = 2**40  # how far a row sees to a side without a bound: beyond any key

MASK = "mask"  # the tensor of an input file that says which pairs are visible
_AT_ONCE = 256  # rows and keys of a block in which a visible pair is looked for


class BlockMask:
    """Any pattern of square blocks of pairs.

    table: (row blocks, key blocks) bool: which blocks are visible.
    """

    def __init__(self, size: int, table: Bools) -> None:
        self.size = size
        self.table = table
        table.flags.writeable = False
        self.name = sha256(np.packbits(table).tobytes()).hexdigest()
        self._same = size, table.shape, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockMask) and self._same == other._same

    def __hash__(self) -> int:
        return hash(self._same)

    @cached_property
    def open(self) -> Intervals:
        """The visible blocks of each row of blocks."""
        return Intervals.where(self.table)


class PairMask:
    """A mask of single pairs, the same for all heads or each head's own.

    table: (1 or heads, rows, keys) bool. Heads that all see the same are kept as one.
    """

    def __init__(self, table: Bools) -> None:
        if all(np.array_equal(each, table[0]) for each in table[1:]):
            table = table[:1]
        self.table = table
        table.flags.writeable = False
        self._heads: dict[range, PairMask] = {}
        self._over: dict[tuple[int, bool], Bools] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PairMask) and self._same == other._same

    def __hash__(self) -> int:
        return hash(self._same)

    @cached_property
    def name(self) -> str:
        """A text that only this pattern has."""
        return sha256(np.packbits(self.table).tobytes()).hexdigest()

    @property
    def _same(self) -> tuple[object, ...]:
        return self.table.shape, self.name

    @property
    def of_each_head(self) -> bool:
        """Whether heads see different pairs."""
        return len(self.table) > 1

    def of_heads(self, heads: range) -> PairMask:
        """Return the mask of some heads."""
        if not self.of_each_head:
            return self
        if heads not in self._heads:
            self._heads[heads] = PairMask(self.table[heads.start : heads.stop])
        return self._heads[heads]

    def over(self, rows: int, *, every: bool = False) -> Bools:
        """Return the pairs that any block of heads sees, or with `every` all blocks see.

        rows: rows of a block: the rows of its heads, one after the other. If all heads see the
            same, the rows of one head are returned.
        """
        key = rows, every
        if key not in self._over:
            blocks = self.table.reshape(-1, rows if self.of_each_head else len(self.table[0]),
                                        self.table.shape[2])  # fmt: skip
            join = np.logical_and if every else np.logical_or
            self._over[key] = blocks[0] if len(blocks) == 1 else join.reduce(blocks, axis=0)
        return self._over[key]


@dataclass(frozen=True, slots=True)
class Mask:
    """The visible pairs of a score matrix.

    With ``i' = i + (seqlen_k - seqlen_q)``, or ``i' = i`` if aligned at the top left, row `i` sees
    key `j` if every condition that is set holds. Causal: ``j <= i'``. Window `[l, r]`:
    ``i' - l <= j <= i' + r`` and ``(i' - j) mod dilation = 0``, or ``j < sinks``, or
    ``j < global_tokens``, or ``i' < global_tokens``. Documents: i' and j are in the same one.
    Blocks: the block of i and j is visible. Tensor: it shows the pair. If the tensor differs from
    head to head, a tile is visited where any head sees a pair, and `of_head` is one head's mask.

    References: FlashAttention 2.1 for the alignment; Beltagy et al. 2020 (window, dilation, global
    tokens); Xiao et al. 2023 (sinks); Zaheer et al. 2020 (blocks).
    """

    # seqlen_q, seqlen_k: rows and keys
    seqlen_q: int
    seqlen_k: int
    causal: bool = False  # whether a row sees no later key
    window: Window = 0  # two numbers only if one number cannot say the same
    sinks: int = 0  # first keys that the window never hides
    dilation: int = 1  # a row sees one in so many keys of its window
    global_tokens: int = 0  # first keys that the window never hides, and whose rows see past it
    documents: tuple[int, ...] = ()  # lengths that add up to seqlen_k; empty: one document
    blocks: BlockMask | None = None  # blocks of rows (not aligned) and keys; None for no such mask
    # pairs of rows (not aligned) and keys, as the input file has them; None for no such mask
    tensor: PairMask | None = None
    align: Align = "bottom-right"

    def __post_init__(self) -> None:
        if isinstance(self.window, tuple) and self.window[0] == self.window[1]:
            object.__setattr__(self, "window", self.window[0] + 1)

    @property
    def first_position(self) -> int:
        """The position of the first row, if the last one stands at the last key."""
        return self.seqlen_k - self._rows_of_head

    @property
    def shift(self) -> int:
        """``i' - i``, negative when there are fewer keys than queries."""
        return 0 if self.align == "top-left" else self.first_position

    @property
    def moved(self) -> bool:
        """Whether alignment differs from positions, and the mask has conditions on alignment."""
        return self.shift != self.first_position and (
            self.causal or bool(self.window or self.documents)
        )

    @property
    def reach(self) -> tuple[int, int]:
        """How far a row sees to the left and to the right of its own key; `FAR` for no bound."""
        if isinstance(self.window, int):
            left = right = self.window - 1
        else:
            left, right = self.window
        left, right = (FAR if each < 0 else each for each in (left, right))
        return left, 0 if self.causal else right

    @property
    def hides(self) -> bool:
        """Whether the mask can hide anything at all."""
        return self.causal or bool(self.window) or self.of_these_lengths

    @property
    def local(self) -> bool:
        """Whether the mask needs a kernel for windows, not one for causal masks or no mask."""
        left, right = self.reach
        return left < FAR or 0 < right < FAR

    @property
    def kept(self) -> int:
        """How many keys a cache keeps for rows to come, the first keys included."""
        return min(self.seqlen_k, self.reach[0] + 1 + max(self.sinks, self.global_tokens))

    @property
    def simple(self) -> bool:
        """Whether the mask has no conditions beside causal, a window and sinks."""
        local = self.window and (self.dilation > 1 or self.global_tokens)
        return not (local or self.of_these_lengths)

    @property
    def of_these_lengths(self) -> bool:
        """Whether the mask is undefined for other numbers of rows and keys."""
        return bool(self.documents or self.blocks or self.tensor)

    @property
    def document_starts(self) -> I64:
        """The first key of each document, (documents,) int64."""
        return _starts(self.documents)

    def of_lengths(self, seqlen_q: int, seqlen_k: int) -> Mask:
        """Return the same conditions for other lengths."""
        if (seqlen_q, seqlen_k) != (self.seqlen_q, self.seqlen_k):
            block = self.blocks and self.blocks.size
            expected = f"none: it is of {self.seqlen_k} keys, and undefined for {seqlen_k}"
            for key, value in (("documents", list(self.documents)), ("block", block)):
                if value:
                    raise refuse(SCENARIO, f"mask.{key}", value, expected)
            if self.tensor:
                raise refuse(SCENARIO, f"tensor {MASK}", "", expected)
        return replace(self, seqlen_q=seqlen_q, seqlen_k=seqlen_k)

    def of_head(self, head: int) -> Mask:
        """Return the mask of one head, or of the query heads that are packed into one."""
        if self.tensor is None or not self.tensor.of_each_head:
            return self
        own = self.seqlen_q // self._rows_of_head
        if len(self.tensor.table) == own:
            return self
        return replace(self, tensor=self.tensor.of_heads(range(head * own, (head + 1) * own)))

    @property
    def of_any_heads(self) -> Mask:
        """The mask in which every head sees what any head sees here, for any number of heads."""
        if self.tensor is None or not self.tensor.of_each_head:
            return self
        return replace(self, tensor=PairMask(np.logical_or.reduce(self.tensor.table)[None]))

    @property
    def _rows_of_head(self) -> int:
        """How many rows one head has."""
        return self.seqlen_q

    def of_last_row(self) -> Mask:
        """Return the mask of the last row alone, which stands at the last key."""
        blocks = self.blocks and BlockMask(self.blocks.size, self.blocks.table[-1:].copy())
        tensor = self.tensor and PairMask(self.tensor.table[:, -1:].copy())
        return replace(self, seqlen_q=1, blocks=blocks, tensor=tensor, align="bottom-right")

    def positions(self, rows: range) -> I64:
        """Return the positions of some rows, (rows,): the last row stands at the last key."""
        return self._of_one_head(rows) + self.first_position

    def aligned(self, rows: range) -> I64:
        """Return ``i'`` of some rows, (rows,): the key with which the mask aligns each row."""
        return self._of_one_head(rows) + self.shift

    def _of_one_head(self, rows: range) -> I64:
        """Return the number of each row in its own head."""
        return np.arange(rows.start, rows.stop, rows.step)

    def visible(self, rows: range, keys: range, *, every: bool = False) -> NDArray[np.bool_]:
        """Return which pairs are visible, bool of shape (len(rows), len(keys)).

        If heads see different pairs, a pair counts if any head sees it; `every`: if all heads do.
        """
        i = self.aligned(rows)[:, None]
        j = np.arange(keys.start, keys.stop, keys.step)[None, :]
        seen = np.ones((len(rows), len(keys)), dtype=np.bool_)
        if self.window:
            left, right = self.reach
            seen = i - j <= left
            if not self.causal:
                seen &= j - i <= right
            if self.dilation > 1:
                seen &= (i - j) % self.dilation == 0
            seen |= j < max(self.sinks, self.global_tokens)
            if self.global_tokens:
                seen |= i < self.global_tokens
        if self.causal:
            seen &= j <= i
        if self.documents:
            seen &= self.document_of(i) == self.document_of(j)
        if self.blocks is not None:
            line, place = (i[:, 0] - self.shift) // self.blocks.size, j[0] // self.blocks.size
            seen &= self.blocks.table[line[:, None], place]
        if self.tensor is not None:
            table = self.tensor.over(self.seqlen_q, every=every)
            own = np.arange(rows.start, rows.stop, rows.step) % len(table)
            seen &= table[:, keys.start : keys.stop : keys.step].take(own, axis=0)
        return seen

    def document_of(self, place: I64) -> I64:
        """Return which document each place is in, from 1 on; 0 before and after all keys."""
        found = np.searchsorted(self.document_starts, place, side="right")
        return np.where(place < self.seqlen_k, found, 0)

    @property
    def keys(self) -> Intervals:
        """The visible keys of each row."""
        return self.visited_columns(1, 1)

    @property
    def pairs(self) -> int:
        """How many pairs are visible."""
        return int(self.keys.sums[-1])

    @property
    def pairs_exist(self) -> bool:
        """Whether any pair is visible."""
        size = _AT_ONCE if self.tensor else self.blocks.size if self.blocks else 1
        return bool(self.visited_columns(size, size).sums[-1])

    @property
    def arguments(self) -> dict[str, int]:
        """A kernel's arguments for the mask beside the sizes, by name; 0 for none."""
        left, right = self.reach
        window = left + 1 if self.window else 0
        out = {"causal": int(self.causal), "window": window, "sinks": self.sinks}
        if not self.patterned:
            return out
        size, across = (self.blocks.size, self.blocks.table.shape[1]) if self.blocks else (0, 0)
        apart = 0
        if self.tensor:
            size, across = 1, self.seqlen_k
            apart = self._rows_of_head * self.seqlen_k if self.tensor.of_each_head else 0
        return out | {"ahead": right + 1, "shift": self.shift, "dilation": self.dilation,
                      "global_tokens": self.global_tokens, "block": size,
                      "blocks_across": across, "blocks_of_head": apart}  # fmt: skip

    @property
    def patterned(self) -> bool:
        """Whether kernels need more than causal, a window of one number, and sinks."""
        return not self.simple or self.moved or isinstance(self.window, tuple)

    @property
    def block_table(self) -> Bools | None:
        """The visible blocks for kernels; blocks of size 1 if there is a tensor.

        Bool of shape (row blocks, key blocks), or (heads, rows, keys); None without blocks and
        tensor.
        """
        if self.tensor is None:
            return None if self.blocks is None else self.blocks.table
        if self.blocks is None:
            return self.tensor.table
        size, (rows, keys) = self.blocks.size, self.tensor.table.shape[1:]
        wide = self.blocks.table.repeat(size, axis=0)[:rows].repeat(size, axis=1)[:, :keys]
        return self.tensor.table & wide

    def why_hidden(self, row: int, key: int) -> str:
        """Return in words why a row does not see a key; empty if it does."""
        if self.visible(range(row, row + 1), range(key, key + 1)).all():
            return ""
        at = int(self.aligned(range(row, row + 1))[0])
        corner = " of a mask aligned at the top left" * self.moved
        place = f"row {row}" + (f", which stands at key {at}," if self.shift else "") + corner
        if self.causal and key > at:
            return f"causal: {place} sees no later key"
        own, other = (int(self.document_of(np.array(n))) for n in (at, key))
        if self.documents and own != other:
            outside = "before the first document" if at < 0 else "after the last document"
            where = f"in document {own}" if own else outside
            return f"documents: row {row} is {where}, key {key} in document {other}"
        if self.blocks is not None:
            line, across = (at - self.shift) // self.blocks.size, key // self.blocks.size
            if not self.blocks.table[line, across]:
                return f"block: block {line}, {across} of the block mask is hidden"
        if replace(self, tensor=None).visible(range(row, row + 1), range(key, key + 1)).all():
            return f"file: the mask of the input file hides key {key} from row {row}"
        free = max(self.sinks, self.global_tokens)
        name = "sinks" if self.sinks >= self.global_tokens else "global tokens"
        sinks = f", and key {key} is none of the {free} {name}" if free else ""
        away = f"key {key} is {abs(at - key)} away from {place}"
        left, right = self.reach
        if -right <= at - key <= left:
            return f"window: {away}, which is no multiple of {self.dilation}{sinks}"
        return f"window: {away}, the window is {window_text(self.window)}{sinks}"

    @property
    def diagonals(self) -> tuple[tuple[int, int], ...]:
        """Edges between visible and hidden pairs that move one key to the right with each row.

        Each edge is given by its first row, and by the key that it would lie before in row 0. None
        for a mask that is not `simple`: arithmetic does not find its edges.
        """
        if not self.simple:
            return ()
        left, right = self.reach
        out = []
        if right < FAR:
            out.append((0 if self.causal else self._first_past_sinks, self.shift + right + 1))
        if left < FAR:  # to the left of the sinks' edge nothing is hidden
            offset = self.shift - left
            out.append((self.sinks - offset, offset))
        return tuple(out)

    @property
    def uprights(self) -> tuple[tuple[int, range], ...]:
        """Edges that stay at one key: the key that each edge lies before, and its rows."""
        if not (self.window and self.sinks and self.simple):
            return ()
        before = range(0 if self.causal else min(self._first_past_sinks, self.seqlen_q))
        after = range(max(self.sinks + self.reach[0] + 1 - self.shift, 0), self.seqlen_q)
        return tuple((self.sinks, rows) for rows in (before, after) if rows)

    @property
    def _first_past_sinks(self) -> int:
        """The first row whose window reaches beyond the sinks on its right, or to their end."""
        return max(self.sinks - self.shift - self.reach[1] - 1, 0)

    # --- blocks -----------------------------------------------------------------------------

    def visited_columns(self, rows: int, cols: int | I64) -> Intervals:
        """Return the column blocks in which each row block sees anything.

        cols: ``Bc``, or several as (n, 1) int64: the row blocks then come once for each ``Bc``, one
            after the other.
        """
        if not self.simple:
            return self._visited(rows, cols)
        return self._visited_between(*self._shifted_rows(rows), cols)

    def _parts(self, rows: int) -> tuple[tuple[I64, I64], ...]:
        """Return ``i'`` of the first and last row of each row block."""
        return (self._shifted_rows(rows),)

    def _visited(self, rows: int, cols: int | I64) -> Intervals:
        """Return the visited column blocks, whatever the conditions."""
        each = [cols] if isinstance(cols, int) else cols.ravel().tolist()
        if self.tensor:
            return Intervals.stacked([boxes.seen(self, rows, n, every=False) for n in each])
        return Intervals.stacked([boxes.visited(self, self._parts(rows), n) for n in each])

    def _full(self, rows: int, cols: int) -> Intervals:
        """Return the column blocks that are seen in full, whatever the conditions."""
        if self.tensor:
            return boxes.seen(self, rows, cols, every=True)
        return boxes.full(self, self._parts(rows), cols)

    def _visited_between(self, first: I64, last: I64, cols: int | I64) -> Intervals:
        """Return the visited columns of blocks whose rows are aligned with `first` to `last`."""
        Nk = self.seqlen_k
        left, right = self.reach
        high, low = np.clip(last + right + 1, 0, Nk), np.clip(first - left, 0, Nk)
        start, stop = low // cols, -(-high // cols)  # where nothing is left, both are the same
        if self.align == "top-left":  # rows may stand past the last key, which ends inside a block
            stop = np.where(low < high, stop, start)
        if not (self.window and self.sinks):
            return Intervals.between(start, stop)
        reach = np.minimum(self.sinks, Nk)
        if self.causal:
            reach = np.clip(last + 1, 0, reach)
        sinks = np.broadcast_to(-(-reach // cols), start.shape)
        # If the sinks reach the band, both are one interval.
        joined = sinks >= start
        union = np.maximum(sinks, stop)
        ends = [np.where(joined, union, alone) for alone in (sinks, start, stop)]
        return Intervals.between(np.zeros_like(start), *ends)

    def full_columns(self, rows: int, cols: int) -> Intervals:
        """Return the column blocks that every row of each row block sees in full."""
        if not self.simple:
            return self._full(rows, cols)
        return self._full_between(*self._shifted_rows(rows), cols)

    def _full_between(self, first: I64, last: I64, cols: int) -> Intervals:
        """Return the full columns of blocks whose rows are aligned with `first` to `last`."""
        left, right = self.reach
        stop = self._columns_ending_by(first + right + 1, cols)
        start = sinks = np.zeros_like(stop)
        if self.window:
            low = last - left
            past = -(-np.clip(low, 0, self.seqlen_k) // cols)
            start = np.where(low <= self.sinks, 0, past)
            reach = np.minimum(self.sinks, first + 1) if self.causal else self.sinks
            sinks = self._columns_ending_by(np.broadcast_to(reach, first.shape), cols)
        start = np.maximum(start, sinks)
        return Intervals.between(np.zeros_like(start), sinks, start, stop)

    def visited_rows(self, rows: int | I64, cols: int) -> Intervals:
        """Return the row blocks that see anything of each column block.

        rows: ``Br``, or several as (n, 1) int64: the column blocks then come once for each ``Br``,
            one after the other.
        """
        if not self.simple:
            each = [rows] if isinstance(rows, int) else rows.ravel().tolist()
            Tc = -(-self.seqlen_k // cols)
            return Intervals.stacked([self._visited(n, cols).turned(Tc) for n in each])
        Tr = -(-self.seqlen_q // rows)
        first = np.arange(-(-self.seqlen_k // cols)) * cols
        end = np.minimum(first + cols, self.seqlen_k)
        # The full shape, by broadcasting, whatever the mask does.
        start = np.zeros_like(first * rows)
        stop = np.broadcast_to(Tr, start.shape)
        left, right = self.reach
        if self.window:
            sink = first < self.sinks
            last_row = end + left - 1 - self.shift
            stop = np.where(sink, Tr, np.minimum(Tr, last_row // rows + 1))
        if self.causal or self.window:
            first_row = np.maximum(first - right - self.shift, 0)
            start = np.where(first_row < self.seqlen_q, first_row // rows, Tr)
            if not self.causal:
                start = np.where(sink, 0, start)
        return Intervals.between(start, stop)

    def full_rows(self, rows: int, cols: int) -> Intervals:
        """Return the row blocks in which every row sees all of each column block."""
        if not self.simple:
            return self.full_columns(rows, cols).turned(-(-self.seqlen_k // cols))
        blocks = -(-self.seqlen_q // rows)
        first = np.arange(-(-self.seqlen_k // cols)) * cols
        end = np.minimum(first + cols, self.seqlen_k)
        start = np.zeros_like(first)
        stop = np.full_like(first, blocks)
        left, right = self.reach
        if self.window:
            # The last row that sees the first key that is not a sink, if there is such a row.
            row = np.maximum(first, self.sinks) + left - self.shift
            whole = np.where(row >= self.seqlen_q - 1, blocks, np.maximum(row + 1, 0) // rows)
            stop = np.where(end <= self.sinks, blocks, whole)
        if self.causal or self.window:
            row = np.maximum(end - 1 - right - self.shift, 0)  # the first to see the last key
            start = -(-row // rows)
            if not self.causal:
                start = np.where(end <= self.sinks, 0, start)
        return Intervals.between(start, stop)

    def _shifted_rows(self, rows: int) -> tuple[I64, I64]:
        """Return ``i'`` of the first and last valid row of each row block."""
        first = np.arange(-(-self.seqlen_q // rows)) * rows
        last = np.minimum(first + rows, self.seqlen_q) - 1
        return first + self.shift, last + self.shift

    def _columns_ending_by(self, key: I64, cols: int) -> I64:
        """Return how many column blocks end at or before each `key`."""
        whole = np.clip(key, 0, self.seqlen_k) // cols
        return np.where(key >= self.seqlen_k, -(-self.seqlen_k // cols), whole)


def counted_back(window: Window) -> int:
    """Return how many keys a row sees, counted back from its own; 0 for no bound."""
    return window if isinstance(window, int) else window[0] + 1


def window_text(window: Window) -> str:
    """Return a window as a scenario writes it."""
    return str(window if isinstance(window, int) else list(window))


@lru_cache(maxsize=8)
def _starts(lengths: tuple[int, ...]) -> I64:
    """Return where each of some documents begins."""
    starts = sums(np.array(lengths, dtype=np.int64))[:-1]
    starts.flags.writeable = False
    return starts
