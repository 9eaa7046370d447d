"""Which token can hear of which after some layers: the boolean product of the layers' masks.

In a layer a token hears of the tokens that its row sees, and keeps what it has heard (the residual
stream). So it hears of a token after L layers if there is a path of at most L steps. Windows of w
reach L (w - 1) tokens back; one layer that sees all reaches the rest.

References
----------
Beltagy et al. 2020, "Longformer", section 3.1; Jiang et al. 2023, "Mistral 7B", section 2; Gemma
Team 2025, "Gemma 3", section 2 (five local layers to a global one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.problem.intervals import Bools
from simulator.problem.masks import Mask

MOST_TOKENS = 512
"""Tokens of a long run that are studied, the first ones."""


@dataclass(frozen=True, eq=False)
class LayerStack:
    """The layers of a model, as far as masks go."""

    # local, everything: (N, N) bool, what a row sees in a local and in a global layer; read-only
    local: Bools
    everything: Bools
    # of each layer from the first one, at the bottom, whether it is global
    is_global: tuple[bool, ...]

    @property
    def tables(self) -> tuple[Bools, ...]:
        """The keys that rows see in each layer, (N, N) bool each."""
        return tuple(self.everything if each else self.local for each in self.is_global)


def global_layers(layers: int, count: int) -> tuple[bool, ...]:
    """Return which of some layers are global: `count` of them, evenly spread."""
    places = {(2 * n + 1) * layers // (2 * count) for n in range(count)}
    return tuple(n in places for n in range(layers))


def stack(local: Mask, everything: Mask, is_global: Sequence[bool]) -> LayerStack:
    """Return layers with two masks of the same tokens, or of the first of them."""
    tokens = range(min(local.seqlen_k, MOST_TOKENS))
    tables = [each.visible(tokens, tokens) for each in (local, everything)]
    for table in tables:
        table.flags.writeable = False
    return LayerStack(tables[0], tables[1], tuple(is_global))


def cone(tables: Sequence[Bools], token: int) -> Bools:
    """Return which tokens a token can hear of, seen from the top.

    tables: (N, N) bool, what rows see in each layer, the first layer first.
    Returns: (layers + 1, N) bool: at [n] the tokens whose numbers before layer n matter to the
        token; at the end the token alone.
    """
    now = np.zeros(len(tables[0]), dtype=np.bool_)
    now[token] = True
    levels = [now]
    for table in reversed(tables):
        now = now | table[now].any(axis=0)
        levels.append(now)
    return np.stack(levels[::-1])
