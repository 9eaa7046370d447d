"""A launch whose outer blocks are shared by the query heads of a KV head."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from simulator.problem.intervals import I64, Intervals
from simulator.program.launches import Cost, Launch


class GroupLaunch(Launch):
    """One kernel launch: KV heads, then column blocks, then query heads, then row blocks.

    The numbers of a column block's keys are loaded once, stay on chip while the query heads that
    share them take their turns, and are stored once. The costs `start`, `first` and `last`
    therefore count for each KV head, and `inner` and `pair` for each query head.

    outer, inner: length and block size of both loops: keys, and the rows of one query head.
    """

    def __init__(
        self,
        name: str,
        outer: tuple[int, int],
        inner: tuple[int, int],
        visits: Intervals,
        *,
        kv_head_of: Sequence[int],
        reads: Mapping[str, Cost],
        writes: Mapping[str, Cost],
        flops: Cost,
    ) -> None:
        super().__init__(
            name, outer, inner, visits, by_rows=False, reads=reads, writes=writes, flops=flops
        )
        self._kv_of = tuple(kv_head_of)
        self._members = tuple(
            tuple(head for head, own in enumerate(kv_head_of) if own == kv)
            for kv in range(max(kv_head_of) + 1)
        )
        self._starts = list(accumulate((self.per_head * len(m) for m in self._members), initial=0))

    def times(self, heads: int) -> int:
        """Return how often the launch goes through its blocks: once for each KV head."""
        return len(self._members)

    def rounds(self, heads: int) -> Sequence[int]:
        """Return the first visit of each KV head, counted in the launch."""
        return self._starts[:-1]

    def total(self, heads: int) -> int:
        """Return how many visits the launch has."""
        return self._starts[-1]

    def owner(self, index: int) -> tuple[int, int]:
        """Return the round of visit `index`, which is its KV head, and its outer block."""
        head, block, _, _ = self.place(index)
        return self._kv_of[head], block

    def along(self, of_block: I64, heads: int) -> I64:
        """Return numbers of each outer block, summed over query heads, in the order of blocks."""
        return np.concatenate([of_block * len(own) for own in self._members])

    def amounts(self, cost: Cost, heads: int) -> I64:
        """Return a cost's amount in each outer block, (KV heads, outer blocks)."""
        visited = Cost(inner=cost.inner, pair=cost.pair, page=cost.page)
        once = replace(cost, inner=0, pair=0, page=0)
        of_block, of_heads = (super(GroupLaunch, self).amounts(c, heads) for c in (once, visited))
        groups = np.array([len(own) for own in self._members])[:, None]
        return np.asarray(of_block + groups * of_heads)

    def members(self, kv_head: int) -> tuple[int, ...]:
        """Return the query heads of a KV head, in their order."""
        return self._members[kv_head]

    def place(self, index: int) -> tuple[int, int, int, int]:
        own, rest = self._own(index)
        block = self.visits.locate(rest // len(own))[0]
        nth = rest - len(own) * int(self.visits.sums[block])
        member, within = divmod(nth, self.visits.count(block))
        return own[member], block, self.visits.nth(block, within), nth

    def before(self, head: int) -> int:
        """Return how many visits come before the visits of a head's KV head."""
        return self._starts[self._kv_of[head]]

    def block_bounds(self, index: int) -> tuple[int, int]:
        head, block, _, nth = self.place(index)
        size = len(self._members[self._kv_of[head]]) * self.visits.count(block)
        return index - nth, index - nth + size

    def head_bounds(self, index: int) -> tuple[int, int]:
        """Return the first visit of the KV head that `index` is in, and of the next."""
        number = bisect_right(self._starts, index) - 1
        return self._starts[number], self._starts[number + 1]

    def index(self, head: int, block: int, inner: int) -> int | None:
        nth = self.visits.place(block, inner) if 0 <= block < len(self.visits) else None
        if nth is None:
            return None
        own = self._members[self._kv_of[head]]
        before = len(own) * int(self.visits.sums[block])
        return self.before(head) + before + own.index(head) * self.visits.count(block) + nth

    def cost_before(self, index: int) -> Callable[[Cost], int]:
        sizes, inner, pairs, _ = self._sums
        number = bisect_right(self._starts, index) - 1  # of all KV heads at the end
        rest, heads = index - self._starts[number], self._starts[number] // self.per_head
        done, inside, paired = (
            number * int(sizes[-1]),
            heads * int(inner[-1]),
            heads * int(pairs[-1]),
        )
        begun = done
        if rest:
            head, block, _, nth = self.place(index)
            group, size = len(self._members[self._kv_of[head]]), self.outer_size(block)
            member, within = divmod(nth, self.visits.count(block))
            seen = within * self._inner_block  # none is the last inner block: one follows
            seen += member * int(inner[block + 1] - inner[block])
            done, inside = done + int(sizes[block]), inside + group * int(inner[block]) + seen
            paired += group * int(pairs[block]) + seen * size
            begun = done + (size if nth else 0)
        return Cost(number + (rest > 0), begun, inside, paired, done).amount

    def _own(self, index: int) -> tuple[tuple[int, ...], int]:
        """Return the query heads of a visit's KV head, and the visit's place in that KV head."""
        number = bisect_right(self._starts, index) - 1
        return self._members[number], index - self._starts[number]
