"""Breakpoints and runs in the real window: found, not found, cancelled, played into."""

import threading

import pytest
from PySide6.QtCore import Qt

from simulator.program.playback import Cursor, Granularity, last_cursor
from simulator.run.breakpoints import (
    AtOp,
    AtRow,
    AtTile,
    Finder,
    MaximumChanged,
    OverLimit,
    TileSkipped,
)
from tests.helpers.changes import choose_algorithm
from ui.panels.code.panel import CodePanel
from ui.widgets.message_bar import MessageKind

DEMO = "causal"
SIZE = (1920, 1080)

UNTIL = {
    "breakpoint": 0, "tile": 1, "row": 2, "op": 3, "maximum": 4, "skipped": 5, "limit": 6,
}  # fmt: skip


def bar_of(window):
    window.desk.take("algorithm")
    panel = window.docks.panel("code")
    assert isinstance(panel, CodePanel)
    return panel.bar


def press(qtbot, window, key, modifier=Qt.KeyboardModifier.NoModifier):
    window.activateWindow()
    qtbot.keyClick(window, key, modifier)
    window.session.settle()


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("choice", "condition"),
    [
        ("tile", AtTile(2, 1)),
        ("row", AtRow(37)),
        ("op", AtOp("normalise")),
        ("maximum", MaximumChanged()),
        ("skipped", TileSkipped()),
    ],
)
def test_run_goes_to_what_is_chosen(window, session, qtbot, choice, condition):
    bar = bar_of(window)
    bar.until.setCurrentIndex(UNTIL[choice])
    bar.fields["i"].setValue(2)
    bar.fields["j"].setValue(1)
    bar.fields["row"].setValue(37)
    bar.op.setCurrentText("normalise")
    expected = Finder(session.trace).find(session.cursor, [condition])
    qtbot.mouseClick(bar.run_button, Qt.MouseButton.LeftButton)
    session.settle()
    assert session.view.snapshot.cursor == expected.cursor
    if bar.status.isVisible():
        assert bar.status.toolTip() == f"Stopped: {condition.words}"


def test_enter_in_a_field_runs(window, qtbot):
    bar = bar_of(window)
    bar.until.setCurrentIndex(UNTIL["row"])
    bar.fields["row"].setFocus()
    bar.fields["row"].selectAll()
    qtbot.keyClicks(bar.fields["row"], "40")
    qtbot.keyClick(bar.fields["row"], Qt.Key.Key_Return)
    window.session.settle()
    assert 40 in window.session.view.snapshot.visit.rows


def test_nothing_found_says_so_and_the_cursor_stays(window, session, qtbot):
    bar = bar_of(window)
    session.go(Cursor(3, 2))
    session.settle()
    for choice, words in (("limit", "SRAM over the limit"), ("tile", "tile (0, 3)")):
        bar.until.setCurrentIndex(UNTIL[choice])
        bar.fields["i"].setValue(0)
        bar.fields["j"].setValue(3)
        qtbot.mouseClick(bar.run_button, Qt.MouseButton.LeftButton)
        session.settle()
        assert session.cursor == Cursor(3, 2)
        assert window.messages.isVisible()
        assert window.messages.text() == f"Nothing further on to stop at: {words}."
    bar.until.setCurrentIndex(UNTIL["skipped"])
    qtbot.mouseClick(bar.run_button, Qt.MouseButton.LeftButton)
    session.settle()
    assert not window.messages.isVisible()


def test_keys_run_to_breakpoints_both_ways(window, session, qtbot):
    press(qtbot, window, Qt.Key.Key_F8)
    assert "No breakpoint" in window.messages.text()
    assert session.cursor == Cursor(0, 0)
    session.runs.toggle(AtTile(2, 1))
    session.runs.toggle(AtTile(3, 2))
    places = []
    for _ in range(2):
        press(qtbot, window, Qt.Key.Key_F8)
        places.append((session.view.snapshot.visit.i, session.view.snapshot.visit.j))
    assert places == [(2, 1), (3, 2)]
    press(qtbot, window, Qt.Key.Key_F8)
    assert window.messages.text() == "Nothing further on to stop at: a breakpoint."
    press(qtbot, window, Qt.Key.Key_F8, Qt.KeyboardModifier.ShiftModifier)
    assert (session.view.snapshot.visit.i, session.view.snapshot.visit.j) == (2, 1)
    assert not window.messages.isVisible()


def test_run_until_opens_the_panel_and_takes_the_keyboard(window, qtbot, qapp):
    assert not window.docks["code"].isVisible()
    press(qtbot, window, Qt.Key.Key_F8, Qt.KeyboardModifier.ControlModifier)
    qapp.processEvents()
    bar = window.docks.panel("code").bar
    assert window.docks["code"].isVisible()
    assert window.focusWidget() is bar.until
    qtbot.keyClick(bar.until, Qt.Key.Key_Down)
    assert bar.until.currentIndex() == 1
    bar.run_button.setFocus()
    qtbot.keyClick(bar.run_button, Qt.Key.Key_Return)
    window.session.settle()
    assert window.messages.isVisible() or window.session.cursor > Cursor(0, 0)


def test_breakpoints_are_listed_and_removed(window, qtbot):
    bar, runs = bar_of(window), window.session.runs
    assert [a.isEnabled() for a in bar.list_menu().actions()] == [False]
    for choice in ("maximum", "skipped"):
        bar.until.setCurrentIndex(UNTIL[choice])
        qtbot.mouseClick(bar.stop_button, Qt.MouseButton.LeftButton)
    assert runs.breakpoints == (MaximumChanged(), TileSkipped())
    assert bar.list_button.text() == "2"
    menu = bar.list_menu()
    assert [a.text() for a in menu.actions() if not a.isSeparator()] == [
        "Remove: a maximum changed", "Remove: a skipped tile", "Remove all",
    ]  # fmt: skip
    menu.actions()[0].trigger()
    assert runs.breakpoints == (TileSkipped(),)
    bar.list_menu().actions()[-1].trigger()
    assert runs.breakpoints == ()
    assert bar.list_button.text() == "0"
    bar.until.setCurrentIndex(UNTIL["breakpoint"])
    assert not bar.stop_button.isEnabled()


def pass_a_second(session):
    """Let a session's clock go on by a second at once, and stand still from then on."""
    now = session.clock.now() + 1.0
    session.clock.now = lambda: now
    session.clock.tick()


@pytest.mark.long
@pytest.mark.parametrize("by", [Granularity.OP, Granularity.TILE, Granularity.HEAD])
@pytest.mark.parametrize(
    "condition", [AtTile(2, 1), MaximumChanged(), TileSkipped(), AtOp("normalise")], ids=str
)
def test_playing_stops_at_every_breakpoint(open_window, qtbot, by, condition):
    window = open_window("causal")
    session = window.session
    session.set_speed(20.0)
    session.set_granularity(by)
    session.runs.toggle(condition)
    expected = Finder(session.trace).find(Cursor(0, 0), [condition]).cursor
    for _ in range(2):
        press(qtbot, window, Qt.Key.Key_Space)
        qtbot.waitUntil(lambda: not session.playing, timeout=20_000)
        session.settle()
        assert session.cursor == expected
        assert session.view.snapshot.cursor == expected
        hit = Finder(session.trace).find(expected, [condition])
        expected = hit.cursor if hit else last_cursor(session.trace.program)


def test_playing_says_why_it_stopped_and_where(open_window, qtbot):
    window = open_window("causal")
    session = window.session
    assert not window.docks["code"].isVisible()
    session.set_speed(20.0)
    session.set_granularity(Granularity.TILE)
    session.runs.toggle(AtTile(1, 0))
    press(qtbot, window, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not session.playing, timeout=20_000)
    session.settle()
    at = session.cursor
    op = session.trace.program.ops(at.visit)[at.op].name
    assert window.messages.isVisible()
    assert window.messages.kind is MessageKind.HINT
    for words in ("breakpoint: tile (1, 0)", f"visit {at.visit + 1}:", op):
        assert words in window.messages.text()
    press(qtbot, window, Qt.Key.Key_Space)
    assert not window.messages.isVisible()


def test_playing_passes_breakpoints_that_never_stop(open_window, qtbot):
    window = open_window("causal")
    session = window.session
    session.set_speed(20.0)
    session.set_granularity(Granularity.ROW_BLOCK)
    session.runs.toggle(OverLimit())
    session.runs.toggle(AtRow(10_000))
    press(qtbot, window, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not session.playing, timeout=20_000)
    session.settle()
    assert session.cursor == last_cursor(session.trace.program)


def test_what_the_user_does_while_playing_wins(open_window, monkeypatch):
    """A step of playing that is on its way does not take the cursor back."""
    window = open_window("causal")
    session, started, go_on = window.session, threading.Event(), threading.Event()
    find = Finder.find

    def slow(self, *args, **rest):
        started.set()
        assert go_on.wait(10)
        return find(self, *args, **rest)

    monkeypatch.setattr(Finder, "find", slow)
    session.runs.toggle(AtTile(1, 0))
    session.set_granularity(Granularity.HEAD)
    session.play(True)
    pass_a_second(session)
    assert started.wait(10)
    session.go(Cursor(5, 1))
    go_on.set()
    session.settle()
    assert session.cursor == Cursor(5, 1)
    assert session.view.snapshot.cursor == Cursor(5, 1)


def test_choosing_a_row_while_playing_keeps_the_place(open_window):
    window = open_window("causal")
    session = window.session
    session.runs.toggle(AtRow(63))
    session.set_speed(0.5)
    session.play(True)
    pass_a_second(session)
    session.choose_row(3)
    session.settle()
    assert session.cursor in (Cursor(0, 0), Cursor(0, 1))  # the step may have been replaced
    assert session.view.snapshot.cursor == session.cursor
    assert session.view.report.row == 3


def test_a_long_search_is_cancelled_and_leaves_everything(window, session, qtbot, monkeypatch):
    started = threading.Event()
    strip = window.header.progress

    def endless(self, cursor, conditions, progress=None, **rest):
        started.set()
        while True:
            threading.Event().wait(0.005)
            progress(0.5)

    monkeypatch.setattr(Finder, "find", endless)
    session.runs.run_until([MaximumChanged()])
    assert started.wait(5)
    qtbot.waitUntil(strip.isVisible, timeout=5000)
    assert "running to a maximum changed" in strip.words.text()
    qtbot.mouseClick(strip.button, Qt.MouseButton.LeftButton)
    session.settle()
    assert session.cursor == Cursor(0, 0)
    assert not window.messages.isVisible()


def test_stopping_to_play_ends_a_long_search(open_window, qtbot, monkeypatch):
    window = open_window("causal")
    session, started = window.session, threading.Event()

    def endless(self, cursor, conditions, progress=None, **rest):
        started.set()
        while True:
            threading.Event().wait(0.005)
            progress(0.5)

    monkeypatch.setattr(Finder, "find", endless)
    session.runs.toggle(MaximumChanged())
    session.play(True)
    pass_a_second(session)
    assert started.wait(5)
    session.play(False)
    session.settle()
    assert session.settled
    assert session.cursor == Cursor(0, 0)


def test_a_run_in_another_scenario_forgets_the_old_numbers(open_window):
    window = open_window("causal")
    session = window.session
    session.runs.run_until([MaximumChanged()])
    session.settle()
    first = session.runs._runner
    choose_algorithm(window, "flash1")
    session.settle()
    start = session.cursor
    session.runs.run_until([MaximumChanged()])
    session.settle()
    assert session.runs._runner is not first
    expected = Finder(session.trace).find(start, [MaximumChanged()])
    assert session.cursor == expected.cursor
    assert session.view.snapshot.op.name == "combine"
