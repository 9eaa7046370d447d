"""How a session moves, plays, selects and tells: its public ways alone, with no window."""

import threading
import time

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import with_values
from simulator.program.playback import SPEEDS, Cursor, Granularity, last_cursor
from simulator.run.breakpoints import AtTile
from simulator.run.snapshot import Cell
from tests.helpers.changes import change
from tests.helpers.sessions import make_session
from ui.session.runs import Stop
from ui.session.session import Session
from ui.session.view import Need, nothing
from ui.session.worker import Worker


def ticking(session):
    """Return how far apart the ticks are of what runs over and over while a run plays."""
    clocks = session.findChildren(QTimer)
    return [clock.interval() for clock in clocks if clock.isActive() and not clock.isSingleShot()]


def test_speeds_are_chosen_at_rest_and_while_it_plays(qapp):
    session, told = make_session(), []
    session.settings_changed.connect(lambda: told.append(session.speed))
    assert ticking(session) == []
    for speed in SPEEDS:
        session.set_speed(speed)
    session.play(True)
    assert ticking(session) == [16]  # 60 pictures a second at every speed
    for speed in SPEEDS:
        session.set_speed(speed)
        assert session.playing
        assert session.speed == speed
    assert told == [*SPEEDS, *SPEEDS]
    session.close()
    assert ticking(session) == []


def test_faster_and_slower_take_the_next_speed_and_stay_at_the_ends(qapp):
    session, speeds = make_session(), list(SPEEDS)
    assert session.speed == 1.0
    session.play(True)
    for faster, expected in ((True, [2.0, 5.0, 10.0, 20.0, 20.0]), (False, speeds[-2::-1])):
        for speed in expected:
            session.change_speed(faster)
            assert session.speed == speed
            assert session.playing
    session.change_speed(False)
    assert session.speed == 0.1
    session.close()


@pytest.fixture
def walking(qapp):
    """A causal run of 4 by 4 tiles: visits 0; 1, 2; 3, 4, 5; 6, 7, 8, 9."""
    session = make_session()
    yield session
    session.close()


def test_every_way_to_move_ends_where_it_says(walking):
    session, told = walking, []
    session.view_changed.connect(lambda view: told.append(view.snapshot.cursor))
    ends = [len(session.trace.program.ops(n)) - 1 for n in range(10)]
    for move, expected in (
        (lambda: session.go_to_tile(2, 1), Cursor(4, ends[4])),
        (lambda: session.go_to_tile(1, 3), Cursor(4, ends[4])),  # skipped
        (lambda: session.go_to_tile(5, 0), Cursor(4, ends[4])),  # of a larger run, seen before
        (lambda: session.step(by=Granularity.TILE), Cursor(5, ends[5])),
        (lambda: session.step(False, Granularity.TILE), Cursor(4, ends[4])),
        (lambda: session.step(False), Cursor(4, ends[4] - 1)),
        (session.step, Cursor(4, ends[4])),
        (lambda: session.step(by=Granularity.ROW_BLOCK), Cursor(6, ends[6])),
        (lambda: session.go(Cursor(99, 99)), Cursor(9, ends[9])),
        (session.first, Cursor(0, 0)),
        (session.last, Cursor(9, ends[9])),
        (lambda: session.go(Cursor(-3, 1)), Cursor(0, 1)),
    ):
        move()
        assert session.cursor == expected
        session.settle()
        assert told[-1] == expected
    session.set_granularity(Granularity.TILE)
    session.first()
    session.step()
    assert session.cursor == Cursor(0, ends[0])


def test_a_selected_cell_takes_its_row_along(walking):
    session = walking

    def shown():
        session.settle()
        return session.view.cell, session.view.report.row

    session.go_to_tile(2, 1)
    session.choose_row(37)
    assert shown() == (None, 37)
    session.move_selection(1, 1)  # nothing is selected: the tile's first key in that row
    assert shown() == (Cell("S", 37, 16), 37)
    session.move_selection(2, -1)
    assert shown() == (Cell("S", 36, 18), 36)
    session.select(Cell("K", 5, 2))
    assert shown() == (Cell("K", 5, 2), 36)
    session.move_selection(1, 0)  # the board draws K on its side
    assert shown() == (Cell("K", 6, 2), 36)
    session.select(Cell("O", 40, 1))
    assert shown() == (Cell("O", 40, 1), 40)
    session.select(Cell("S", 64, 0))  # there is none
    assert shown() == (Cell("O", 40, 1), 40)
    session.select(None)
    assert shown() == (None, 40)


def test_a_view_carries_what_is_wanted_and_no_more(walking):
    session = walking
    place = Need("place", lambda trace, snapshot, report: (snapshot.cursor, report.row))
    length = Need("length", lambda trace, snapshot, report: len(trace))
    session.want(place)
    session.want(length)
    session.settle()
    assert session.view.models == {place: (Cursor(0, 0), 0), length: 10}
    session.want(length, False)
    session.want(Need("never", length.make), False)
    session.want(Need("all that it needs is the view", nothing))
    session.step()
    session.settle()
    assert session.view.models == {place: (Cursor(0, 1), 0)}


def test_playing_goes_on_to_the_end_and_then_starts_over(walking, qtbot):
    session, told = walking, []
    session.playing_changed.connect(told.append)
    session.set_speed(20.0)
    session.set_granularity(Granularity.TILE)
    session.go_to_tile(3, 1)
    session.play(True)
    session.play(True)
    assert told == [True]
    qtbot.waitUntil(lambda: not session.playing, timeout=10_000)
    assert told == [True, False]
    assert session.cursor == last_cursor(session.trace.program)
    session.play(True)
    assert session.cursor == Cursor(0, 0)
    session.play(False)
    session.play(False)
    assert told == [True, False, True, False]


def test_the_place_of_a_lesson_is_no_step_and_leaves_when_it_is_put_back(walking):
    session, then = walking, []
    change(session, {"tiling": {"rows": 32}}, "rows 32")
    session.go_to_tile(1, 1)
    session.select(Cell("S", 40, 20))
    session.settle()
    mine, at, file = session.trace, session.cursor, session.file
    kept = session.set_aside()
    assert not session.undo_stack.canUndo()
    other = with_values(session.scenario, {"tiling": {"rows": 8}})
    session.play(True)
    session.show_place(other, Cursor(3, 1), 17, ("a point",), then.append)
    session.settle()
    assert not session.playing
    assert then == [session.trace]
    assert (session.trace.workload.rows, session.path) == (8, None)
    shown = session.view
    assert (shown.snapshot.cursor, shown.report.row) == (Cursor(3, 1), 17)
    assert (shown.cell, shown.points) == (None, ("a point",))
    assert not session.undo_stack.canUndo()
    session.show_place(other, Cursor(4, 0), 26, ("another",))  # of the same run
    session.settle()
    assert then[0] is session.trace
    shown = session.view
    assert (shown.snapshot.cursor, shown.report.row) == (Cursor(4, 0), 26)
    assert shown.points == ("another",)
    session.point_at_nothing()
    session.settle()
    assert session.view.points == ()
    session.play(True)
    session.put_back(kept)
    session.settle()
    assert not session.playing
    assert (session.trace, session.cursor, session.file) == (mine, at, file)
    assert (session.view.cell, session.view.report.row) == (Cell("S", 40, 20), 40)
    assert session.undo_stack.canUndo()


def test_all_three_run_to_their_ends(walking):
    came = []
    walking.run_all(came.append)
    walking.settle()
    assert [list(runs) for runs in came] == [["naive", "flash1", "flash2"]]
    assert [run.checked_rows for run in came[0].values()] == [64, 64, 64]


def test_without_a_scenario_nothing_can_be_asked_for(qapp, tmp_path):
    session = Session("numpy")
    session.step()
    session.go(Cursor(1, 1))
    session.go_to_tile(0, 0)
    session.last()
    session.play(True)
    session.move_selection(1, 0)
    session.select(Cell("S", 0, 0))
    session.save(tmp_path / "none.toml")
    session.run_all(lambda runs: None)
    session.settle()
    assert session.view is None
    assert session.scenario is None
    assert not session.playing
    assert session.set_aside() is None
    assert session.cursor == Cursor(0, 0)
    assert not (tmp_path / "none.toml").exists()
    session.close()


def test_a_run_is_told_before_its_first_view_and_its_file_with_it(walking):
    session, told = walking, []
    session.trace_changed.connect(lambda trace: told.append(("trace", trace)))
    session.view_changed.connect(lambda view: told.append(("view", view.snapshot.program)))
    session.file_changed.connect(lambda: told.append(("file", session.path)))
    session.go_to_tile(2, 1)
    session.settle()
    told.clear()
    path = SCENARIOS / "flash1.toml"
    session.open(path)
    session.settle()
    kinds = [kind for kind, _ in told]
    assert kinds.index("trace") < kinds.index("view")
    assert told[kinds.index("trace")][1] is session.trace
    assert told[-1] == ("view", session.trace.program)
    assert [at for kind, at in told if kind == "file"][-1] == path
    assert session.cursor == Cursor(0, 0)
    assert session.undo_stack.canUndo()
    assert session.undo_stack.isClean()
    change(session, {"tiling": {"rows": 8}}, "rows 8")
    assert not session.undo_stack.isClean()


def test_work_is_told_once_it_has_taken_a_while(walking):
    session, told = walking, []
    session.working.connect(told.append)
    session.step()
    session.settle()
    assert True not in told
    session.want(Need("slow", lambda trace, snapshot, report: time.sleep(0.6)))
    deadline = time.monotonic() + 10
    while True not in told and time.monotonic() < deadline:
        QApplication.processEvents()
        time.sleep(0.01)
    session.settle()
    assert told[-2:] == [True, False]


def test_what_is_attended_is_waited_for_and_closing_ends_it_all(qapp):
    session, worker, done = make_session(), Worker(), []
    begun, ended = threading.Event(), threading.Event()
    session.attend(worker)
    worker.finished.connect(lambda kind, result: done.append(result))
    worker.submit("slow", lambda: time.sleep(0.1) or "done")
    assert not session.settled
    session.settle()
    assert done == ["done"]

    def endless(report):
        begun.set()
        try:
            while True:
                report(0.5)
                time.sleep(0.001)
        finally:
            ended.set()

    session.background("for ever", endless)
    assert begun.wait(10)
    session.play(True)
    session.close()
    assert ended.wait(10)
    assert not session.playing


def test_a_step_of_playing_is_searched_in_the_run_that_it_is_of(walking):
    session = walking
    session.runs.toggle(AtTile(1, 0))
    first = session.trace
    end = last_cursor(first.program)
    assert session.runs.step_to(first, Cursor(0, 0), end)() == Stop(Cursor(1, 0), AtTile(1, 0))
    change(session, {"tiling": {"rows": 32}}, "rows 32")
    end = last_cursor(session.trace.program)
    # Row block 0 of 32 rows sees two tiles of 16 keys.
    stop = session.runs.step_to(session.trace, Cursor(0, 0), end)()
    assert stop == Stop(Cursor(2, 0), AtTile(1, 0))
    assert session.runs.step_to(session.trace, Cursor(2, 0), end)() == Stop(end)
