"""Placing work on multiprocessors: where each piece runs, from when to when.

A multiprocessor has some places, and a place takes the next piece of work as soon as it is free.
Pieces that are on one multiprocessor at the same time share it equally, so a multiprocessor with
several pieces is as fast as with one.

References
----------
Graham 1969, "Bounds on multiprocessing timing anomalies": list scheduling, and longest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from simulator.problem.intervals import I64
from simulator.timing.orders import Order, turn_of


@dataclass(frozen=True, slots=True)
class Placement:
    """The place and the time of each piece of work, in the order in which they were given.

    Times have the type of the work: seconds as float, or fractions.
    """

    sms: int  # sms, slots: multiprocessors, and places of each
    slots: int
    sm: list[int]  # sm, slot: multiprocessor and place of each piece
    slot: list[int]
    start: list[Any]  # start, end: when it began and ended
    end: list[Any]

    @property
    def seconds(self) -> Any:
        """When the last piece ended."""
        return max(self.end, default=0)

    def stretched(self, factor: float) -> Placement:
        """Return the placement with all times multiplied."""
        start, end = ([factor * each for each in times] for times in (self.start, self.end))
        return replace(self, start=start, end=end)

    @property
    def waves(self) -> float:
        """Pieces for each place: how often all places are filled."""
        return len(self.sm) / (self.sms * self.slots)

    @property
    def tail(self) -> Any:
        """How long before the end the first multiprocessor had nothing more to do."""
        last: list[Any] = [0] * self.sms
        for sm, end in zip(self.sm, self.end, strict=True):
            last[sm] = max(last[sm], end)
        return self.seconds - min(last)


def placed(
    work: Sequence[Any], sms: int, slots: int, order: Order, heads: I64 | None = None
) -> Placement:
    """Place pieces of work.

    work: how long each takes alone on a multiprocessor, none below 0.
    order: one of `ORDERS`.
    heads: the head of each piece, (pieces,), rising; without it all pieces are of one head.

    Notes
    -----
    At the start the first pieces go to the multiprocessors in turn. If two end at the same time,
    the lower number of the multiprocessor comes first, then the lower number of the place.
    """
    count = len(work)
    owners = np.zeros(count, np.int64) if heads is None else heads
    turn = turn_of(np.array(work), owners, order).tolist()
    places = sms * slots
    sm, slot = [0] * count, [0] * count
    start: list[Any] = [0] * count
    end: list[Any] = [0] * count
    # The pieces on each multiprocessor, by the service per piece (virtual time) when they end.
    running: list[list[tuple[Any, int, int]]] = [[] for _ in range(sms)]
    for place, number in enumerate(turn[:places]):
        at, own = place % sms, place // sms
        sm[number], slot[number] = at, own
        running[at].append((work[number], own, place))
    for pieces in running:
        heapify(pieces)
    # When the next piece of each multiprocessor ends.
    ends = [(pieces[0][0] * len(pieces), at) for at, pieces in enumerate(running) if pieces]
    heapify(ends)
    following = min(places, count)
    while ends:
        now, at = heappop(ends)
        pieces = running[at]
        mark, own, position = heappop(pieces)
        end[turn[position]] = now
        if order == "persistent":
            after = position + places
        else:
            after, following = following, following + 1
        if after < count:
            number = turn[after]
            sm[number], slot[number], start[number] = at, own, now
            heappush(pieces, (mark + work[number], own, after))
        if pieces:
            heappush(ends, (now + (pieces[0][0] - mark) * len(pieces), at))
    return Placement(sms, slots, sm, slot, start, end)
