"""Runs in a notebook, as pages that step and as pictures, by the painters of the window."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from simulator.base.errors import refuse
from simulator.base.version import version
from simulator.lesson.link import ViewLink
from simulator.program.playback import Cursor, Granularity
from simulator.run.row_report import row_report
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.safety.imports import import_qt
from ui.safety.program import TYPED

if TYPE_CHECKING:
    from ui.export.stepping import RunPages
    from ui.look.theme import Theme

SIZE = (1280, 720)
SCENES = ("scene", "board")
MOST_PICTURES = 56
"""Pictures of a page in a notebook; so many take a few seconds."""
_COMMAND = " ".join((*TYPED, "export SCENARIO -o run.html"))
_SHOWN_WIDTH = 960
_SHOWN_HEIGHT = 780
_PAGE_ATTEMPTS = ((Granularity.OP, True), (Granularity.OP, False), (Granularity.TILE, False))
"""What a step of a page is, and whether it moves: the first that is short enough is shown."""
_runs: WeakValueDictionary[int, Trace] = WeakValueDictionary()
"""The runs in memory, by the `id` of their program, which a state has, too."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a state as SVG, which a notebook shows."""

    svg: str  # the file, its letters as outlines
    text: str  # what it shows, for readers of a screen

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Picture: {self.text}>"

    def _repr_html_(self) -> str:
        code = base64.b64encode(self.svg.encode()).decode()
        style = f"width:{_SHOWN_WIDTH}px;max-width:100%"
        source = f"data:image/svg+xml;base64,{code}"
        return f'<img alt="{escape(self.text)}" style="{style}" src="{source}">'


def show(
    shown: Trace | Snapshot,
    visit: int | None = None,
    op: int | None = None,
    *,
    row: int | None = None,
    scene: str = "scene",
    theme: str = "light",
    size: tuple[int, int] = SIZE,
) -> Picture:
    """Return a picture of a run at a place, which a notebook shows.

    Parameters
    ----------
    shown : Trace or Snapshot
        A run, or a state of one; a state has its place already.
    visit : int, optional
        Which visit, counted from 0; by default the one in the middle of the run.
    op : int, optional
        The op of it that has been done last, counted from 0; by default all of them.
    row : int, optional
        The row of Q that is explained; by default the one in the middle of the row block.
    scene : str
        ``scene``: board, memory and softmax; ``board``: the board alone.
    theme : str
        ``light``, ``dark`` or ``contrast``.
    size : tuple of int
        Width and height of the picture, in pixels.

    Returns
    -------
    Picture
        ``picture.svg`` is its text, ``picture.save(path)`` writes it.

    Raises
    ------
    InputError
        There is no such visit, op, row, scene or theme.
    """
    import_qt()
    from ui.look.theme import THEMES

    _check("scene", scene, SCENES)
    _check("theme", theme, tuple(THEMES))
    now = _state(shown, visit, op)
    rows = now.visit.rows
    if row is None:
        row = rows.start + len(rows) // 2
    _check("row", row, range(now.program.workload.seqlen_q))
    return Picture(_svg(now, row, scene, THEMES[theme], size), _said(now))


def remember(run: Trace) -> Trace:
    """Return a run whose states can show what happens around them while it is kept."""
    _runs[id(run.program)] = run
    return run


def html_of(shown: Any) -> str:
    """Return what a notebook shows in the place of a run or of a state.

    A page that steps through the run, or through the visit of the state, where that is short;
    otherwise a picture. A line below says how to make the whole page.
    """
    _start_qt()
    pages = _pages(shown)
    if pages is None:
        body, said = show(shown)._repr_html_(), ""
    else:
        body, said = _frame(pages, shown), f"{pages.words}. "
    return f"{body}<p>{said}A whole run as a page: <code>{escape(_COMMAND)}</code></p>"


def _pages(shown: Trace | Snapshot) -> RunPages | None:
    """Return the steps that are shown; None where they are too many or the run is gone."""
    from ui.export.stepping import RunPages, stops_of

    if isinstance(shown, Snapshot):
        found = _runs.get(id(shown.program))
        visits = range(shown.cursor.visit, shown.cursor.visit + 1)
    else:
        found, visits = shown, range(len(shown))
    if found is None or len(visits) > MOST_PICTURES:
        return None
    for by, moving in _PAGE_ATTEMPTS:
        stops, _ = stops_of(found.program, visits, by, moving=moving)
        if sum(stop.pictures for stop in stops) <= MOST_PICTURES:
            return RunPages(found, visits, SCENES[0], SIZE, by=by, moving=moving)
    return None


def _frame(pages: RunPages, shown: Trace | Snapshot) -> str:
    """Return a page in a frame of its own, which cannot reach the notebook."""
    from ui.export.writers.html import html_bytes
    from ui.export.writers.metadata import note_of

    start = shown.cursor.op if isinstance(shown, Snapshot) and len(pages) > 1 else 0
    begin = Cursor(pages.visit(start), start)
    rows = pages.trace.program.visit(begin.visit).rows
    view = ViewLink(pages.trace.workload.scenario, begin, rows.start + len(rows) // 2)
    note = note_of(view, Path.cwd(), version(), _COMMAND)
    page = html_bytes(pages, note, lambda _share: None, "light", both=False, start=start)
    style = f"width:100%;height:{_SHOWN_HEIGHT}px;border:0"
    return (
        f'<iframe title="{escape(pages.title)}" sandbox="allow-scripts" style="{style}" '
        f'srcdoc="{escape(page.decode())}"></iframe>'
    )


def _start_qt() -> None:
    """Start Qt where nothing has; without a window it draws offscreen."""
    import_qt()
    from ui.widgets.application import application

    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # for an application that is made now
    application()


def _svg(now: Snapshot, row: int, scene: str, theme: Theme, size: tuple[int, int]) -> str:
    from PySide6.QtCore import QBuffer, QByteArray, QSize
    from PySide6.QtGui import QPainter

    from ui.export.scenes import scene_moment
    from ui.export.writers.vector import finished_svg, new_svg

    _start_qt()
    data = QByteArray()
    buffer = QBuffer(data)  # Qt does not keep what it draws on
    generator = new_svg(buffer, QSize(*size))
    with QPainter(generator) as painter:
        scene_moment(scene, now, row_report(now, row), theme, size).paint(painter)
    return finished_svg(bytes(data.data()), None).decode("utf-8")


def _state(shown: Trace | Snapshot, visit: int | None, op: int | None) -> Snapshot:
    if isinstance(shown, Snapshot):
        if visit is not None or op is not None:
            raise refuse("show", "visit", visit, "none: a snapshot has its place already")
        return shown
    if visit is None:
        visit = len(shown) // 2
    _check("visit", visit, range(len(shown)))
    ops = len(shown.program.ops(visit))
    _check("op", ops - 1 if op is None else op, range(ops))
    return shown.snapshot(visit, op)


def _check(key: str, value: object, allowed: range | tuple[str, ...]) -> None:
    """Raise InputError where a value is not one of those allowed."""
    if value in allowed:
        return
    expected = f"0 to {allowed[-1]}" if isinstance(allowed, range) else ", ".join(allowed)
    raise refuse("show", key, value, expected)


def _said(now: Snapshot) -> str:
    """Return in words what a picture shows."""
    place = now.visit
    return (
        f"{now.program.algorithm.title}, visit {place.index} of {len(now.program)}: "
        f"head {place.head}, row block {place.i}, column block {place.j}, "
        f"after {now.ops[now.cursor.op].name}"
    )
