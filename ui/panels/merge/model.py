"""What the merge panel shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.base.errors import InputError
from simulator.run.trace import Trace
from simulator.study.merge.merging import (
    ORDERS,
    Node,
    Parts,
    apart,
    leaves,
    moved,
    parts_of,
    why_no_parts,
)
from ui.look.units import plural, ulp_text


@dataclass(frozen=True, eq=False)
class MergeState:
    """The partials of a row and how far they have been merged.

    Attributes
    ----------
    row : str
        Which row, in words.
    parts : Parts or None
        Its partials; None: `why` not.
    forest : tuple of Node
        What has been merged by hand, from left to right.
    selected : int
        The one that keys act on.
    dragged : int or None
        The one that the mouse holds.
    why : str
        Why there is nothing to merge.
    """

    row: str
    parts: Parts | None
    forest: tuple[Node, ...] = ()
    selected: int = 0
    dragged: int | None = None
    why: str = ""

    @property
    def title(self) -> tuple[str, ...]:
        """The title, longest first."""
        if self.parts is None:
            return (f"{self.row}: nothing to merge",)
        count = plural(len(self.parts.partials), "partial")
        return (
            f"{self.row}: {count} of (m, ℓ, O), merged in any order to the same O up to rounding",
            f"{self.row}: {count}, merged in any order",
            f"{self.row}: {count}",
        )

    @property
    def done(self) -> bool:
        """Whether all partials have been merged by hand."""
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

    @property
    def words(self) -> tuple[str, ...]:
        """What is said below: where the partials come from, and the rounding of each order."""
        if self.parts is None:
            return (self.why,)
        size = self.parts.exact.shape[1]
        said = []
        for name, error, differ in self.rounding:
            other = f"; {differ} of {plural(size, 'number')} of O differ from the list's"
            said.append(f"{name}: {ulp_text(error)} from float64{other if differ else ''}")
        hint = "Drag one onto another to merge them; arrows choose, Enter merges with the next."
        return (_dealt(self.parts), *said, *(() if self.done else (hint,)))

    def name(self, node: Node) -> tuple[str, ...]:
        """Return the keys of a node, or how many partials it has; longest first."""
        assert self.parts is not None
        own = leaves(node)
        if len(own) > 1:
            return f"{len(own)} merged", f"{len(own)}"
        keys = self.parts.keys[own[0]]
        return (
            f"keys {keys.start}–{keys.stop - 1}",
            f"{keys.start}–{keys.stop - 1}",
            f"{keys.start}",
        )

    # --- what a user does -----------------------------------------------------------------

    def merge(self, one: int, onto: int) -> MergeState:
        """Return the state after one was merged with another."""
        if one == onto or not {one, onto} <= set(range(len(self.forest))):
            return replace(self, dragged=None)
        forest = moved(self.forest, one, onto)
        return replace(self, forest=forest, selected=onto - (one < onto), dragged=None)

    def select(self, by: int) -> MergeState:
        """Return the state with the selection so many places on."""
        return replace(self, selected=min(max(self.selected + by, 0), len(self.forest) - 1))

    def shift(self, by: int) -> MergeState:
        """Return the state with the selected one in the place of a neighbour."""
        other = self.selected + by
        if not 0 <= other < len(self.forest):
            return self
        forest = list(self.forest)
        forest[self.selected], forest[other] = forest[other], forest[self.selected]
        return replace(self, forest=tuple(forest), selected=other)

    def take_back(self) -> MergeState:
        """Return the state after the last merge of the selected one was taken back."""
        return replace(self, forest=apart(self.forest, self.selected))

    def ordered(self, name: str) -> MergeState:
        """Return the state merged in an order that has a name; apart for any other."""
        if self.parts is None:
            return self
        nodes = tuple(range(len(self.parts.partials)))
        forest = (ORDERS[name](nodes),) if name in ORDERS else nodes
        return replace(self, forest=forest, selected=0, dragged=None)


def _dealt(parts: Parts) -> str:
    """Return in words where partials come from: they are not always the splits of the board."""
    if not parts.dealt_anew:
        return "Each partial is what a split of the run leaves."
    each = f"{plural(len(parts.keys[0]), 'key')} to a partial."
    if not parts.own_splits:
        return f"For this panel keys are dealt out, {each}"
    own = plural(parts.own_splits, "split")
    return f"The run has {own}: for this panel keys are dealt out anew, {each}"


def merge_state(trace: Trace, head: int, row: int) -> MergeState:
    """Return the partials of a row, none of them merged."""
    w = trace.workload
    name = w.row_name(head, row)  # of packed heads it says whose row it is
    words = f"Head {w.head_name(head)}, {name}" if w.group == 1 else name.capitalize()
    why = why_no_parts(w)
    if not why:
        try:
            found = parts_of(w, trace.inputs, head, row)
        except InputError as error:
            why = str(error)
        else:
            return MergeState(words, found, tuple(range(len(found.partials))))
    return MergeState(words, None, why=why)
