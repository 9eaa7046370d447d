"""Ticks while a session goes on: where tiles land, and nowhere else."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from PySide6.QtWidgets import QApplication

from simulator.base.assets import SCENARIOS
from simulator.program.playback import MOVING, Cursor, Granularity, seconds_of
from simulator.run.breakpoints import AtTile
from simulator.run.motion import flights_of
from ui.session.session import Session
from ui.session.sound import TickPlayer

pytest.importorskip("miniaudio")

TICK = 1 / 60


class Desk:
    """A session on the causal demo with sound, and its time."""

    def __init__(self, on: bool = True) -> None:
        self.time = 100.0
        self.session = Session("numpy", now=lambda: self.time)
        self.sound = TickPlayer(self.session)
        self.sound.backend = "NULL"
        self.sound.set(on)
        self.session.open(SCENARIOS / "causal.toml")
        self.session.settle()
        self.program = self.session.trace.program

    def wait(self, seconds: float) -> None:
        """Let time pass, with a tick of the clock 60 times a second."""
        for _ in range(round(seconds / TICK)):
            self.time += TICK
            self.session.clock.tick()
            self.session.settle()

    def heard(self, seconds: float) -> int:
        """Return how many ticks are heard meanwhile."""
        before = self.sound.played
        self.wait(seconds)
        return self.sound.played - before

    def go(self, cursor: Cursor) -> None:
        self.session.go(cursor)
        self.session.settle()

    def next(self) -> None:
        self.session.step()
        self.session.settle()

    @property
    def moves(self) -> int:
        """How many tiles the shown op moves."""
        return len(self.session.view.snapshot.op.moves)


@pytest.fixture
def desk(qapp: QApplication) -> Iterator[Desk]:
    made = Desk()
    yield made
    made.session.close()
    made.sound.close()


def test_each_tile_is_heard_when_it_lands(desk: Desk) -> None:
    seen = 0
    for _ in range(12):
        desk.next()
        view = desk.session.view
        op = view.snapshot.op
        assert desk.sound.played == seen
        passed = 0.0
        for flight in flights_of(op.moves, loads=op.loads):
            lands = seconds_of(op) * MOVING * flight.end
            desk.wait(lands - passed - 1.5 * TICK)
            assert desk.sound.played == seen, (op.name, flight)
            desk.wait(3 * TICK)
            seen += 1
            assert desk.sound.played == seen, (op.name, flight)
            passed = lands + 1.5 * TICK
        desk.wait(2.0)
        assert desk.sound.played == seen
    assert seen > 3
    assert desk.sound.speaker is not None


@pytest.mark.parametrize("stops", [False, True])
def test_all_tiles_of_a_run_that_plays_are_heard(desk: Desk, stops: bool) -> None:
    if stops:  # far away: playing searches for it at every step
        desk.session.runs.toggle(AtTile(3, 3))
    end = Cursor(3, 0)
    desk.session.play(True)
    heard = 0
    while desk.session.cursor < end:
        heard += desk.heard(TICK)
    wanted = sum(len(op.moves) for v in range(3) for op in desk.program.ops(v))
    first = len(desk.program.ops(0)[0].moves)  # shown at once: there is no state before it
    assert heard == wanted - first > 3


def test_a_jump_is_silent(desk: Desk) -> None:
    loads = [
        next(Cursor(v, n) for n, op in enumerate(desk.program.ops(v)) if op.moves)
        for v in (3, 5, 2, 9, 1)
    ]  # fmt: skip
    for cursor in loads:
        desk.go(cursor)
        assert desk.moves
        assert desk.heard(2.0) == 0
    desk.session.step(forward=False)
    assert desk.heard(2.0) == 0


def test_a_jump_while_it_plays_is_silent_too(desk: Desk) -> None:
    desk.session.play(True)
    far = next(Cursor(8, n) for n, op in enumerate(desk.program.ops(8)) if op.moves)
    desk.wait(0.1)
    before = desk.sound.played
    desk.go(far)
    while desk.session.cursor == far:
        desk.wait(TICK)
    assert desk.sound.played == before
    assert desk.heard(9.0) > 0


def test_what_a_key_ends_is_silent(desk: Desk) -> None:
    while True:
        desk.next()
        if desk.moves:
            break
        desk.wait(1.0)
    assert desk.heard(0.3) == 0
    desk.next()
    assert desk.heard(0.0) == 0


def test_without_motion_it_is_silent(desk: Desk) -> None:
    desk.session.motion = False
    desk.session.play(True)
    assert desk.heard(6.0) == 0
    desk.session.motion = True
    assert desk.heard(6.0) > 0


@pytest.mark.parametrize("speed", [5.0, 20.0])
@pytest.mark.parametrize("by", [Granularity.OP, Granularity.TILE])
def test_at_a_high_speed_sounds_are_apart(desk: Desk, speed: float, by: Granularity) -> None:
    desk.session.set_speed(speed)
    desk.session.set_granularity(by)
    desk.session.play(True)
    times = []
    for _ in range(120):
        if desk.heard(TICK):
            times.append(desk.time)
    assert len(times) > 4
    apart = [two - one for one, two in pairwise(times)]
    assert min(apart) > 0.03


@pytest.mark.parametrize("stops", [False, True])
def test_by_tile_what_a_tile_moves_is_heard_when_it_is_shown(desk: Desk, stops: bool) -> None:
    if stops:
        desk.session.runs.toggle(AtTile(3, 3))
    desk.session.set_granularity(Granularity.TILE)
    desk.session.play(True)
    moved = [[{m.tensor for m in op.moves} for op in desk.program.ops(v)] for v in (0, 1)]
    before = 0
    for tensors in (set().union(*moved[0][1:]), set().union(*moved[1])):
        here = desk.session.cursor
        while desk.session.cursor == here:
            assert desk.sound.played == before
            desk.wait(TICK)
        assert desk.sound.played - before == len(tensors) > 0
        before = desk.sound.played


def test_it_is_silent_unless_asked_and_opens_nothing(qapp: QApplication) -> None:
    desk = Desk(on=False)
    desk.session.play(True)
    assert desk.heard(4.0) == 0
    assert desk.sound.speaker is None
    desk.session.close()


def test_the_device_is_open_while_it_is_on(desk: Desk) -> None:
    for _ in range(3):
        desk.sound.set(True)
        desk.session.settle()
        assert desk.sound.speaker is not None
        desk.sound.set(False)
        desk.session.settle()
        assert desk.sound.speaker is None
    for on in (True, False, True, False):  # faster than a device opens
        desk.sound.set(on)
    desk.session.settle()
    assert desk.sound.speaker is None
