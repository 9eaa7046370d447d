"""Which query row sees which key: everything that is asked about a mask.

`Mask` says which pairs are visible, in which blocks they lie, where they end, why a pair is hidden,
and which arguments tell the kernels the same. `Mask` of kernels/cuda/common.cuh does the same on a
GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.problem.intervals import I64, Intervals


@dataclass(frozen=True, slots=True)
class Mask:
    """The visible pairs of a score matrix, aligned at the bottom right.

    With ``i' = i + (seqlen_k - seqlen_q)``, row `i` sees key `j` if every condition that is set
    holds. Causal: ``j <= i'``. Window `w`: ``i' - j < w`` (without causal also ``j - i' < w``) or
    ``j < sinks``.

    Attributes
    ----------
    seqlen_q, seqlen_k : int
        Rows and keys.
    causal : bool
        Whether a row sees no later key.
    window : int
        How far a row sees; 0 for no window.
    sinks : int
        First keys that the window never hides.

    References
    ----------
    FlashAttention 2.1 for the alignment; Beltagy et al. 2020 (window); Xiao et al. 2023 (sinks).
    """

    seqlen_q: int
    seqlen_k: int
    causal: bool = False
    window: int = 0
    sinks: int = 0

    @property
    def shift(self) -> int:
        """``i' - i``, negative when there are fewer keys than queries."""
        return self.seqlen_k - self.seqlen_q

    @property
    def hides(self) -> bool:
        """Whether the mask can hide anything at all."""
        return self.causal or self.window > 0

    def positions(self, rows: range) -> I64:
        """Return ``i'`` of some rows, (rows,): the key with which each row is aligned."""
        return np.arange(rows.start, rows.stop) + self.shift

    def visible(self, rows: range, keys: range) -> NDArray[np.bool_]:
        """Return which pairs are visible, bool of shape (len(rows), len(keys))."""
        i = self.positions(rows)[:, None]
        j = np.arange(keys.start, keys.stop)[None, :]
        seen = np.ones((len(rows), len(keys)), dtype=np.bool_)
        if self.window:
            seen = i - j < self.window
            if not self.causal:
                seen &= j - i < self.window
            seen |= j < self.sinks
        if self.causal:
            seen &= j <= i
        return seen

    @property
    def keys(self) -> Intervals:
        """The visible keys of each row."""
        return self.visited_columns(1, 1)

    @property
    def pairs(self) -> int:
        """How many pairs are visible."""
        return int(self.keys.sums[-1])

    @property
    def arguments(self) -> dict[str, int]:
        """The mask's arguments of a kernel beside the sizes, by name; 0 for what is not set."""
        return {"causal": int(self.causal), "window": self.window, "sinks": self.sinks}

    def why_hidden(self, row: int, key: int) -> str:
        """Return in words why a row does not see a key; empty if it does."""
        if self.visible(range(row, row + 1), range(key, key + 1)).all():
            return ""
        at = int(self.positions(range(row, row + 1))[0])
        place = f"row {row}" + (f", which stands at key {at}," if self.shift else "")
        if self.causal and key > at:
            return f"causal: {place} sees no later key"
        sinks = f", and key {key} is none of the {self.sinks} sinks" if self.sinks else ""
        away = f"key {key} is {abs(at - key)} away from {place}"
        return f"window: {away}, the window is {self.window}{sinks}"

    @property
    def diagonals(self) -> tuple[tuple[int, int], ...]:
        """Edges between visible and hidden pairs that move one key to the right with each row.

        Each is given by its first row and by the key before which it would be in row 0.
        """
        if self.causal:
            out = [(0, self.shift + 1)]
        else:
            out = [(self._first_past_sinks, self.shift + self.window)] if self.window else []
        if self.window:  # to the left of the sinks' edge nothing is hidden
            offset = self.shift + 1 - self.window
            out.append((self.sinks - offset, offset))
        return tuple(out)

    @property
    def uprights(self) -> tuple[tuple[int, range], ...]:
        """Edges that stay at one key: the key before which each one is, and its rows."""
        if not (self.window and self.sinks):
            return ()
        before = range(0 if self.causal else min(self._first_past_sinks, self.seqlen_q))
        after = range(max(self.sinks + self.window - self.shift, 0), self.seqlen_q)
        return tuple((self.sinks, rows) for rows in (before, after) if rows)

    @property
    def _first_past_sinks(self) -> int:
        """The first row whose window reaches beyond the sinks on its right, or to their end."""
        return max(self.sinks - self.shift - self.window, 0)

    # --- blocks -----------------------------------------------------------------------------

    def visited_columns(self, rows: int, cols: int | I64) -> Intervals:
        """Return the column blocks in which each row block sees anything.

        Parameters
        ----------
        rows : int
            ``Br``.
        cols : int or ndarray
            ``Bc``, or several of them as (n, 1) int64: then the row blocks of the second follow
            those of the first.
        """
        return self._visited_between(*self._shifted_rows(rows), cols)

    def _visited_between(self, first: I64, last: I64, cols: int | I64) -> Intervals:
        """Return the same for blocks whose rows are aligned with keys `first` to `last`."""
        Nk = self.seqlen_k
        high = np.full(len(first), Nk)
        low = np.zeros(len(first), dtype=np.int64)
        if self.causal:
            high = last + 1
        elif self.window:
            high = last + self.window
        if self.window:
            low = first - self.window + 1
        high, low = np.clip(high, 0, Nk), np.clip(low, 0, Nk)
        start, stop = low // cols, -(-high // cols)  # where nothing is left, both are 0
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
        return self._full_between(*self._shifted_rows(rows), cols)

    def _full_between(self, first: I64, last: I64, cols: int) -> Intervals:
        """Return the same for blocks whose rows are aligned with keys `first` to `last`."""
        high = np.full(len(first), self.seqlen_k)
        if self.causal:
            high = first + 1
        elif self.window:
            high = first + self.window
        stop = self._columns_ending_by(high, cols)
        start = sinks = np.zeros_like(stop)
        if self.window:
            low = last - self.window + 1
            past = -(-np.clip(low, 0, self.seqlen_k) // cols)
            start = np.where(low <= self.sinks, 0, past)
            reach = np.minimum(self.sinks, first + 1) if self.causal else self.sinks
            sinks = self._columns_ending_by(np.broadcast_to(reach, first.shape), cols)
        start = np.maximum(start, sinks)
        return Intervals.between(np.zeros_like(start), sinks, start, stop)

    def visited_rows(self, rows: int | I64, cols: int) -> Intervals:
        """Return the row blocks that see anything of each column block.

        Parameters
        ----------
        rows : int or ndarray
            ``Br``, or several of them as (n, 1) int64: then the column blocks of the second
            follow those of the first.
        cols : int
            ``Bc``.
        """
        Tr = -(-self.seqlen_q // rows)
        first = np.arange(-(-self.seqlen_k // cols)) * cols
        end = np.minimum(first + cols, self.seqlen_k)
        # As many as there are blocks of both, whatever the mask does.
        start = np.zeros_like(first * rows)
        stop = np.broadcast_to(Tr, start.shape)
        if self.window:
            sink = first < self.sinks
            last_row = end + self.window - 2 - self.shift
            stop = np.where(sink, Tr, np.minimum(Tr, last_row // rows + 1))
        if self.causal or self.window:
            reach = 0 if self.causal else self.window - 1
            first_row = np.maximum(first - reach - self.shift, 0)
            start = first_row // rows
            if not self.causal:
                start = np.where(sink, 0, start)
        return Intervals.between(start, stop)

    def full_rows(self, rows: int, cols: int) -> Intervals:
        """Return the row blocks of which every row sees each column block in full."""
        blocks = -(-self.seqlen_q // rows)
        first = np.arange(-(-self.seqlen_k // cols)) * cols
        end = np.minimum(first + cols, self.seqlen_k)
        start = np.zeros_like(first)
        stop = np.full_like(first, blocks)
        if self.window:
            # The last row that sees the first key that is not a sink, if there is such a row.
            row = np.maximum(first, self.sinks) + self.window - 1 - self.shift
            whole = np.where(row >= self.seqlen_q - 1, blocks, np.maximum(row + 1, 0) // rows)
            stop = np.where(end <= self.sinks, blocks, whole)
        if self.causal or self.window:
            reach = 0 if self.causal else self.window - 1
            row = np.maximum(end - 1 - reach - self.shift, 0)  # the first that sees the last key
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
