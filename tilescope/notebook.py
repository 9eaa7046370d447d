"""Pictures of runs in a notebook, by the painters of the window."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.base.errors import refuse
from simulator.run.row_report import row_report
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.safety.imports import import_qt

if TYPE_CHECKING:
    from ui.look.theme import Theme

SIZE = (1280, 720)
SCENES = ("scene", "board")
_SHOWN_WIDTH = 960


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


def html_of(shown: Any) -> str:
    """Return what a notebook shows in the place of a run or of a state."""
    return show(shown)._repr_html_()


def _svg(now: Snapshot, row: int, scene: str, theme: Theme, size: tuple[int, int]) -> str:
    from PySide6.QtCore import QBuffer, QByteArray, QSize
    from PySide6.QtGui import QPainter

    from ui.export.scenes import paint_moment
    from ui.export.writers.vector import finished_svg, new_svg
    from ui.widgets.application import application

    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # for an application that is made now
    application()
    data = QByteArray()
    buffer = QBuffer(data)  # Qt does not keep what it draws on
    generator = new_svg(buffer, QSize(*size))
    with QPainter(generator) as painter:
        paint_moment(painter, scene, now, row_report(now, row), theme, size)
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
