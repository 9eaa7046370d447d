"""The partials of a row, merged by hand or in a named order, with LSE in either base.

A prompt whose beginning is cached leaves two partials: one of the prefix, one of the new tokens.
FlashInfer returns LSE as a logarithm of 2, and code that merges may take powers of e: then the
larger partial weighs too much (sgl-project/sglang #40903, a prefix of 3072 keys and a suffix of 64;
vllm-project/vllm #52796).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.base.errors import InputError
from simulator.problem.workload import Inputs, Workload
from simulator.program.faults import honest
from simulator.run.row_sums import added, blank_sums, over, pair_scores
from simulator.run.trace import Trace
from simulator.study.merge.merging import (
    ORDERS,
    Node,
    Partial,
    Parts,
    apart,
    distance,
    empty_like,
    in_base_2,
    joining_ops,
    merged,
    moved,
    parts_of,
    why_no_parts,
)

PREFIX, SUFFIX = 3072, 64
"""Keys of both in the report."""
_CHUNK = 8192
"""Keys whose scores are computed at a time."""


@dataclass(frozen=True, eq=False)
class TwoStates:
    """A prefix and a suffix of the keys that a row sees, in float64."""

    keys: tuple[int, int]  # number of keys of each
    states: tuple[Partial, Partial]

    @property
    def right(self) -> Partial:
        """The merged state."""
        return merged(self.states, joining_ops())

    @property
    def mixed(self) -> Partial:
        """The merged state if LSE is in base 2 and taken as in base e."""
        return merged([in_base_2(each) for each in self.states], joining_ops())

    @property
    def shares(self) -> tuple[float, float]:
        """The share of the suffix, right and mixed."""
        suffix = self.states[1]
        right = np.exp(suffix.lse - self.right.lse)
        wrong = np.exp(in_base_2(suffix).lse - self.mixed.lse)
        return float(right[0]), float(wrong[0])

    @property
    def off(self) -> float:
        """How far O is off if bases are mixed, as a share of its length."""
        return distance(self.mixed.o, self.right.o)

    @property
    def empty_stays_empty(self) -> bool:
        """Whether two states of no keys merge to one: O = 0 and LSE = -inf, not NaN."""
        nothing = empty_like(self.states[0])
        both = merged([nothing, nothing], joining_ops())
        return bool(np.isneginf(both.lse).all()) and not both.o.any()


def two_states(w: Workload, inputs: Inputs, head: int, row: int) -> TwoStates | None:
    """Return the two states of a row, cut as in the report; None if the row sees fewer than 2 keys.

    The suffix has 64 keys, or the same share of the keys where the row sees fewer.
    """
    one, kv_head = range(row, row + 1), w.kv_head_of[head]
    seen = np.flatnonzero(w.mask.of_head(head).visible(one, range(w.seqlen_k))[0])
    if len(seen) < 2:
        return None
    suffix = min(SUFFIX, max(1, round(len(seen) * SUFFIX / (PREFIX + SUFFIX))))
    q = inputs.q[head, row : row + 1].astype(np.float64)
    states = []
    for keys in (seen[:-suffix], seen[-suffix:]):
        sums = blank_sums(w, head, one, 1)
        for start in range(int(keys[0]), int(keys[-1]) + 1, _CHUNK):
            part = range(start, min(start + _CHUNK, int(keys[-1]) + 1))
            own = keys[np.searchsorted(keys, part.start) : np.searchsorted(keys, part.stop)]
            k = inputs.k[kv_head, part.start : part.stop].astype(np.float64)
            scores = pair_scores(w, q, k, inputs.projection, head, one, part)
            sums = added(sums, scores[:, own - part.start], inputs.v[kv_head, own])
        states.append(Partial(sums.m + np.log(sums.l), over(sums.o, sums.l)))
    return TwoStates((len(seen) - suffix, suffix), (states[0], states[1]))


@dataclass(frozen=True, eq=False)
class RowMerge:
    """The partials of a row and how far they have been merged."""

    row: str  # which row, in words
    parts: Parts | None  # its partials; None: `why` not
    forest: tuple[Node, ...] = ()  # the partials and merged ones, from left to right
    selected: int = 0  # the tree that keys act on
    why: str = ""
    order: str = "apart"  # the name of the order in which they were merged; empty: by hand
    two: TwoStates | None = None  # a prefix and a suffix; None: the row sees fewer than two keys

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
        """Return the state after one tree was merged with another."""
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
        """Return the state after the last merge of the selected tree was taken back."""
        return replace(self, forest=apart(self.forest, self.selected), order="")

    def ordered(self, name: str) -> RowMerge:
        """Return the state merged in a named order; apart for any other name."""
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
    name = w.row_name(head, row)  # with packed heads the name says whose row it is
    words = f"Head {w.head_name(head)}, {name}" if w.group == 1 else name.capitalize()
    found, why = None, why_no_parts(w)
    try:
        found = None if why else parts_of(w, trace.inputs, head, row)
    except InputError as error:
        why = str(error)
    two = None if found is None else two_states(honest(w), trace.inputs, head, row)
    return RowMerge(words, found, why=why, two=two).ordered("apart")
