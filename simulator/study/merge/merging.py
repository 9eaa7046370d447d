"""Partial (m, l, O) of disjoint sets of keys, merged in any order: same O but for rounding.

The ops with which split-KV joins its splits do the merging, all partials at once, two at a time as
in a running update, or in a tree.

References
----------
Dao, Haziza, Massa, Sizov 2023, "Flash-Decoding for long-context inference", step 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from math import log
from typing import TypeAlias

import numpy as np

from simulator.base.dtypes import F64
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, resolve
from simulator.program.algorithms import algorithm_of, tile_program
from simulator.program.faults import honest
from simulator.program.op import Op
from simulator.program.state import State, Values
from simulator.program.tile_program import TileProgram
from simulator.run.row_sums import ulps
from simulator.run.trace import trace_of
from simulator.study.merge.choices import BASE_2, BASE_E, EMPTY, MERGES
from simulator.study.schedule.splits import splitting, with_splits

MOST_PARTS = 8
"""Most partials: with more of them a picture shows none of their numbers."""

Node: TypeAlias = "int | tuple[Node, ...]"
"""A partial by its number, or several that are merged at once."""


@dataclass(frozen=True, eq=False)
class Partial:
    """The result of rows for some keys: O over the sum of their weights, and ln of this sum."""

    lse: Values  # (rows,), m + ln l; -inf where a row sees none of the keys
    o: Values  # (rows, dv)

    def times(self, factor: float) -> Partial:
        """Return the partial with another logarithm for LSE."""
        return replace(self, lse=self.lse * self.lse.dtype.type(factor))


@dataclass(frozen=True, eq=False)
class Parts:
    """The partials of one row, and O from the definition."""

    partials: tuple[Partial, ...]  # of float32, in the order of their keys
    keys: tuple[range, ...]  # the keys of each
    exact: F64  # (1, dv) float64, O of the row from the definition
    ops: tuple[Op, ...]  # the ops that merge, from the visit that joins splits
    own_splits: int  # into how many splits the run itself deals out its keys; 0 if it does not
    dealt_anew: bool  # whether the splits of the partials are not the run's own
    lse: str = BASE_E  # the meaning of the partials' LSE, one of BASES

    def with_lse(self, lse: str) -> Parts:
        """Return the parts with another LSE; `EMPTY` adds a partial without keys."""
        count = len(self.partials) - (self.lse == EMPTY)
        partials, keys = self.partials[:count], self.keys[:count]
        if lse == EMPTY:
            end = keys[-1].stop
            partials, keys = (*partials, empty_like(partials[0])), (*keys, range(end, end))
        return replace(self, partials=partials, keys=keys, lse=lse)

    def result(self, node: Node) -> Partial:
        """Return the result of an order of merging; LSE is in base 2 if the partials' LSE is."""
        if isinstance(node, int):
            return in_base_2(self.partials[node]) if self.in_2 else self.partials[node]
        parts = [self.result(each) for each in node]
        if self.lse != BASE_2:
            return merged(parts, self.ops)
        return in_base_2(merged([in_base_e(each) for each in parts], self.ops))

    @property
    def in_2(self) -> bool:
        """Whether LSE of partials is a logarithm of 2."""
        return self.lse not in (BASE_E, EMPTY)

    def off(self, node: Node) -> float:
        """Return how far O is from float64, as a share of its length."""
        return distance(self.result(node).o, self.exact)

    def error(self, node: Node) -> float:
        """Return how far O is from float64, in units of the last place of float32."""
        return float(ulps(self.result(node).o, self.exact)[0])


def in_base_2(part: Partial) -> Partial:
    """Return a partial whose LSE is m + ln l with the logarithm of 2 of the same sum."""
    return part.times(1 / log(2))


def in_base_e(part: Partial) -> Partial:
    """Return a partial whose LSE is a logarithm of 2 with m + ln l."""
    return part.times(log(2))


def empty_like(part: Partial) -> Partial:
    """Return the partial of the same rows for no keys."""
    return Partial(np.full_like(part.lse, -np.inf), np.zeros_like(part.o))


def distance(o: Values, exact: Values) -> float:
    """Return how far O is from the exact O, as a share of the exact one's length."""
    size = float(np.linalg.norm(exact))
    return float(np.linalg.norm(o.astype(np.float64) - exact)) / size if size else 0.0


def merged(parts: Sequence[Partial], ops: Sequence[Op]) -> Partial:
    """Return the partial of all keys of some partials, by the ops that join splits."""
    state = State.on_chip(
        LSE_partial=np.stack([part.lse for part in parts]),
        O_partial=np.stack([part.o for part in parts]),
    )
    for op in ops:
        op.apply(state)
    return Partial(state.chip["LSE"], state.chip["O"])


@cache
def joining_ops() -> tuple[Op, ...]:
    """Return the ops that join splits; they do the same in every run."""
    smallest = parse_scenario({"attention": {"seqlen_q": 1, "head_dim": 1}})
    program = tile_program(splitting(resolve(smallest)))
    joining = program.joining(0, 0)
    assert joining is not None
    return _on_chip(program, joining)


def _on_chip(program: TileProgram, visit: int) -> tuple[Op, ...]:
    return tuple(op for op in program.ops(visit) if not (op.loads or op.stores))


def why_no_parts(w: Workload) -> str:
    """Return why a run has nothing to merge, as a sentence; empty if it has."""
    if not algorithm_of(w).softmax:
        return "Without a softmax there is no maximum and no sum: states are added, not merged."
    if w.sink_logits:
        return "A sink logit counts once, in the first split: merged apart it would count again."
    return ""


def parts_of(w: Workload, inputs: Inputs, head: int, row: int, most: int = MOST_PARTS) -> Parts:
    """Return the partials of one row: its keys are dealt out to splits, of whole column blocks.

    The splits are the run's own, if it has some, unless they are too few or too many to merge by
    hand.

    Raises InputError: the heads of the run cannot be packed.
    """
    own, query = w.single(head, row)
    own_splits = w.splits if algorithm_of(w).splits else 0
    anew = not 2 <= own_splits <= most
    dealt = splitting(honest(w).ungated)
    if anew:
        dealt = with_splits(dealt, min(dealt.grid.Tc, most))
    posed = dealt.posed(inputs)
    trace = trace_of(dealt, posed, numpy_engine)
    head, row = dealt.packed(own, query)
    joining = trace.program.joining(head, row // dealt.rows)
    assert joining is not None
    now = trace.snapshot(joining, 0)
    left = now.partials
    assert left is not None
    place = row - now.visit.rows.start
    partials = tuple(
        Partial(lse[place : place + 1], o[place : place + 1])
        for lse, o in zip(left.lse, left.o, strict=True)
    )
    exact, _ = reference_rows(dealt, posed, head, range(row, row + 1))
    ops = _on_chip(trace.program, joining)
    keys = tuple(dealt.split_keys(split) for split in range(dealt.splits))
    seen = [n for n, own_keys in enumerate(keys) if len(own_keys)]  # the last may be empty
    found = tuple(partials[n] for n in seen), tuple(keys[n] for n in seen)
    return Parts(*found, exact, ops, own_splits, anew)


def as_list(nodes: Sequence[Node]) -> Node:
    """Return the order of a running update: each partial is merged with all before it."""
    return reduce(lambda done, each: (done, each), nodes)


def as_tree(nodes: Sequence[Node]) -> Node:
    """Return a balanced tree: neighbours in pairs, then neighbouring pairs in pairs."""
    while len(nodes) > 1:
        pairs = [tuple(nodes[n : n + 2]) for n in range(0, len(nodes), 2)]
        nodes = [pair if len(pair) > 1 else pair[0] for pair in pairs]
    return nodes[0]


def at_once(nodes: Sequence[Node]) -> Node:
    """Return all partials merged at once, as split-KV does."""
    return tuple(nodes) if len(nodes) > 1 else nodes[0]


def backwards(nodes: Sequence[Node]) -> Node:
    """Return the list from the last to the first."""
    return as_list(tuple(reversed(nodes)))


ORDERS: dict[str, Callable[[Sequence[Node]], Node]] = dict(
    zip(MERGES, (as_list, backwards, as_tree, at_once), strict=True)
)
"""Orders of merging, by their names."""


def leaves(node: Node) -> tuple[int, ...]:
    """Return the partials of a node, in the order in which they are merged."""
    if isinstance(node, int):
        return (node,)
    return tuple(leaf for each in node for leaf in leaves(each))


def height(node: Node) -> int:
    """Return how many merges follow each other in a node."""
    return 0 if isinstance(node, int) else 1 + max(height(each) for each in node)


def moved(forest: Sequence[Node], one: int, onto: int) -> tuple[Node, ...]:
    """Return the nodes after one was merged with another; the pair stands in the other's place."""
    pair: Node = (forest[onto], forest[one])
    out = [pair if n == onto else each for n, each in enumerate(forest) if n != one]
    return tuple(out)


def apart(forest: Sequence[Node], one: int) -> tuple[Node, ...]:
    """Return the nodes after the last merge of one node was taken back."""
    node = forest[one]
    inner = (node,) if isinstance(node, int) else node
    return (*forest[:one], *inner, *forest[one + 1 :])
