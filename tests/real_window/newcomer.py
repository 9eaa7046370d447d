"""The first ten minutes of somebody who has never seen the program, by keys and mouse alone.

Whatever is wanted is there after three actions at most, or after one search.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, QPointF
from PySide6.QtWidgets import QApplication

from simulator.problem.workload import Workload
from tests.real_window.cases import Case
from tests.real_window.hand import Fault, Hand, Script
from ui.export.dialog import ExportDialog
from ui.window.main_window import MainWindow

OWN = "the cat sat on the mat"
SEARCH = "Ctrl+K"


@dataclass(frozen=True, slots=True)
class Wish:
    """Something a newcomer wants.

    name: that of its picture.
    actions: keys; a place to click, if it is a function; what is typed, after a ``"``.
    before: what is noted before the first action.
    fulfilled: whether it has come about, given what was noted.
    after: keys that lead back.
    """

    name: str
    actions: tuple[str | Callable[[MainWindow], QPoint], ...]
    fulfilled: Callable[[MainWindow, Any], bool]
    before: Callable[[MainWindow], object] = lambda window: None
    after: tuple[str, ...] = ()


def _row_of_board(window: MainWindow) -> QPoint:
    """Return where a row is on the screen that is not the one explained."""
    board, session = window.board, window.session
    layout, row = board.board_layout(), 2 if session.row != 2 else 4
    inside = board.rect()
    at = QPointF(layout.boxes["Q"].center().x(), layout.row_y(row + 0.5)).toPoint()
    if not inside.contains(at):
        raise Fault(f"row {row} is not in sight")
    return board.mapToGlobal(at)


def _chip(field: str) -> Callable[[MainWindow], QPoint]:
    def place(window: MainWindow) -> QPoint:
        chip = window.header.chips.chips[field]
        if not chip.isVisible():
            raise Fault(f"the header has no room for {field}")
        return chip.mapToGlobal(chip.rect().center())

    return place


def _workload(window: MainWindow) -> Workload:
    trace = window.session.trace
    assert trace is not None
    return trace.workload


def _exports(window: MainWindow, _: object) -> bool:
    return isinstance(QApplication.activeWindow(), ExportDialog)


def _answered(window: MainWindow) -> bool:
    return window.session.what_ifs.compared is not None


def _row(window: MainWindow) -> int | None:
    view = window.session.view
    return view.report.row if view else None


def _sentence(window: MainWindow) -> str | None:
    return _workload(window).scenario.input.name


def _in_lesson(window: MainWindow, _: object) -> bool:
    return window.cover is None and window.lessons.player.step is not None


WISHES = (
    Wish("lesson", ("Right",), _in_lesson),
    Wish("played", ("Space",), lambda w, was: w.session.cursor != was,
         lambda w: w.session.cursor, ("Space", "Ctrl+W")),
    Wish("row", (_row_of_board,), lambda w, was: _row(w) != was, _row),
    Wish("larger tile", ("Alt+T", "Up"),
         lambda w, was: _workload(w).rows > was and _answered(w), lambda w: _workload(w).rows,
         ("Backspace",)),
    Wish("causal", ("Alt+C", "Up"), lambda w, _: _workload(w).mask.causal and _answered(w),
         after=("Backspace",)),
    Wish("sentence by key", ("Alt+S", "Down"), lambda w, was: _sentence(w) != was, _sentence,
         ("Backspace",)),
    Wish("sentence by chip", (_chip("input.name"),),
         lambda w, _: QApplication.activePopupWidget() is not None, after=("Esc",)),
    Wish("sentence by search", (SEARCH, '"own sentence', "Return", f'"{OWN}', "Return"),
         lambda w, _: _workload(w).scenario.input.text == OWN),
    Wish("film", (SEARCH, '"film', "Return"), _exports, after=("Esc",)),
)  # fmt: skip


def first_minutes(hand: Hand, case: Case) -> Script:
    """Walk from the first page to a film; leave a picture of each step."""
    yield from hand.ready()
    window = hand.window
    yield from hand.maximise()
    if window.cover is None:
        raise Fault("there is no first page")
    page = window.cover
    yield from hand.wait(lambda: page.ready, "a picture of the first page is missing")
    yield from _picture(window, 0, "first page")
    for number, wish in enumerate(WISHES, start=1):
        yield from _calm(hand, window)
        noted = wish.before(window)
        for action in wish.actions:
            if callable(action):
                yield from hand.click(action(window))
            elif action.startswith('"'):
                yield from hand.type(action[1:])
            else:
                yield from hand.key(action)
            yield from hand.pause(0.1)
        yield from hand.wait(lambda: wish.fulfilled(window, noted), f"no {wish.name}")  # noqa: B023
        if wish.name != "played":
            yield from _calm(hand, window)
        yield from _picture(window, number, wish.name)
        for keys in wish.after:
            yield from hand.key(keys)
            yield from hand.pause(0.1)
    yield from _calm(hand, window)
    yield from hand.quit()


def _calm(hand: Hand, window: MainWindow) -> Script:
    yield from hand.wait(lambda: window.session.settled, "the engine is still at work")
    yield from hand.pause(0.4)


def _picture(window: MainWindow, number: int, name: str) -> Script:
    yield
    folder = Path(os.environ["TILESCOPE_SETTINGS"]).parent
    if not window.screen().grabWindow(0).save(str(folder / f"{number} {name}.png")):
        raise Fault("no picture")
