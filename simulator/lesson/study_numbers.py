"""Numbers of rescales and variants that captions may ask for."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.errors import refuse
from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.run.rescales import WARP, rescaled
from simulator.study.captions import Numbers, chosen, known, named, program_of
from simulator.study.variants import VariantCost, variant_table

# --- rescales ----------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _rescales(scenario: Scenario, threshold: float) -> tuple[int, int, int]:
    """Return the rows and the warps that rescale in all tiles, and how often a row could."""
    said = with_values(scenario, {"attention": {"rescale_threshold": threshold}})
    w = resolve(with_values(said, {"faults": dict.fromkeys(said.faults.on)}))
    engine, rows, warps, could = numpy_engine(w, w.posed(read_inputs(w))), 0, 0, 0
    for head in range(w.heads):
        for i, block in enumerate(engine.row_blocks(head)):
            moved = rescaled(w, head, i, block)
            rows += len(moved[0])
            warps += len({(row // WARP, j) for row, j in zip(*moved, strict=True)})
            could += len(block.o) * max(w.grid.visited_columns.count(i) - 1, 0)
    return rows, warps, could


@known
def rescales(n: Numbers, threshold: float) -> int:
    """How often m of a row moves in the run with a threshold, in log2; 0: whenever it grows."""
    return _rescales(n.workload.scenario, threshold)[0]


@known
def warp_rescales(n: Numbers, threshold: float) -> int:
    """How often one of the 32 rows of a warp has a maximum that moves."""
    return _rescales(n.workload.scenario, threshold)[1]


@known
def row_tiles(n: Numbers) -> int:
    """Pairs of a row and a tile after its first: the most rescales that can be."""
    return _rescales(n.workload.scenario, 0.0)[2]


@known
def largest_weight(n: Numbers) -> float:
    """Largest P of the current tile."""
    tile, visit = n.snapshot.tile, n.snapshot.visit
    if tile.recorded("P") is None and tile.last("P") is None:
        raise refuse("", "visit", visit.index, "a visit that makes weights P")
    return float(tile.p.max())


@known
def sink(n: Numbers, head: int = 0) -> float:
    """Sink logit of a head."""
    logits = n.workload.sink_logits
    if not 0 <= head < len(logits):
        raise refuse("", "head", head, f"a head from 0 to {len(logits) - 1} of a run with sinks")
    return logits[head]


# --- variants -----------------------------------------------------------------------------------


@known
def variant_cost(n: Numbers, variant: str, cost: str) -> float:
    """`seconds`, `held`, `cached` or `parameters` of a variant of Sweep, at the scenario's N."""
    return _variant(n.scenario, variant, cost).here


@known
def variant_power(n: Numbers, variant: str, cost: str) -> float:
    """The fitted power of N with which a variant's cost grows."""
    power = _variant(n.scenario, variant, cost).power
    if power is None:
        raise refuse("", "variant", variant, "a mask that holds at other lengths, too")
    return power.exponent


_COSTS = ("seconds", "held", "cached", "parameters")


@lru_cache(maxsize=32)
def _variant(scenario: Scenario, variant: str, cost: str) -> VariantCost:
    rows = {row.name: row for row in variant_table(program_of(scenario).workload).rows}
    found = named("variant", variant, rows, "; ")
    out: VariantCost = getattr(found, chosen("cost", cost, _COSTS))
    return out
