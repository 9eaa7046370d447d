"""The partials of a row, merged by hand or in an order that has a name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.base.errors import InputError
from simulator.program.faults import honest
from simulator.run.trace import Trace
from simulator.study.merge.bases import TwoStates, two_states
from simulator.study.merge.merging import ORDERS, Node, Parts, apart, moved, parts_of, why_no_parts


@dataclass(frozen=True, eq=False)
class RowMerge:
    """The partials of a row and how far they have been merged."""

    row: str  # which row, in words
    parts: Parts | None  # its partials; None: `why` not
    forest: tuple[Node, ...] = ()  # what has been merged, from left to right
    selected: int = 0  # the tree that keys act on
    why: str = ""
    order: str = "apart"  # the order that has a name in which they were merged; empty: by hand
    two: TwoStates | None = None  # a prefix and a suffix; None: the row has not two keys

    @property
    def done(self) -> bool:
        """Whether all partials have been merged."""
        return len(self.forest) == 1 and self.parts is not None and len(self.parts.partials) > 1

    @cached_property
    def rounding(self) -> tuple[tuple[str, float, int], ...]:
        """Each order, its error in ulp, and how many numbers of O differ from the first order's."""
        if self.parts is None:
            return ()
        nodes = tuple(range(len(self.parts.partials)))
        orders = {name: order(nodes) for name, order in ORDERS.items()}
        if self.done and self.forest[0] not in orders.values():
            orders["by hand"] = self.forest[0]
        first = self.parts.result(next(iter(orders.values()))).o
        return tuple(
            (name, self.parts.error(node), int(np.sum(self.parts.result(node).o != first)))
            for name, node in orders.items()
        )

    def merge(self, one: int, onto: int) -> RowMerge:
        """Return the state after one was merged with another."""
        if one == onto or not {one, onto} <= set(range(len(self.forest))):
            return self
        forest = moved(self.forest, one, onto)
        return replace(self, forest=forest, selected=onto - (one < onto), order="")

    def select(self, by: int) -> RowMerge:
        """Return the state with the selection so many places on."""
        return replace(self, selected=min(max(self.selected + by, 0), len(self.forest) - 1))

    def shift(self, by: int) -> RowMerge:
        """Return the state with the selected partial in the place of a neighbour."""
        other, forest = self.selected + by, list(self.forest)
        if not 0 <= other < len(forest):
            return self
        forest[self.selected], forest[other] = forest[other], forest[self.selected]
        return replace(self, forest=tuple(forest), selected=other, order="")

    def take_back(self) -> RowMerge:
        """Return the state after the last merge of the selected one was taken back."""
        return replace(self, forest=apart(self.forest, self.selected), order="")

    def ordered(self, name: str) -> RowMerge:
        """Return the state merged in an order that has a name; apart for any other."""
        if self.parts is None:
            return self
        nodes = tuple(range(len(self.parts.partials)))
        forest = (ORDERS[name](nodes),) if name in ORDERS else nodes
        return replace(self, forest=forest, selected=0, order=name)

    def with_lse(self, lse: str) -> RowMerge:
        """Return the state with another LSE of the partials, merged as they are if possible."""
        if self.parts is None or self.parts.lse == lse:
            return self
        state = replace(self, parts=self.parts.with_lse(lse))
        assert state.parts is not None
        same = len(state.parts.partials) == len(self.parts.partials)
        return state if same else state.ordered(self.order)


def row_merge(trace: Trace, head: int, row: int) -> RowMerge:
    """Return the partials of a row, none of them merged."""
    w = trace.workload
    name = w.row_name(head, row)  # of packed heads it says whose row it is
    words = f"Head {w.head_name(head)}, {name}" if w.group == 1 else name.capitalize()
    found, why = None, why_no_parts(w)
    try:
        found = None if why else parts_of(w, trace.inputs, head, row)
    except InputError as error:
        why = str(error)
    two = None if found is None else two_states(honest(w), trace.inputs, head, row)
    return RowMerge(words, found, why=why, two=two).ordered("apart")
