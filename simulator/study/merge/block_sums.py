"""The sums of a row block's gradient in an order that has a name, and what each order costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.base.dtypes import F32
from simulator.problem.intervals import I64
from simulator.program.algorithms import TENSORS, takes_turns
from simulator.run.trace import Trace
from simulator.study.merge.choices import DRAWN, FIRST
from simulator.study.merge.gradient_sums import (
    MOST_TERMS,
    SUM,
    BlockTerms,
    Orders,
    random_orders,
    rooms,
    row_sums,
)
from simulator.study.merge.turns import Turns, turns_of

TRIED = 20
"""How many random orders are tried."""
_MOST_TILES = 2**10
"""Most tiles of a run whose sums are all tried in random orders."""


@dataclass(frozen=True, eq=False)
class BlockSums:
    """The sums of a row block in an order."""

    where: str  # head and row block, in words
    tensor: str = ""  # what is summed
    rows: range = range(0)
    sums: BlockTerms | None = None  # what column blocks add; None: `why` not
    order: str = FIRST
    seed: int = 0  # of an order that is drawn
    chosen: tuple[int, int] | None = None  # whose bits are shown; None: of what moves most
    room: tuple[int, int] = (0, 0)  # bytes of one sum of each number, and of a share a tile
    turns: Turns | None = None  # what waiting for turns costs; None: the run is too large
    in_turn: bool = False  # whether the run's own kernel lets column blocks wait
    whole: Orders | None = None  # what random orders change in all rows; None: too large
    why: str = ""

    @cached_property
    def apart(self) -> I64:
        """How many float32 numbers each sum is from that in order, (rows, columns)."""
        assert self.sums is not None
        return self.sums.apart(self.order, self.seed)

    @cached_property
    def both(self) -> tuple[F32, F32]:
        """The sums in order, and in the order that is shown."""
        assert self.sums is not None
        return self.sums.total(FIRST), self.sums.total(self.order, self.seed)

    @property
    def at(self) -> tuple[int, int]:
        """Row of the block and column of the number whose bits are shown."""
        if self.chosen is not None:
            return self.chosen
        row, column = np.unravel_index(int(np.argmax(self.apart)), self.apart.shape)
        return int(row), int(column)

    @property
    def bits(self) -> tuple[str, str]:
        """The bits of that number, in order and in the order that is shown: sign first."""
        first, second = (int(x[self.at].view(np.uint32)) for x in self.both)
        return f"{first:032b}", f"{second:032b}"

    @property
    def differing(self) -> tuple[int, ...]:
        """The places of the bits that differ."""
        return tuple(n for n, (a, b) in enumerate(zip(*self.bits, strict=True)) if a != b)

    def ordered(self, order: str) -> BlockSums:
        """Return the state in another order; one that is drawn is drawn anew if asked again."""
        again = order == DRAWN == self.order
        return replace(self, order=order, seed=self.seed + again)


def block_sums(trace: Trace, head: int, i: int) -> BlockSums:
    """Return the sums of a row block, in order."""
    w, program = trace.workload, trace.program
    where = f"Head {w.head_name(head)}, row block {i}"
    columns = len(program.launches[program.forming].visits)
    if columns > MOST_TERMS:
        why = f"{columns} column blocks add to a row block: shown are at most {MOST_TERMS}."
        return BlockSums(where, why=why)
    sums = row_sums(trace, head, i)
    if not sums.columns:
        return BlockSums(where, why="These rows see no key: nothing is added to them.")
    small = program.sizes[program.forming] <= _MOST_TILES
    return BlockSums(
        where, str(TENSORS[SUM].at), w.grid.row_range(i), sums, room=rooms(trace),
        turns=turns_of(program), in_turn=takes_turns(w),
        whole=random_orders(trace, TRIED) if small else None,
    )  # fmt: skip
