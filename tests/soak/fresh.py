"""What the window shows, held against a session that has just been made.

The new session lives in a process of its own, as a user's next start would: in that of the window
its runs and pictures would stand in the memory that the soak measures, and between what is still
in use there. Both processes tell what they show as a fingerprint, a short text for each value.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from simulator.lesson.places import Pointer
from simulator.problem.scenario import Scenario, scenario_toml
from simulator.program.playback import Cursor
from simulator.program.tile_program import TileProgram
from simulator.run.cell_values import Cell
from simulator.run.trace import Trace
from ui.board.layout import Viewport as BoardView
from ui.board.panel import BoardPanel
from ui.look.theme import Style, Theme
from ui.panels.values.panel import value_row
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.application import application
from ui.window.main_window import MainWindow
from ui.window.panel_specs import PANELS

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a window stands: all that a new session needs to show the same."""

    # engine, scenario, cursor, row: what is run, and what of it is on show
    engine: str
    scenario: Scenario
    cursor: Cursor
    row: int
    panels: tuple[str, ...]  # names of the panels whose models are on show
    # theme, text scale and least letters, size of the board, whether it shows weights P / l, and
    # whether its words are plain; None while it is hidden
    board: tuple[Theme, tuple[float, float], tuple[int, int], bool, bool] | None
    # cell, points: what is selected and pointed at there
    cell: Cell | None
    points: tuple[Pointer, ...]
    pinned: tuple[Cell, ...]  # cells whose texts are in sight


Prints = dict[str, str]
"""What is shown, by place in the view."""


class FreshSessions:
    """A process that shows, in sessions it has just made, what a window shows."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.fresh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def prints(self, place: Place) -> Prints:
        """Return what a new session shows there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(place, self._process.stdin)
        self._process.stdin.flush()
        answer = pickle.load(self._process.stdout)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def differences(window: MainWindow, fresh: FreshSessions) -> list[str] | None:
    """Return where the view on show differs from that of a new session at the same place.

    The new session has its own engine, reads its input anew and has never been anywhere else.
    None where the window would not stand still: a lesson was on its way.
    """
    session = window.session
    session.play(False)
    session.settle()
    view, scenario = session.view, session.scenario
    if view is None or scenario is None or session.trace is None:
        return None
    if view.snapshot.program is not session.trace.program:
        return ["the view is of another run than the session's"]
    QApplication.processEvents()
    # A board that is hidden takes the size of its picture only as that is painted.
    style, here = window.style_now, window.board
    board = (style.theme, (style.scale, style.least), here.size().toTuple(), here.divides,
             here.plain)  # fmt: skip
    if not here.isVisible():
        board = None
    values = window.docks.panel("values")
    # Qt calls a dock behind a tab visible too.
    pinned = tuple(values.pinned) if not values.visibleRegion().isEmpty() else ()
    place = Place(
        session.engines.name, scenario, view.snapshot.cursor, view.report.row,
        tuple(need.name for need in view.models), board, view.cell, view.points, pinned,
    )  # fmt: skip
    shown = prints_of_view(view)
    if board is not None:
        shown["the board"] = _seen(window.board)
    for row, cell in enumerate(pinned):
        items = [values.table.item(row, column) for column in range(5)]
        shown[f"pinned {cell}"] = str(tuple(item.text() if item else "" for item in items))
    found = compare(shown, fresh.prints(place))[:20]
    if found:
        found.append(f"at {view.snapshot.cursor} of {scenario_toml(scenario)}".replace("\n", " "))
    return found if session.view is view else None


def prints_at(place: Place) -> Prints:
    """Return what a new session shows there."""
    session = Session(place.engine)
    try:
        for spec in PANELS:
            if spec.name in place.panels:
                session.want(spec.need)
        session.start(place.scenario, None)
        session.settle()
        session.go(place.cursor)
        session.choose_row(place.row)
        session.settle()
        view = session.view
        assert view is not None
        out = prints_of_view(view)
        for cell in place.pinned:
            out[f"pinned {cell}"] = str(value_row(view.snapshot, cell))
        if place.board is not None:
            theme, scale, size, divides, plain = place.board
            board = BoardPanel()
            board.divides, board.plain = divides, plain
            board.set_style(Style(theme, *scale))
            board.resize(*size)
            board.show_snapshot(view.snapshot, view.report.row, place.cell, place.points)
            out["the board"] = _seen(board)
            board.deleteLater()
        return out
    finally:
        session.close()
        session.deleteLater()


def prints_of_view(view: View) -> Prints:
    """Return the fingerprints of a view: of its snapshot, its row and the panels' models."""
    out = {**prints_of(view.snapshot, "snapshot"), **prints_of(view.report, "report")}
    for need, model in view.models.items():
        name = need.name
        # What is worked out little by little is further on in a session that lasts.
        waits = getattr(model, "missing", False)
        out.update({name: "not there yet"} if waits else prints_of(model, name))
    return out


def _seen(board: BoardPanel) -> str:
    """Return the fingerprint of a board's picture at rest: no pointer on it, all of it in sight.

    What lies over it is left out: a mask that is being painted is of the window, not of the run.
    """
    board.camera.go(BoardView())
    board.show_share(1.0)
    board.light(())
    board.clearFocus()
    QApplication.sendEvent(board, QEvent(QEvent.Type.Leave))
    image = QImage(board.size(), QImage.Format.Format_RGB32)
    image.fill(0)
    board.render(image, renderFlags=QWidget.RenderFlag.DrawWindowBackground)
    return _digest(bytes(image.constBits()))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def compare(one: Prints, other: Prints) -> list[str]:
    """Return where two fingerprints differ."""
    late = tuple(name for prints in (one, other) for name, text in prints.items()
                 if text == "not there yet")  # fmt: skip
    names = sorted(one.keys() | other.keys())
    return [
        f"{name}: {one.get(name, 'nothing')}, not {other.get(name, 'nothing')}"
        for name in names
        if one.get(name) != other.get(name)
        and not any(name == each or name.startswith((f"{each}.", f"{each}[")) for each in late)
    ]


def prints_of(value: object, where: str) -> Prints:
    """Return a text for each value in another, through dataclasses, arrays and collections."""
    return dict(_walk(value, where))


def _walk(value: object, where: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > 12:
        return
    if isinstance(value, np.ndarray):
        # Numbers that are not numbers count as one, and a zero is a zero whatever its sign.
        kept = np.nan_to_num(value, nan=np.nan) + 0.0 if value.dtype.kind == "f" else value
        yield where, f"{value.dtype} {value.shape} {_digest(np.ascontiguousarray(kept).tobytes())}"
    elif isinstance(value, TileProgram):
        yield from _walk(value.workload.scenario, f"{where}.scenario", depth + 1)
        yield from _walk(value.totals, f"{where}.totals", depth + 1)
    elif isinstance(value, Trace) or callable(value):
        return
    elif is_dataclass(value):
        yield where, type(value).__name__
        for field in fields(value):
            if field.compare:
                yield from _walk(getattr(value, field.name), f"{where}.{field.name}", depth + 1)
    elif isinstance(value, Mapping):
        for key in value:
            yield from _walk(value[key], f"{where}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        yield where, f"{len(value)} of them"
        for n, each in enumerate(value):
            yield from _walk(each, f"{where}[{n}]", depth + 1)
    elif isinstance(value, set | frozenset):
        yield where, str(sorted(map(repr, value)))
    elif type(value).__eq__ is not object.__eq__:
        yield where, repr(value)


def _serve() -> None:
    """Answer places on standard input with fingerprints, or with what went wrong."""
    app = application()
    while True:
        try:
            place = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: object = prints_at(place)
        except Exception as error:
            answer = RuntimeError(f"a new session: {type(error).__name__}: {error}")
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        app.processEvents()


if __name__ == "__main__":
    # What is pickled names this module, which runs as another one here.
    from tests.soak.fresh import _serve

    _serve()
    os._exit(0)
