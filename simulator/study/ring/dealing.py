"""Which rows and keys each device of a ring holds.

References
----------
Liu, Zaharia, Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context"
(contiguous); Brandon et al. 2023, "Striped Attention" (striped); zhuzilin/ring-flash-attention
(zigzag).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias, get_args

import numpy as np

from simulator.problem.intervals import I64
from simulator.problem.scenario import Layout

LAYOUTS: tuple[Layout, ...] = get_args(Layout)
DEVICES = 4
"""Devices of a ring if a scenario does not say how many."""

Pieces: TypeAlias = tuple[range, ...]
"""The part of a sequence that a device holds: ascending ranges, which may have a step."""


def dealt(layout: Layout, length: int, devices: int) -> tuple[Pieces, ...]:
    """Return the tokens of a sequence that each device holds; each token is on one device.

    Parts are as equal as whole tokens can be, so some may be empty.

    layout: ``contiguous``: device n holds part n of as many as there are devices. ``zigzag``:
        device n holds parts n and 2g - 1 - n of 2g. ``striped``: device n holds every g-th token
        from n on.
    """
    if layout == "striped":
        return tuple((range(n, length, devices),) for n in range(devices))
    if layout == "zigzag":
        parts = _parts(length, 2 * devices)
        return tuple((parts[n], parts[-1 - n]) for n in range(devices))
    return tuple((part,) for part in _parts(length, devices))


def _parts(length: int, count: int) -> list[range]:
    bounds = [length * n // count for n in range(count + 1)]
    return [range(start, stop) for start, stop in pairwise(bounds)]


def tokens_of(pieces: Sequence[range]) -> I64:
    """Return the tokens of some pieces, ascending, as a device has them in its memory."""
    return np.concatenate([np.arange(each.start, each.stop, each.step) for each in pieces])


def owners(layout: Layout, length: int, devices: int) -> I64:
    """Return the device of each token of a sequence, (length,)."""
    out = np.empty(length, dtype=np.int64)
    for n, pieces in enumerate(dealt(layout, length, devices)):
        out[tokens_of(pieces)] = n
    return out


def block_at(device: int, step: int, devices: int) -> int:
    """Return whose K and V a device has at hand in a step: blocks travel from n to n + 1."""
    return (device - step) % devices
