"""Numbers of positions that captions may ask for."""

from __future__ import annotations

import math

import numpy as np

from simulator.base.errors import refuse
from simulator.study.captions import Numbers, known, named, whole
from simulator.study.positions.choices import FACTOR, SHIFT, TRAINED
from simulator.study.positions.scores import (
    PLACES,
    PlacedScores,
    placed,
    rotary_of,
    speeds_of,
    stretched,
)

_MANY = 100
"""Places of a turn that are told whole."""
_SETTINGS = {"places": PLACES, "shift": SHIFT, "trained": TRAINED, "factor": FACTOR}


@known
def position_setting(n: Numbers, name: str) -> int:
    """What Positions shows first: `places`, `shift`, `trained`, `factor`, or `pairs` of a token."""
    pairs = rotary_of(n.workload).width // 2
    return named("position_setting", name, {**_SETTINGS, "pairs": pairs})


@known
def turn_of(n: Numbers, pair: int) -> float:
    """After how many places a pair has turned once, whole if many; -1 is the slowest pair."""
    speeds = speeds_of(rotary_of(n.workload))
    if not -len(speeds) <= pair < len(speeds):
        raise refuse("", "pair", pair, f"a pair from 0 to {len(speeds) - 1}, or -1 for the last")
    turn = float(2 * math.pi / speeds[pair])
    return round(turn) if turn >= _MANY else turn


@known
def diagonals_differ(n: Numbers, kind: str, row: int) -> float:
    """By how much scores of one distance differ, of a row's query at all places.

    `kind` is `rope`, `sinusoids`, `learned` or `alibi`.
    """
    return _placed(n, kind, row).off


@known
def shift_moves(n: Numbers, kind: str, row: int) -> float:
    """By how much a shift of all places moves those scores, over the largest."""
    return _placed(n, kind, row).moved


@known
def untrained_pairs(n: Numbers, way: str) -> int:
    """Pairs at angles that training has not shown: `rope`, `interpolated`, `ntk` or `yarn`."""
    rotary = rotary_of(n.workload)
    found = named("way", way, {each.name: each for each in stretched(rotary, TRAINED, FACTOR)})
    return found.new_angles(TRAINED, FACTOR, speeds_of(rotary))


def _placed(n: Numbers, kind: str, row: int) -> PlacedScores:
    single, inputs = n.trace.single_heads
    at = whole("row", row, 0, n.workload.queries - 1)
    vector = inputs.q[n.first_head, at].astype(np.float64)
    return named("kind", kind, {each.name: each for each in placed(single, vector, PLACES, SHIFT)})
