"""What an op works on: what it moves, or what it reads on chip and makes there."""

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
"""Numbers on chip that are a maximum or a sum of before, or of the tile alone."""
_KNOWN: dict[Hashable, frozenset[str]] = {}
"""By the kind of op and its switches: what it works on does not depend on numbers."""


def touched(now: Snapshot) -> frozenset[str]:
    """Return the names of what the op of a state moves, or reads and makes on chip.

    Features count as the rows that they are made of. LSE, where it is not stored, does not.
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
    """Return what the op reads and makes, found by doing it."""
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
    """Return what of an op decides how it computes."""
    values = ((each.name, getattr(op, each.name)) for each in fields(op))
    return tuple((name, value) for name, value in values if isinstance(value, bool | str | None))
