"""Between two snapshots: the numbers that exist while an op is being done.

A frame is a pure function of the snapshot before an op, the snapshot after it, and the share of the
op that has been done. Everything that appears in between is computed: the sum of so many terms, or
the tiles that have landed so far.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from simulator.base.dtypes import F32, frozen
from simulator.program.algorithms import TENSORS
from simulator.program.op import Gesture
from simulator.program.ops import over
from simulator.program.playback import (
    MOVING,
    Granularity,
    Playhead,
    eased,
    rescaling,
    seconds_of,
    step,
)
from simulator.program.state import ChipTile, Numbers, TileMove
from simulator.program.tile_program import Counters, TileProgram
from simulator.program.under_way import added, terms, under_way
from simulator.run.final_weights import used_keys
from simulator.run.snapshot import HeadNumbers, Snapshot

_LEAD = 0.45  # share of a flight's time after which the next flight begins
_MOST_OPS = 40
"""Most ops whose landing tiles are found: after a machine has slept, nobody waits for all."""
AT_HBM = 0.5  # share of the way from the board to the chip at which a tile passes HBM
_SOUND = 0.01
"""How far the sum of all terms may be from the recorded number, as a share of the largest number: a
run in half precision rounds, and the sum of a wrong op is farther off."""


@dataclass(frozen=True, slots=True)
class Flight:
    """A tile on its way between HBM and the chip."""

    move: TileMove
    loads: bool  # whether it flies to the chip
    # begin, end: shares of the op at which it leaves and lands
    begin: float
    end: float

    def way(self, share: float) -> float:
        """Return the share of its way that the tile has flown, 0 to 1, slow at both ends."""
        return eased(min(max((share - self.begin) / (self.end - self.begin), 0.0), 1.0))

    def bus(self, share: float) -> float:
        """Return the share of its way between HBM and the chip that the tile has flown, 0 to 1.

        A tile spends the other half of its time between HBM and its matrix on the board.
        """
        way = self.way(share)
        begin = AT_HBM if self.loads else 0.0
        return min(max((way - begin) / (1 - AT_HBM if self.loads else AT_HBM), 0.0), 1.0)

    def landed(self, share: float) -> bool:
        """Return whether it has arrived."""
        return share >= self.end


def flights_of(moves: tuple[TileMove, ...], *, loads: bool) -> tuple[Flight, ...]:
    """Return when each tile flies: one after the other, as they are asked for."""
    if not moves:
        return ()
    length = 1 / (1 + _LEAD * (len(moves) - 1))
    ends = [_LEAD * length * n + length for n in range(len(moves))]
    ends[-1] = 1.0
    return tuple(
        Flight(move, loads, _LEAD * length * n, end)
        for n, (move, end) in enumerate(zip(moves, ends, strict=True))
    )


def landed_between(
    program: TileProgram, before: Playhead, after: Playhead, by: Granularity
) -> tuple[str, ...]:
    """Return the tensors whose tiles land while a run goes on from one place to another.

    before, after: the two places; a tile that lands exactly at the second one has landed.
    by: how far one step goes. If more than an op, the tiles of a step land where the step begins.
    Returns: each tensor once, in the order of first landings. On a long way only the first ops
        count.
    """
    names: dict[str, None] = {}
    cursor, done = before.cursor, before.done
    if by is not Granularity.OP:
        if after.cursor != cursor:
            first = cursor.op + 1 if cursor.visit == after.cursor.visit else 0
            for op in program.ops(after.cursor.visit)[first : after.cursor.op + 1]:
                names.update(dict.fromkeys(move.tensor for move in op.moves))
        return tuple(names)
    for _ in range(_MOST_OPS):
        if cursor > after.cursor:
            break
        op = program.ops(cursor.visit)[cursor.op]
        until = after.done if cursor == after.cursor else math.inf
        for flight in flights_of(op.moves, loads=op.loads):
            if done < seconds_of(op) * MOVING * flight.end <= until:
                names[flight.move.tensor] = None
        following = step(program, cursor, Granularity.OP)
        if following == cursor:
            break
        cursor, done = following, 0.0
    return tuple(names)


@dataclass(frozen=True, eq=False)
class Motion:
    """An op that is being done; equal to itself alone, so that frames made of it can be kept."""

    # before, after: the snapshot one op earlier, which may be of another visit, and the one at its
    # end
    before: Snapshot
    after: Snapshot
    _latest: dict[Hashable, Snapshot] = field(default_factory=dict, init=False, repr=False)

    @property
    def gesture(self) -> Gesture:
        """How the animation shows the op."""
        return self.after.op.gesture

    @cached_property
    def flights(self) -> tuple[Flight, ...]:
        """The flights of the op's tiles."""
        return flights_of(self.after.op.moves, loads=self.after.op.loads)

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers on chip at the beginning, by name."""
        now, visit = self.after, self.after.visit
        rows, keys = (slice(each.start, each.stop) for each in (visit.rows, visit.cols))
        # Tiles that an earlier visit has left on chip are not among the visit's own numbers.
        kept = {"Q": now.q[rows], "K": now.k[keys], "V": now.v[keys]}
        return {**kept, **now.tile.states[now.cursor.op]}

    @cached_property
    def made(self) -> tuple[str, ...]:
        """The names of the numbers that the op makes, changed numbers first."""
        old = self.after.tile.states[self.after.cursor.op]
        return tuple(name for name, v in self.after.state.items() if old.get(name) is not v)

    @cached_property
    def is_sound(self) -> bool:
        """Whether the op's sums, with all their terms, are the numbers that the engine recorded."""
        made = under_way(self.after.op, self.numbers, 1.0)
        return bool(made) and all(
            name in self.after.state and _close(values, self.after.state[name])
            for name, values in made.items()
        )

    @cached_property
    def sums(self) -> tuple[str, ...]:
        """The names of the numbers that exist while the op is being done."""
        return tuple(under_way(self.after.op, self.numbers, 1.0)) if self.is_sound else ()

    @property
    def terms(self) -> int:
        """How many terms each number of the op sums; 0 where there is nothing to be shown."""
        return terms(self.after.op, self.numbers) if self.is_sound else 0

    def added(self, share: float) -> int:
        """Return how many terms have been added."""
        return added(self.after.op, self.numbers, share) if self.is_sound else 0

    def at(self, share: float) -> Snapshot:
        """Return the state when a share of the op has been done, 0 to 1.

        The state is `before` at 0 and `after` at 1. In between it has the cursor of `after`, with
        the numbers that exist by then.
        """
        if share <= 0:
            return self.before
        if share >= 1:
            return self.after
        stage = self._stage(share)
        found = self._latest.get(stage)
        if found is None:
            found = self._made_at(share)
            self._latest.clear()
            self._latest[stage] = found
        return found

    def landed(self, share: float) -> tuple[bool, ...]:
        """Return for each tile that the op moves whether the tile has arrived."""
        return tuple(flight.landed(share) for flight in self.flights)

    def _stage(self, share: float) -> Hashable:
        """Return a key of the state at a share: between two of its terms an op changes nothing."""
        lands, is_sum = share >= self.after.op.lands, not self.is_sound or self.terms
        return lands, self.landed(share), self.added(share) if is_sum else share

    def _made_at(self, share: float) -> Snapshot:
        op, after = self.after.op, self.after
        made: dict[str, F32] = {}
        if share >= op.lands:
            state: Numbers = after.state
        else:
            if self.is_sound:
                made = {
                    name: frozen(values.astype(np.float32))
                    for name, values in under_way(op, self.numbers, share).items()
                }
            state = {**self.numbers, **made}
        states, whole = after.tile.states, after.tile.recorded("S")
        place = after.cursor.op + 1
        tile = replace(
            after.tile,
            states=(*states[:place], state, *states[place + 1 :]),
            unmasked=after.tile.unmasked if whole is None else whole,
        )
        return replace(
            after,
            tile=tile,
            head=self._head(state, made) if share < op.lands else after.head,
            counters=self._counters(share),
            on_chip=self._on_chip(share),
            partials=self.before.partials if self._same_rows else after.partials,
        )

    @property
    def _same_rows(self) -> bool:
        one, two = self.before.visit, self.after.visit
        return (one.head, one.i) == (two.head, two.i)

    def _head(self, state: Numbers, made: dict[str, F32]) -> HeadNumbers | None:
        """Return the head's numbers before the op, with the numbers that the op has made by now."""
        head, old = self.after.head, self.before.head
        if head is None or old is None or self.before.visit.head != self.after.visit.head:
            return head
        visit, all_made = self.after.visit, {"m": old.m, "l": old.l, "O": old.o, **old.others}
        for name, values in made.items():
            place = name if name in all_made else TENSORS[name].at if name in TENSORS else ""
            if place in all_made and not TENSORS[place].of_pairs:
                own = visit.cols if "key" in TENSORS[place].axes else visit.rows
                numbers = all_made[place] = all_made[place].copy()
                numbers[own.start : own.stop] = values.reshape(len(own), *numbers.shape[1:])
                frozen(numbers)
        m, l, o = (all_made.pop(name) for name in ("m", "l", "O"))
        return HeadNumbers(head.s, head.p, m, l, o, all_made, old.weights)

    @cached_property
    def _used(self) -> tuple[F32, F32] | None:
        """Weights of used keys in the current rows before and after, if the op changes them."""
        rows = slice(self.after.visit.rows.start, self.after.visit.rows.stop)
        keys = slice(used_keys(self.after).stop)
        ends = [
            now.so_far if now.so_far is not None or now.head is None else now.head.weights
            for now in (self.before, self.after)
        ]
        if ends[0] is None or ends[1] is None or ends[0] is ends[1] or not self._same_rows:
            return None
        old, new = ends[0][rows, keys], ends[1][rows, keys]
        return None if np.array_equal(old, new, equal_nan=True) else (old, new)

    @property
    def reweighs(self) -> bool:
        """Whether the op changes the weights of used keys in the current rows."""
        return self._used is not None

    def used_weights(self, share: float) -> F32 | None:
        """Return the weights of used keys in the current rows, (r, keys), when a share is done.

        While O is rescaled, they are the old weights times powers of alpha, 1 to alpha; in other
        ops they change at the end. None if they do not change.
        """
        if self._used is None:
            return None
        old, new = self._used
        if share >= self.after.op.lands or self.gesture is not Gesture.SHRINK or not self.is_sound:
            return new if share >= self.after.op.lands else old
        factor = self.after.carried
        if self.before.so_far is not None:  # divided by l
            factor = over(factor * self.after.tile.l_prev, self.after.l)
        begin = self.after.begun_at * self.after.program.workload.cols
        now = old.copy()
        with np.errstate(all="ignore"):  # there may be keys that nobody sees
            now[:, begin:] *= factor[:, None] ** rescaling(share).risen
        return frozen(now)

    def _counters(self, share: float) -> Counters:
        """Return the counters with the bytes of landed tiles; a flying tile does not count yet."""
        now = self.before.counters
        read, write = dict(now.read), dict(now.write)
        for flight in self.flights:
            if flight.landed(share):
                into = read if flight.loads else write
                into[flight.move.tensor] += flight.move.bytes
        done = self.added(share) / self.terms if self.terms else 0.0
        return Counters(read, write, now.flops + int(done * self.after.op.flops))

    def _on_chip(self, share: float) -> tuple[ChipTile, ...]:
        """Return the tiles on chip: a loaded tile only once it has landed."""
        held = {tile.name for tile in self.before.on_chip}
        flying = {f.move.tensor for f in self.flights if f.loads and not f.landed(share)}
        return tuple(
            tile for tile in self.after.on_chip if tile.name in held or tile.name not in flying
        )


def _close(made: F32, recorded: F32) -> bool:
    finite = np.isfinite(made) & np.isfinite(recorded)
    if not np.array_equal(finite, np.isfinite(made) | np.isfinite(recorded)):
        return False
    apart = np.abs(np.where(finite, made, 0) - np.where(finite, recorded, 0)).max(initial=0)
    return bool(apart <= _SOUND * np.abs(np.where(finite, recorded, 0)).max(initial=0) + 1e-6)
