"""Windows in three sizes and three themes: every layout, and runs that look different in them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QPainter

from simulator.base.assets import SCENARIOS
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import Cursor, clamped, end_of_visit
from ui.app.start import make_window
from ui.look.layouts import LAYOUTS
from ui.look.theme import THEMES
from ui.safety.faults import raising
from ui.safety.settings import Settings
from ui.widgets.application import application
from ui.window.main_window import MainWindow

SIZES = ((1280, 720), (1920, 1080), (3840, 2160))


@dataclass(frozen=True, slots=True)
class Shot:
    """One window to draw."""

    scenario: str  # demo in ``assets/scenarios``
    share: float  # place in the run, 0 to 1
    back: int  # how many ops before the end of that visit
    layout: str = "steps"  # layout of the window
    raised: tuple[str, ...] = ()  # docks brought to the front of their tabs

    @property
    def name(self) -> str:
        """The beginning of its files' names."""
        return "-".join([self.scenario, self.layout, *self.raised])


OWN = [name for name in ALGORITHMS if (SCENARIOS / f"{name}.toml").is_file()]
"""Algorithms with a demo of their own."""
SHOTS = (
    *(Shot(name, 0.55, 2) for name in OWN),
    *(Shot(name, 1.0, 2, "algorithm") for name in OWN),
    *(Shot(name, 0.5, 3, "compare") for name in OWN),
    Shot("causal", 0.55, 2),
    Shot("grouped-heads", 0.4, 3),
    Shot("window-sinks", 0.7, 4),
    Shot("large-logits", 0.5, 1),
    Shot("real-scale", 0.5, 1),
    Shot("causal", 0.55, 2, "algorithm"),
    Shot("causal", 0.6, 1, "algorithm", ("values",)),
    Shot("causal", 0.55, 2, "memory"),
    Shot("real-scale", 0.5, 1, "memory", ("roofline",)),
    Shot("causal", 0.55, 2, "memory", ("schedule",)),
    Shot("real-scale", 0.5, 1, "memory", ("schedule",)),
    Shot("grouped-heads", 0.5, 1, "memory", ("pages",)),
    Shot("causal", 0.55, 2, "compare"),
    Shot("real-scale", 1.0, 0, "compare"),
    Shot("causal", 0.55, 2, "exactness"),
    Shot("causal", 0.55, 2, "exactness", ("merge",)),
    Shot("large-logits", 0.9, 0, "exactness"),
    Shot("kv-cache", 0.5, 0, "cache"),
    Shot("multi-query", 0.4, 2, "cache"),
    Shot("inspector", 0.5, 1, "inspector"),
    Shot("inspector", 0.5, 1, "inspector", ("sqrt_d",)),
    Shot("inspector", 0.5, 1, "inspector", ("kernel",)),
    Shot("inspector", 0.5, 1, "inspector", ("positions",)),
    Shot("inspector", 0.5, 1, "inspector", ("order",)),
    Shot("induction", 0.5, 1, "inspector", ("jobs",)),
    Shot("inspector", 0.5, 1, "inspector", ("jobs",)),
    Shot("real-scale", 0.5, 1, "inspector"),
    Shot("layer", 1.0, 0, "layer"),
    Shot("causal", 1.0, 0, "layer"),
)
QUERIES = ("", "causal", "sofmax onlin", "xqzy")
"""What is searched for: nothing, what many kinds have, with a letter missing, what nothing has."""


def draw_windows(folder: Path, only: str) -> Iterator[Path]:
    """Draw every window in every size and theme; yield the files."""
    shots = [*SHOTS, *(Shot("causal", 0.55, 2, layout.name) for layout in LAYOUTS)]
    for shot in {shot.name: shot for shot in shots if only in shot.name}.values():
        for theme, size in product(THEMES, SIZES):
            path = folder / f"{shot.name}-{theme}-{size[0]}x{size[1]}.png"
            draw_window(shot, theme, size, path)
            yield path
    for query in QUERIES:
        if only in f"search-{query}":
            for theme, size in product(THEMES, SIZES):
                path = folder / f"search-{query}-{theme}-{size[0]}x{size[1]}.png"
                draw_search(query, theme, size, path)
                yield path


def draw_search(query: str, theme: str, size: tuple[int, int], path: Path) -> None:
    """Draw a window with the search over it into a PNG."""
    from ui.window.search.dialog import open_search

    with a_window("causal", theme, size) as window:
        go(window, 0.55, 2)
        box = open_search(window)
        box.query.setText(query)
        application().processEvents()
        with raising():
            picture = window.grab()
            with QPainter(picture) as painter:
                painter.drawPixmap(window.mapFromGlobal(box.pos()), box.grab())
        picture.save(str(path))
        box.reject()


def draw_scenes(folder: Path, only: str) -> Iterator[Path]:
    """Draw every demo as an export draws it; yield the files."""
    for demo in sorted(SCENARIOS.glob("*.toml")):
        if only in demo.stem:
            path = folder / f"{demo.stem}.png"
            command = [sys.executable, "-m", "ui", "export", str(demo), "-o", str(path)]
            subprocess.run([*command, "--engine", "numpy"], check=True, capture_output=True)
            yield path


@contextmanager
def a_window(scenario: str, theme: str, size: tuple[int, int]) -> Iterator[MainWindow]:
    """Open a window on a demo without motion; it is closed in the end."""
    app = application()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "settings.ini")
        settings.theme = theme
        settings.motion = False
        window = make_window(SCENARIOS / f"{scenario}.toml", settings=settings)
        window.resize(*size)
        window.show()
        app.processEvents()
        yield window
        window.close()
        window.deleteLater()
        app.processEvents()


def go(window: MainWindow, share: float, back: int) -> None:
    """Go to a share of the run and some ops before the end of that visit, and pick a row there."""
    session = window.session
    session.settle()
    assert session.trace is not None
    program = session.trace.program
    at = end_of_visit(program, int(share * (len(program) - 1)))
    session.go(clamped(program, Cursor(at.visit, at.op - back)))
    rows = program.visit(at.visit).rows
    session.choose_row(rows.start + len(rows) // 2)
    session.settle()


def draw_window(shot: Shot, theme: str, size: tuple[int, int], path: Path) -> None:
    """Draw a window into a PNG."""
    with a_window(shot.scenario, theme, size) as window:
        window.desk.take(shot.layout)
        window.desk.reset()
        for name in shot.raised:
            window.docks[name].raise_()
        # The tabs are shown after those of the previous layout have disappeared.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        go(window, shot.share, shot.back)
        with raising():
            window.grab().save(str(path))
