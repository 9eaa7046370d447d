"""The numbers of a tile by name, and tiles and snapshots with some of them changed."""

from dataclasses import replace
from typing import Any

import numpy as np

from simulator.engines.protocol import Tile
from simulator.run.snapshot import Snapshot

NUMBERS = (
    "s", "seen", "m_prev", "m", "l_prev", "l", "m_tile", "l_tile", "alpha", "beta", "p", "p_used",
    "o_prev", "o",
)  # fmt: skip


def with_number(tile: Tile, name: str, values: np.ndarray) -> Tile:
    """Return a tile that has other values wherever it has those of one name."""
    old = getattr(tile, name)
    states = tuple(
        {key: values if held is old else held for key, held in state.items()}
        for state in tile.states
    )
    unmasked = values if tile.unmasked is old else tile.unmasked
    return replace(tile, states=states, unmasked=unmasked)


def with_state(now: Snapshot, **numbers: Any) -> Snapshot:
    """Return a snapshot whose cursor's state has other numbers."""
    states, at = list(now.tile.states), now.cursor.op + 1
    states[at] = {**states[at], **numbers}
    return replace(now, tile=replace(now.tile, states=tuple(states)))
