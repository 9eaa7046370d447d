"""The names that an op works on: tensors that it moves, or numbers on chip."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from typing import Any

import numpy as np

from simulator.program.op import Op
from simulator.program.ops import Normalise
from simulator.program.state import State, Values
from simulator.run.snapshot import Snapshot

_STANDS_FOR = {"m_prev": "m", "m_tile": "m", "l_prev": "l", "l_tile": "l"}
"""Names of a maximum or sum before the tile or of the tile alone, and m or l for each."""
_KNOWN: dict[Hashable, frozenset[str]] = {}
"""Names by the kind of op and its switches: the names do not depend on numbers."""


def touched(now: Snapshot) -> frozenset[str]:
    """Return the names of the tensors that a state's op moves, or the numbers it uses on chip.

    Features count as the rows that they are made of. An LSE that is not stored does not count.
    """
    op = now.op
    if op.moves:
        return frozenset(move.tensor for move in op.moves)
    if op.before_tiles:
        return frozenset(now.program.algorithm.inputs[op.turns or 0].name)
    key = now.program.algorithm.name, type(op), _switches(op)
    if key not in _KNOWN:
        names = {_STANDS_FOR.get(name, name.removeprefix("phi_")) for name in _used(now)}
        if isinstance(op, Normalise) and op.tensor == "P":
            names -= {"m", "LSE"}
        _KNOWN[key] = frozenset(names)
    return _KNOWN[key]


def _used(now: Snapshot) -> set[str]:
    """Return the names that the op reads and makes, found by doing the op."""
    visit, state = now.visit, State.on_chip()
    rows, keys = (slice(each.start, each.stop) for each in (visit.rows, visit.cols))
    chip = _Watched({"Q": now.q[rows], "K": now.k[keys], "V": now.v[keys]})
    chip.update(now.tile.states[now.cursor.op])
    state.chip = chip
    with np.errstate(all="ignore"):
        now.op.apply(state)
    return chip.used


class _Watched(dict[str, Values]):
    """Numbers on chip that remember which of them were read or made."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        super().__init__(numbers)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Values:
        self.used.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, values: Values) -> None:
        self.used.add(name)
        super().__setitem__(name, values)


def _switches(op: Op) -> tuple[tuple[str, Hashable], ...]:
    """Return the fields of an op that decide how it computes."""
    values = ((each.name, getattr(op, each.name)) for each in fields(op))
    return tuple((name, value) for name, value in values if isinstance(value, bool | str | None))
