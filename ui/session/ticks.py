"""The sound of a tile that lands: a soft tick, with a pitch for each tensor."""

from __future__ import annotations

import numpy as np

from simulator.base.dtypes import F32
from simulator.program.algorithms import TENSORS

RATE = 48_000  # samples a second
LENGTH = 0.4  # seconds that a tick takes in all
_ROOT, _FIRST = 55.0, 6
"""Hertz of a low note, and the number of its overtone for the first tensor of the table: overtones
of one note go together, whichever tensors sound at once."""
_ATTACK, _DECAY = 0.004, 0.06  # seconds in which a tick rises, and in which it falls to 1/e
_LOUD = 0.25


def pitch(tensor: str) -> float:
    """Return the frequency of a tensor's tick in hertz, by its place in the table of tensors."""
    return _ROOT * (_FIRST + list(TENSORS).index(tensor))


def tick(tensor: str) -> F32:
    """Return the samples of a tensor's tick: a sine that decays."""
    time = np.arange(round(LENGTH * RATE)) / RATE
    rise = np.minimum(time / _ATTACK, 1.0)
    fall = np.exp(-time / _DECAY) * np.minimum((LENGTH - time) / _DECAY, 1.0)
    wave: F32 = (_LOUD * rise * fall * np.sin(2 * np.pi * pitch(tensor) * time)).astype(np.float32)
    return wave


def limited(sum_of_ticks: F32) -> F32:
    """Return the sum of any number of ticks as samples between -1 and 1."""
    loud: F32 = np.tanh(sum_of_ticks)
    return loud
