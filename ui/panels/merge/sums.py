"""What the merge panel shows of a backward pass: sums of a row block in orders that have names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.base.dtypes import F32
from simulator.problem.intervals import I64
from simulator.program.algorithms import TENSORS, takes_turns
from simulator.run.trace import Trace
from simulator.study.merge.gradient_sums import (
    MOST_TERMS,
    SUM,
    Orders,
    RowSums,
    random_orders,
    rooms,
    row_sums,
)
from simulator.study.merge.turns import Turns, turns_of
from ui.look.units import bytes_text, number_text, plural

FIRST = "in order"
"""The order with which the others are compared."""
REVERSED = "from the last"
"""The order that is shown first: what differs can be seen."""
DRAWN = "any order"
"""The order that a seed decides."""
_MOST_TILES = 2**10
"""Most tiles of a run whose sums are all tried in random orders."""
_TRIED = 20
"""How many random orders."""
_BITS = 32


@dataclass(frozen=True, eq=False)
class SumsState:
    """The sums of a row block in an order.

    Attributes
    ----------
    where : str
        Head and row block, in words.
    tensor : str
        What is summed.
    rows : range
        The rows of the block.
    sums : RowSums or None
        What column blocks add; None: `why` not.
    order : str
        The name of the order.
    seed : int
        Of an order that is drawn.
    chosen : tuple of int or None
        Row of the block and column of the number whose bits are shown; None: the one that moves
        most.
    room : tuple of int
        Bytes of one sum of each number, and of a share from each tile.
    turns : Turns or None
        What it costs if column blocks wait for their turn; None if the run is too large.
    in_turn : bool
        Whether the run's own kernel lets them wait.
    whole : Orders or None
        What random orders change in all row blocks; None if the run is too large.
    why : str
        Why there are no sums.
    """

    where: str
    tensor: str = ""
    rows: range = range(0)
    sums: RowSums | None = None
    order: str = FIRST
    seed: int = 0
    chosen: tuple[int, int] | None = None
    room: tuple[int, int] = (0, 0)
    turns: Turns | None = None
    in_turn: bool = False
    whole: Orders | None = None
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
        return f"{first:0{_BITS}b}", f"{second:0{_BITS}b}"

    @property
    def title(self) -> tuple[str, ...]:
        """The title, longest first."""
        if self.sums is None:
            return (f"{self.where}: nothing to add up",)
        drawn = f", draw {self.seed + 1}" if self.order == DRAWN else ""
        count = len(self.sums.columns)
        blocks = "one column block adds" if count == 1 else f"{count} column blocks add"
        return (
            f"{self.where}: {blocks} to {self.tensor}, {self.order}{drawn}",
            f"{self.where}: {self.tensor}, {self.order}{drawn}",
            f"{self.where}, {self.order}{drawn}",
        )

    @property
    def number(self) -> str:
        """Which number has its bits shown."""
        row, column = self.at
        return f"{self.tensor}[{self.rows[row]}, {column}]"

    @property
    def words(self) -> tuple[str, ...]:
        """What is said below."""
        return tuple(full for full, _ in self._said)

    @property
    def brief(self) -> tuple[str, ...]:
        """The same in fewer words, where there is little room."""
        return tuple(short for _, short in self._said)

    @property
    def _said(self) -> tuple[tuple[str, str], ...]:
        """Each sentence in full, and in fewer words."""
        if self.sums is None:
            return ((self.why, self.why),)
        here = self.apart
        moved, size = int(np.count_nonzero(here)), plural(here.size, "number")
        if len(self.sums.columns) == 1:
            found = brief = "A single term has no order: the same bits every time."
        elif self.order == FIRST:
            found = f"The order of column blocks: the same {size} of these rows every time."
            brief = f"The order of column blocks: the same {size} every time."
        elif moved:
            one, other = (x.astype(np.float64) for x in self.both)
            off = number_text(float(np.abs(one - other).max()), 2)
            steps = plural(int(here.max()), "float32 number")
            found = (
                f"{moved} of {size} of these rows have other bits than in order; the largest "
                f"difference is {off}, at most {steps} apart."
            )
            brief = f"{moved} of {size} have other bits than in order, at most {steps} apart."
        else:
            found = f"All {size} of these rows have the same bits as in order."
            brief = f"All {size} have the same bits as in order."
        return ((found, brief), *self._costs)

    @property
    def _costs(self) -> tuple[tuple[str, str], ...]:
        one, shares = (bytes_text(size) for size in self.room)
        said = []
        if self.whole is not None:
            found = (
                f"Of all {plural(self.whole.numbers, 'number')} of {self.tensor}, "
                f"{self.whole.moved} move in {_TRIED} random orders."
            )
            said.append((found, found))
        if self.turns is not None:
            how = f"In order{', as in this run,' if self.in_turn else ' (deterministic)'}"
            longer = f"this launch takes {100 * self.turns.longer:.0f}\u00a0% longer (a model)"
            counters = f"counters take {bytes_text(self.turns.counter_bytes)}"
            said.append(
                (
                    f"{how} each column block waits for its turn: {longer}, and {counters}.",
                    f"{how} {longer}, and {counters}.",
                )
            )
        found = f"Or each tile stores a share of its own: {shares} in the place of {one}."
        return (*said, (found, found))

    def ordered(self, order: str) -> SumsState:
        """Return the state in another order; one that is drawn is drawn anew if asked again."""
        again = order == DRAWN == self.order
        return replace(self, order=order, seed=self.seed + again)


def sums_state(trace: Trace, head: int, i: int) -> SumsState:
    """Return the sums of a row block, in order."""
    w, program = trace.workload, trace.program
    where = f"Head {w.head_name(head)}, row block {i}"
    columns = len(program.launches[program.forming].visits)
    if columns > MOST_TERMS:
        why = f"{columns} column blocks add to a row block: shown are at most {MOST_TERMS}."
        return SumsState(where, why=why)
    sums = row_sums(trace, head, i)
    if not sums.columns:
        return SumsState(where, why="These rows see no key: nothing is added to them.")
    small = program.sizes[program.forming] <= _MOST_TILES
    return SumsState(
        where,
        tensor=str(TENSORS[SUM].at),
        rows=w.grid.row_range(i),
        sums=sums,
        room=rooms(trace),
        turns=turns_of(program),
        in_turn=takes_turns(w),
        whole=random_orders(trace, _TRIED) if small else None,
    )
