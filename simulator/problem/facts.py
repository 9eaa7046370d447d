"""The facts of every algorithm that a workload depends on, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simulator.problem.recurrence import DECAY, STRENGTH, Rule
from simulator.problem.scenario import Algorithm

Packing = Literal["apart", "pages", "latent"]
"""How keys and values of packed heads lie in HBM: apart, apart and in pages, or as one latent."""


@dataclass(frozen=True, slots=True)
class AlgorithmFacts:
    """Facts of an algorithm."""

    packs: Packing | None = None  # set if query heads of a KV head are the rows of one block
    skips_rescales: bool = False  # whether rescales can be skipped: O is divided at the end alone
    weights: Literal["stored", "again"] | None = None  # where a backward pass gets P from
    rule: Rule | None = None  # how the state changes; None with a softmax


FACTS: dict[Algorithm, AlgorithmFacts] = {
    "naive": AlgorithmFacts(),
    "flash1": AlgorithmFacts(),
    "flash2": AlgorithmFacts(skips_rescales=True),
    "split-kv": AlgorithmFacts(packs="apart", skips_rescales=True),
    "paged": AlgorithmFacts(packs="pages", skips_rescales=True),
    "mla": AlgorithmFacts(packs="latent", skips_rescales=True),
    "linear": AlgorithmFacts(rule=Rule()),
    "linear-recurrent": AlgorithmFacts(rule=Rule(tokens=True)),
    "gla": AlgorithmFacts(rule=Rule(tokens=True, sums=False, own_map="identity", gate=DECAY)),
    "deltanet": AlgorithmFacts(
        rule=Rule(tokens=True, sums=False, own_map="unit", gate=STRENGTH, corrects=True)
    ),
    "naive-backward": AlgorithmFacts(weights="stored"),
    "flash2-backward": AlgorithmFacts(weights="again"),
}

PACKED = {name: facts.packs for name, facts in FACTS.items() if facts.packs}
"""The algorithms that pack heads, and how keys and values then lie in HBM."""
SKIPPING = frozenset(name for name, facts in FACTS.items() if facts.skips_rescales)
"""The algorithms that can skip a rescale."""
BACKWARD = {name: facts.weights for name, facts in FACTS.items() if facts.weights}
"""The algorithms that compute gradients of Q, K and V from dO, and where they get P from."""
RULES = {name: facts.rule for name, facts in FACTS.items() if facts.rule}
"""The algorithms without a softmax, and how their state changes."""
