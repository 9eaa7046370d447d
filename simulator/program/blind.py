"""The cost of a sequence with queries and no keys: all rows see nothing.

The sequence has no visit. Its row blocks store the numbers of rows that have seen nothing, like row
blocks that a mask hides whole; splits leave these numbers, too, and are joined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from simulator.problem.facts import PACKED
from simulator.problem.masks import Mask
from simulator.problem.scenario import USUAL, with_values
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.launches import Cost, Launch
from simulator.program.traffic import bytes_touching
from simulator.program.visit import Counters


def blind_counters(w: Workload, queries: int) -> tuple[Counters, int]:
    """Return the counters of a sequence of so many queries, no keys, and its compulsory bytes."""
    own = _without_keys(w, queries)
    if algorithm_of(own).stores_scores:  # S and P have no element, and O alone is stored
        stored = own.heads * own.seqlen_q * own.value_dim * own.width
        return Counters({}, {"O": stored}, 0), stored
    launches = algorithm_of(own).launches(own)
    read = _amounts(own, [(each, each.reads) for each in launches])
    write = _amounts(own, [(each, each.writes) for each in launches])
    return Counters(read, write, 0), bytes_touching(own, 0, 0)


def _without_keys(w: Workload, queries: int) -> Workload:
    said = w.scenario
    if w.algorithm in PACKED and said.tiling.splits == "auto":  # one number for the whole batch
        said = with_values(said, {"tiling": {"splits": w.splits}})
    alone = w.as_algorithm(USUAL)
    none = Mask(queries, 0)
    own = replace(alone, scenario=said, seqlen_q=queries, seqlen_k=0, mask=none)
    return own.as_algorithm(w.algorithm)


def _amounts(w: Workload, launches: list[tuple[Launch, Mapping[str, Cost]]]) -> dict[str, int]:
    """Return the bytes of each tensor: starting values of heads, and rows that are joined."""
    out: dict[str, int] = {}
    for launch, costs in launches:
        for name, cost in costs.items():
            started = 0 if launch.per_head else cost.start * launch.times(w.heads)
            size = started + int(launch.amounts(cost, w.heads).sum())
            out[name] = out.get(name, 0) + size
    return out
