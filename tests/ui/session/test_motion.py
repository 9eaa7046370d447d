"""What moves between two states, and when: with a clock that goes only when a test says so."""

import threading
from dataclasses import replace

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import Scenario, with_values
from simulator.program.playback import (
    Cursor,
    Granularity,
    Playhead,
    advanced,
    end_of_visit,
    in_two_states,
    last_cursor,
    seconds_of,
    step,
)
from simulator.run.breakpoints import AtOp, AtTile
from simulator.run.rescales import rescale_seconds_at, rescales
from simulator.run.snapshot import Cell
from ui.session.motion import LONGEST_TICK, MADE_UP
from ui.session.session import Session
from ui.session.view import Need

START = Cursor(0, 0)


class Desk:
    """A session on the causal demo, and its time."""

    def __init__(self):
        self.time = 100.0
        self.session = Session("numpy", now=lambda: self.time)
        self.session.open(SCENARIOS / "causal.toml")
        self.session.settle()
        self.told = []
        self.session.moved.connect(self.told.append)

    @property
    def view(self):
        return self.session.view

    @property
    def at(self):
        return self.view.snapshot.cursor

    @property
    def lasts(self):
        """How long the shown op lasts at speed 1."""
        return seconds_of(self.view.snapshot.op)

    def act(self, what, *args):
        what(*args)
        self.session.settle()

    def wait(self, seconds):
        """Let time pass at once, and let everything follow."""
        self.time += seconds
        self.session.clock.tick()
        self.session.settle()

    def next(self):
        self.act(self.session.step)


@pytest.fixture
def desk(qapp):
    made = Desk()
    yield made
    made.session.close()


def test_one_op_on_moves_from_the_state_before_to_the_new_one(desk):
    first = desk.view.snapshot
    assert (desk.view.before, desk.session.share) == (None, 1.0)
    assert not desk.session.clock.running
    desk.next()
    assert desk.view.before is first
    assert desk.session.share == 0
    assert desk.told == [0.0]
    assert desk.session.clock.running
    for share in (0.25, 0.5, 0.75):
        desk.wait(desk.lasts / 4)
        assert desk.session.share == pytest.approx(share)
    desk.wait(desk.lasts)
    assert desk.session.share == 1
    assert desk.told == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert not desk.session.clock.running, "it ticks only while something moves"
    desk.wait(5)
    assert len(desk.told) == 5


def test_it_takes_as_long_as_the_op_lasts_at_the_speed(desk):
    names = set()
    while not {"load", "scores"} <= names:
        desk.next()
        for speed, share in ((1.0, 0.1), (0.1, 0.11), (2.0, 0.31)):
            desk.session.set_speed(speed)
            desk.wait(desk.lasts / 10)
            assert desk.session.share == pytest.approx(share)
        names.add(desk.view.snapshot.op.name)
        desk.session.set_speed(1.0)
    for speed in (1.0, 0.1):
        desk.next()
        desk.session.set_speed(speed)
        desk.wait(desk.lasts / speed * 0.99)
        assert desk.session.share == pytest.approx(0.99)
        desk.wait(desk.lasts / speed * 0.011)
        assert desk.session.share == 1


@pytest.mark.parametrize("name", ["flash2", "causal"])
def test_a_rescale_lasts_long_where_something_shrinks_and_else_no_time(desk, name):
    desk.act(desk.session.open, SCENARIOS / f"{name}.toml")
    program, tried = desk.session.trace.program, set()
    for visit in range(len(program)):
        op = [each.name for each in program.ops(visit)].index("rescale")
        first = program.visit(visit).first
        shrinks = not first and bool((desk.session.trace.tile(visit).alpha < 1).any())
        if (first, shrinks) in tried:
            continue
        tried.add((first, shrinks))
        desk.act(desk.session.go, Cursor(visit, op - 1))
        desk.wait(5)
        desk.next()
        lasts = 3.9 if shrinks else 0.1
        desk.wait(0.5 * lasts)
        assert desk.session.share == pytest.approx(0.5)
        desk.wait(0.51 * lasts)
        assert desk.session.share == 1
    assert {(True, False), (False, True)} <= tried


def test_a_key_ends_what_is_under_way_and_begins_the_next(desk):
    desk.next()
    desk.wait(0.3)
    now = desk.view.snapshot
    desk.told.clear()
    seen = []
    desk.session.view_changed.connect(lambda view: seen.append((view, desk.session.share)))
    desk.next()
    [(view, share)] = seen
    assert view.snapshot.cursor == step(now.program, now.cursor, Granularity.OP)
    assert view.before is now
    assert share == 0
    assert desk.told[-1] == 0
    assert set(desk.told) <= {0, 1}, "nothing in between is seen"
    desk.wait(desk.lasts / 2)
    assert desk.session.share == pytest.approx(0.5)


def test_a_key_ends_what_is_under_way_though_the_next_is_late(desk):
    go_on = threading.Event()
    desk.next()
    desk.wait(0.3)
    desk.session.want(Need("slow", lambda trace, now, report: go_on.wait(10)))
    desk.session.step()
    desk.time += 0.016
    desk.session.clock.tick()
    assert (desk.at, desk.session.share) == (Cursor(0, 1), 1)
    desk.time += 2
    desk.session.clock.tick()
    go_on.set()
    desk.session.settle()
    assert (desk.at, desk.session.share) == (Cursor(0, 2), 0)


@pytest.mark.parametrize("playing", [False, True])
def test_the_next_op_has_all_its_time(desk, playing):
    """The time since the last tick belonged to the op before."""
    desk.session.play(playing)
    desk.next()
    desk.time += 0.1
    desk.next()
    desk.wait(0.1)
    assert desk.session.share == pytest.approx(0.1 / desk.lasts)


def test_an_op_begins_when_it_is_shown(desk):
    desk.next()
    desk.wait(0.1)
    desk.session.step()
    desk.time += 0.05
    desk.session.settle()
    desk.wait(0.1)
    assert desk.session.share == pytest.approx(0.1 / desk.lasts)


def test_keys_that_come_faster_than_pictures_leave_none_behind(desk):
    desk.next()
    desk.wait(0.1)
    for _ in range(3):
        desk.session.step()
    desk.session.settle()
    assert desk.at == Cursor(0, 4)
    assert desk.session.share == (0 if desk.view.before else 1)
    desk.wait(3)
    assert desk.session.share == 1


@pytest.mark.parametrize(
    "move",
    [
        lambda session: session.step(False),
        lambda session: session.go(Cursor(3, 1)),
        lambda session: session.step(by=Granularity.TILE),
        lambda session: session.propose(
            with_values(session.scenario, {"tiling": {"rows": 8}}), "rows"
        ),
    ],
    ids=["back", "a jump", "a tile", "another run"],
)
def test_all_else_is_shown_at_once(desk, move):
    desk.next()
    desk.next()
    desk.wait(0.2)
    desk.act(move, desk.session)
    assert (desk.view.before, desk.session.share) == (None, 1.0)
    assert desk.told[-1] == 1
    desk.wait(0.1)
    assert not desk.session.clock.running


def test_another_row_of_the_same_state_goes_on_moving(desk):
    desk.next()
    desk.wait(desk.lasts / 2)
    before = desk.view.before
    desk.told.clear()
    desk.act(desk.session.select, Cell("S", 3, 1))
    assert desk.view.cell == Cell("S", 3, 1)
    assert desk.told == [pytest.approx(0.5)], "what shows the new view hears where it is"
    assert desk.view.before is before
    assert desk.session.share == pytest.approx(0.5)
    desk.wait(1)
    desk.act(desk.session.select, None)
    assert (desk.view.before, desk.session.share) == (None, 1.0)


def test_a_key_at_the_end_ends_what_is_under_way(desk):
    end = last_cursor(desk.session.trace.program)
    desk.act(desk.session.go, Cursor(end.visit, end.op - 1))
    desk.next()
    desk.wait(0.2)
    assert 0 < desk.session.share < 1
    desk.next()
    assert desk.session.share == 1


def test_a_motion_lasts_as_long_as_it_is_told(desk):
    for at, seconds in ((Cursor(0, 1), 0.2), (Cursor(0, 2), 9.0), (Cursor(0, 3), None)):
        desk.act(desk.session.go, at, seconds)
        lasts = seconds or desk.lasts
        desk.wait(lasts / 2)
        assert desk.session.share == pytest.approx(0.5)
        desk.wait(lasts / 2 + 1e-6)
        assert desk.session.share == 1
    desk.session.set_speed(20.0)
    desk.act(desk.session.go, Cursor(0, 4))
    desk.wait(desk.lasts / 40)
    assert desk.session.share == pytest.approx(0.5)


def test_without_motion_there_are_only_states(desk):
    desk.next()
    desk.wait(0.2)
    desk.session.motion = False
    assert desk.session.share == 1
    desk.told.clear()
    desk.next()
    desk.session.play(True)
    for _ in range(20):
        desk.wait(0.1)
        assert (desk.view.before, desk.session.share) == (None, 1.0)
    assert desk.told == []
    desk.session.motion = True
    before = desk.at
    while desk.at == before:
        desk.wait(0.1)
    assert desk.view.before.cursor == before


# --- playing ---------------------------------------------------------------------------------


def passed(trace, head, seconds, by, speed=1.0):
    """Return the playhead some time later: how long the op takes that is shown is known."""
    lasts = seconds_of(trace.program.ops(head.cursor.visit)[head.cursor.op])
    takes = (by is Granularity.OP and rescale_seconds_at(trace, head.cursor, speed)) or lasts
    left = (lasts - head.done) * takes / lasts
    if by is not Granularity.OP or seconds < left:
        return advanced(trace.program, head, seconds * lasts / takes, by)
    return advanced(trace.program, replace(head, done=lasts), seconds - left, by)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("motion", [True, False])
@pytest.mark.parametrize("by", list(Granularity))
@pytest.mark.parametrize("speed", [0.1, 1.0, 20.0])
def test_playing_follows_the_time_that_has_passed(desk, by, speed, motion):
    session, program = desk.session, desk.session.trace.program
    session.motion = motion
    session.set_speed(speed)
    session.set_granularity(by)
    session.play(True)
    rest = seconds_of(desk.view.snapshot.op) if by is Granularity.OP else 0.7
    head = Playhead(START, rest)  # the first op has been done already
    for n in range(60):
        pause = (0.0163, 0.0507, 0.4011, 0.0013)[n % 4] / min(speed, 1)
        head = passed(session.trace, head, pause * speed, by, speed)
        desk.wait(pause)
        assert desk.at == session.cursor == head.cursor
        if desk.view.before is not None:
            assert motion or rescales(desk.view.snapshot), "in two states"
            assert by is Granularity.OP
            assert desk.view.before.cursor == step(program, desk.at, by, forward=False)
            wanted = head.done / desk.lasts
            if rescales(desk.view.snapshot) and (speed > 10 or not motion):
                wanted = 1.0 if speed > 10 else in_two_states(wanted)
            assert session.share == pytest.approx(wanted)
        else:
            assert session.share == 1
        if not session.playing:
            assert head.cursor == last_cursor(program)
            break


def test_playing_ends_with_the_last_op(desk):
    session = desk.session
    end = last_cursor(session.trace.program)
    desk.act(session.go, Cursor(end.visit, end.op - 1))
    session.play(True)
    desk.wait(0.5)
    lasts = desk.lasts
    assert (desk.at, session.share) == (end, pytest.approx(0.5 / lasts))
    desk.wait(lasts - 0.51)
    assert session.playing
    assert session.share == pytest.approx(1 - 0.01 / lasts)
    desk.wait(0.02)
    desk.wait(0.01)
    assert (desk.at, session.share, session.playing) == (end, 1, False)
    assert not session.clock.running


def test_by_tiles_there_are_only_states_though_one_op_be_missing(desk):
    session = desk.session
    end = end_of_visit(session.trace.program, 0)
    desk.act(session.go, Cursor(0, end.op - 1))
    session.set_granularity(Granularity.TILE)
    session.play(True)
    desk.wait(0.1)
    assert (desk.at, desk.view.before, session.share) == (end, None, 1)


def test_a_late_engine_is_asked_for_the_newest_cursor_alone(desk):
    session, go_on, made = desk.session, threading.Semaphore(0), []
    session.want(
        Need("slow", lambda trace, now, report: (made.append(now.cursor), go_on.acquire()))
    )
    go_on.release()
    session.settle()
    made.clear()
    session.play(True)
    desk.time += 0.1
    session.clock.tick()
    while not made:  # the engine is at work on the first cursor,
        pass
    for _ in range(40):  # and the clock goes on without it
        desk.time += 0.1
        session.clock.tick()
    newest = session.cursor
    assert newest > Cursor(0, 4)
    for _ in range(2):
        go_on.release()
    session.settle()
    assert made == [Cursor(0, 1), newest]
    assert desk.at == newest
    assert (desk.view.before, session.share) == (None, 1.0)


def test_a_view_that_comes_late_is_shown_as_far_as_the_playhead_is(desk):
    session, go_on = desk.session, threading.Semaphore(1)
    session.want(Need("slow", lambda trace, now, report: go_on.acquire()))
    session.settle()
    session.play(True)
    for _ in range(4):
        desk.time += 0.1
        session.clock.tick()
    assert desk.at == START
    assert session.cursor == Cursor(0, 1)
    told = []
    session.view_changed.connect(lambda view: told.append(session.share))
    go_on.release()
    session.settle()
    assert told == [pytest.approx(0.4 / desk.lasts)]


def test_pausing_lets_the_op_end_and_none_begin(desk):
    session = desk.session
    session.play(True)
    desk.wait(0.3)
    at = desk.at
    session.play(False)
    desk.wait(0.1)
    assert session.share == pytest.approx(0.4 / desk.lasts)
    session.play(True)
    desk.wait(0.1)
    assert session.share == pytest.approx(0.5 / desk.lasts), "it goes on from there"
    session.play(False)
    desk.wait(5)
    assert (desk.at, session.share) == (at, 1)
    assert not session.clock.running


def test_a_key_while_it_plays_goes_on_from_there(desk):
    session = desk.session
    session.play(True)
    desk.wait(0.3)
    at = desk.at
    desk.next()
    assert desk.at == step(session.trace.program, at, Granularity.OP)
    assert (desk.view.before.cursor, session.share) == (at, 0)
    desk.wait(desk.lasts - 0.01)
    assert session.share == pytest.approx(1 - 0.01 / desk.lasts)
    desk.act(session.go, Cursor(5, 0))
    assert (desk.at, session.share) == (Cursor(5, 0), 1)
    desk.wait(desk.lasts + 0.1)
    assert desk.at == Cursor(5, 1)
    assert session.playing


def test_what_starts_over_shows_its_first_state_for_as_long_as_an_op(desk):
    session = desk.session
    desk.act(session.last)
    session.play(True)
    session.settle()
    assert desk.at == START
    desk.wait(desk.lasts - 0.01)
    assert desk.at == START
    desk.wait(0.02)
    assert desk.at == Cursor(0, 1)


def test_a_machine_that_slept_does_not_play_on(desk):
    session, program = desk.session, desk.session.trace.program
    session.play(True)
    desk.wait(1e6)
    head = Playhead(START, seconds_of(program.ops(0)[0]))
    assert session.cursor == advanced(program, head, LONGEST_TICK, Granularity.OP).cursor


@pytest.mark.parametrize("pause", [0.016, 0.3, 2.0])
def test_every_breakpoint_stops_it_and_its_op_is_seen(desk, pause):
    session = desk.session
    session.runs.toggle(AtOp("row sum"))
    session.runs.toggle(AtTile(2, 1))
    for visit in range(4):
        session.play(True)
        while session.playing:
            desk.wait(pause)
        assert desk.at.visit == visit
        assert desk.view.snapshot.op.name == "row sum"
        assert (session.share < 1) == (desk.view.before is not None)
        desk.wait(2)
        assert (desk.at.visit, session.share) == (visit, 1)
    session.play(True)
    while session.playing:
        desk.wait(pause)
    assert desk.at == Cursor(4, 0)


def test_a_search_is_waited_for_but_not_for_ever(desk):
    session, go_on = desk.session, threading.Event()
    session.runs.toggle(AtTile(3, 3))
    searches = []
    seek = session.runs.step_to

    def slow(trace, start, target):
        searches.append((start, target))
        found = seek(trace, start, target)
        return lambda: (go_on.wait(10), found())[1]

    session.runs.step_to = slow
    session.play(True)
    desk.time += 0.01
    session.clock.tick()
    for _ in range(50):
        desk.time += 0.1
        session.clock.tick()
    assert searches == [(START, Cursor(0, 1))], "there is no queue"
    go_on.set()
    session.settle()
    assert desk.at == Cursor(0, 1)
    desk.wait(0.0)
    assert session.share == pytest.approx((0.01 + MADE_UP) / desk.lasts)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("tokens", "by"),
    [(48, Granularity.OP), (1024, Granularity.TILE), (4096, Granularity.ROW_BLOCK)],
)
def test_a_long_run_plays_in_larger_steps_until_somebody_chooses(desk, tokens, by):
    session = desk.session
    shapes = {"seqlen_q": tokens, "head_dim": 4}
    long = with_values(Scenario(), {"attention": shapes, "tiling": {"rows": 16, "cols": 16}})
    desk.act(session.start, long, None)
    assert session.granularity is by
    session.play(True)
    for _ in range(12):
        desk.wait(0.5)
    visit = session.trace.program.visit(session.cursor.visit)
    assert (visit.i, visit.j)[by is Granularity.TILE] >= 6 or by is Granularity.OP
    session.play(False)
    desk.act(session.open, SCENARIOS / "causal.toml")
    assert session.granularity is Granularity.OP
    session.set_granularity(Granularity.HEAD)
    desk.act(session.start, long, None)
    assert session.granularity is Granularity.HEAD
